"""The table that grows as trials end, with the figures of the command line, at a moment."""

from __future__ import annotations

from collections.abc import Callable

from benchctl.errors import StoreError
from benchctl.report.pivot import Pivot, pivot
from benchctl.report.report import Report
from benchctl.report.searches import search_table
from benchctl.tui.model.runview import RunView


class Results:
    """The summary of a run's trials so far; of a search, what it found: its tries are trials."""

    def __init__(self, view: RunView, report_at: Callable[[float], Report]) -> None:
        self._view = view
        self._report_at = report_at
        self._done = 0
        self._pivot: Pivot | None = None

    def at(self, time: float) -> Pivot | None:
        """Return the table of the trials that had ended at a moment; None before the first.

        A store that cannot be read leaves the table as it was; the next call tries again.
        """
        done = self._view.done_at(time)
        if done != self._done:
            try:
                report = self._report_at(time)
            except StoreError:
                return self._pivot
            self._done = done
            self._pivot = (search_table(report) or pivot(report)) if done else None
        return self._pivot
