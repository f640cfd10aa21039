"""Draws lines over time as text: a pure function from series to spans of characters.

Each column of dots shows its whole range, from minimum to maximum, so a spike is visible at any
width. A line's letter is at its right end and in the legend: colour is never the only distinction.

It is drawn with braille, blocks or plain ASCII. A cell of the terminal holds a small grid of dots;
each set has a character for every choice of dots in its grid. Which dots are set is given as bits,
column by column, from the top.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import groupby, pairwise
from operator import itemgetter
from statistics import median
from string import ascii_lowercase

from benchctl.tui.draw.scale import PlotAxis, axis_for, labels, ticks, time_label
from benchctl.tui.draw.spans import CURVES, PLAIN, Line, Span, fit
from benchctl.tui.model.series import Range, Series
from benchctl.tui.model.zoom import View


@dataclass(frozen=True, slots=True)
class Glyphs:
    """One set: ``columns`` x ``rows`` dots a cell, and a character for every value of the bits."""

    name: str
    columns: int
    rows: int
    characters: Sequence[str]
    vertical: str
    horizontal: str
    corner: str
    """The axes: vertical, horizontal, and their corner."""
    tick: str
    drop: str
    """A tick of the vertical and of the horizontal axis."""


def _braille(bits: int) -> str:
    # Unicode numbers the dots 1-3 and 7 in the left column, 4-6 and 8 in the right one.
    places = (0, 1, 2, 6, 3, 4, 5, 7)
    return chr(0x2800 + sum(1 << place for bit, place in enumerate(places) if bits >> bit & 1))


# Bits: upper left, lower left, upper right, lower right.
_QUADRANTS = " ▘▖▌▝▀▞▛▗▚▄▙▐▜▟█"

BRAILLE = Glyphs(
    "braille", 2, 4, " " + "".join(map(_braille, range(1, 256))), "│", "─", "└", "┤", "┬"
)
BLOCKS = Glyphs("blocks", 2, 2, _QUADRANTS, "│", "─", "└", "┤", "┬")
ASCII = Glyphs("ascii", 1, 2, " '.:", "|", "-", "+", "+", "+")

SETS = {glyphs.name: glyphs for glyphs in (BRAILLE, BLOCKS, ASCII)}


# The width of the scale: as wide as "Mbit/s", the same in all plots, so that their time axes are
# aligned.
MARGIN = 8
NOBODY = -1
# A gap of this many usual intervals means missing samples; it is not bridged.
HOLE = 3.5


@dataclass(frozen=True, slots=True)
class Curve:
    """One line of a plot: its name and its mark, and the number of its flow, for the colour."""

    name: str
    series: Series
    number: int
    mark: str


def role_of(number: int) -> str:
    """Return the role of the n-th flow; an empty cell has none."""
    return PLAIN if number == NOBODY else f"curve-{number % CURVES}"


def letter(number: int) -> str:
    """Return the letter of the n-th flow; after z comes aa."""
    before, own = divmod(number, len(ascii_lowercase))
    return (letter(before - 1) if before else "") + ascii_lowercase[own]


def draw(
    metric: str,
    curves: Sequence[Curve],
    view: View,
    width: int,
    height: int,
    *,
    from_zero: bool,
    with_times: bool = True,
    glyphs: Glyphs = BRAILLE,
    room: int = 1,
) -> list[Line]:
    """Draw curves of one metric into ``height`` lines of ``width`` characters.

    The last two lines are the time axis; without ``with_times`` it has only its first. ``room`` is
    the length of the longest mark of all plots, so that their time axes are aligned.
    """
    columns = width - MARGIN - 1 - room  # the vertical axis, and the marks at the right
    rows = height - 1 - with_times
    if rows < 1 or columns < 2:
        return [[Span(" " * width)] for _ in range(height)]
    axis = _value_axis(metric, curves, view, from_zero=from_zero)
    levels = ticks(axis, max(2, rows // 2 + 1))
    texts, unit = labels(metric, axis, levels)
    cells = _Cells(columns, room, rows, glyphs, axis)
    for curve in curves:
        dots = columns * glyphs.columns
        cells.add(curve, curve.series.columns(view.from_s, view.to_s, dots, view.until_s))
    marks = {round((1 - axis.place(v)) * (rows - 1)): t for v, t in zip(levels, texts, strict=True)}
    lines: list[Line] = []
    for row in range(rows):
        label = fit(marks.get(row, ""), MARGIN - 1, right=True)
        edge = glyphs.tick if row in marks else glyphs.vertical
        lines.append([Span(f"{label} ", "label"), Span(edge, "axis"), *cells.line(row)])
    line, times = _time_axis(view, columns, glyphs)
    margin = fit(unit, MARGIN - 1, right=True)
    lines.append([Span(f"{margin} ", "label"), Span(f"{glyphs.corner}{line}{' ' * room}", "axis")])
    if with_times:
        lines.append([Span(" " * MARGIN), Span(f" {times}{' ' * (room - 1)}", "label")])
    return lines


def _value_axis(metric: str, curves: Sequence[Curve], view: View, *, from_zero: bool) -> PlotAxis:
    until_s = min(view.to_s, view.until_s)
    bounds = [curve.series.bounds(view.from_s, until_s) for curve in curves]
    there = [bound for bound in bounds if bound is not None]
    low = min((bound[0] for bound in there), default=0.0)
    high = max((bound[1] for bound in there), default=1.0)
    return axis_for(metric, low, high, from_zero=from_zero, log=view.log)


def _time_axis(view: View, columns: int, glyphs: Glyphs) -> tuple[str, str]:
    """Return the horizontal axis, and the times below its ticks."""
    span_s = view.to_s - view.from_s
    times = ticks(PlotAxis(view.from_s, view.to_s), max(2, columns // 12))
    step_s = times[1] - times[0] if len(times) > 1 else span_s
    line = [glyphs.horizontal] * columns
    text = [" "] * (columns + 1)
    for time_s in times:
        place = round((time_s - view.from_s) / span_s * (columns - 1))
        label = time_label(time_s, step_s)
        begin = min(max(0, place - len(label) // 2), columns + 1 - len(label))
        if begin >= 0 and not "".join(text[max(0, begin - 1) : begin + len(label) + 1]).strip():
            text[begin : begin + len(label)] = label
            line[place] = glyphs.drop
    return "".join(line), "".join(text)


class _Cells:
    """The field of dots: which are set, and which flow set each cell last.

    ``room`` columns at its right are for marks.
    """

    def __init__(self, columns: int, room: int, rows: int, glyphs: Glyphs, axis: PlotAxis) -> None:
        self._columns = columns
        self._room = room
        self._rows = rows
        self._glyphs = glyphs
        self._axis = axis
        self._bits = [[0] * columns for _ in range(rows)]
        self._owners = [[NOBODY] * columns for _ in range(rows)]
        self._marks: dict[tuple[int, int], Span] = {}

    def add(self, curve: Curve, columns: Sequence[Range | None]) -> None:
        """Draw a curve: every column's range, and the connection to the next column."""
        owner = curve.number
        places = [index for index, column in enumerate(columns) if column is not None]
        steps = [after - before for before, after in pairwise(places)]
        hole = HOLE * median(steps) if steps else 0
        x0, y0, reached = -math.inf, 0, (0, 0)
        for x in places:
            column = columns[x]
            assert column is not None
            top, bottom = self._dot(column.high), self._dot(column.low)
            y = top if top == bottom else self._dot(column.mean)
            if x - x0 <= hole:
                for between in range(int(x0) + 1, x):
                    level = round(y0 + (y - y0) * (between - x0) / (x - x0))
                    reached = self._upright(owner, between, level, level, reached)
            else:
                reached = (top, bottom)
            reached = self._upright(owner, x, top, bottom, reached)
            x0, y0 = x, y
        if places:
            here = (y0 // self._glyphs.rows, int(x0) // self._glyphs.columns + 1)
            taken = here in self._marks
            self._marks[here] = Span("+", "label") if taken else Span(curve.mark, role_of(owner))

    def _dot(self, value: float) -> int:
        """Return the row of dots of a value, counted from the top."""
        return round((1 - self._axis.place(value)) * (self._rows * self._glyphs.rows - 1))

    def _upright(
        self, owner: int, x: int, top: int, bottom: int, reached: tuple[int, int]
    ) -> tuple[int, int]:
        """Set the dots of one column from top to bottom, and on to the range of its neighbour.

        Returns the range of this column.
        """
        top, bottom = min(top, reached[1] + 1), max(bottom, reached[0] - 1)
        height = self._glyphs.rows
        column, shift = divmod(x, self._glyphs.columns)
        for row in range(top // height, bottom // height + 1):
            first = max(0, top - row * height)
            last = min(height - 1, bottom - row * height)
            bits = (1 << last + 1) - (1 << first)
            self._bits[row][column] |= bits << shift * height
            self._owners[row][column] = owner
        return top, bottom

    def line(self, row: int) -> list[Span]:
        """Return one line of cells as spans, joining neighbours of one owner.

        A curve's mark is at its end; several that end side by side share a ``+``.
        """
        cells = [
            (role_of(owner), self._glyphs.characters[bits])
            for owner, bits in zip(self._owners[row], self._bits[row], strict=True)
        ]
        cells += [(PLAIN, " ")] * self._room
        for (mark_row, column), mark in self._marks.items():
            if mark_row == row:
                cells[column : column + len(mark.text)] = ((mark.role, one) for one in mark.text)
        return [
            Span("".join(text for _, text in group), role)
            for role, group in groupby(cells, key=itemgetter(0))
        ]
