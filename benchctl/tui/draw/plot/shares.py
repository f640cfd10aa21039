"""How the samples of a trial's lines are distributed: a CDF or a histogram, and figures. Pure.

Both are those of ``benchctl plot``, of this trial alone.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Literal

from msgspec.structs import replace

from benchctl.analysis.flow.counted import BITS, ValueHistogram
from benchctl.metrics import title_of
from benchctl.report.figures.distributions import shape_of
from benchctl.report.figures.figure import Axis, Picture, PictureLine
from benchctl.report.lines.spans import Line, Span, crop
from benchctl.report.timeline.traces import LineKey, TrialLines
from benchctl.tui.draw.axes.axis import PlotAxis
from benchctl.tui.draw.axes.ranges import Bounds
from benchctl.tui.draw.axes.scale import axis_for
from benchctl.tui.draw.plot.charts import SamplesOf, with_part
from benchctl.tui.draw.plot.choice import LEAST_HEIGHT, Choice, keys_of, mark_of, name_of
from benchctl.tui.draw.plot.figure import APART, curves
from benchctl.tui.draw.plot.plot import MARGIN, role_of
from benchctl.tui.draw.text.columns import see, widths
from benchctl.tui.draw.text.percentiles import HEADS, sample_figures
from benchctl.units import format_count

# What `curves` writes below a plot, and the least that it can draw.
OF_AXES, LEAST_ROWS = 3, 2
SampledLines = Sequence[tuple[LineKey, ValueHistogram]]


def draw_shares(
    traces: TrialLines, choice: Choice, samples_of: SamplesOf, width: int, height: int
) -> list[Line]:
    """Draw the distribution of the chosen metric: caption, plot, and a row of figures a line.

    The rows are left out where the plot would have no room.
    """
    if not traces.metrics():
        return [[Span("  no samples yet", "dim")]]
    metric, keys, there = _lines(traces, choice, samples_of)
    rows = len(there) + 1 if height - len(there) - 2 >= LEAST_HEIGHT else 0
    caption = crop([*_caption(traces, choice, metric, keys, there, legend=not rows)], width)
    if not there:
        return [caption, *[[]] * (height // 2 - 1), [Span("  no samples yet", "dim")]]
    table = [*_table(traces, metric, keys, there, width)]
    room = height - 1 - rows
    if room - OF_AXES < LEAST_ROWS:
        return [caption, *table][:height]
    lines = [(mark_of(k, keys, traces), traces.number(k.flow), samples) for k, samples in there]
    panel = shape_of(choice.shape, lines, width * choice.glyphs.columns)
    low, high = choice.bounds.get(metric) or _ends(there)
    x = Axis(title_of(metric), metric, low, high, log=choice.log)
    panel = replace(panel, lines=[_within(line, low, high) for line in panel.lines])
    drawn = curves(
        Picture(choice.shape, "", "", "", x, [panel]), panel, width, room, choice.glyphs,
        mark_of=lambda line: line.name,
    )  # fmt: skip
    return [caption, *drawn, *table[:rows]]


def rescaled_shares(
    traces: TrialLines, choice: Choice, samples_of: SamplesOf, width: int,
    how: Literal["zoom", "pan"], steps: int,
) -> Choice:  # fmt: skip
    """Return the choice with a smaller part of the values, or a higher one."""
    metric, _, there = _lines(traces, choice, samples_of)
    if not there:
        return choice

    def drawn(choice: Choice) -> PlotAxis:
        low, high = choice.bounds.get(metric) or _ends(there)
        cells = width - MARGIN - 1
        return axis_for(metric, low, high, cells, apart=APART, from_zero=False, log=choice.log)

    return with_part(choice, drawn(replace(choice, bounds={})), drawn, how, steps)


def _lines(
    traces: TrialLines, choice: Choice, samples_of: SamplesOf
) -> tuple[str, list[LineKey], SampledLines]:
    metrics = traces.metrics()
    metric = metrics[choice.first % len(metrics)]
    keys = keys_of(metric, traces, choice)
    return metric, keys, [(key, samples) for key in keys if (samples := samples_of(key))]


def _ends(there: SampledLines) -> Bounds:
    return min(samples[0] for _, samples in there), max(samples[-1] for _, samples in there)


def _caption(
    traces: TrialLines, choice: Choice, metric: str, keys: Sequence[LineKey], there: SampledLines,
    *, legend: bool,
) -> Iterator[Span]:  # fmt: skip
    number = format_count(sum(len(samples) for _, samples in there), "sample")
    shape = choice.shape.upper() if choice.shape == "cdf" else choice.shape
    parts = [f"{title_of(metric)}, {shape} of {number}"]
    if not all(samples.is_exact for _, samples in there):
        parts.append(f"within {100 * 2.0**-BITS:.1g} %")
    yield Span(f"{', '.join(parts)}{' (log)' * choice.log}  ", "strong")
    for key, _ in there if legend else ():
        text = f"{mark_of(key, keys, traces)} {name_of(key, keys)}  "
        yield Span(text, role_of(traces.number(key.flow)))


def _within(line: PictureLine, low: float, high: float) -> PictureLine:
    """Return the part of a line that is in sight, as far as its ends."""
    points = [*zip(line.xs, line.ys, strict=True)]
    inside = [point for point in points if low <= point[0] <= high]
    before = [(low, y) for x, y in points if x < low][-1:]
    found = [*before, *inside]
    if found and len(before) + len(inside) < len(points) and points[-1][0] > high:
        found.append((high, found[-1][1]))
    return replace(line, xs=[x for x, _ in found], ys=[y for _, y in found])


def _table(
    traces: TrialLines, metric: str, keys: Sequence[LineKey], there: SampledLines, width: int
) -> Iterator[Line]:
    """Yield the figures of every line, as many as the width has room for."""
    names = [f"{mark_of(key, keys, traces)} {name_of(key, keys)}" for key, _ in there]
    rows = [
        [name, *sample_figures(metric, own)] for name, (_, own) in zip(names, there, strict=True)
    ]
    columns = widths(["", *HEADS], rows, [False] + [True] * len(HEADS))
    sight = see(columns, width)
    yield sight.head()
    for row, (key, _) in zip(rows, there, strict=True):
        yield sight.row([Span(row[0], role_of(traces.number(key.flow))), *map(Span, row[1:])])
