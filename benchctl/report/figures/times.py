"""Figures over time: what the flows of trials measured, and what happened to them."""

from __future__ import annotations

import math
from bisect import bisect_right
from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from itertools import pairwise
from operator import attrgetter
from statistics import median
from typing import NamedTuple

from msgspec.structs import replace

from benchctl.analysis.results import FlowReport, TrialReport
from benchctl.metrics import Vocabulary
from benchctl.report.figures.axes import value_axis
from benchctl.report.figures.figure import Axis, LineRole, Panel, Picture, PictureEvent, PictureLine
from benchctl.report.figures.parts import Naming, Source, left_out, names_of
from benchctl.report.figures.request import PictureRequest
from benchctl.report.report import place_of
from benchctl.report.text.happenings import lab_changes
from benchctl.report.timeline.series import Range, Series
from benchctl.report.timeline.traces import ALL, LineKey, TimeWindow, TrialLines
from benchctl.store.bulk import Bulk, SeriesSource
from benchctl.units import format_value

# A colour and a mark for each; more lines over time hide each other.
MOST_LINES = 8
MOST_PANELS = 3
# A gap of this many usual distances means missing samples: nothing is drawn across.
HOLE = 3.5
LEAST_SPAN_S = 1.0
# As on the screens: this share of a line's values may be beyond the axis, if an axis for all would
# be so many times as high; for noise there is some room above the others.
FEW, GAIN, NOISE = 0.05, 2.0, 1.25
_AT = attrgetter("x", "word")
_RATE = "throughput_bps"
_BAND = "a band is the range of the samples that the line is the mean of"


def panels_of(vocabulary: Vocabulary, measured: Sequence[str]) -> list[str]:
    """Return the metrics that a figure over time shows: headlines, and one of each aspect."""
    shown: list[str] = []
    aspects = set()
    for name in vocabulary.plotted(measured):
        aspect = vocabulary.describe(name).aspect
        if name in vocabulary.headlines.values() or (aspect and aspect not in aspects):
            shown.append(name)
            aspects.add(aspect)
    return (shown or list(measured))[:MOST_PANELS]


def over_time(request: PictureRequest, bulk: Bulk) -> Picture | None:
    """Return the figure of a part's trials; None if they have no sample of its metrics.

    Of each point it shows the first repeat that has samples, if the part names none. Raises
    StoreError.
    """
    trials = request.trials
    metrics = [metric for metric, _ in request.metrics]
    sources = [
        (
            Source(trial.trial.point, flow_line.name, flow_line.direction),
            _first_of(flow, flow_line, metrics),
        )
        for trial in trials
        for flow in trial.flows
        for flow_line in flow_lines(flow, metrics)
    ]
    sources.sort(key=lambda source: place_of(request.run, source[0].point))
    naming = names_of((source for source, _ in sources), request.axes)
    firsts = {naming.key(source): metric for source, metric in sources}
    drawn = _Drawn(request, naming, metrics, firsts)
    for trial in sorted(trials, key=lambda trial: trial.trial.repeat):
        drawn.add(trial, bulk)
    return drawn.figure()


class FlowLine(NamedTuple):
    """One of the lines of a flow: a direction, or the hop of its route that a stream is of."""

    name: str
    direction: str
    stream: int = ALL


def flow_lines(flow: FlowReport, metrics: Collection[str]) -> list[FlowLine]:
    """Return the lines of a flow that have one of some metrics."""
    own = flow.flow
    directions = dict.fromkeys(direction for direction, metric in flow.figures if metric in metrics)
    return [
        *(FlowLine(own.name, direction) for direction in directions),
        *(
            FlowLine(f"{own.name} hop {number}", own.direction, number)
            for number, hop in enumerate(own.route, 1)
            if hop.figures.keys() & set(metrics)
        ),
    ]


def _first_of(flow: FlowReport, flow_line: FlowLine, metrics: Sequence[str]) -> str:
    """Return the first of some metrics that a line of a flow has."""
    hops = [hop for number, hop in enumerate(flow.flow.route, 1) if number == flow_line.stream]
    own = {metric for hop in hops for metric in hop.figures}
    own |= {metric for direction, metric in flow.figures if direction == flow_line.direction}
    return next(metric for metric in metrics if metric in own)


def read_traces(
    bulk: Bulk, report: TrialReport, vocabulary: Vocabulary, metrics: Collection[str]
) -> TrialLines:
    """Return the lines of a trial's last attempt, of some metrics. Raises StoreError."""
    trial = report.trial
    delays_s = {flow.name: flow.delay_s for flow in trial.flows}
    window = TimeWindow(0.0, max(trial.duration_s, LEAST_SPAN_S))
    traces = TrialLines(window, (), vocabulary, [*delays_s])
    flows = {flow.flow.id: flow.flow for flow in report.flows}
    for columns in bulk.columns(flows, metrics):
        flow = flows[columns.flow_id]
        streams = flow.requested.get("streams", 1)
        source = SeriesSource(
            flow.name, flow.backend, columns.role, columns.stream, columns.direction,
            (*columns.values,), delays_s.get(flow.name, 0.0),
            streams if isinstance(streams, int) else 1,
        )  # fmt: skip
        traces.add_columns(source, columns)
    traces.flush()
    return traces


