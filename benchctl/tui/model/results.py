"""The table that grows as trials end, with the figures of the command line, at a moment."""

from __future__ import annotations

from benchctl.report.pivot import Pivot, pivot
from benchctl.tui.model.runview import RunView


class Results:
    """The summary of a run's trials so far."""

    def __init__(self, view: RunView) -> None:
        self._view = view
        self._done = 0
        self._pivot: Pivot | None = None

    def at(self, time: float) -> Pivot | None:
        """Return the table of the trials that had ended at a moment; None before the first."""
        done = self._view.done_at(time)
        if done != self._done:
            self._done = done
            self._pivot = pivot(self._view.report_at(time)) if done else None
        return self._pivot
