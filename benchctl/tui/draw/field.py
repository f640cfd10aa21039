"""The field of dots of a plot: lines, dashes behind them, and faint bands behind both.

The dots of a column are one integer, its bits from the top. A cell of the terminal has a single
colour. So it shows the dots of its uppermost layer, in the role that was last to draw there.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from itertools import pairwise
from statistics import median

from benchctl.tui.draw.axis import PlotAxis
from benchctl.tui.draw.glyphs import Glyphs
from benchctl.tui.draw.spans import PLAIN
from benchctl.tui.draw.strip import Strip

Cell = tuple[str, str]
"""A role and a character."""
Run = list[tuple[int, int, int]]
"""Columns of dots side by side, each with its first and last dot."""

# A gap of this many usual intervals means missing samples; it is not bridged.
HOLE = 3.5
# Of this many dots side by side, the first half is a dash.
DASH = 6


class _Layer:
    """Dots by column, and for each role the rows of cells that it has dots in."""

    def __init__(self, columns: int, glyphs: Glyphs) -> None:
        self.dots = [0] * (columns * glyphs.columns)
        self.roles: list[tuple[str, list[int]]] = []
        self._glyphs = glyphs

    def add(self, role: str, columns: Iterable[tuple[int, int]]) -> None:
        """Add dots of a role, each column with its bits."""
        width = self._glyphs.columns
        touched = [0] * (len(self.dots) // width)
        for x, bits in columns:
            self.dots[x] |= bits
            touched[x // width] |= bits
        for shift in (1, 2)[: self._glyphs.rows // 2]:
            touched = [bits | bits >> shift for bits in touched]
        self.roles.append((role, touched))


class Field:
    """A field of ``columns`` x ``axis.cells`` cells."""

    def __init__(self, columns: int, axis: PlotAxis, glyphs: Glyphs) -> None:
        self._columns = columns
        self._axis = axis
        self._glyphs = glyphs
        self._lines, self._dashes, self._bands = (_Layer(columns, glyphs) for _ in range(3))
        dotted = sum(1 << dot for dot in range(0, axis.cells * glyphs.rows, 2))
        self._texts: list[tuple[int, str, str]] = []
        self._faint = (dotted, 0 if glyphs.columns == 1 else dotted << 1)

    def add_line(self, role: str, band: str, strip: Strip) -> tuple[int, int] | None:
        """Draw a line; return the row and the column of cells that it ends in, None without any.

        A column spans its whole range, or has its mean before the range as a band of role ``band``.
        """
        if not strip.places:
            return None
        middles = self._dots(strip.means)
        runs = _runs(strip.places, self._dots(strip.highs), self._dots(strip.lows))
        if band:
            self._bands.add(band, self._filled(runs))
            runs = _runs(strip.places, middles, middles)
        self._lines.add(role, _connected(runs))
        return middles[-1] // self._glyphs.rows, strip.places[-1] // self._glyphs.columns

    def add_dashes(self, role: str, value: float, text: str) -> None:
        """Draw a dashed line at a value, with a text in it where no line is, if there is room."""
        (dot,) = self._dots([value])
        dashes = (x for x in range(len(self._dashes.dots)) if x % DASH < DASH // 2)
        self._dashes.add(role, ((x, 1 << dot) for x in dashes))
        self._texts.append((dot // self._glyphs.rows, role, f"  {text} "))

    def _dots(self, values: Sequence[float]) -> Sequence[int]:
        """Return the rows of dots of values, from the top; values beyond the field are at its edge.

        The ends of the axis are in the middles of cells.
        """
        rows, last = self._glyphs.rows, self._axis.cells * self._glyphs.rows - 1
        height = (self._axis.cells - 1) * rows
        end = height + (rows - 1) / 2 + 0.5
        dots = [math.floor(end - place * height) for place in self._axis.places(values)]
        return [0 if dot < 0 else last if dot > last else dot for dot in dots]

    def _filled(self, runs: Iterable[Run]) -> Iterator[tuple[int, int]]:
        """Yield every second dot of the runs."""
        for run in runs:
            for x, top, bottom in run:
                yield x, (2 << bottom) - (1 << top) & self._faint[x % 2]

    def cells(self) -> list[list[Cell]]:
        """Return the cells, row by row from the top."""
        height, width = self._glyphs.rows, self._glyphs.columns
        whole = (1 << height) - 1
        grid = [[(PLAIN, " ")] * self._columns for _ in range(self._axis.cells)]
        rows = sum(1 << row * height for row in range(self._axis.cells))
        for column in range(self._columns):
            free = rows
            for layer in (self._lines, self._dashes, self._bands):
                dots = layer.dots[column * width : (column + 1) * width]
                for role, touched in reversed(layer.roles):
                    taken = touched[column] & free
                    free ^= taken
                    while taken:
                        first = (taken & -taken).bit_length() - 1
                        taken &= taken - 1
                        bits = 0
                        for place, column_bits in enumerate(dots):
                            bits |= (column_bits >> first & whole) << place * height
                        grid[first // height][column] = (role, self._glyphs.characters[bits])
        for row, role, text in self._texts:
            self._write(grid, row, role, text)
        return grid

    def _write(self, grid: list[list[Cell]], row: int, role: str, text: str) -> None:
        """Write a text in a row, or beside it, where no line is; over bands if need be."""
        beside = [near for near in (row, row - 1, row + 1) if 0 <= near < len(grid)]
        for layers in ([*self._lines.roles, *self._bands.roles], self._lines.roles):
            for near in beside:
                first = 1 << near * self._glyphs.rows
                free = [
                    not (
                        character.isalnum() or any(touched[column] & first for _, touched in layers)
                    )
                    for column, (_, character) in enumerate(grid[near])
                ]
                for begin in range(self._columns - len(text) + 1):
                    if all(free[begin : begin + len(text)]):
                        grid[near][begin : begin + len(text)] = [(role, one) for one in text]
                        return


def hole_after(places: Sequence[int]) -> float:
    """Return the distance of values, by the places of all, from which on they are not joined."""
    steps = [after - before for before, after in pairwise(places)]
    return HOLE * median(steps) if steps else 0.0


def _runs(places: Sequence[int], tops: Sequence[int], bottoms: Sequence[int]) -> list[Run]:
    """Return columns without holes between them, small gaps bridged."""
    hole = hole_after(places)
    columns = [*zip(places, tops, bottoms, strict=True)]
    runs = [columns[:1]]
    for (x0, top0, bottom0), (x, top, bottom) in pairwise(columns):
        if x - x0 > hole:
            runs.append([])
        else:
            for between in range(x0 + 1, x):
                share = (between - x0) / (x - x0)
                level0, level = top0 + (top - top0) * share, bottom0 + (bottom - bottom0) * share
                runs[-1].append((between, round(level0), round(level)))
        runs[-1].append((x, top, bottom))
    return runs


def _connected(runs: Iterable[Run]) -> Iterator[tuple[int, int]]:
    """Yield the dots of each column, and those up to the dots of the column before."""
    for run in runs:
        _, least, greatest = run[0]
        for x, top, bottom in run:
            least, greatest = min(top, greatest + 1), max(bottom, least - 1)
            yield x, (2 << greatest) - (1 << least)
