"""Reads what was measured between hosts: newest days whole, older ones as their figures.

Figures of a day that is past are kept in files, and read from the store again only if one of its
runs has changed. A day is one of UTC, and has the runs that began on it.
"""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing
from hashlib import sha256
from struct import Struct as Packing
from typing import Any, NamedTuple, Protocol

import msgspec
from msgspec import Struct

from benchctl.metrics import STAND_INS, Vocabulary
from benchctl.report.mesh.days import Day, figures_of, read_day, write_day
from benchctl.run.record import Run, RunOutline
from benchctl.store.bulk import Bulk
from benchctl.store.read import Reader

DAY_S = 86_400.0
DETAIL_DAYS = 7
"""Days, the last one included, of which each figure is shown."""
VERSION = "2"
"""Of the files of days, and of what is in them."""
SERIES = "series.json"
_COUNTS = Packing(">II")


class PairFlow(NamedTuple):
    """A flow between two hosts as planned; ``rest`` is its point without the axes of the pair."""

    profile: str
    name: str
    rest: str
    source: str
    to: str


class FigureSeries(NamedTuple):
    """What one flow measures of one metric: ``flow`` is its number; data go ``direction``."""

    flow: int
    direction: str
    metric: str


TimedValue = tuple[float, float, int]
"""A figure of a trial: when that began (Unix), the figure, and the place of its run."""


class FailedTrial(NamedTuple):
    """A trial that failed: when, in which run, and why."""

    time: float
    run: int
    why: str


class Files(Protocol):
    """Where the files of days are; a name that is not there is None."""

    def read(self, name: str) -> bytes | None: ...
    def write(self, name: str, content: bytes) -> None: ...
    def keep_only(self, names: Sequence[str]) -> None: ...


class _OfFlow(dict[tuple[str, str], int]):
    """The numbers of the series of a flow by direction and metric; one that is missing is new."""

    def __init__(self, flow: int, series: list[FigureSeries]) -> None:
        self._flow, self._all = flow, series

    def __missing__(self, key: tuple[str, str]) -> int:
        number = self[key] = len(self._all)
        self._all.append(FigureSeries(self._flow, *key))
        return number


class Numbers:
    """The numbers of flows and series, which stay the same from update to update."""

    def __init__(self, file: bytes | None = None) -> None:
        self.flows: list[PairFlow] = []
        self.series: list[FigureSeries] = []
        self._of_flow: dict[PairFlow, int] = {}
        self._of_series: list[_OfFlow] = []
        flows, series = _decoded(file)
        for flow in flows:
            self.flow_of(flow)
        for figure_series in series:
            self.number_of(*figure_series)

    def flow_of(self, flow: PairFlow) -> int:
        """Return the number of a flow, which may be new."""
        if (number := self._of_flow.get(flow)) is None:
            number = self._of_flow[flow] = len(self.flows)
            self.flows.append(flow)
            self._of_series.append(_OfFlow(number, self.series))
        return number

    def series_of(self, flow: int) -> _OfFlow:
        """Return the numbers of the series of a flow, by direction and metric."""
        return self._of_series[flow]

    def number_of(self, flow: int, direction: str, metric: str) -> int:
        """Return the number of a series, which may be new."""
        return self._of_series[flow][direction, metric]

    @property
    def counts(self) -> tuple[int, int]:
        """The numbers of flows and series."""
        return len(self.flows), len(self.series)

    def encoded(self) -> bytes:
        """Return the file from which these are made again."""
        return msgspec.json.encode((self.flows, self.series))


_NUMBERS = tuple[list[PairFlow], list[FigureSeries]]


def _decoded(file: bytes | None) -> tuple[list[PairFlow], list[FigureSeries]]:
    try:
        flows, series = msgspec.json.decode(file, type=_NUMBERS) if file else ([], [])
    except msgspec.MsgspecError:
        return [], []
    return (
        (flows, series)
        if all(0 <= figure_series.flow < len(flows) for figure_series in series)
        else ([], [])
    )


class _Stamps:
    """What the first flows and series are, as digests: numbers mean nothing without them."""

    def __init__(self, numbers: Numbers) -> None:
        self._numbers = numbers
        self._known: dict[tuple[int, int], str] = {}

    def of(self, counts: tuple[int, int]) -> str:
        """Return the digest of so many; empty if there are fewer."""
        flows, series = counts
        there = self._numbers.counts
        if flows > there[0] or series > there[1]:
            return ""
        if counts not in self._known:
            counted = (self._numbers.flows[:flows], self._numbers.series[:series])
            self._known[counts] = sha256(msgspec.json.encode(counted)).hexdigest()
        return self._known[counts]


