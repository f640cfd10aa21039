"""Draws every screen in the characters that the terminal has, also what Textual's widgets draw."""

from __future__ import annotations

from rich.segment import Segment
from textual.color import Color
from textual.filter import LineFilter

from benchctl.tui.draw.text.glyphs import Glyphs


class Plainer(LineFilter):
    """Replaces characters that a terminal lacks in every line."""

    def __init__(self, glyphs: Glyphs) -> None:
        super().__init__()
        self._glyphs = glyphs

    def apply(self, segments: list[Segment], background: Color) -> list[Segment]:
        """Return a line in characters that are there; each keeps its width."""
        plain = self._glyphs.plain
        return [Segment(plain(text), style, control) for text, style, control in segments]
