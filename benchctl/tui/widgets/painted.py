"""The base of our widgets: lines of text with roles, drawn at the widget's size.

A widget's lines are requested only if it is visible and has changed; `repaint` marks changes.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import zip_longest
from typing import ClassVar

from rich.segment import Segment
from rich.style import Style
from textual import events
from textual.geometry import Region
from textual.strip import Strip
from textual.widget import Widget

from benchctl.report.lines.spans import PLAIN, Line, Span, crop
from benchctl.tui.themes import style_of
from benchctl.visible import visible


class Painted(Widget):
    """A widget whose subclass paints lines of spans."""

    def __init__(self, *, id: str | None = None, classes: str | None = None) -> None:  # noqa: A002
        super().__init__(id=id, classes=classes)
        self._lines: Sequence[Line] | None = None
        self._strips: dict[int, Strip] = {}
        self._looks: dict[str, Style] = {}
        self._painted_for = (0, 0)

    def paint(self, width: int, height: int) -> Sequence[Line]:
        """Return the widget's lines, for its present size."""
        raise NotImplementedError

    def repaint(self) -> None:
        """Redraw the changed lines, or everything."""
        size = (self.size.width, self.size.height)
        if self._lines is None or self._painted_for != size or not self.is_attached:
            self._lines = None
            self.refresh()
            return
        before, self._lines = self._lines, self.paint(*size)
        pairs = enumerate(zip_longest(before, self._lines))
        changed = [y for y, (old, new) in pairs if y < size[1] and old != new]
        for y in changed:
            self._strips.pop(y, None)
        if changed:
            self.refresh(*(Region(0, y, size[0], 1) for y in changed))

    def notify_style_update(self) -> None:
        super().notify_style_update()
        self._strips, self._looks = {}, {}

    def render_line(self, y: int) -> Strip:
        """Return one line as Textual's Line API needs it."""
        size = (self.size.width, self.size.height)
        if self._lines is None or self._painted_for != size:
            self._lines, self._painted_for = self.paint(*size), size
            self._strips = {}
        if y not in self._strips:
            self._strips[y] = self._strip(self._lines[y] if y < len(self._lines) else ())
        return self._strips[y]

    def _strip(self, line: Line) -> Strip:
        width = self.size.width
        segments = [
            Segment(text, self._style(role))
            for text, role in crop((Span(visible(text), role) for text, role in line), width)
        ]
        return Strip(segments, width)

    def _style(self, role: str) -> Style:
        if PLAIN not in self._looks:
            self._looks[PLAIN] = self.rich_style
        if role not in self._looks:
            app, (_, below) = self.app, self.screen.background_colors
            self._looks[role] = self._looks[PLAIN] + style_of(
                role, app.theme_variables, below, ansi=app.native_ansi_color
            )
        return self._looks[role]


class Scrolling(Painted, can_focus=True):
    """A widget with more rows than it shows: keys and the wheel move through them."""

    WHEEL: ClassVar[int] = 1
    """How many rows a step of the wheel moves."""

    def action_move(self, rows: int) -> None:
        """Move by rows, down or up."""
        raise NotImplementedError

    def action_scroll(self, columns: int) -> None:
        """Scroll sideways, if that is possible."""

    def action_page(self, pages: int) -> None:
        """Move by pages."""
        self.action_move(pages * max(1, self.size.height - 1))

    def _turn(self, event: events.MouseEvent, steps: int) -> None:
        event.stop()  # it scrolls nothing else
        if event.shift:
            self.action_scroll(steps)
        else:
            self.action_move(steps * self.WHEEL)

    def on_mouse_scroll_down(self, event: events.MouseScrollDown) -> None:
        self._turn(event, 1)

    def on_mouse_scroll_up(self, event: events.MouseScrollUp) -> None:
        self._turn(event, -1)

    def on_mouse_scroll_right(self) -> None:
        self.action_scroll(1)

    def on_mouse_scroll_left(self) -> None:
        self.action_scroll(-1)
