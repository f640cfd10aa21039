"""Bars, boxes, heat maps and differences as rows of text, each value beside its picture."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

from benchctl.report.figures.figure import Box, LineRole, Panel, Picture, PictureLine
from benchctl.report.lines.spans import HEATS, Span, crop, shorten
from benchctl.report.lines.spans import Line as Text
from benchctl.tui.draw.axes.axis import PlotAxis
from benchctl.tui.draw.axes.scale import axis_for
from benchctl.tui.draw.plot.heat import INVALID, NOTHING, STEPS
from benchctl.tui.draw.plot.plot import role_of
from benchctl.units import format_mean, format_value

_EIGHTHS = " ▏▎▍▌▋▊▉█"
_NAME, _LEAST_BAR, _APART = 28, 10, 10


def bar_rows(figure: Picture, panel: Panel, width: int) -> Iterator[Text]:
    """Yield a row for each bar: name, bar, mean and interval, what is beside it."""
    yield crop([Span(panel.y.title, "strong")], width)
    metric = panel.y.metric
    beside: dict[LineRole, Mapping[tuple[int | None, float], float]] = {
        role: {
            (line.number, x): y
            for line in panel.lines
            if line.role is role
            for x, y in zip(line.xs, line.ys, strict=True)
            if not math.isnan(y)
        }
        for role in LineRole
    }
    measured = beside[LineRole.MEASURED]
    intervals = _intervals(panel.lines)
    rows = []
    for tick in figure.x.ticks:
        for number, name in enumerate(figure.names):
            value = measured.get((number, tick.value))
            if value is None:
                continue
            texts = [format_mean(metric, value, intervals.get((number, tick.value)))]
            for role in (LineRole.EXPECTED, LineRole.REPORTED):
                places = ((number, tick.value), (None, tick.value))
                here = next((beside[role][at] for at in places if at in beside[role]), None)
                if here is not None:
                    texts.append(f"{role.value} {format_value(metric, here)}")
            if (number, tick.value) in beside[LineRole.INVALID]:
                texts.append(LineRole.INVALID.value)
            named = "  ".join(part for part in (tick.text, name) if part)
            rows.append((shorten(named, _NAME), number, value, ", ".join(texts)))
    if not rows:
        return
    left = max(len(name) for name, _, _, _ in rows)
    right = max(len(text) for _, _, _, text in rows)
    cells = max(_LEAST_BAR, width - left - right - 3)
    most = max(abs(value) for _, _, value, _ in rows) or 1.0
    for name, number, value, text in rows:
        eighths = round(abs(value) / most * cells * 8)
        bar = "█" * (eighths // 8) + _EIGHTHS[eighths % 8].strip()
        line = [Span(f"{name:<{left}} ", "label"), Span(f"{bar:<{cells}} ", role_of(number))]
        yield crop([*line, Span(text)], width)


def _intervals(lines: Iterable[PictureLine]) -> dict[tuple[int | None, float], float]:
    """Return half the interval of each measured value that has one."""
    found = {}
    for line in lines:
        if line.role is LineRole.MEASURED and line.lows:
            for x, low, high in zip(line.xs, line.lows, line.highs, strict=True):
                if not math.isnan(low):
                    found[line.number, x] = (high - low) / 2
    return found


def box_rows(figure: Picture, panel: Panel, width: int) -> Iterator[Text]:
    """Yield a row for each box over one axis, and the axis."""
    names = {
        (box.x, box.number): "  ".join(
            part for part in (figure.x.ticks[int(box.x)].text, figure.names[box.number]) if part
        )
        for box in panel.boxes
    }
    left = min(_NAME, max(map(len, names.values()), default=0))
    columns = max(_LEAST_BAR, width - left - 16)
    metric = panel.y.metric
    yield crop([Span(panel.y.title, "strong")], width)
    axis = axis_for(metric, panel.y.low, panel.y.high, columns, apart=_APART,
                    from_zero=panel.y.from_zero)  # fmt: skip
    for box in sorted(panel.boxes, key=lambda box: (box.x, box.number)):
        cells = _box(box, axis.places, axis.cells)
        name = shorten(names[box.x, box.number], left)
        text = f"{format_value(metric, box.median):>12}"
        yield crop([Span(f"{name:<{left}} ", "label"), Span(cells, role_of(box.number)),
                    Span(text)], width)  # fmt: skip
    yield _scale(axis, left, width)


def forest_rows(figure: Picture, panel: Panel, width: int) -> Iterator[Text]:
    """Yield a row for each difference of two runs over one axis, and the axis."""
    left = min(_NAME, max(len(tick.text) for tick in panel.y.ticks))
    right = max(len(difference.word) for difference in panel.differences)
    columns = max(_LEAST_BAR, width - left - right - 3)
    axis = axis_for(figure.x.metric, figure.x.low, figure.x.high, columns, apart=_APART,
                    from_zero=False)  # fmt: skip
    for difference, tick in zip(panel.differences, panel.y.ticks, strict=True):
        ends = (
            [difference.low, difference.value, difference.high]
            if math.isfinite(difference.low)
            else [difference.value] * 3
        )
        places = axis.places([0.0, *(min(max(end, figure.x.low), figure.x.high) for end in ends)])
        zero, low, middle, high = (round(place * (axis.cells - 1)) for place in places)
        cells = [" "] * axis.cells
        cells[zero] = "│"
        cells[low : high + 1] = "─" * (high + 1 - low)
        if low < high:
            cells[low], cells[high] = "├", "┤"
        cells[middle] = "█" if difference.certain else "▒"
        name = shorten(tick.text, left)
        yield crop([Span(f"{name:<{left}} ", "label"), Span("".join(cells), role_of(0)),
                    Span(f" {difference.word}")], width)  # fmt: skip
    yield _scale(axis, left, width)


def _scale(axis: PlotAxis, left: int, width: int) -> Text:
    """Return the labels of an axis below rows whose names have ``left`` characters."""
    scale = [" "] * axis.cells
    for cell, _, label in axis.labelled:
        begin = min(max(0, cell - len(label) // 2), axis.cells - len(label))
        scale[begin : begin + len(label)] = label
    return crop([Span(" " * (left + 1)), Span("".join(scale), "label"),
                 Span(f"  {axis.unit}", "label")], width)  # fmt: skip


def _box(box: Box, places: Callable[[Sequence[float]], Iterable[float]], count: int) -> str:
    """Return a box in cells: whiskers, quartiles, the median, the ends of all."""
    values = [box.least, box.p5, box.q1, box.median, box.q3, box.p95, box.greatest]
    least, p5, q1, middle, q3, p95, greatest = (
        round(place * (count - 1)) for place in places(values)
    )
    cells = [" "] * count
    for end in (least, greatest):
        cells[end] = "·"
    cells[p5 : p95 + 1] = "─" * (p95 + 1 - p5)
    cells[p5], cells[p95] = "├", "┤"
    cells[q1 : q3 + 1] = "▒" * (q3 + 1 - q1)
    cells[middle] = "█"
    return "".join(cells)


def heat_rows(figure: Picture, panel: Panel, width: int) -> Iterator[Text]:
    """Yield a heat map: a row for each value of the axis that goes down."""
    assert panel.heat is not None
    heat = panel.heat
    yield crop([Span(f"{heat.label}: rows {panel.y.title}, columns {figure.x.title}", "strong")],
               width)  # fmt: skip
    texts = {}
    for cell in panel.cells:
        share = 0.0 if cell.value is None else heat.share(cell.value)
        step = min(HEATS - 1, int(share * HEATS))
        mark = "" if cell.valid else f" {INVALID}"
        text = NOTHING if cell.value is None else f"{STEPS[step]} {cell.text}{mark}"
        role = "dim" if cell.value is None else f"heat-{step}"
        texts[cell.row, cell.column] = Span(text, role)
    left = max(len(tick.text) for tick in panel.y.ticks)
    each = max(len(text) for text in [*(span.text for span in texts.values()),
                                      *(tick.text for tick in figure.x.ticks)])  # fmt: skip
    heads = [Span(f"  {tick.text:>{each}}", "label") for tick in figure.x.ticks]
    yield crop([Span(" " * left), *heads], width)
    for row, tick in enumerate(panel.y.ticks):
        cells = [texts[row, column] for column in range(len(figure.x.ticks))]
        drawn = [Span(f"  {cell.text:>{each}}", cell.role) for cell in cells]
        yield crop([Span(f"{tick.text:<{left}}", "label"), *drawn], width)
