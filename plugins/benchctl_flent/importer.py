"""Reads the data files of flent: one trial each, a flow for each of its data sets.

The format is JSON (https://flent.org/data-format.html): ``raw_values`` has the points of each data
set, ``{"t": Unix time, "val": ..., "dur": ...}``. Rates are in Mbit/s, round-trip times in
ms. ``TCP upload::2`` is the second stream of ``TCP upload``. What is sent is counted by the sender,
unless the series says which metric it is, as those of ``benchctl export --format flent`` do.
"""

from __future__ import annotations

import json
import math
import re
from calendar import timegm
from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime
from typing import Any, NamedTuple

from benchctl.api import (
    Direction,
    Event,
    Failure,
    FailureKind,
    Importer,
    ParserError,
    Recording,
    Sample,
    Warn,
    write_duration,
)
from benchctl_flent.series import METRIC, RATES, STREAM

_NEWEST = 4
"""Version of the format. Before it, round-trip times of UDP were transactions per second."""
_TOLD = re.compile(rb'"(?:raw_values|x_values)"\s*:')
_RATE = re.compile(r"(?:TCP|UDP|SCTP|QUIC) (upload|download)(.{0,60})")
_RTT = re.compile(r"Ping \(ms\)(.{0,60})")
_COMPUTED = re.compile(r".* (?:avg|sum|totals|fairness)|TCP totals")
# What a series of points without a length has at least one of.
_STEP_S = 0.2
_MOST_NAMED = 5
_TIMES = ("%Y-%m-%dT%H:%M:%S.%f", "%Y-%m-%dT%H:%M:%S")


class _Series(NamedTuple):
    """A series of a file: the flow and the stream that it belongs to, and its points."""

    flow: str
    stream: int
    direction: Direction
    metric: str
    factor: float
    points: Sequence[Any]


class FlentImporter(Importer):
    """flent's data files: a trial each."""

    name = "flent"
    about = "data files of flent"

    def recorded(self, data: bytes) -> Sequence[Mapping[str, Recording]] | None:
        """Return the trial in a file, by flow; None if it is no file of flent."""
        if not (_TOLD.search(data) and b'"metadata"' in data):
            return None
        try:
            document = json.loads(data, parse_constant=lambda _: None)
            return [_trial(document)]
        except (ValueError, RecursionError) as error:
            raise ParserError(f"not whole, or no JSON: {error}") from None
        except (TypeError, KeyError, AttributeError, OverflowError) as error:
            raise ParserError(f"not as flent writes it: {type(error).__name__}: {error}") from None


IMPORTER = FlentImporter()


def _trial(document: Mapping[str, Any]) -> Mapping[str, Recording]:
    metadata = document["metadata"]
    version = int(document.get("version", 1))
    if version > _NEWEST:
        raise ParserError(f"version {version} of the format is newer than {_NEWEST}")
    data_sets: list[_Series] = []
    unread: list[str] = []
    raw = document.get("raw_values") or {}
    if not raw:
        raise ParserError("it has no raw values: flent writes them since 0.9")
    for name, points in raw.items():
        if _COMPUTED.fullmatch(name):
            continue
        data_set = _series(name, points, metadata, version)
        if data_set is None:
            unread.append(name)
        else:
            data_sets.append(data_set)
    if not data_sets:
        raise ParserError(f"it has none of the data sets that are known: {_named(unread)}")
    zero = _second_0(metadata, data_sets)
    flows: dict[str, list[_Series]] = {}
    for data_set in data_sets:
        flows.setdefault(data_set.flow, []).append(data_set)
    warnings = [Warn(f"data sets that are not read: {_named(unread)}")] if unread else []
    return {
        name: _recording(series, metadata, zero, () if number else warnings)
        for number, (name, series) in enumerate(flows.items())
    }


