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

from benchctl.tui.draw.axis import PlotAxis
from benchctl.tui.draw.scale import axis_for
from benchctl.tui.draw.spans import CURVES, PLAIN, Line, Span, fit
from benchctl.tui.draw.times import TimeAxis, time_axis
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
    bars: str = "▁▂▃▄▅▆▇█"
    """The steps of a sparkline."""


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
ASCII = Glyphs("ascii", 1, 2, " '.:", "|", "-", "+", "+", "+", "_.-:=+*#")

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
    times = time_axis(view.from_s, view.to_s, columns)
    room += columns - times.cells
    axis = _value_axis(metric, curves, view, rows, from_zero=from_zero)
    cells = _Cells(times.cells, room, axis, glyphs)
    for curve in curves:
        dots = times.cells * glyphs.columns
        cells.add(curve, curve.series.columns(view.from_s, times.end_s, dots, view.until_s))
    ticks = {tick.cell: tick.text for tick in axis.ticks}
    lines: list[Line] = []
    for cell in reversed(range(rows)):
        label = fit(ticks.get(cell, ""), MARGIN - 1, right=True)
        edge = glyphs.tick if cell in ticks else glyphs.vertical
        lines.append([Span(f"{label} ", "label"), Span(edge, "axis"), *cells.line(cell)])
    line, texts = _time_axis(times, room, glyphs)
    margin = fit(axis.unit, MARGIN - 1, right=True)
    lines.append([Span(f"{margin} ", "label"), Span(f"{glyphs.corner}{line}", "axis")])
    if with_times:
        lines.append([Span(" " * MARGIN), Span(f" {texts}", "label")])
    return lines


def _value_axis(
    metric: str, curves: Sequence[Curve], view: View, rows: int, *, from_zero: bool
) -> PlotAxis:
    until_s = min(view.to_s, view.until_s)
    bounds = [curve.series.bounds(view.from_s, until_s) for curve in curves]
    there = [bound for bound in bounds if bound is not None]
    low = min((bound[0] for bound in there), default=0.0)
    high = max((bound[1] for bound in there), default=1.0)
    return axis_for(metric, low, high, rows, from_zero=from_zero, log=view.log)


def _time_axis(axis: TimeAxis, room: int, glyphs: Glyphs) -> tuple[str, str]:
    """Return the horizontal axis with ``room`` cells after it, and the times below its ticks."""
    width = axis.cells + room
    line = [glyphs.horizontal] * axis.cells + [" "] * room
    text = [" "] * width
    for cell, _, label in axis.ticks:
        line[cell] = glyphs.drop
        begin = min(max(0, cell - len(label) // 2), width - len(label))
        if begin >= 0:
            text[begin : begin + len(label)] = label
    return "".join(line), "".join(text)


def hole_after(places: Sequence[int]) -> float:
    """Return the distance of values, by the places of all, from which on they are not joined."""
    steps = [after - before for before, after in pairwise(places)]
    return HOLE * median(steps) if steps else 0


class _Cells:
    """The field of dots: which are set, and which flow set each cell last.

    ``room`` columns at its right are for marks.
    """

    def __init__(self, columns: int, room: int, axis: PlotAxis, glyphs: Glyphs) -> None:
        self._columns = columns
        self._room = room
        self._glyphs = glyphs
        self._axis = axis
        self._bits = [[0] * columns for _ in range(axis.cells)]
        self._owners = [[NOBODY] * columns for _ in range(axis.cells)]
        self._marks: dict[tuple[int, int], Span] = {}

    def add(self, curve: Curve, columns: Sequence[Range | None]) -> None:
        """Draw a curve: every column's range, and the connection to the next column."""
        owner = curve.number
        places = [index for index, column in enumerate(columns) if column is not None]
        hole = hole_after(places)
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
        """Return the row of dots of a value, from the top; the ends are the middles of cells."""
        cells, rows = self._axis.cells, self._glyphs.rows
        dot = round((1 - self._axis.place(value)) * (cells - 1) * rows + (rows - 1) / 2)
        return min(max(0, dot), cells * rows - 1)

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

    def line(self, cell: int) -> list[Span]:
        """Return the line of a cell of the axis, as spans that join neighbours of one owner.

        A curve's mark is at its end; several that end side by side share a ``+``.
        """
        row = self._axis.cells - 1 - cell
        if row < 0:
            return [Span(" " * (self._columns + self._room))]
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
