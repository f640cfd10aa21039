"""The table that grows as trials end, and the goals of a run, at a moment."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from benchctl.errors import StoreError
from benchctl.report.pivot import Pivot, pivot
from benchctl.report.progress.goals import Goal, goals_of
from benchctl.report.report import Report
from benchctl.report.text.searches import search_table
from benchctl.tui.model.runview import RunView


class Results:
    """The summary of a run's trials so far; of a search, what it found: its tries are trials."""

    def __init__(
        self,
        view: RunView,
        report_at: Callable[[float], Report],
        known: Callable[[], int] = lambda: 0,
    ) -> None:
        """``known`` changes whenever more is known of the trials that have ended."""
        self._view = view
        self._report_at = report_at
        self._known = known
        self._seen = (0, 0, 0)
        self._pivot: Pivot | None = None
        self._goals: Sequence[Goal] = ()

    def at(self, time: float) -> Pivot | None:
        """Return the table of the trials that had ended at a moment; None before the first.

        A store that cannot be read leaves the table as it was; the next call tries again.
        """
        self._look(time)
        return self._pivot

    def goals_at(self, time: float) -> Sequence[Goal]:
        """Return the goals of the run as the trials that had ended at a moment show them."""
        self._look(time)
        return self._goals

    def _look(self, time: float) -> None:
        done = self._view.done_at(time)
        # The figures of a trial may come after it is known to have ended.
        seen = (done, self._view.flows_ended, self._known())
        if seen == self._seen:
            return
        try:
            report = self._report_at(time)
        except StoreError:
            return
        self._seen = seen
        self._pivot = (search_table(report) or pivot(report)) if done else None
        self._goals = goals_of(report) if done else ()
