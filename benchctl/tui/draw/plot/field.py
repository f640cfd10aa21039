"""The field of dots of a plot: lines, dashes behind them, and faint bands behind both.

The dots of a column are one integer, its bits from the top. A cell of the terminal has a single
colour. So it shows the dots of its uppermost layer, in the role that was last to draw there.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from itertools import cycle, pairwise
from operator import or_
from statistics import median

from benchctl.report.lines.spans import PLAIN
from benchctl.tui.draw.axes.axis import PlotAxis
from benchctl.tui.draw.axes.strip import Strip
from benchctl.tui.draw.text.glyphs import Glyphs

Cell = tuple[str, str]
"""A role and a character."""
# A gap of this many usual intervals means missing samples; it is not bridged.
HOLE = 3.5
# Of this many dots side by side, the first half is a dash.
DASH = 6


class _Layer:
    """Dots by column, and for each role the rows of cells that it has dots in."""

    def __init__(self, columns: int, glyphs: Glyphs) -> None:
        self.dots = [0] * (columns * glyphs.columns)
        self.roles: list[tuple[str, Sequence[int]]] = []
        self._glyphs = glyphs

    def add(self, role: str, bits: Sequence[int]) -> None:
        """Add dots of a role, the bits of every column."""
        self.dots = [*map(or_, self.dots, bits)]
        touched = bits
        if self._glyphs.columns == 2:
            touched = [*map(or_, bits[::2], bits[1::2])]
        for shift in (1, 2)[: self._glyphs.rows // 2]:
            touched = [rows | rows >> shift for rows in touched]
        self.roles.append((role, touched))


class Field:
    """A field of ``columns`` x ``axis.cells`` cells."""

    def __init__(self, columns: int, axis: PlotAxis, glyphs: Glyphs) -> None:
        self._columns = columns
        self._axis = axis
        self._glyphs = glyphs
        self._lines, self._dashes, self._bands = (_Layer(columns, glyphs) for _ in range(3))
        dotted = sum(1 << dot for dot in range(0, axis.cells * glyphs.rows, 2))
        self._each_cell = sum(1 << row * glyphs.rows for row in range(axis.cells))
        """A bit for each row of cells: that of its first dots."""
        self._texts: list[tuple[int, str, str]] = []
        self._faint = (dotted, 0 if glyphs.columns == 1 else dotted << 1)

    def add_line(self, role: str, band: str | None, strip: Strip) -> tuple[int, int] | None:
        """Draw a line; return the row and the column of cells that it ends in, None without any.

        A column spans its whole range. With ``band``, it has its mean, before the range as a band
        of this role, if it is not empty.
        """
        if not strip.places:
            return None
        middles = self._dots(strip.means)
        tops, bottoms = middles, middles
        if band != "":
            tops, bottoms = self._dots(strip.highs), self._dots(strip.lows)
        if band:
            self._bands.add(band, self._bits(strip.places, tops, bottoms, self._filled))
            tops, bottoms = middles, middles
        self._lines.add(role, self._bits(strip.places, tops, bottoms, _connected))
        return middles[-1] // self._glyphs.rows, strip.places[-1] // self._glyphs.columns

    def passed(self, every: int, first: int) -> Iterator[tuple[int, int]]:
        """Yield row and column of the line drawn last, in one of so many columns of cells."""
        height = self._glyphs.rows
        for column in range(first, self._columns, every):
            dots = self._lines.roles[-1][1][column] & self._each_cell
            if dots:
                yield (dots & -dots).bit_length() // height, column

    def add_strokes(
        self, role: str, places: Sequence[int], lows: Sequence[float], highs: Sequence[float]
    ) -> None:
        """Draw strokes in columns of dots, each by itself; a column may have several."""
        if not places:
            return
        bits = [0] * (self._columns * self._glyphs.columns)
        for place, top, bottom in zip(places, self._dots(highs), self._dots(lows), strict=True):
            bits[place] |= (2 << bottom) - (1 << top)
        self._lines.add(role, bits)

    def add_dashes(self, role: str, value: float, text: str) -> None:
        """Draw a dashed line at a value, with a text, if any, where no line is and it has room."""
        (dot,) = self._dots([value])
        columns = range(self._columns * self._glyphs.columns)
        self._dashes.add(role, [(x % DASH < DASH // 2) << dot for x in columns])
        if text:
            self._texts.append((dot // self._glyphs.rows, role, text))

    def _dots(self, values: Sequence[float]) -> Sequence[int]:
        """Return the rows of dots of values, from the top; values beyond the field are at its edge.

        The ends of the axis are in the middles of cells.
        """
        rows, last = self._glyphs.rows, self._axis.cells * self._glyphs.rows - 1
        height = (self._axis.cells - 1) * rows
        end = height + (rows - 1) / 2 + 0.5
        # Towards zero is down but for values above the field, which are at its first dot anyway.
        dots = [int(end - place * height) for place in self._axis.places(values)]
        if min(dots) < 0 or max(dots) > last:
            dots = [0 if dot < 0 else last if dot > last else dot for dot in dots]
        return dots

    def _bits(
        self, places: Sequence[int], tops: Sequence[int], bottoms: Sequence[int],
        fill: Callable[[int, Sequence[int], Sequence[int]], Sequence[int]],
    ) -> Sequence[int]:  # fmt: skip
        """Return the bits of every column, as ``fill`` sets them for columns without holes."""
        bits: list[int] = []
        for begin, run_tops, run_bottoms in _runs(places, tops, bottoms):
            bits += [0] * (begin - len(bits))
            bits += fill(begin, run_tops, run_bottoms)
        return bits + [0] * (self._columns * self._glyphs.columns - len(bits))

    def _filled(self, begin: int, tops: Sequence[int], bottoms: Sequence[int]) -> Sequence[int]:
        """Return every second dot from the tops to the bottoms."""
        masks = self._faint if begin % 2 == 0 else self._faint[::-1]
        columns = zip(tops, bottoms, cycle(masks), strict=False)
        return [((2 << bottom) - (1 << top)) & mask for top, bottom, mask in columns]

    def cells(self) -> list[list[Cell]]:
        """Return the cells, row by row from the top."""
        height, width = self._glyphs.rows, self._glyphs.columns
        whole = (1 << height) - 1
        grid = [[(PLAIN, " ")] * self._columns for _ in range(self._axis.cells)]
        for column in range(self._columns):
            free = self._each_cell
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

    def _write(self, grid: list[list[Cell]], row: int, role: str, shown: str) -> None:
        """Write a text in a row where no line is, over bands if need be.

        Or in the row above or below, with an arrow to its own.
        """
        places = ((row, ""), (row - 1, self._glyphs.down), (row + 1, self._glyphs.up))
        for near, arrow in places:
            if not 0 <= near < len(grid):
                continue
            text = f"{arrow} {shown}".strip().join(("  ", " "))
            for layers in ([*self._lines.roles, *self._bands.roles], self._lines.roles):
                first = 1 << near * self._glyphs.rows
                free = [
                    not (
                        character.isalnum() or any(touched[column] & first for _, touched in layers)
                    )
                    for column, (_, character) in enumerate(grid[near])
                ]
                for begin in range(self._columns - len(text) + 1):
                    if all(free[begin : begin + len(text)]):
                        grid[near][begin : begin + len(text)] = [
                            (role, character) for character in text
                        ]
                        return


def hole_after(places: Sequence[int]) -> float:
    """Return the distance of values, by the places of all, from which on they are not joined."""
    steps = [after - before for before, after in pairwise(places)]
    return HOLE * median(steps) if steps else 0.0


def _runs(
    places: Sequence[int], tops: Sequence[int], bottoms: Sequence[int]
) -> Iterator[tuple[int, Sequence[int], Sequence[int]]]:
    """Yield columns without holes, small gaps bridged: the first one, all tops, all bottoms."""
    if places[-1] - places[0] + 1 == len(places):
        yield places[0], tops, bottoms
        return
    hole = hole_after(places)
    begin, higher, lower = places[0], [tops[0]], [bottoms[0]]
    columns = zip(places, tops, bottoms, strict=True)
    for (x0, top0, bottom0), (x, top, bottom) in pairwise(columns):
        if x - x0 > hole:
            yield begin, higher, lower
            begin, higher, lower = x, [], []
        else:
            for between in range(1, x - x0):
                share = between / (x - x0)
                higher.append(round(top0 + (top - top0) * share))
                lower.append(round(bottom0 + (bottom - bottom0) * share))
        higher.append(top)
        lower.append(bottom)
    yield begin, higher, lower


def _connected(_: int, tops: Sequence[int], bottoms: Sequence[int]) -> Sequence[int]:
    """Return the dots from the tops to the bottoms, and those up to the column before."""
    bits = []
    first, last = tops[0], bottoms[0]
    for top, bottom in zip(tops, bottoms, strict=True):
        first, last = top if top <= last else last + 1, bottom if bottom >= first else first - 1
        bits.append((2 << last) - (1 << first))
    return bits
