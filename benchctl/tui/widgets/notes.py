"""Pinned notes: warnings, remarks, errors."""

from __future__ import annotations

from collections.abc import Sequence

from benchctl.report.lines.spans import Line, Span, crop, wrap
from benchctl.tui.widgets.painted import Painted

MOST = 4
"""The maximum number of lines: plots matter more."""


class Notes(Painted):
    """The latest notes, as many as fit."""

    DEFAULT_CSS = f"""
    Notes {{ height: auto; max-height: {MOST}; }}
    """

    _notes: Sequence[Line] = ()

    def show(self, notes: Sequence[Line]) -> None:
        """Show these, the most urgent first."""
        if notes != self._notes:
            self._notes = notes
            self.repaint()
        self.styles.height = min(MOST, len(self._wrapped()))

    def _wrapped(self) -> list[Line]:
        # During the teardown of the screen a tick may come, when only the app has a size.
        width = self.size.width or self.app.size.width
        return [piece for line in self._notes for piece in wrap(line, max(8, width), indent=2)]

    def paint(self, width: int, height: int) -> Sequence[Line]:
        lines = self._wrapped()
        if len(lines) <= height:
            return lines
        more = Span(f"  +{len(lines) - height} more lines", "dim")
        return [*lines[: height - 1], [*crop(lines[height - 1], width - len(more.text)), more]]
