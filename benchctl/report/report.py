"""A run as one value: its trials with their figures, the summary over repeats, and verdicts.

Everything that shows a run takes this, from a store or from a screen's view of a live run.
`report_of` is pure; `entries` writes a report as JSON.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace

from benchctl.analysis.summary import (
    Outcome,
    SummaryRow,
    measured_in,
    outcomes_of,
    point_key,
    reported_of,
    summarize,
)
from benchctl.run.record import Figures, FlowEvent, RecordedFlow, Run, Trial
from benchctl.store.read import Reader


@dataclass(frozen=True, slots=True)
class FlowReport:
    """One flow of a trial, by its last attempt."""

    flow: RecordedFlow
    figures: Figures
    events: Sequence[FlowEvent] = ()


@dataclass(frozen=True, slots=True)
class TrialReport:
    """A trial that has ended, and its flows."""

    trial: Trial
    flows: Sequence[FlowReport]


@dataclass(frozen=True, slots=True)
class Report:
    """The measured part of a run.

    ``trials`` are in the order of execution; ``summary`` is over their repeats, in the order of the
    axes' values; ``outcomes`` are of the profile's expectations.
    """

    run: Run
    trials: Sequence[TrialReport]
    summary: Sequence[SummaryRow]
    outcomes: Sequence[Outcome]


@dataclass(frozen=True, slots=True)
class StoredRun:
    """A run in a store: the input of exports."""

    reader: Reader
    run: Run

    @property
    def report(self) -> Report:
        """The run in its current state. Raises StoreError."""
        return read_report(self.reader, self.run)


def read_report(reader: Reader, run: Run) -> Report:
    """Read a run, finished or not, from its store. Raises StoreError."""
    return report_of(run, _ended(reader, run))


def _ended(reader: Reader, run: Run) -> Iterator[TrialReport]:
    for trial in reader.trials(run.id):
        if trial.status.has_ended:
            flows = reader.flows(trial.id)
            yield TrialReport(
                trial,
                [
                    FlowReport(flow, reader.figures(flow.id), reader.events(flow.id))
                    for flow in flows
                ],
            )


def report_of(run: Run, ended: Iterable[TrialReport]) -> Report:
    """Return the report of a run with some finished trials."""
    trials = list(ended)
    flows = {
        (point_key(trial.trial.point), one.flow.name): one.flow
        for trial in trials
        for one in trial.flows
    }
    invalid = {
        point_key(one.trial.point)
        for one in trials
        if not all(link["kept"] for link in one.trial.links)
    }
    measured = [
        one
        for trial in trials
        for one in measured_in(
            trial.trial.point,
            trial.trial.fairness_jain,
            ((one.flow.name, one.flow.status, one.figures) for one in trial.flows),
        )
    ]
    rows = [
        replace(
            row,
            beside=_beside(run, row, flows.get((point_key(row.point), row.flow))),
            valid=point_key(row.point) not in invalid,
        )
        for row in sorted(summarize(measured), key=lambda row: _place(run, row))
    ]
    return Report(run, trials, rows, outcomes_of(run.settings.expect, rows))


def _place(run: Run, row: SummaryRow) -> tuple[int, ...]:
    """Return the sort key of a row: its values' positions on their axes."""
    return tuple(
        values.index(row.point[axis]) if axis in row.point else len(values)
        for axis, values in run.values.items()
    )


def _beside(run: Run, row: SummaryRow, flow: RecordedFlow | None) -> dict[str, float]:
    """Return the values beside a figure, as far as known."""
    told = run.settings.reported
    reported = reported_of(told, row.point, row.flow or None, row.direction or None)
    known = {"reported": reported.get(row.metric)}
    if flow is not None:
        known["expected"] = flow.expected.get(row.direction, {}).get(row.metric)
        known["asked"] = _asked_bps(flow) if row.metric == "sent_bps" else None
    return {kind: value for kind, value in known.items() if value is not None}


def _asked_bps(flow: RecordedFlow) -> float | None:
    """Return the requested rate of a flow, all streams together; None without one."""
    rate_bps = flow.requested.get("rate")
    if not isinstance(rate_bps, int | float):
        return None  # unlimited, or not known to this backend
    asked_bps: float = rate_bps * flow.requested.get("streams", 1)
    return asked_bps
