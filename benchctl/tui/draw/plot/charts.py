"""The plots of a trial, one above the other over a common time axis, with captions. Pure."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import groupby
from operator import attrgetter
from types import MappingProxyType
from typing import Literal, NamedTuple

from msgspec.structs import replace

from benchctl.analysis.flow.counted import ValueHistogram
from benchctl.metrics import Aspect, Fold, of_aspect, title_of
from benchctl.report.figures.figure import PictureKind
from benchctl.report.lines.spans import Line, Span, crop, fit
from benchctl.report.timeline.series import Series
from benchctl.report.timeline.traces import ALL, LineKey, TrialLines
from benchctl.tui.draw.axes.axis import PlotAxis
from benchctl.tui.draw.axes.ranges import bounds_of, panned, zoomed
from benchctl.tui.draw.axes.times import round_time, time_label
from benchctl.tui.draw.plot.choice import Choice, figure_of, mark_of, name_of, panels_of
from benchctl.tui.draw.plot.plot import (
    MARGIN,
    Curve,
    Plot,
    draw,
    drawn_of,
    frame_of,
    lay_out,
    role_of,
)
from benchctl.tui.draw.text.glyphs import Glyphs
from benchctl.tui.draw.text.percentiles import percentiles
from benchctl.tui.model.zoom import View
from benchctl.units import format_value

# If an axis is the same after so many steps, it cannot be changed.
MOST_TIMES = 4
# The width of a name, and of a figure with its mark, beside a plot of one flow.
BESIDE, LEAST_BESIDE = 16, 13
# A plot of one flow of fewer rows has none for the words of its events, and for what is zoomed out
# of sight.
EVENTFUL = 6
# As wide as "94.1 Mbit/s", so that a caption does not move while its figures change.
VALUE_WIDTH = 11
# A smoothed line has means of this many dots, if there are as many samples in each.
SMOOTH_DOTS = SMOOTH_SAMPLES = 4

SIGNS = (
    ("▲290  ▼0.1", "values beyond the axis: far from all others, or zoomed out of sight"),
    (
        "mean of 500 ms",
        "of all samples around each column; the faint band is their range,"
        " of several lines only where it reaches far",
    ),
    ("one scale", "each flow has a plot of its own, of means, and heights can be compared"),
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

Expected = Mapping[tuple[str, str, str], float]
"""The theoretical values by flow, direction and metric."""
SamplesOf = Callable[[LineKey], ValueHistogram | None]
"""Gives the samples of a line in order of value; None if it has none, or they were not read."""
# The caption of more lines has no room for percentiles.
FEW_LINES = 2


def no_samples(_: LineKey) -> ValueHistogram | None:
    """Know nothing of any line."""
    return None


class Chart(NamedTuple):
    """One of the plots: what it shows, its title, its height, and the room for marks in all.

    The first of several with one scale has their title. ``below`` is how many lines its time axis
    has: none, the line, or the times, too. ``beside`` is written at the right of its rows.
    """

    plot: Plot
    title: str
    height: int
    room: int
    below: int
    beside: Sequence[Span] = ()

    @property
    def rows(self) -> int:
        """Its height without the caption."""
        return self.height - bool(self.title)


def compose(
    traces: TrialLines | None, choice: Choice, view: View, width: int, height: int,
    expected: Expected = MappingProxyType({}), samples_of: SamplesOf = no_samples,
) -> list[Line]:  # fmt: skip
    """Return as many plots over time as fit into the height, with captions."""
    charts = [] if traces is None else charts_of(
        traces, choice, view, width, height, expected, samples_of
    )  # fmt: skip
    if not charts:
        blank: Line = [Span(" " * width)]
        return [*[blank] * (height // 2), [Span("  no samples", "dim")]]
    lines: list[Line] = []
    for chart in charts:
        if chart.title:
            lines.append(crop(_caption(chart, width), width))
        lines += draw(
            chart.plot, view, width, chart.rows, below=chart.below, glyphs=choice.glyphs,
            room=chart.room, beside=chart.beside,
        )  # fmt: skip
    return lines


def charts_of(
    traces: TrialLines, choice: Choice, view: View, width: int, height: int, expected: Expected,
    samples_of: SamplesOf = no_samples,
) -> list[Chart]:  # fmt: skip
    """Return as many plots as fit into the height, from the chosen metric on."""
    panels = panels_of(traces, choice, height)
    room = max((len(mark_of(key, p.keys, traces)) for p in panels for key in p.keys), default=1)
    if any(panel.each for panel in panels):
        room += 1 + min(BESIDE, max(LEAST_BESIDE, width // 4))
    dots = max(1, (width - MARGIN - 1 - room) * choice.glyphs.columns)
    smooth_s = round_time(SMOOTH_DOTS * (view.to_s - view.from_s) / dots) if choice.smooth else 0.0
    charts: list[Chart] = []
    left, needed = height, sum(panel.needs for panel in panels)
    for number, panel in enumerate(panels):
        keys = panel.keys
        until_s = view.until_s
        plot = _plot(traces, panel.metric, keys, choice, smooth_s, expected, samples_of, until_s)
        if number == 0:  # all plots have one time axis
            plot = replace(plot, happened=traces.changes)
        last = number == len(panels) - 1
        rows = left if last else (height - 1) * panel.needs // needed
        left -= rows
        title = _title(traces, plot, keys) + ", one scale" * panel.each
        title += f", 1 of {panel.of} flows" * bool(panel.of)
        chart = Chart(plot, title, rows, room, 1 + last)
        charts += _each(chart, view, width, choice.glyphs) if panel.each else [chart]
    return charts


def _each(chart: Chart, view: View, width: int, glyphs: Glyphs) -> Iterator[Chart]:
    """Yield a plot for each flow, all with the scale of all."""
    plot = chart.plot
    number = attrgetter("number")
    flows = [[*own] for _, own in groupby(sorted(plot.curves, key=number), key=number)]
    rows = (chart.rows - chart.below) // max(1, len(flows))
    has_events = any(curve.happened for curve in plot.curves)
    taken = bool(plot.happened) + has_events if rows >= EVENTFUL else 0
    frame = frame_of(view, width, rows, below=0, glyphs=glyphs, room=chart.room)
    bare = rows - taken
    if plot.bounds is not None and rows >= EVENTFUL:
        bare -= 2  # what lies beyond either end is marked
    elif plot.bounds is None and frame is not None:
        drawn = drawn_of(replace(plot, bare=rows), view, frame)
        bounds = bounds_of(
            drawn, from_zero=plot.from_zero, robust=False, beside=[*plot.expected]
        )  # fmt: skip
        plot = replace(plot, bounds=bounds)
    for place, own in enumerate(flows):
        first, below = place == 0, chart.below * (place == len(flows) - 1)
        happened = plot.happened if first else ()
        yield chart._replace(
            plot=replace(plot, curves=own, happened=happened, bare=bare),
            title=chart.title * first,
            height=rows + first + below,
            below=below,
            beside=[*_beside(plot.metric, own, rows, chart.room)],
        )


def _beside(metric: str, curves: Sequence[Curve], rows: int, room: int) -> Iterator[Span]:
    """Yield what stands at the right of a flow's plot: name and figure, or a figure a line."""
    texts = [f"{curve.mark} {curve.now}" for curve in curves]
    if len(curves) == 1:
        (single,) = curves
        beside = "" if single.expected is None else f"of {format_value(metric, single.expected)}"
        texts = [
            f"{single.mark} {single.name}",
            f"{' ' * len(single.mark)} {single.now}",
            f"  {beside}",
        ]
    width = room - max(len(curve.mark) for curve in curves) - 1
    for place, text in enumerate(texts[:rows]):
        curve = curves[min(place, len(curves) - 1)]
        yield Span(fit(text, width), role_of(curve.number) if place < 2 else "label")