class _Drawn:
    """The lines of a figure, added trial by trial, so that only one trial is in memory."""

    def __init__(
        self, request: PictureRequest, naming: Naming, metrics: Sequence[str],
        keys: Mapping[tuple[str, ...], str],
    ) -> None:  # fmt: skip
        """``keys`` have the first metric that each has: the probes of a load are not hidden by it.

        A panel has `MOST_LINES` of those of which it is the first.
        """
        self._request = request
        self._naming = naming
        self._lines: dict[str, list[PictureLine]] = {metric: [] for metric in metrics}
        self._events: dict[str, list[PictureEvent]] = {metric: [] for metric in metrics}
        self._changes: set[tuple[float, str]] = set()
        """When the lab changed, and how."""
        counts: Counter[str] = Counter()
        shown = []
        for key, metric in keys.items():
            counts[metric] += 1
            if counts[metric] <= MOST_LINES:
                shown.append(key)
        self._numbers = {key: number for number, key in enumerate(shown)}
        self._count = len(keys)
        self._repeats: dict[tuple[tuple[str, ...], FlowLine], int] = {}
        self._left_repeats: set[int] = set()
        self._banded = False
        self._end_s = 0.0
        self._rates: dict[str, list[PictureLine]] = {}
        """The rates of all flows of a point in one direction, by the name of their total."""

    def add(self, report: TrialReport, bulk: Bulk) -> None:
        trial = report.trial
        wanted = []
        for flow in report.flows:
            for flow_line in flow_lines(flow, self._lines):
                key = self._naming.key(Source(trial.point, flow_line.name, flow_line.direction))
                if self._number(key, trial.repeat, flow_line) is not None:
                    wanted.append((flow, flow_line, key))
        if not wanted:
            return
        vocabulary = self._request.run.vocabulary
        traces = read_traces(bulk, report, vocabulary, self._lines)
        self._end_s = max(self._end_s, traces.end_s)
        self._changes.update(lab_changes(self._request.run.settings, trial.duration_s))
        for flow, flow_line, key in wanted:
            number = self._numbers[key]
            for metric, lines in self._lines.items():
                line = LineKey(flow.flow.name, flow_line.direction, metric, flow_line.stream)
                series = traces.line(line)
                ends = self._ends(trial.duration_s, series) if series else (0.0, 0.0)
                if series is None or ends[0] >= ends[1]:
                    continue
                drawn = self._line(", ".join(key), number, series, trial.duration_s)
                lines.append(drawn)
                if metric == _RATE:
                    point = [str(trial.point.get(axis, "-")) for axis in self._naming.axes]
                    name = ", ".join([*point, f"total {flow_line.direction}"])
                    self._rates.setdefault(name, []).append(drawn)
                expected = flow.flow.expected.get(flow_line.direction, {}).get(metric)
                if expected is not None:
                    lines.append(
                        PictureLine(
                            "expected", number, ends, [expected] * 2, role=LineRole.EXPECTED
                        )
                    )
            delay_s = traces.delays_s.get(flow.flow.name, 0.0)
            for event in flow.events:
                mine = event.direction == flow_line.direction and flow_line.stream == ALL
                at_s = event.at_s + delay_s
                if mine and event.metric in self._events:
                    here = PictureEvent(at_s, event.kind.value, number)
                    self._events[event.metric].append(here)

    def _number(self, key: tuple[str, ...], repeat: int, flow_line: FlowLine) -> int | None:
        """Return the number of a line; None if it is left out."""
        first = self._repeats.setdefault((key, flow_line), repeat)
        if first != repeat:
            self._left_repeats.add(repeat)
            return None
        return self._numbers.get(key)

    def _ends(self, duration_s: float, series: Series) -> tuple[float, float]:
        """Return the time that is shown of a line; it ends before it begins if there is none."""
        end_s = max(duration_s, series.last_s * (1 + 1e-9))
        return self._request.begin_s, min(self._request.end_s, end_s)

    def _line(self, name: str, number: int, series: Series, duration_s: float) -> PictureLine:
        begin_s, end_s = self._ends(duration_s, series)
        columns = series.columns(begin_s, end_s, self._request.columns)
        step_s = (end_s - begin_s) / self._request.columns
        points = [(begin_s + x, column) for x, column in _with_gaps(columns, step_s)]
        banded = any(column.high > column.low for _, column in points)
        self._banded |= banded
        return PictureLine(
            name, number, [x for x, _ in points], [column.mean for _, column in points],
            [column.low for _, column in points] if banded else (),
            [column.high for _, column in points] if banded else (),
        )  # fmt: skip

    def figure(self) -> Picture | None:
        vocabulary = self._request.run.vocabulary
        panels: list[Panel] = []
        notes = [_BAND] * self._banded
        begin_s, end_s = self._request.begin_s, min(self._request.end_s, self._end_s)
        for metric, lines in self._lines.items():
            if lines:
                lines = [*_distinct(lines)]
                y = value_axis(vocabulary.describe(metric), lines, seen=_usual(lines))
                most = _usual_most(lines) if y.from_zero else y.high
                if y.high > GAIN * most > 0:
                    far = format_value(metric, y.high)
                    notes.append(f"{y.title}: some values are beyond the axis, up to {far}")
                    y = replace(y, high=most * NOISE)
                happened = [*self._events[metric], *self._changed(first=not panels)]
                shown = [event for event in happened if begin_s <= event.x <= end_s]
                panels.append(Panel(y, lines, sorted(shown, key=_AT)))
        if not panels:
            return None
        names = [", ".join(key) for key in self._numbers]
        if self._request.totals and self._rates:
            panels += self._totals(names)
        notes += left_out(self._count, len(self._numbers), "lines")
        if self._left_repeats:
            count = len(self._left_repeats)
            which = "another repeat is" if count == 1 else f"{count} more repeats are"
            notes.append(f"{which} left out: benchctl plot --all draws each")
        x = Axis("time", "time_s", begin_s, end_s)
        return self._request.figure(x, panels, names, self._naming.title, notes)

    def _totals(self, names: list[str]) -> Iterator[Panel]:
        """Yield the panel of the sums, unless none has a value; each has a name and number."""
        lines = []
        for name, rates in self._rates.items():
            total = _sum_of(rates, name, len(names))
            if any(map(math.isfinite, total.ys)):
                names.append(name)
                lines.append(total)
        if not lines:
            return
        y = value_axis(self._request.run.vocabulary.describe(_RATE), lines, seen=_usual(lines))
        yield Panel(replace(y, title="total throughput"), lines)

    def _changed(self, *, first: bool) -> Iterator[PictureEvent]:
        """Yield the changes of the lab for a panel; the first has their words."""
        for at_s, word in sorted(self._changes):
            yield PictureEvent(at_s, word if first else "", None)


