"""The plots of a trial, one above the other over a common time axis, with captions. Pure."""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from types import MappingProxyType
from typing import Literal, NamedTuple

from msgspec import Struct
from msgspec.structs import replace

from benchctl.analysis.flow.counted import ValueHistogram
from benchctl.metrics import Aspect, Direction, Fold, of_aspect, title_of
from benchctl.report.figures.figure import PictureKind
from benchctl.report.timeline.series import Series
from benchctl.report.timeline.traces import ALL, LineKey, TrialLines
from benchctl.tui.draw.axes.axis import PlotAxis
from benchctl.tui.draw.axes.ranges import Bounds, panned, zoomed
from benchctl.tui.draw.axes.times import round_time, time_label
from benchctl.tui.draw.plot.plot import (
    MARGIN,
    Curve,
    Plot,
    draw,
    frame_of,
    lay_out,
    letter,
    role_of,
)
from benchctl.tui.draw.text.glyphs import BRAILLE, Glyphs
from benchctl.tui.draw.text.percentiles import percentiles
from benchctl.tui.draw.text.spans import Line, Span, crop
from benchctl.tui.model.zoom import View
from benchctl.units import format_value

# The minimum height of a plot: five rows of curve, the axis, the caption.
LEAST_HEIGHT = 8
MOST = 3
# If an axis is the same after so many steps, it cannot be changed.
MOST_TIMES = 4
# As wide as "94.1 Mbit/s", so that a caption does not move while its figures change.
VALUE_WIDTH = 11
# A smoothed line has means of this many dots, if there are as many samples in each.
SMOOTH_DOTS = SMOOTH_SAMPLES = 4

SIGNS = (
    ("▲290  ▼0.1", "values beyond the axis: far from all others, or zoomed out of sight"),
    ("mean of 500 ms", "of all samples around each column; the faint band is their whole range"),
    ("median of 8 streams", "the faint band is from the smallest stream to the largest"),
    ("◆drop  ◆b stall", "what was found at the end of a flow; enter on a trial describes it"),
    ("◆core 20 Mbit/s", "a change of the lab that the profile asks for"),
    ("expected 28.7", "the dashed line: what the links of the lab allow"),
    ("p50  p95  p99", "percentiles of all samples of the trial so far, and of all streams"),
    ("CDF", "the share of samples up to each value"),
    ("histogram", "how many samples are between each two values"),
)
"""The signs of the plots, explained."""
UNKNOWN = "a metric of the backend without a description"

Pick = tuple[str, int]
"""A flow and the number of a stream, or ALL for the flow's own line."""
Expected = Mapping[tuple[str, str, str], float]
"""The theoretical values by flow, direction and metric."""
SamplesOf = Callable[[LineKey], ValueHistogram | None]
"""Gives the samples of a line in order of value; None if it has none, or they were not read."""
SHAPES = (PictureKind.TIME, PictureKind.CDF, PictureKind.HISTOGRAM)
# The caption of more lines has no room for percentiles.
FEW_LINES = 2


def no_samples(_: LineKey) -> ValueHistogram | None:
    """Know nothing of any line."""
    return None