def _series(name: str, points: Any, metadata: Mapping[str, Any], version: int) -> _Series | None:
    flow, _, stream = name.partition(STREAM)
    if not isinstance(points, list) or not (stream.isdecimal() or not stream):
        return None
    number = int(stream) - 1 if 0 < len(stream) < 5 else 0
    if match := _RATE.fullmatch(flow):
        sends = match[1] == "upload"
        said = (metadata.get("SERIES_META") or {}).get(name) or {}
        metric = said.get(METRIC, "sent_bps" if sends else "throughput_bps")
        if metric not in RATES:
            return None
        direction = Direction.SEND if sends else Direction.RECEIVE
        return _Series(flow, number, direction, metric, 1e6, points)
    if _RTT.fullmatch(flow) and not ("UDP" in flow and version < _NEWEST):
        return _Series(flow, number, Direction.ROUND_TRIP, "rtt_s", 1e-3, points)
    return None


def _second_0(metadata: Mapping[str, Any], data_sets: Sequence[_Series]) -> float:
    """Return the beginning of the test as Unix time. Raises ParserError."""
    times = [
        float(point["t"]) for data_set in data_sets for point in data_set.points if "t" in point
    ]
    if not times or not all(map(math.isfinite, times)):
        raise ParserError("it has no point, or one without a time")
    first = min(times)
    text = metadata.get("T0") or metadata.get("TIME") or ""
    for form in _TIMES:
        try:
            parsed = datetime.strptime(text.removesuffix("Z"), form)
        except ValueError:
            continue
        said = timegm(parsed.timetuple()) + parsed.microsecond / 1e6
        # Old files have local time: the points say of which zone.
        return said - 3600 * round((said - first) / 3600) if not text.endswith("Z") else said
    return math.floor(first)


def _recording(
    series: Sequence[_Series], metadata: Mapping[str, Any], zero: float, warnings: Sequence[Event]
) -> Recording:
    events: list[Event] = [*warnings]
    samples = [sample for data_set in series for sample in _samples(data_set, zero)]
    samples.sort(key=lambda sample: sample.end_s)
    events += samples
    if not samples:
        events.append(Failure(FailureKind.TOOL, "flent has no point of it"))
    length_s = metadata.get("LENGTH")
    parameters: dict[str, Any] = {"test": str(metadata["NAME"])}
    if title := metadata.get("TITLE"):
        parameters["title"] = str(title)
    if isinstance(length_s, int | float) and length_s > 0:
        parameters["duration"] = write_duration(length_s)
    return Recording(
        events,
        series[0].direction,
        parameters,
        str(metadata.get("LOCAL_HOST") or ""),
        str(metadata.get("HOST") or ""),
        started_time=zero,
        facts=_facts(metadata),
    )


def _samples(series: _Series, zero: float) -> Iterator[Sample]:
    before_s: float | None = None
    for point in series.points:
        value = point.get("val")
        if value is None or "t" not in point:
            continue
        end_s = float(point["t"]) - zero
        amount = float(value) * series.factor
        if series.metric == "rtt_s":
            length_s = amount
        elif point.get("dur"):
            length_s = float(point["dur"])
        else:
            length_s = _STEP_S if before_s is None else max(0.0, end_s - before_s)
        before_s = end_s
        metrics = {series.metric: amount}
        # Times are to the microsecond; the rest is a rounding error of Unix time as a float.
        yield Sample(
            round(end_s - length_s, 6), round(end_s, 6), metrics, series.stream, series.direction
        )


def _facts(metadata: Mapping[str, Any]) -> dict[str, Any]:
    names = {
        "LOCAL_HOST": "hostname", "KERNEL_NAME": "system", "KERNEL_RELEASE": "kernel",
        "FLENT_VERSION": "flent",
    }  # fmt: skip
    return {fact: str(metadata[name]) for name, fact in names.items() if metadata.get(name)}


def _named(names: Sequence[str]) -> str:
    more = f" and {len(names) - _MOST_NAMED} more" if len(names) > _MOST_NAMED else ""
    return ", ".join(names[:_MOST_NAMED]) + more
