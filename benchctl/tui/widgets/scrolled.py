"""Text that is too long or too wide: wrapped, and scrolled with the usual keys.

Textual's Static and RichLog wrap without an indent, so that one long command looks like several.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import ClassVar

from textual.binding import Binding, BindingType

from benchctl.report.lines.spans import Line, Span, wrap
from benchctl.tui.widgets.painted import Scrolling

# Indent of continuation lines.
INDENT = 2
# A label, and the gap after it.
LABEL = re.compile(r" *\S.{0,12}?  +(?=\S)")


class Scrolled(Scrolling):
    """A text that scrolls."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("up,k", "move(-1)", "Line up", show=False, id="text.up"),
        Binding("down,j", "move(1)", "Line down", show=False, id="text.down"),
        Binding("pageup", "page(-1)", "Page up", show=False, id="text.page_up"),
        Binding("pagedown", "page(1)", "Page down", show=False, id="text.page_down"),
        Binding("home", "move(-1000000)", "Beginning", show=False, id="text.first"),
        Binding("end", "move(1000000)", "End", show=False, id="text.last"),
    ]

    WHEEL = 3
    _text: Sequence[Line] = ()
    _top = 0

    def show(self, lines: Sequence[Line], *, from_the_top: bool) -> None:
        """Show a text, from its start or from the current position."""
        self._text = lines
        if from_the_top:
            self._top = 0
        self.repaint()

    @property
    def wrapped(self) -> Sequence[Line]:
        """The text in lines of the widget's width."""
        # Before the first layout only the app has a size.
        width = self.size.width or self.app.size.width
        return [piece for line in self._text for piece in _wrapped(line, max(8, width))]

    def paint(self, width: int, height: int) -> Sequence[Line]:
        lines = [piece for line in self._text for piece in _wrapped(line, max(8, width))]
        self._top = max(0, min(self._top, len(lines) - height))
        shown = lines[self._top : self._top + height]
        more = len(lines) - self._top - height
        if more > 0 and shown:
            shown[-1] = [Span(f"  ↓ {more + 1} more lines", "dim")]
        return shown

    def action_move(self, rows: int) -> None:
        self._top = max(0, self._top + rows)
        self.repaint()


def _wrapped(line: Line, width: int) -> Iterator[Line]:
    """Yield a line in pieces; continuation lines are indented, below the text after a label."""
    text = "".join(span.text for span in line)
    own = len(text) - len(text.lstrip(" "))
    label = LABEL.match(text)
    return wrap(line, width, indent=min(label.end() if label else own + INDENT, width // 4))
