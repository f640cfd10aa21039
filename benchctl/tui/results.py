"""The table that grows as trials end: the same figures as the command line's, up to a moment."""

from __future__ import annotations

from collections.abc import Iterator

from benchctl.analysis.figures import Figure
from benchctl.analysis.summary import Measured, Row, reported_of, summarize
from benchctl.report.document import Document, summary_entry
from benchctl.report.pivot import Pivot, pivot
from benchctl.tui.runview import OK, PLANNED, RUNNING, RunView, TrialView


class Results:
    """The summary of a run's trials so far."""

    def __init__(self, view: RunView) -> None:
        self._view = view
        self._done = -1
        self._pivot = Pivot((), (), ())

    def at(self, time: float) -> Pivot:
        """Return the table of the trials that had ended at a moment."""
        done = self._view.done_at(time)
        if done != self._done:
            self._done = done
            begun = self._view.trials[: self._view.current_at(time) + 1]
            ended = [t for t in begun if t.status_at(time) not in (PLANNED, RUNNING)]
            self._pivot = pivot(self._document(ended))
        return self._pivot

    def _document(self, trials: list[TrialView]) -> Document:
        """Return as much of a run's document as the table is made of."""
        measured = [
            Measured(
                trial.point,
                flow.name,
                {key: Figure(value, "") for key, value in flow.figures.items()},
            )
            for trial in trials
            for flow in trial.flows.values()
            if flow.status == OK
        ]
        return {
            "run": {"axes": self._view.run.values},
            "summary": [summary_entry(row) for row in sorted(summarize(measured), key=self._place)],
            "trials": [
                {"point": trial.point, "flows": list(self._flows(trial))} for trial in trials
            ],
        }

    def _flows(self, trial: TrialView) -> Iterator[Document]:
        known = self._view.run.settings.get("reported", ())
        for flow in trial.flows.values():
            for direction in {direction for direction, _ in flow.figures}:
                yield {
                    "name": flow.name,
                    "direction": direction,
                    "expected": flow.expected.get(direction, {}),
                    "reported": reported_of(known, trial.point, flow.name, direction),
                }

    def _place(self, row: Row) -> tuple[int, ...]:
        return tuple(
            values.index(row.point[axis]) if axis in row.point else len(values)
            for axis, values in self._view.run.values.items()
        )