def spread_metrics(traces: TrialLines, choice: Choice, height: int) -> frozenset[str]:
    """Return the metrics whose samples are wanted in order of value.

    It is the one whose distribution is shown. Over time, it is the plotted delays that have room
    for percentiles in their captions.
    """
    panels = panels_of(traces, choice, height)
    if choice.shape is not PictureKind.TIME:
        return frozenset(panel.metric for panel in panels[:1])
    delays = of_aspect(Aspect.DELAY)
    few = (panel for panel in panels if len(panel.keys) <= FEW_LINES and not panel.each)
    return frozenset(panel.metric for panel in few if panel.metric in delays)


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
        view, width, charts[0].rows, below=charts[0].below, glyphs=choice.glyphs,
        room=charts[0].room,
    )  # fmt: skip
    if not frame:
        return None
    return lay_out(charts[0].plot, view, frame).axis


def _plot(
    traces: TrialLines, metric: str, keys: Sequence[LineKey], choice: Choice, smooth_s: float,
    expected: Expected, samples_of: SamplesOf, until_s: float,
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
                figure_of(key, traces, until_s),
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


def _with_percentiles(curves: Sequence[Curve], shown: Sequence[str]) -> Iterator[list[str]]:
    """Yield what a caption says of every curve, the longest first; nothing if one has nothing."""
    for texts in zip(*(curve.sampled for curve in curves), strict=False):
        yield [
            f"{curve.mark} {curve.name} {value:<{VALUE_WIDTH}}  {text}  "
            for curve, value, text in zip(curves, shown, texts, strict=True)
        ]


def _caption(chart: Chart, width: int) -> list[Span]:
    """Return a title, and of every line as much as fits for all: mark, name and figure."""
    title = Span(f"{chart.title}  ", "strong")
    curves = chart.plot.curves
    shown = [curve.now for curve in curves]
    if chart.beside:
        return [title]
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
