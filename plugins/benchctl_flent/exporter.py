"""One trial as a data file of flent, which flent's own viewer opens.

A flent file is of a test that flent knows, with the data sets of that test. Each stream of each
flow that measures a rate is one: ``TCP upload::1``, ``TCP upload::2``, and so on; pings are
``Ping (ms) ICMP``. ``raw_values`` has every sample at its time, ``results`` the same at equal
steps. What flent has no name for is left out: one-way delays, windows, retransmits.

The format: https://flent.org/data-format.html, version 4.
"""

from __future__ import annotations

import gzip
import json
from bisect import bisect_right
from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, datetime
from importlib.metadata import version
from statistics import fmean
from typing import Any, NamedTuple

from benchctl.api import ExportedRun, Exporter, ExportError
from benchctl_flent.series import METRIC, RATES, STREAM

# flent's own (STEP_SIZE).
_STEP_S = 0.2
# Three hours: beyond it, steps grow.
_MOST_STEPS = 54_000
_WAYS = {"send": "upload", "receive": "download"}
_PING = "Ping (ms) ICMP"
_Entry = Mapping[str, Any]
"""An object of the run's JSON."""
_Points = list[tuple[float, float, float]]
"""The beginning and the end of each interval in Unix time, and its value in flent's unit."""


class _DataSet(NamedTuple):
    """A data set: what it is of, and its points."""

    kind: str
    """``TCP upload``, ``UDP download``, … or that of pings."""
    metric: str
    points: _Points


class FlentExporter(Exporter):
    """flent's data files: a trial each."""

    name = "flent"
    about = "one trial as a data file of flent"
    endings = ("flent.gz",)
    binary = True
    single_trial = True

    def export(self, run: ExportedRun) -> Iterator[bytes]:
        """Yield the file. Raises ExportError if flent has no name for anything in the trial."""
        document = run.document
        (trial,) = document["trials"]
        found = _data_sets(run.samples(), trial["flows"])
        if not found:
            raise ExportError(
                f"trial {trial['index'] + 1} has no sample that flent has a name for",
                "flent shows rates and round-trip times",
            )
        # Without a time in the header, equal data are equal files.
        yield gzip.compress(json.dumps(_file(document["run"], trial, found)).encode(), mtime=0)


EXPORTER = FlentExporter()


def _data_sets(samples: Iterator[_Entry], flows: Sequence[_Entry]) -> list[_DataSet]:
    """Return a data set for each stream of each flow, and for each flow of pings."""
    # A flow of both directions has two entries.
    of_name = {flow["name"]: flow for flow in flows}
    place = {name: number for number, name in enumerate(of_name)}
    series: dict[tuple[str, str, int], dict[str, _Points]] = {}
    for sample in samples:
        begun, flow = sample["started_time"], of_name.get(sample["flow"])
        # Earlier attempts have failed.
        if (
            sample["omitted"]
            or begun is None
            or flow is None
            or sample["attempt"] != flow["attempts"]
        ):
            continue
        for metric in (*RATES, "rtt_s"):
            if metric in sample["metrics"]:
                factor = 1e3 if metric == "rtt_s" else 1e-6
                value = sample["metrics"][metric] * factor
                point = (begun + sample["start_s"], begun + sample["end_s"], value)
                key = (sample["flow"], sample["direction"], sample["stream"])
                series.setdefault(key, {}).setdefault(metric, []).append(point)
    found = []
    for name, direction, stream in sorted(series, key=lambda key: (place[key[0]], *key[1:])):
        metrics = series[name, direction, stream]
        metric = next(candidate for candidate in (*RATES, "rtt_s") if candidate in metrics)
        kind = _PING
        if metric != "rtt_s":
            settings = {**of_name[name]["requested"], **of_name[name]["effective"]}
            protocol = "UDP" if settings.get("protocol") == "udp" else "TCP"
            kind = f"{protocol} {_WAYS.get(direction, 'upload')}"
        found.append(_DataSet(kind, metric, sorted(metrics[metric])))
    return found