def _sum_of(rates: Sequence[PictureLine], name: str, number: int) -> PictureLine:
    """Return the sum of lines at the places of the one with the most; each holds until its next.

    Where one of them has a gap, the sum has one.
    """
    xs = max((line.xs for line in rates), key=len)
    ys = [0.0] * len(xs)
    for line in rates:
        for place, x in enumerate(xs):
            at = bisect_right(line.xs, x) - 1
            if at >= 0 and x <= line.xs[-1] + 1e-9:
                ys[place] += line.ys[at]
    return PictureLine(name, number, xs, ys)


def _usual(lines: Sequence[PictureLine]) -> list[float]:
    """Return the median of each measured line."""
    measured = [line.ys for line in lines if line.role is LineRole.MEASURED]
    known = [[y for y in ys if math.isfinite(y)] for ys in measured]
    return [median(ys) for ys in known if ys]


def _usual_most(lines: Sequence[PictureLine]) -> float:
    """Return the greatest value but for the few greatest of each line."""
    ends = [0.0]
    for line in lines:
        values = sorted(value for value in line.highs or line.ys if math.isfinite(value))
        ends += values[len(values) - 1 - int(len(values) * FEW) :][:1]
    return max(ends)


def _with_gaps(columns: Sequence[Range | None], step_s: float) -> Iterator[tuple[float, Range]]:
    """Yield the middle of each column with values; NaN in the middle of a hole."""
    places = [place for place, column in enumerate(columns) if column is not None]
    usual = median([after - before for before, after in pairwise(places)] or [1])
    last = -1
    for place in places:
        if last >= 0 and place - last > HOLE * usual:
            yield ((last + place) / 2 + 0.5) * step_s, Range(math.nan, math.nan, math.nan)
        last = place
        found = columns[place]
        assert found is not None
        yield (place + 0.5) * step_s, found


def _distinct(lines: Sequence[PictureLine]) -> Iterator[PictureLine]:
    """Yield lines; theory of one value for several lines once, of no line in particular."""
    theory: dict[float, list[PictureLine]] = {}
    for line in lines:
        if line.role is LineRole.EXPECTED:
            theory.setdefault(line.ys[0], []).append(line)
    for same in theory.values():
        longest = max(same, key=lambda line: line.xs[-1])
        number = None if len(same) > 1 else longest.number
        yield PictureLine(longest.name, number, longest.xs, longest.ys, role=LineRole.EXPECTED)
    yield from (line for line in lines if line.role is not LineRole.EXPECTED)
