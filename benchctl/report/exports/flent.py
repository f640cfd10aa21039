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
from statistics import fmean
from typing import Any, NamedTuple

import benchctl
from benchctl.errors import UsageError
from benchctl.imports.flent import METRIC, RATES, STREAM
from benchctl.report.report import StoredRun
from benchctl.run.record import RecordedFlow, Trial
from benchctl.store.read import StoredSample

# flent's own (STEP_SIZE).
_STEP_S = 0.2
# Three hours: beyond it, steps grow.
_MOST_STEPS = 54_000
_WAYS = {"send": "upload", "receive": "download"}
_PING = "Ping (ms) ICMP"
_Points = list[tuple[float, float, float]]
"""The beginning and the end of each interval in Unix time, and its value in flent's unit."""


class _DataSet(NamedTuple):
    """A data set: what it is of, and its points."""

    kind: str
    """``TCP upload``, ``UDP download``, … or that of pings."""
    metric: str
    points: _Points


def check(*, single: bool) -> None:
    """Raise UsageError for a run of several trials."""
    if not single:
        raise UsageError(
            "a file of flent holds one trial, and this run has several",
            "afterwards, benchctl export writes one with --trial, or each with -o DIRECTORY",
        )


def export(stored: StoredRun) -> Iterator[bytes]:
    """Yield the file. Raises StoreError, and UsageError if the run has not one trial for it."""
    trial = _chosen(stored)
    flows = {flow.id: flow for flow in stored.reader.flows(trial.id)}
    attempt = max((flow.attempt for flow in flows.values()), default=0)
    found = _data_sets(stored.reader.samples_of_trial(trial.id, attempt=attempt), flows)
    if not found:
        raise UsageError(
            f"trial {trial.position + 1} has no sample that flent has a name for",
            "flent shows rates and round-trip times",
        )
    document = _document(stored, trial, [*flows.values()], found)
    # Without a time in the header, equal data are equal files.
    yield gzip.compress(json.dumps(document).encode(), mtime=0)


def _chosen(stored: StoredRun) -> Trial:
    trials = [*stored.reader.trials(stored.run.id)]
    if stored.trial is not None:
        trials = [trial for trial in trials if trial.position + 1 == stored.trial]
        if not trials:
            raise UsageError(f"run {stored.run.name} has no trial {stored.trial}")
    if len(trials) != 1:
        raise UsageError(
            f"a file of flent holds one trial, and run {stored.run.name} has {len(trials)}",
            "choose one with --trial, or name a directory with -o to write all",
        )
    return trials[0]


def _data_sets(
    samples: Iterator[StoredSample], flows: Mapping[int, RecordedFlow]
) -> list[_DataSet]:
    """Return a data set for each stream of each flow, and for each flow of pings."""
    series: dict[tuple[int, str, int], dict[str, _Points]] = {}
    for one in samples:
        begun = flows[one.flow_id].started_time
        if one.omitted or begun is None:
            continue
        for metric in (*RATES, "rtt_s"):
            if metric in one.metrics:
                factor = 1e3 if metric == "rtt_s" else 1e-6
                point = (begun + one.start_s, begun + one.end_s, one.metrics[metric] * factor)
                key = (one.flow_id, one.direction, one.stream)
                series.setdefault(key, {}).setdefault(metric, []).append(point)
    found = []
    for (flow_id, direction, _), metrics in sorted(series.items()):
        # What arrived says more than what was sent.
        metric = next(name for name in (*RATES, "rtt_s") if name in metrics)
        kind = _PING
        if metric != "rtt_s":
            told = {**flows[flow_id].requested, **flows[flow_id].effective}
            protocol = "UDP" if told.get("protocol") == "udp" else "TCP"
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


def _document(
    stored: StoredRun, trial: Trial, flows: Sequence[RecordedFlow], found: Sequence[_DataSet]
) -> dict[str, Any]:
    kinds = [one.kind for one in found]
    test, suffix = _test(kinds)
    begin = min(points[0][0] for *_, points in found)
    end = max(end for *_, points in found for _, end, _ in points)
    step_s = max(_STEP_S, (end - begin) / _MOST_STEPS)
    steps = [number * step_s for number in range(int((end - begin) / step_s) + 1)]
    named: dict[str, _DataSet] = {}
    for one in found:
        base = f"{one.kind}{suffix}" if one.kind.startswith("TCP") else one.kind
        number = sum(other.kind == one.kind for other in named.values()) + 1
        alone = one.kind in (_PING, "UDP upload") and number == 1
        named[base if alone else f"{base}{STREAM}{number}"] = one
    results = {name: _at_steps(one, begin, steps, step_s) for name, one in named.items()}
    for kind in ("TCP upload", "TCP download"):
        of_kind = [results[name] for name, one in named.items() if one.kind == kind]
        if of_kind:
            results[f"{kind} avg"] = [_over(fmean, values) for values in zip(*of_kind, strict=True)]
            results[f"{kind} sum"] = [_over(sum, values) for values in zip(*of_kind, strict=True)]
    units = {name: "ms" if name.startswith("Ping") else "Mbits/s" for name in results}
    begun = datetime.fromtimestamp(begin, UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ")
    point = ", ".join(f"{axis}={value}" for axis, value in trial.point.items())
    title = " ".join(filter(None, [stored.run.profile, point, f"repeat {trial.repeat}"]))
    return {
        "version": 4,
        "metadata": {
            "NAME": test, "TITLE": title, "TIME": begun, "T0": begun, "LENGTH": end - begin,
            "TOTAL_LENGTH": end - begin, "STEP_SIZE": step_s, "HOST": flows[0].target,
            "HOSTS": [flows[0].target], "LOCAL_HOST": flows[0].source, "IP_VERSION": None,
            "NOTE": f"run {stored.run.name}, trial {trial.position + 1}",
            "FLENT_VERSION": f"benchctl {benchctl.__version__}",
            "DATA_FILENAME": f"{stored.run.name}-{trial.position + 1}.flent.gz",
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
            name: [{"t": end, "val": value, "dur": end - start} for start, end, value in one.points]
            for name, one in named.items()
        },
    }  # fmt: skip


def _at_steps(
    one: _DataSet, begin: float, steps: Sequence[float], step_s: float
) -> list[float | None]:
    """Return the values at equal steps: a rate of its interval, the mean of the pings in a step."""
    if one.metric == "rtt_s":
        bins: dict[int, list[float]] = {}
        for start, _, value in one.points:
            bins.setdefault(int((start - begin) / step_s), []).append(value)
        return [fmean(bins[n]) if n in bins else None for n in range(len(steps))]
    starts = [start for start, _, _ in one.points]
    found: list[float | None] = []
    for step in steps:
        place = bisect_right(starts, begin + step + 1e-9) - 1
        covers = place >= 0 and begin + step < one.points[place][1]
        found.append(one.points[place][2] if covers else None)
    return found


def _over(statistic: Any, values: Sequence[float | None]) -> float | None:
    known = [value for value in values if value is not None]
    return statistic(known) if known else None
