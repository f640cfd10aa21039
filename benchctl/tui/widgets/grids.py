"""Several metrics of a summary, one below the other, as many as fit."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from benchctl.tui.draw.columns import lay_out
from benchctl.tui.draw.heat import Grid
from benchctl.tui.draw.spans import Line, Span
from benchctl.tui.widgets.painted import Painted


class Grids(Painted):
    """Grids without a cursor."""

    def __init__(self, *, id: str | None = None) -> None:  # noqa: A002
        super().__init__(id=id)
        self._grids: Sequence[Grid] = ()

    def show(self, grids: Sequence[Grid]) -> None:
        """Show these grids."""
        self._grids = grids
        self.repaint()

    def paint(self, width: int, height: int) -> Sequence[Line]:
        lines = [line for grid in self._grids for line in _drawn(grid)]
        if len(lines) <= height:
            return lines
        return [*lines[: height - 1], [Span("  ↓ m brings the next metric to the top", "dim")]]


def _drawn(grid: Grid) -> Iterator[Line]:
    yield []
    yield [Span(grid.about, "strong")]
    yield lay_out(grid.columns, [Span(column.head) for column in grid.columns], role="label")
    for row in grid.rows:
        yield lay_out(grid.columns, row)
