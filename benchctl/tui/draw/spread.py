"""Draws the repeats of one figure in several runs, one run a line: points, mean and interval."""

from __future__ import annotations

from collections.abc import Sequence

from benchctl.analysis.statistics import spread
from benchctl.tui.draw.scale import axis_for, labels, ticks
from benchctl.tui.draw.spans import Line, Span, fit
from benchctl.units import format_value

POINT, SEVERAL, MEAN = "∘", "o", "◆"
LOW, BAR, HIGH = "├", "─", "┤"
VALUE_WIDTH = 11


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
        for one in there
        for value in (one.min, one.max, one.ci95_low, one.ci95_high)
        if value is not None
    ]
    axis = axis_for(metric, min(ends), max(ends), from_zero=False)

    def place(value: float) -> int:
        return round(axis.place(value) * (columns - 1))

    lines: list[Line] = []
    for number, (name, values) in enumerate(runs):
        cells = [" "] * columns
        shown = "-"
        if values:
            one = spread(values)
            shown = format_value(metric, one.mean)
            if one.ci95_low is not None and one.ci95_high is not None:
                low, high = place(one.ci95_low), place(one.ci95_high)
                cells[low : high + 1] = BAR * (high - low + 1)
                cells[low], cells[high] = LOW, HIGH
            for value in values:
                here = place(value)
                cells[here] = SEVERAL if cells[here] in (POINT, SEVERAL) else POINT
            cells[place(one.mean)] = MEAN
        lines.append(
            [
                Span(f"{name:<{named}} ", "strong"),
                Span("".join(cells), f"curve-{number}"),
                Span(f"  {fit(shown, VALUE_WIDTH, right=True)}", f"curve-{number}"),
            ]
        )
    values_at = ticks(axis, max(2, columns // 14))
    texts, unit = labels(metric, axis, values_at)
    scale = [" "] * (columns + 8)
    for value, text in zip(values_at, texts, strict=True):
        begin = min(max(0, place(value) - len(text) // 2), columns - len(text))
        if not "".join(scale[max(0, begin - 1) : begin + len(text) + 1]).strip():
            scale[begin : begin + len(text)] = text
    text = "".join(scale)[:columns]
    lines.append([Span(" " * (named + 1)), Span(text, "label"), Span(f"  {unit}", "label")])
    return lines
