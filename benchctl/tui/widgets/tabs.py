"""The names of several texts, of which one is shown below; a click shows another.

Textual's Tabs takes two lines, and a widget for each name.
"""

from __future__ import annotations

from collections.abc import Sequence

from textual import events
from textual.message import Message

from benchctl.report.lines.spans import Line, Span
from benchctl.tui.widgets.painted import Painted


class Tabs(Painted):
    """One line: the key that shows the next text, and the names."""

    DEFAULT_CSS = """
    Tabs { height: 1; display: none; }
    """

    class Chosen(Message):
        """A name was clicked."""

        def __init__(self, place: int) -> None:
            super().__init__()
            self.place = place

    def __init__(self) -> None:
        super().__init__()
        self._names: Sequence[str] = ()
        self._place = 0
        self._key = ""

    def show(self, names: Sequence[str], place: int, key: str) -> None:
        """Show the names, the one at ``place`` marked; nothing if there are fewer than two."""
        self._names, self._place, self._key = names, place, key
        self.display = len(names) > 1
        self.repaint()

    def _cells(self) -> list[Span]:
        return [
            Span(f"[{name}]", "strong") if place == self._place else Span(f" {name} ", "dim")
            for place, name in enumerate(self._names)
        ]

    def paint(self, width: int, height: int) -> Sequence[Line]:
        return [[Span(f"{self._key} ", "label"), *self._cells()]]

    def on_click(self, event: events.Click) -> None:
        """Choose the name that was hit."""
        offset = event.get_content_offset(self)
        if offset is None:
            return
        end = len(self._key) + 1
        for place, cell in enumerate(self._cells()):
            if end <= offset.x < end + len(cell.text):
                self.post_message(self.Chosen(place))
            end += len(cell.text)