class Choice(Struct, frozen=True):
    """What the user chose to see.

    ``first`` is the place of the first plot among the metrics; ``picked`` names the lines, None for
    every flow's own. ``smooth`` lines are drawn as means over some time. ``bounds`` are the values
    that plots show, by metric, if not those that suit the lines. ``shape`` is what is drawn: lines
    over time, or how the samples of the first metric are distributed.
    """

    first: int = 0
    picked: frozenset[Pick] | None = None
    log: bool = False
    smooth: bool = True
    bounds: Mapping[str, Bounds] = {}
    glyphs: Glyphs = BRAILLE
    shape: PictureKind = PictureKind.TIME

    @property
    def split(self) -> Collection[str]:
        """The flows whose streams are shown."""
        return {flow for flow, stream in self.picked or () if stream != ALL}

    def shows(self, flow: str, stream: int) -> bool:
        """Return whether a flow's line, or that of one of its streams, was chosen."""
        return stream == ALL if self.picked is None else (flow, stream) in self.picked

    def toggled(self, pick: Pick, flows: Sequence[str]) -> Choice:
        """Return the choice with or without a line, of a run with these flows."""
        return self._with(self._lines(flows) ^ {pick}, flows)

    def only(self, pick: Pick, flows: Sequence[str]) -> Choice:
        """Return the choice of a single line; every flow's own if it is that already."""
        return self._with(
            frozenset({pick}) if self.picked != frozenset({pick}) else self._own(flows), flows
        )

    def streams(self, flow: str, streams: Collection[int], flows: Sequence[str]) -> Choice:
        """Return the choice with the single streams of a flow, or without if it has some."""
        others = {pick for pick in self._lines(flows) if pick[0] != flow or pick[1] == ALL}
        added = {(flow, stream) for stream in streams} if flow not in self.split else set()
        return self._with(others | added, flows)

    def _lines(self, flows: Sequence[str]) -> frozenset[Pick]:
        return self.picked if self.picked is not None else self._own(flows)

    def _own(self, flows: Sequence[str]) -> frozenset[Pick]:
        return frozenset((flow, ALL) for flow in flows)

    def _with(self, picked: Collection[Pick], flows: Sequence[str]) -> Choice:
        every = set(picked) == self._own(flows)
        return replace(self, picked=None if every else frozenset(picked))


class Chart(NamedTuple):
    """One of the plots: what it shows, its title, its lines, and the room for marks in all."""

    plot: Plot
    title: str
    height: int
    room: int
    with_times: bool


