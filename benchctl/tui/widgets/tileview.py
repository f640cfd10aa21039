"""The big figures as a widget."""

from __future__ import annotations

from collections.abc import Sequence

from benchctl.tui.draw.spans import Line
from benchctl.tui.draw.tiles import TALL, Tile, lay_out
from benchctl.tui.widgets.painted import Painted


class Tiles(Painted):
    """The tiles as a widget, with tall digits if it is four lines high."""

    def __init__(self, *, id: str | None = None) -> None:  # noqa: A002
        super().__init__(id=id)
        self._tiles: Sequence[Tile] = ()

    def show(self, tiles: Sequence[Tile]) -> None:
        """Show these tiles, the most important one first."""
        if tiles != self._tiles:
            self._tiles = tiles
            self.repaint()

    def paint(self, width: int, height: int) -> Sequence[Line]:
        return lay_out(self._tiles, width, tall=height > TALL) if self._tiles else []
