"""The table that grows as trials end: the same figures as the command line's, up to a moment."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from benchctl.analysis.figures import Figure
from benchctl.analysis.summary import Row, measured_in, reported_of, summarize
from benchctl.tui.model.runview import RunView, TrialView

if TYPE_CHECKING:
    from benchctl.report.document import Document
    from benchctl.report.pivot import Pivot


class Results:
    """The summary of a run's trials so far."""

    def __init__(self, view: RunView) -> None:
        self._view = view
        self._done = -1
        self._pivot: Pivot | None = None

    def at(self, time: float) -> Pivot | None:
        """Return the table of the trials that had ended at a moment; None before the first."""
        done = self._view.done_at(time)
        if done != self._done:
            self._done = done
            begun = self._view.trials[: self._view.current_at(time) + 1]
            ended = [t for t in begun if t.status_at(time).has_ended]
            self._pivot = self._table(ended) if ended else None
        return self._pivot

    def _table(self, trials: list[TrialView]) -> Pivot:
        # With it come the models of profiles, for which a first frame need not wait.
        from benchctl.report.pivot import pivot

        return pivot(self._document(trials))

    def _document(self, trials: list[TrialView]) -> Document:
        """Return as much of a run's document as the table is made of."""
        from benchctl.report.document import summary_entry

        measured = [
            one
            for trial in trials
            for one in measured_in(
                trial.point,
                trial.fairness_jain,
                (
                    (flow.name, flow.status, {k: Figure(v, "") for k, v in flow.figures.items()})
                    for flow in trial.flows.values()
                ),
            )
        ]
        return {
            "run": {"axes": self._view.run.values},
            "summary": [summary_entry(row) for row in sorted(summarize(measured), key=self._place)],
            "trials": [
                {"point": trial.point, "flows": list(self._flows(trial))} for trial in trials
            ],
        }

    def _flows(self, trial: TrialView) -> Iterator[Document]:
        known = self._view.run.settings.reported
        for flow in trial.flows.values():
            for direction in {direction for direction, _ in flow.figures}:
                yield {
                    "name": flow.name,
                    "direction": direction,
                    "requested": flow.requested,
                    "expected": flow.expected.get(direction, {}),
                    "reported": reported_of(known, trial.point, flow.name, direction),
                }

    def _place(self, row: Row) -> tuple[int, ...]:
        return tuple(
            values.index(row.point[axis]) if axis in row.point else len(values)
            for axis, values in self._view.run.values.items()
        )