def _test(kinds: Sequence[str]) -> tuple[str, str]:
    """Return the test of flent that has these data sets, and what follows their names in it."""
    if "TCP upload" in kinds and "TCP download" in kinds:
        return "rrul_be_nflows", " BE"
    for kind, test in (
        ("TCP upload", "tcp_nup"), ("TCP download", "tcp_ndown"), ("UDP upload", "udp_flood"),
    ):  # fmt: skip
        if kind in kinds:
            return test, ""
    return "ping", ""


def _file(run: _Entry, trial: _Entry, found: Sequence[_DataSet]) -> dict[str, Any]:
    kinds = [data_set.kind for data_set in found]
    test, suffix = _test(kinds)
    begin = min(points[0][0] for *_, points in found)
    end = max(end for *_, points in found for _, end, _ in points)
    step_s = max(_STEP_S, (end - begin) / _MOST_STEPS)
    steps = [number * step_s for number in range(int((end - begin) / step_s) + 1)]
    named: dict[str, _DataSet] = {}
    for data_set in found:
        base = f"{data_set.kind}{suffix}" if data_set.kind.startswith("TCP") else data_set.kind
        number = sum(other.kind == data_set.kind for other in named.values()) + 1
        alone = data_set.kind in (_PING, "UDP upload") and number == 1
        named[base if alone else f"{base}{STREAM}{number}"] = data_set
    results = {name: _at_steps(data_set, begin, steps, step_s) for name, data_set in named.items()}
    for kind in ("TCP upload", "TCP download"):
        of_kind = [results[name] for name, data_set in named.items() if data_set.kind == kind]
        if of_kind:
            results[f"{kind} avg"] = [_over(fmean, values) for values in zip(*of_kind, strict=True)]
            results[f"{kind} sum"] = [_over(sum, values) for values in zip(*of_kind, strict=True)]
    units = {name: "ms" if name.startswith("Ping") else "Mbits/s" for name in results}
    begun = datetime.fromtimestamp(begin, UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ")
    point = ", ".join(f"{axis}={value}" for axis, value in trial["point"].items())
    title = " ".join(filter(None, [run["profile"], point, f"repeat {trial['repeat']}"]))
    number, flow = trial["index"] + 1, trial["flows"][0]
    return {
        "version": 4,
        "metadata": {
            "NAME": test, "TITLE": title, "TIME": begun, "T0": begun, "LENGTH": end - begin,
            "TOTAL_LENGTH": end - begin, "STEP_SIZE": step_s, "HOST": flow["to"],
            "HOSTS": [flow["to"]], "LOCAL_HOST": flow["from"], "IP_VERSION": None,
            "NOTE": f"run {run['id']}, trial {number}",
            "FLENT_VERSION": f"benchctl {version('benchctl')}",
            "DATA_FILENAME": f"{run['id']}-{number}.flent.gz",
            "TEST_PARAMETERS": {
                "upload_streams": str(kinds.count("TCP upload")),
                "download_streams": str(kinds.count("TCP download")),
            },
            "SERIES_META": {
                name: {"UNITS": unit, **({METRIC: named[name].metric} if name in named else {})}
                for name, unit in units.items()
            },
        },
        "x_values": steps,
        "results": results,
        "raw_values": {
            name: [
                {"t": end, "val": value, "dur": end - start}
                for start, end, value in data_set.points
            ]
            for name, data_set in named.items()
        },
    }  # fmt: skip


def _at_steps(
    data_set: _DataSet, begin: float, steps: Sequence[float], step_s: float
) -> list[float | None]:
    """Return the values at equal steps: a rate of its interval, the mean of the pings in a step."""
    if data_set.metric == "rtt_s":
        bins: dict[int, list[float]] = {}
        for start, _, value in data_set.points:
            bins.setdefault(int((start - begin) / step_s), []).append(value)
        return [fmean(bins[n]) if n in bins else None for n in range(len(steps))]
    starts = [start for start, _, _ in data_set.points]
    found: list[float | None] = []
    for step in steps:
        place = bisect_right(starts, begin + step + 1e-9) - 1
        covers = place >= 0 and begin + step < data_set.points[place][1]
        found.append(data_set.points[place][2] if covers else None)
    return found


def _over(statistic: Any, values: Sequence[float | None]) -> float | None:
    known = [value for value in values if value is not None]
    return statistic(known) if known else None
