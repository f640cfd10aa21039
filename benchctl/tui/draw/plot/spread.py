"""Draws the repeats of one figure in several runs, one run a line: points, mean and interval."""

from __future__ import annotations

from collections.abc import Sequence

from benchctl.analysis.statistics import spread
from benchctl.report.lines.spans import Line, Span, fit
from benchctl.tui.draw.axes.scale import axis_for
from benchctl.units import format_value

POINT, SEVERAL, MEAN = "∘", "o", "◆"
LOW, BAR, HIGH = "├", "─", "┤"
VALUE_WIDTH = 11
# Cells between two ticks, at least: as many as a label takes, and a gap.
APART = 10


def draw_spread(metric: str, runs: Sequence[tuple[str, Sequence[float]]], width: int) -> list[Line]:
    """Draw runs, each a name and its repeats: the interval of the mean, the mean, the points.

    All share one axis, which may not start at zero: the differences matter.
    """
    named = max((len(name) for name, _ in runs), default=0)
    columns = width - named - VALUE_WIDTH - 4
    there = [spread(values) for _, values in runs if values]
    if not there or columns < 8:
        return [[Span("no repeats to draw", "dim")]]
    ends = [
        value
        for run_spread in there
        for value in (run_spread.min, run_spread.max, run_spread.ci95_low, run_spread.ci95_high)
        if value is not None
    ]
    axis = axis_for(metric, min(ends), max(ends), columns, apart=APART, from_zero=False)

    def place(value: float) -> int:
        return round(axis.place(value) * (axis.cells - 1))

    lines: list[Line] = []
    for number, (name, values) in enumerate(runs):
        cells = [" "] * columns
        shown = "-"
        if values:
            run_spread = spread(values)
            shown = format_value(metric, run_spread.mean)
            if run_spread.ci95_low is not None and run_spread.ci95_high is not None:
                low, high = place(run_spread.ci95_low), place(run_spread.ci95_high)
                cells[low : high + 1] = BAR * (high - low + 1)
                cells[low], cells[high] = LOW, HIGH
            for value in values:
                here = place(value)
                cells[here] = SEVERAL if cells[here] in (POINT, SEVERAL) else POINT
            cells[place(run_spread.mean)] = MEAN
        lines.append(
            [
                Span(f"{name:<{named}} ", "strong"),
                Span("".join(cells), f"curve-{number}"),
                Span(f"  {fit(shown, VALUE_WIDTH, right=True)}", f"curve-{number}"),
            ]
        )
    scale = [" "] * columns
    for cell, _, label in axis.ticks:
        begin = min(max(0, cell - len(label) // 2), columns - len(label))
        scale[begin : begin + len(label)] = label
    lines.append(
        [Span(" " * (named + 1)), Span("".join(scale), "label"), Span(f"  {axis.unit}", "label")]
    )
    return lines