def compose(
    traces: TrialLines | None,
    choice: Choice,
    view: View,
    width: int,
    height: int,
    expected: Expected = MappingProxyType({}),
    samples_of: SamplesOf = no_samples,
) -> list[Line]:
    """Return as many plots over time as fit into the height, with captions."""
    charts = [] if traces is None else charts_of(
        traces, choice, view, width, height, expected, samples_of
    )  # fmt: skip
    if not charts:
        blank: Line = [Span(" " * width)]
        return [*[blank] * (height // 2), [Span("  no samples", "dim")]]
    lines: list[Line] = []
    for chart in charts:
        lines.append(crop(_caption(chart, view, width), width))
        lines += draw(
            chart.plot, view, width, chart.height - 1, with_times=chart.with_times,
            glyphs=choice.glyphs, room=chart.room,
        )  # fmt: skip
    return lines


def charts_of(
    traces: TrialLines, choice: Choice, view: View, width: int, height: int, expected: Expected,
    samples_of: SamplesOf = no_samples,
) -> list[Chart]:  # fmt: skip
    """Return as many plots as fit into the height, from the chosen metric on."""
    shown = shown_metrics(traces, choice, height)
    count = max(1, len(shown))
    keys = {metric: keys_of(metric, traces, choice) for metric in shown}
    room = max(
        (len(mark_of(key, some, traces)) for some in keys.values() for key in some), default=1
    )
    dots = max(1, (width - MARGIN - 1 - room) * choice.glyphs.columns)
    smooth_s = round_time(SMOOTH_DOTS * (view.to_s - view.from_s) / dots) if choice.smooth else 0.0
    charts = []
    for number, metric in enumerate(shown):
        plot = _plot(traces, metric, keys[metric], choice, smooth_s, expected, samples_of)
        if number == 0:  # all plots have one time axis
            plot = replace(plot, happened=traces.changes)
        last = number == count - 1
        rows = (height - 1) // count
        rows = rows if not last else height - rows * number
        charts.append(Chart(plot, _title(traces, plot, keys[metric]), rows, room, last))
    return charts


def shown_metrics(traces: TrialLines, choice: Choice, height: int) -> list[str]:
    """Return the metrics of the plots that fit into the height."""
    metrics = traces.metrics()
    count = min(max(1, min(MOST, height // LEAST_HEIGHT)), len(metrics))
    return [metrics[(choice.first + n) % len(metrics)] for n in range(count)]


def keys_of(metric: str, traces: TrialLines, choice: Choice) -> list[LineKey]:
    """Return the lines of a metric that were chosen; those of single streams with their flow."""
    own = traces.meanings[metric].by_stream
    return [
        key for key in traces.keys(metric) if choice.shows(key.flow, ALL if own else key.stream)
    ]


def spread_metrics(traces: TrialLines, choice: Choice, height: int) -> frozenset[str]:
    """Return the metrics whose samples are wanted in order of value.

    It is the one whose distribution is shown. Over time, it is the plotted delays that have room
    for percentiles in their captions.
    """
    shown = shown_metrics(traces, choice, height)
    if choice.shape is not PictureKind.TIME:
        return frozenset(shown[:1])
    delays = {name for name in shown if name in of_aspect(Aspect.DELAY)}
    return frozenset(one for one in delays if len(keys_of(one, traces, choice)) <= FEW_LINES)


def rescaled(
    traces: TrialLines, choice: Choice, view: View, width: int, height: int, expected: Expected,
    how: Literal["zoom", "pan"], steps: int,
) -> Choice:  # fmt: skip
    """Return the choice with a smaller part of the first plot's values, or a higher one.

    It has no bounds for a plot of all values.
    """

    def drawn(choice: Choice) -> PlotAxis | None:
        return _first_axis(traces, choice, view, width, height, expected)

    axis = drawn(replace(choice, bounds={}))
    return choice if axis is None else with_part(choice, axis, drawn, how, steps)


def with_part(
    choice: Choice, axis: PlotAxis, drawn: Callable[[Choice], PlotAxis | None],
    how: Literal["zoom", "pan"], steps: int,
) -> Choice:  # fmt: skip
    """Return the choice with another part of the axis of all values; without bounds for all.

    As ``drawn``, an axis has round ends: if the next part has the same ones, the part is the one
    after it.
    """
    change = zoomed if how == "zoom" else panned
    others = {name: bounds for name, bounds in choice.bounds.items() if name != axis.metric}
    whole, seen = replace(choice, bounds=others), drawn(choice)
    outward = how == "zoom" and steps < 0
    for times in range(1, MOST_TIMES + 1):
        low, high = change(axis, choice.bounds.get(axis.metric), steps * times)
        part = replace(choice, bounds={**others, axis.metric: (low, high)})
        if (low <= axis.low and high >= axis.high) or (outward and drawn(part) == axis):
            return whole
        if drawn(part) != seen:
            return part
    return choice


def _first_axis(
    traces: TrialLines, choice: Choice, view: View, width: int, height: int, expected: Expected
) -> PlotAxis | None:
    """Return the value axis of the first plot as it is drawn; None if it has no room."""
    charts = charts_of(traces, choice, view, width, height, expected)
    frame = charts and frame_of(
        view, width, charts[0].height - 1, with_times=charts[0].with_times, glyphs=choice.glyphs,
        room=charts[0].room,
    )  # fmt: skip
    if not frame:
        return None
    return lay_out(charts[0].plot, view, frame).axis


def _plot(
    traces: TrialLines, metric: str, keys: Sequence[LineKey], choice: Choice, smooth_s: float,
    expected: Expected, samples_of: SamplesOf,
) -> Plot:  # fmt: skip
    fold = traces.meanings[metric].fold
    medians = traces.medians(metric)
    curves = []
    for key in keys:
        series = traces.line(key)
        if series is None:
            continue
        # A count that happens once in a while would vanish in a mean.
        smooth = fold is not Fold.COUNT and series.spacing_s * SMOOTH_SAMPLES <= smooth_s
        promised = expected.get(key[:3]) if key.stream == ALL else None
        happened = [*traces.happened(key)]
        samples = samples_of(key)
        curves.append(
            Curve(
                name_of(key, keys), series, traces.number(key.flow), mark_of(key, keys, traces),
                smooth_s if smooth else 0.0, smooth or key in medians, promised, happened,
                percentiles(metric, samples) if samples else (),
            )
        )  # fmt: skip
    return Plot(
        metric, curves, from_zero=fold in (Fold.RATE, Fold.COUNT), robust=fold is not Fold.COUNT,
        log=choice.log and not any(_goes_below_zero(curve.series) for curve in curves),
        bounds=choice.bounds.get(metric),
    )  # fmt: skip


def _goes_below_zero(series: Series) -> bool:
    """Return whether a line has negative values, which a logarithmic axis has no place for."""
    bounds = series.bounds(series.start_s, math.inf)
    return bounds is not None and bounds[0] < 0


def _title(traces: TrialLines, plot: Plot, keys: Sequence[LineKey]) -> str:
    """Return the metric, and what its lines are made of."""
    medians = traces.medians(plot.metric)
    streams = sorted({medians[key] for key in keys if key in medians})
    smooth_s = max((curve.smooth_s for curve in plot.curves), default=0.0)
    parts = [title_of(plot.metric)]
    if streams:
        numbers = " to ".join(str(number) for number in dict.fromkeys((streams[0], streams[-1])))
        parts.append(f"median of {numbers} streams")
    if smooth_s:
        parts.append(f"mean of {time_label(smooth_s, smooth_s)}")
    return ", ".join(parts) + (" (log)" if plot.log else "")


def name_of(key: LineKey, among: Sequence[LineKey]) -> str:
    """Return the name of a line beside its mark."""
    return f"{key.flow} {key.direction}" if _has_both(key, among) else key.flow


def mark_of(key: LineKey, among: Sequence[LineKey], traces: TrialLines) -> str:
    """Return the letter of a line's flow, in upper case for its way back, and its stream."""
    mark = letter(traces.number(key.flow))
    if key.direction == Direction.RECEIVE and _has_both(key, among):
        mark = mark.upper()
    return mark if key.stream == ALL else f"{mark}{key.stream}"


def _has_both(key: LineKey, among: Sequence[LineKey]) -> bool:
    return len({other.direction for other in among if other.flow == key.flow}) > 1


def _with_percentiles(curves: Sequence[Curve], shown: Sequence[str]) -> Iterator[list[str]]:
    """Yield what a caption says of every curve, the longest first; nothing if one has nothing."""
    for told in zip(*(curve.told for curve in curves), strict=False):
        yield [
            f"{one.mark} {one.name} {value:<{VALUE_WIDTH}}  {text}  "
            for one, value, text in zip(curves, shown, told, strict=True)
        ]


def _caption(chart: Chart, view: View, width: int) -> list[Span]:
    """Return a title, and of every line as much as fits for all: mark, name and figure."""
    title = Span(f"{chart.title}  ", "strong")
    metric, curves = chart.plot.metric, chart.plot.curves
    values = [
        curve.series.recent(view.until_s, curve.smooth_s)
        if curve.smooth_s
        else curve.series.at(view.until_s)
        for curve in curves
    ]
    shown = ["-" if value is None else format_value(metric, value) for value in values]
    for texts in (
        *_with_percentiles(curves, shown),
        [f"{c.mark} {c.name} {s:<{VALUE_WIDTH}}  " for c, s in zip(curves, shown, strict=True)],
        [f"{c.mark} {s:<{VALUE_WIDTH}}  " for c, s in zip(curves, shown, strict=True)],
        [f"{c.mark} {c.name}  " for c in curves],
        [f"{c.mark} " for c in curves],
    ):
        if sum(map(len, texts)) + len(title.text) <= width:
            break
    return [title, *(Span(t, role_of(c.number)) for t, c in zip(texts, curves, strict=True))]
