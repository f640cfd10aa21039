"""What is to be known besides figures, pinned: warnings, remarks, what went wrong."""

from __future__ import annotations

from collections.abc import Sequence

from benchctl.tui.painted import Painted
from benchctl.tui.spans import Line, Span


class Notes(Painted):
    """The latest notes, as many as there is room for."""

    DEFAULT_CSS = """
    Notes { height: auto; max-height: 3; }
    """

    def __init__(self, *, id: str | None = None) -> None:  # noqa: A002
        super().__init__(id=id)
        self._notes: Sequence[Line] = ()

    def show(self, notes: Sequence[Line]) -> None:
        """Show these, the most urgent first."""
        if notes != self._notes:
            self.styles.height = min(3, len(notes))
            self._notes = notes
            self.repaint()

    def paint(self, width: int, height: int) -> Sequence[Line]:
        if len(self._notes) <= height:
            return self._notes
        more = Span(f"  +{len(self._notes) - height} more", "dim")
        return [*self._notes[: height - 1], [*self._notes[height - 1], more]] if height else []
