"""Figures as widgets: the plots of a trial, its tiles, and grids of a summary."""

from __future__ import annotations

import math
import time
from collections.abc import Sequence
from itertools import zip_longest
from types import MappingProxyType
from typing import Literal

from msgspec.structs import replace

from benchctl.report.traces import Traces
from benchctl.tui.draw.charts import Choice, Expected, compose, rescaled
from benchctl.tui.draw.columns import GAP, see
from benchctl.tui.draw.heat import Grid
from benchctl.tui.draw.plot import MARGIN
from benchctl.tui.draw.spans import Line, Span, crop
from benchctl.tui.draw.tiles import TALL, Tile, lay_out_tiles
from benchctl.tui.model.zoom import View
from benchctl.tui.widgets.painted import Painted

# Between two grids side by side.
BETWEEN = "    "
# If only samples came, drawing takes at most this share of the time.
MOST_TIME = 0.05
# A dot covers some time, so drawing more often would show nothing new. But figures are read too.
SLOWEST_S = 1.0


class ChartView(Painted):
    """Plots one above the other."""

    _traces: Traces | None = None
    _choice = Choice()
    _view = View(0.0, 1.0)
    _expected: Expected = MappingProxyType({})
    _shown_at = -math.inf
    _cost_s = 0.0

    @property
    def dots(self) -> int:
        """How many columns of dots a curve has."""
        return max(1, (self.size.width - MARGIN - 2) * self._choice.glyphs.columns)

    def show(
        self, traces: Traces | None, choice: Choice, view: View, expected: Expected, now: float, *,
        urgent: bool,
    ) -> None:  # fmt: skip
        """Show lines at a moment of the clock.

        The effect of a key is ``urgent``; new samples in the same picture are not.
        """
        before = replace(self._view, until_s=view.until_s)
        if not urgent and self._traces is traces and (self._choice, before) == (choice, view):
            dot_s = min(SLOWEST_S, (view.to_s - view.from_s) / self.dots)
            if now - self._shown_at < max(dot_s, self._cost_s / MOST_TIME):
                return
        self._traces, self._choice, self._view, self._shown_at = traces, choice, view, now
        self._expected = expected
        self.repaint()

    def rescaled(self, how: Literal["zoom", "pan"], steps: int) -> Choice:
        """Return the choice with another part of the first plot's values."""
        if self._traces is None:
            return self._choice
        size = (self.size.width, self.size.height)
        return rescaled(self._traces, self._choice, self._view, *size, self._expected, how, steps)

    def paint(self, width: int, height: int) -> Sequence[Line]:
        begun = time.perf_counter()
        lines = compose(self._traces, self._choice, self._view, width, height, self._expected)
        self._cost_s = time.perf_counter() - begun
        return lines


class Tiles(Painted):
    """The tiles as a widget, with tall digits if it is four lines high."""

    _tiles: Sequence[Tile] = ()

    def show(self, tiles: Sequence[Tile]) -> None:
        """Show these tiles, the most important one first."""
        if tiles != self._tiles:
            self._tiles = tiles
            self.repaint()

    def paint(self, width: int, height: int) -> Sequence[Line]:
        return lay_out_tiles(self._tiles, width, tall=height > TALL) if self._tiles else []


class Grids(Painted):
    """Grids without a cursor, in as many columns as they need and the width allows."""

    _grids: Sequence[Grid] = ()
    _first = 0

    def show(self, grids: Sequence[Grid], first: int) -> None:
        """Show these grids, without the ``first`` of their columns that scroll."""
        self._grids, self._first = grids, first
        self.repaint()

    def paint(self, width: int, height: int) -> Sequence[Line]:
        widest = max((_width(grid) for grid in self._grids), default=width)
        count = max(1, (width + len(BETWEEN)) // (widest + len(BETWEEN)))
        each = (width - len(BETWEEN) * (count - 1)) // count
        columns: list[list[Line]] = [[]]
        for grid in self._grids:
            lines = _drawn(grid, each, self._first)
            if columns[-1] and len(columns[-1]) + len(lines) > height and len(columns) < count:
                columns.append([])
            room = height - len(columns[-1])
            if len(lines) > room:
                rows = lines[: room - 1] if room - 1 > len(lines) - len(grid.rows) else []
                more = Span("  ↓ m brings the next metric to the top", "dim")
                columns[-1] = [*[*columns[-1], *rows][: height - 1], [more]]
                break
            columns[-1] += lines
        return [_beside(lines, each) for lines in zip_longest(*columns, fillvalue=())]


def _width(grid: Grid) -> int:
    """Return the width of a grid whose columns are all visible."""
    cells = sum(column.width for column in grid.columns) + len(GAP) * (len(grid.columns) - 1)
    return max(len(grid.about), cells)


def _drawn(grid: Grid, width: int, first: int) -> list[Line]:
    sight = see(grid.columns, width, first)
    title: Line = [Span(grid.about, "strong")]
    return [[], title, sight.head(), *map(sight.row, grid.rows)]


def _beside(lines: Sequence[Line], width: int) -> Line:
    """Return lines side by side, each of this width but the last."""
    *before, last = lines
    return [*(span for line in before for span in (*crop(line, width), Span(BETWEEN))), *last]