class History(Struct):
    """What was measured, oldest first; numbers are those of ``numbers``.

    ``runs`` are those of the newest days, at the places that values and failures name; these begin
    with ``first_day``. ``days`` are the older ones. ``last`` is the place of the newest run of each
    profile. ``at`` has the flows by profile, name and point.
    """

    numbers: Numbers
    vocabulary: Vocabulary
    runs: list[Run]
    values: dict[int, list[TimedValue]]
    failures: dict[int, list[FailedTrial]]
    days: list[Day]
    last: dict[str, int]
    first_day: int
    at: dict[tuple[str, str, str], int]


def read_history(reader: Reader, outlines: Sequence[RunOutline], files: Files) -> History:
    """Read some runs. Raises StoreError.

    The files of their past days are read, or written where they are missing or of other runs.
    """
    by_day: defaultdict[int, list[RunOutline]] = defaultdict(list)
    for outline in sorted(outlines, key=lambda outline: (outline.created_time, outline.id)):
        by_day[int(outline.created_time // DAY_S)].append(outline)
    numbers = Numbers(files.read(SERIES))
    first_whole = max(by_day, default=0) - DETAIL_DAYS + 1
    history = History(numbers, Vocabulary(), [], {}, {}, [], {}, first_whole, {})
    with closing(Bulk(reader.path)) as bulk:
        reading = HistoryReading(reader, bulk, numbers)
        past = [number for number in sorted(by_day) if number < first_whole]
        history.days = [*_past_days(reading, by_day, past, files)]
        for number in sorted(by_day):
            if number >= first_whole:
                for outline in by_day[number]:
                    _add(history, reading, reader.run(outline.id))
        history.at = reading.points
    files.write(SERIES, numbers.encoded())
    files.keep_only([SERIES, *map(_name, past)])
    return history


def _name(number: int) -> str:
    return f"{number}.day"


def _past_days(
    reading: HistoryReading,
    by_day: Mapping[int, Sequence[RunOutline]],
    past: Sequence[int],
    files: Files,
) -> Iterator[Day]:
    numbers, written = reading.numbers, None
    stamps, of_runs = _Stamps(numbers), reading.reader.stamps()
    for number in past:
        runs = [
            (outline.name, outline.profile, str(outline.status), of_runs[outline.id].finished_time)
            for outline in by_day[number]
            if outline.id in of_runs
        ]
        stamp = sha256(repr((VERSION, runs)).encode()).hexdigest()
        day = None
        if (file := files.read(_name(number))) is not None and len(file) > _COUNTS.size:
            counts = _COUNTS.unpack_from(file)
            day = read_day(number, file[_COUNTS.size :], stamp + stamps.of(counts))
        if day is None:
            values: defaultdict[int, list[float]] = defaultdict(list)
            failed: defaultdict[int, int] = defaultdict(int)
            for run in map(reading.reader.run, (outline.id for outline in by_day[number])):
                flows, failures = reading.flows(run)
                for series, _, value in reading.figures(run, flows):
                    values[series].append(value)
                for flow, _, _ in failures:
                    failed[flow] += 1
            counts = numbers.counts
            made_of = stamp + stamps.of(counts)
            file = write_day(Day(number, figures_of(values, counts[1]), failed), made_of)
            # What its numbers mean must be known before it is there.
            if counts != written:
                files.write(SERIES, numbers.encoded())
                written = counts
            files.write(_name(number), _COUNTS.pack(*counts) + file)
            # As it is read later: an update must not change what it did not measure.
            day = read_day(number, file, made_of)
            assert day is not None
        yield day


def _add(history: History, reading: HistoryReading, run: Run) -> None:
    place = len(history.runs)
    flows, failures = reading.flows(run)
    if not flows and not failures:
        return
    history.runs.append(run)
    history.vocabulary = run.vocabulary | history.vocabulary
    history.last[run.profile] = place
    for series, time, value in reading.figures(run, flows):
        history.values.setdefault(series, []).append((time, value, place))
    for flow, time, why in failures:
        history.failures.setdefault(flow, []).append(FailedTrial(time, place, why))


Flows = dict[int, tuple[_OfFlow, float]]
"""The numbers of the series of flows, and the times of their trials, by ids in the store."""


class HistoryReading:
    """Reads the figures of runs, each under the number of its series."""

    def __init__(self, reader: Reader, bulk: Bulk, numbers: Numbers) -> None:
        self.reader, self.numbers = reader, numbers
        self._bulk = bulk
        # By the plan of the run: its flows, and the axes of pairs of each flow.
        self._known: dict[str, dict[tuple[str, ...], int]] = {}
        self._axes: dict[str, dict[str, frozenset[str]]] = {}
        self.points: dict[tuple[str, str, str], int] = {}

    def flows(self, run: Run) -> tuple[Flows, list[tuple[int, float, str]]]:
        """Return each flow that counts, by its id in the store; and failures.

        A failure is the number of the flow, the time and the reason. A search has neither: its
        trials are tries.
        """
        flows: Flows = {}
        failures: list[tuple[int, float, str]] = []
        if run.settings.search is not None:
            return flows, failures
        plan = f"{run.profile} {run.profile_sha256}"
        known = self._known.setdefault(plan, {})
        for point, at, why, flow_id, *ends, counts in self._bulk.ended_flows(run.id):
            key = (point, *ends)
            if (flow := known.get(key)) is None:
                flow = known[key] = self._number(run, plan, point, *ends)
            time = run.created_time if at is None else at
            if counts and flow_id is not None:
                flows[flow_id] = self.numbers.series_of(flow), time
            if why:
                failures.append((flow, time, why))
        return flows, failures

    def _number(self, run: Run, plan: str, point: str, name: str, source: str, to: str) -> int:
        values = json.loads(point)
        of_pair = self._pair_axes(run, plan).get(name, frozenset())
        rest = ", ".join(f"{k}={v}" for k, v in values.items() if k not in of_pair)
        flow = self.numbers.flow_of(PairFlow(run.profile, name, rest, source, to))
        self.points[run.profile, name, point_text(values)] = flow
        return flow

    def figures(self, run: Run, flows: Flows) -> list[tuple[int, float, float]]:
        """Return series, time and value of the figures that some flows of a run have."""
        if not flows:
            return []
        first, last = min(flows), max(flows)
        # What stands in for a metric is left out where that was measured.
        measured = [name for name in STAND_INS if self._bulk.has_figure(first, last, name)]
        without = {STAND_INS[name] for name in measured}
        wanted = [name for name in run.vocabulary.wanted if name not in without]
        return [
            (found[0][direction, metric], found[1], value)
            for flow_id, direction, metric, value in self._bulk.figures_between(first, last, wanted)
            if (found := flows.get(flow_id))
        ]

    def _pair_axes(self, run: Run, plan: str) -> dict[str, frozenset[str]]:
        """Return the axes whose values are the pairs of hosts, by the names of flows."""
        if plan not in self._axes:
            ends = self._bulk.planned_ends(run.id)
            self._axes[plan] = {
                name: pair_axes(
                    [(flow.point, (flow.source, flow.target)) for flow in ends if flow.name == name]
                )
                for name in {flow.name for flow in ends}
            }
        return self._axes[plan]


def point_text(point: Mapping[str, Any]) -> str:
    """Return a point as a text that is the same for the same point."""
    return repr(sorted((axis, str(value)) for axis, value in point.items()))


def pair_axes(ends: Sequence[tuple[str, Sequence[str]]]) -> frozenset[str]:
    """Return the axes whose values and the pairs of hosts stand for each other.

    ``ends`` are the point (JSON) and the pair of each trial of one flow.
    """
    pairs: defaultdict[tuple[str, Any], set[tuple[str, ...]]] = defaultdict(set)
    values: defaultdict[tuple[str, tuple[str, ...]], set[Any]] = defaultdict(set)
    for point, pair in ends:
        for axis, value in json.loads(point).items():
            pairs[axis, value].add(tuple(pair))
            values[axis, tuple(pair)].add(value)
    axes = {axis for axis, _ in pairs}
    many = {axis for (axis, _), found in pairs.items() if len(found) > 1}
    many |= {axis for (axis, _), found in values.items() if len(found) > 1}
    return frozenset(axes - many)
