"""Draws the figures of `benchctl.report.figures` as text, with the plots of the screens.

Lines over time are drawn by `plot`, others in the same field of dots: each has a letter at its
values. Bars, boxes and heat maps are rows of text.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from itertools import pairwise
from typing import NamedTuple

from benchctl.report.figures.figure import (
    MAPS,
    Axis,
    LineRole,
    Panel,
    Picture,
    PictureKind,
    PictureLine,
)
from benchctl.report.lines.spans import Line as Text
from benchctl.report.lines.spans import Span, crop, fit, wrap
from benchctl.report.timeline.series import Series
from benchctl.tui.draw.axes.axis import PlotAxis
from benchctl.tui.draw.axes.scale import axis_for
from benchctl.tui.draw.axes.strip import Strip
from benchctl.tui.draw.axes.times import TimeAxis, time_axis
from benchctl.tui.draw.plot.field import DASH, Cell, Field
from benchctl.tui.draw.plot.packets import draw_packets
from benchctl.tui.draw.plot.plot import MARGIN, Curve, Plot, draw, letter, role_of
from benchctl.tui.draw.plot.rows import bar_rows, box_rows, forest_rows, heat_rows
from benchctl.tui.draw.text.glyphs import BRAILLE, Glyphs
from benchctl.tui.model.zoom import View

REPORTED, INVALID = "o", "x"
# Cells between two ticks of a horizontal axis: as many as a label takes, and a gap.
APART = 10
LEAST_ROWS = 5


def figure_lines(figure: Picture, width: int, height: int, glyphs: Glyphs = BRAILLE) -> list[Text]:
    """Draw a figure in ``width`` characters; plots share ``height`` lines, rows take their own."""
    lines: list[Text] = [*wrap([Span(figure.title, "strong")], width, 0)]
    if figure.about:
        lines += wrap([Span(figure.about, "dim")], width, 0)
    drawn_in_rows = figure.kind in (PictureKind.BARS, PictureKind.BOX, PictureKind.FOREST, *MAPS)
    if not drawn_in_rows:
        lines += wrap([*_legend(figure)], width)
    for panel in figure.panels:
        rows = max(LEAST_ROWS + 3, (height - len(lines)) // len(figure.panels))
        lines += _panel(figure, panel, width, rows, glyphs)
    for note in figure.notes:
        lines += wrap([Span(note, "dim")], width, 2)
    return lines


def _panel(
    figure: Picture, panel: Panel, width: int, height: int, glyphs: Glyphs
) -> Iterator[Text]:
    match figure.kind:
        case PictureKind.BARS:
            yield from bar_rows(figure, panel, width)
        case PictureKind.BOX:
            yield from box_rows(figure, panel, width)
        case PictureKind.HEAT | PictureKind.MATRIX:
            yield from heat_rows(figure, panel, width)
        case PictureKind.FOREST:
            yield from forest_rows(figure, panel, width)
        case PictureKind.TIME:
            yield crop([Span(panel.y.title, "strong")], width)
            yield from _over_time(figure, panel, width, height - 1, glyphs)
        case _:
            yield crop([Span(panel.y.title, "strong")], width)
            yield from curves(figure, panel, width, height - 1, glyphs)


def _legend(figure: Picture) -> Iterator[Span]:
    """Yield the letters with the names of the lines, and the other signs that are there."""
    if any(figure.names):
        yield Span(f"{figure.series}:  " if figure.series else "", "label")
        for number, name in figure.named:
            yield Span(f"{letter(number)} {name}  ", role_of(number))
    signs = {LineRole.EXPECTED: "- -", LineRole.REPORTED: REPORTED, LineRole.INVALID: INVALID}
    yield from (Span(f"{signs[role]} {name}  ", "label") for role, name in figure.beside.items())


def _over_time(
    figure: Picture, panel: Panel, width: int, height: int, glyphs: Glyphs
) -> list[Text]:
    """Draw a panel as the live screen does."""
    theory = {
        line.number: line.ys[0]
        for line in panel.lines
        if line.role is LineRole.EXPECTED and line.ys
    }
    curves = []
    for line in panel.lines:
        if line.role is LineRole.MEASURED and line.number is not None:
            happened = [
                (event.x, event.word) for event in panel.events if event.number == line.number
            ]
            curves.append(
                Curve(
                    line.name, _series(line, figure.x.high), line.number, letter(line.number),
                    of_means=bool(line.lows), expected=theory.get(line.number, theory.get(None)),
                    happened=happened,
                )
            )  # fmt: skip
    plot = Plot(
        panel.y.metric, curves, from_zero=panel.y.from_zero, robust=panel.y.from_zero,
        happened=[
            (event.x, event.word) for event in panel.events if event.number is None and event.word
        ],
    )  # fmt: skip
    return draw(plot, View(figure.x.low, figure.x.high), width, height, glyphs=glyphs)


def _series(line: PictureLine, end_s: float) -> Series:
    series = Series(0.0, end_s)
    lows, highs = (line.lows or line.ys), (line.highs or line.ys)
    points = [
        point for point in zip(line.xs, line.ys, lows, highs, strict=True) if point[1] == point[1]
    ]
    xs, ys, lows, highs = zip(*points, strict=True)
    series.extend(xs, ys, [1.0] * len(xs), (lows, highs))
    return series


class _Across(NamedTuple):
    """The horizontal axis: how many cells it has, and where values and labels are."""

    cells: int
    axis: Axis
    ticks: PlotAxis | None
    times: TimeAxis | None = None

    def place(self, value: float) -> float:
        """Return the cell of a value, as a fraction between two if need be."""
        if self.axis.even:
            return (value + 0.5) / len(self.axis.ticks) * self.cells - 0.5
        if self.ticks is not None:
            return self.ticks.place(value) * (self.cells - 1)
        if self.times is not None:
            lasted_s = self.times.end_s - self.axis.low
            return (value - self.axis.low) / lasted_s * self.cells - 0.5
        low, high = self.axis.low, self.axis.high
        if self.axis.log:
            low, high, value = math.log(low), math.log(high), math.log(value)
        # Half a label fits beside the first and the last value.
        room = min(2.0, self.cells / 4)
        share = (value - low) / (high - low) if high > low else 0.5
        return room + share * (self.cells - 1 - 2 * room)

    def dot(self, glyphs: Glyphs) -> Callable[[float], int]:
        """Return a function that gives the column of dots of a value."""
        last = self.cells * glyphs.columns - 1
        return lambda value: min(max(0, int((self.place(value) + 0.5) * glyphs.columns)), last)

    def labels(self) -> list[tuple[float, str]]:
        """Return the cells and texts of the labels."""
        if self.times is not None:
            return [(tick.cell, tick.text) for tick in self.times.ticks]
        if self.ticks is not None:
            return [(tick.cell, tick.text) for tick in self.ticks.labelled]
        return [(self.place(tick.value), tick.text) for tick in self.axis.ticks]


def mark_of_line(line: PictureLine) -> str:
    """Return the letter of a measured line."""
    return letter(line.number or 0)


def curves(
    figure: Picture, panel: Panel, width: int, height: int, glyphs: Glyphs,
    mark_of: Callable[[PictureLine], str] = mark_of_line,
) -> list[Text]:  # fmt: skip
    """Draw lines over any axis: the marks are at their values."""
    columns, rows = width - MARGIN - 1, height - 3
    across = _across(figure.kind, figure.x, columns)
    y = axis_for(
        panel.y.metric, panel.y.low, panel.y.high, rows, from_zero=panel.y.from_zero,
        log=panel.y.log,
    )  # fmt: skip
    field = Field(across.cells, y, glyphs)
    marks: list[tuple[float, float, Cell]] = []
    for line in panel.lines:
        if line.role.is_of_packets:
            signs = draw_packets(field, line, across.dot(glyphs))
            marks += ((across.place(x), value, cell) for x, value, cell in signs)
            continue
        role = "label" if line.number is None else role_of(line.number)
        points = [(across.place(x), v) for x, v in zip(line.xs, line.ys, strict=True) if v == v]
        joined = line.role in (LineRole.MEASURED, LineRole.EXPECTED)
        if joined and not (figure.kind is PictureKind.PLANE and line.role is LineRole.MEASURED):
            strip = _strip(figure.kind, points, glyphs, y, dashed=line.role is LineRole.EXPECTED)
            field.add_line(role, None, strip)
        sign = {
            LineRole.MEASURED: mark_of(line), LineRole.REPORTED: REPORTED,
            LineRole.INVALID: INVALID,
        }.get(line.role, "")  # fmt: skip
        if sign and figure.kind not in (PictureKind.CDF, PictureKind.HISTOGRAM):
            marks += [(x, value, (role, sign)) for x, value in points]
        elif sign and points:
            named = points[len(points) // 2]
            if figure.kind is PictureKind.HISTOGRAM:
                named = max(points, key=lambda point: point[1])
            marks.append((*named, (role, sign)))
    grid = field.cells()
    for x, value, (role, sign) in marks:
        row = round((1 - y.place(value)) * (y.cells - 1))
        for column, character in enumerate(sign, round(x)):
            if 0 <= row < y.cells and 0 <= column < across.cells:
                grid[row][column] = (role, character)
    labels = {tick.cell: tick.text for tick in y.ticks}
    lines: list[Text] = []
    for number, drawn in enumerate(grid):
        place = y.cells - 1 - number
        edge = glyphs.tick if place in labels else glyphs.vertical
        label = fit(labels.get(place, ""), MARGIN - 1, right=True)
        lines.append([Span(f"{label} ", "label"), Span(edge, "axis"),
                      *(Span(text, role) for role, text in drawn)])  # fmt: skip
    below, texts = _below(across, glyphs)
    unit = "" if panel.y.log else y.unit
    lines.append([Span(f"{fit(unit, MARGIN - 1, right=True)} ", "label"),
                  Span(f"{glyphs.corner}{below}", "axis")])  # fmt: skip
    lines.append([Span(" " * (MARGIN + 1)), Span(texts, "label")])
    unit = across.ticks.unit if across.ticks is not None else ""
    title = f"{figure.x.title} ({unit})" if unit else figure.x.title
    lines.append([Span(" " * (MARGIN + 1)), Span(title.center(across.cells).rstrip(), "label")])
    return [[*crop(line, width)] for line in lines]


def _across(kind: PictureKind, x: Axis, columns: int) -> _Across:
    if x.ticks:
        return _Across(columns, x, None)
    if kind is PictureKind.SEQUENCE:
        times = time_axis(x.low, x.high, columns)
        return _Across(times.cells, x, None, times)
    axis = axis_for(x.metric, x.low, x.high, columns, apart=APART, from_zero=x.from_zero, log=x.log)
    return _Across(axis.cells, x, axis)


def _strip(
    kind: PictureKind, points: Sequence[tuple[float, float]], glyphs: Glyphs, y: PlotAxis, *,
    dashed: bool,
) -> Strip:  # fmt: skip
    """Return the dots of a line through points: straight between two, or in steps for a CDF.

    A column has the whole range of its values, as at a step.
    """
    dots: dict[int, float] = {}
    lows: dict[int, float] = {}
    highs: dict[int, float] = {}
    wide = glyphs.columns
    for (x0, y0), (x1, y1) in pairwise(points):
        first, last = round((x0 + 0.5) * wide), round((x1 + 0.5) * wide)
        for dot in range(first, last + 1):
            share = (dot - first) / (last - first) if last > first else 1.0
            between = y0 if kind is PictureKind.CDF else _between(y0, y1, share, log=y.log)
            dots[dot] = y1 if dot == last else between
            for value in (between, dots[dot]):
                lows[dot] = min(lows.get(dot, value), value)
                highs[dot] = max(highs.get(dot, value), value)
    if dashed:
        dots = {dot: value for dot, value in dots.items() if dot % DASH < DASH // 2}
    places = sorted(dot for dot in dots if dot >= 0)
    return Strip(places, *([of[dot] for dot in places] for of in (lows, highs, dots)))


def _between(low: float, high: float, share: float, *, log: bool) -> float:
    if log and low > 0 and high > 0:
        return math.exp(math.log(low) + (math.log(high) - math.log(low)) * share)
    return low + (high - low) * share


def _below(across: _Across, glyphs: Glyphs) -> tuple[str, str]:
    """Return the horizontal axis, and the labels below its ticks that have room."""
    line = [glyphs.horizontal] * across.cells
    texts = [" "] * across.cells
    end = -1
    for place, text in across.labels():
        cell = min(max(0, round(place)), across.cells - 1)
        line[cell] = glyphs.drop
        begin = min(max(0, cell - len(text) // 2), across.cells - len(text))
        if begin > end and begin >= 0:
            texts[begin : begin + len(text)] = text
            end = begin + len(text)
    return "".join(line), "".join(texts)
