"""A run as one value: its trials with their figures, the summary over repeats, and verdicts.

Everything that shows a run takes this, from a store or from a screen's view of a live run.
`report_of` is pure; `entries` writes a report as JSON.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cached_property
from itertools import islice
from typing import TYPE_CHECKING, Any

from msgspec import Struct
from msgspec.structs import replace

from benchctl.analysis.flow.sharing import fair_after_s
from benchctl.analysis.results import TrialReport, asked_bps
from benchctl.analysis.runs.drift import Drift, drifts_in
from benchctl.analysis.runs.summary import (
    Measured,
    SummaryRow,
    measured_in,
    point_key,
    reported_of,
    summarize,
)
from benchctl.analysis.steps import LEAST_SERIES
from benchctl.run.record import BASELINE, RecordedFlow, Run, Trial
from benchctl.store.read import Reader
from benchctl.units import parse_rate

if TYPE_CHECKING:  # imported only for runs that have them
    from benchctl.analysis.runs.outcomes import Outcome
    from benchctl.analysis.search.found import Found


class Report(Struct, frozen=True):
    """The measured part of a run.

    ``trials`` are in the order of execution; ``summary`` is over their repeats, in the order of the
    axes' values; ``outcomes`` are of the profile's expectations. ``found`` are the results of its
    searches. ``measured`` is what the summary is of. ``broken`` summarizes the figures that break
    a law, and so are not in ``summary``.
    """

    run: Run
    trials: Sequence[TrialReport]
    summary: Sequence[SummaryRow]
    outcomes: Sequence[Outcome]
    found: Sequence[Found] = ()
    measured: Sequence[Measured] = ()
    drifts: Sequence[Drift] = ()
    broken: Sequence[SummaryRow] = ()

    def rows_of(self, metric: str, aggregate: str = "") -> list[SummaryRow]:
        """Return the rows of one metric, or of an aggregate of each repeat's distribution."""
        if not aggregate:
            return [row for row in self.summary if row.metric == metric]
        valid = {point_key(row.point): row.valid for row in self.summary}
        rows = summarize(self.measured, metric, aggregate)
        return [replace(row, valid=valid.get(point_key(row.point), True)) for row in rows]


def yet(*runs: Run) -> str:
    """Return the end of "not measured", or the like: whether one of the runs may still measure."""
    return "" if all(run.status.has_ended for run in runs) else " yet"


def without_figures(report: Report) -> str:
    """Return why a summary has no row."""
    has_begun = any(flow.figures for trial in report.trials for flow in trial.flows)
    what = "no trial was measured to its end" if has_begun else "nothing was measured"
    return f"{what}{yet(report.run)}"


class StoredRun(Struct, frozen=True, dict=True):
    """A run in a store: the input of exports.

    ``trial`` is the number of the only one that is exported, from 1; None for all.
    """

    reader: Reader
    run: Run
    trial: int | None = None

    @cached_property
    def report(self) -> Report:
        """The run as it was when this was first asked for. Raises StoreError."""
        return read_report(self.reader, self.run, self.trial)

    def trials(self) -> Iterator[Trial]:
        """Yield the trials that are exported, in order of execution. Raises StoreError."""
        return _trials(self.reader, self.run, self.trial)


def _trials(reader: Reader, run: Run, number: int | None) -> Iterator[Trial]:
    if number is None:
        return reader.trials(run.id)
    return islice(reader.trials(run.id, from_position=number - 1), 1)


def read_report(reader: Reader, run: Run, number: int | None = None) -> Report:
    """Read a run, finished or not, from its store, or only one trial of it. Raises StoreError."""
    return report_of(run, read_ended(reader, run, number), read_baseline(reader, run))


def read_baseline(reader: Reader, run: Run) -> Iterator[TrialReport]:
    """Yield the trials of another run that is the baseline, if an expectation refers to it.

    Raises StoreError.
    """
    bounds = [
        bound
        for expectation in run.settings.expect
        for bound in (expectation.least, expectation.most)
    ]
    if any(bound is not None and bound.of == BASELINE for bound in bounds):
        run_id = reader.baselines().get(run.profile, run.id)
        if run_id != run.id:
            yield from read_ended(reader, reader.run(run_id))


def read_ended(reader: Reader, run: Run, number: int | None = None) -> Iterator[TrialReport]:
    """Yield the trials of a run that have ended, or only one of them. Raises StoreError."""
    # Only what is expected of events needs to know whether a flow can have shown any.
    most = LEAST_SERIES if any(expectation.events for expectation in run.settings.expect) else 0
    for trial in _trials(reader, run, number):
        if trial.status.has_ended:
            yield TrialReport(trial, reader.flow_reports(trial.id, most=most))


def report_of(
    run: Run, ended: Iterable[TrialReport], baseline: Iterable[TrialReport] = ()
) -> Report:
    """Return the report of a run with some finished trials, and with those of its baseline."""
    trials = list(ended)
    flows = {
        (point_key(trial.trial.point), flow.flow.name): flow.flow
        for trial in trials
        for flow in trial.flows
    }
    invalid = {
        point_key(trial.trial.point)
        for trial in trials
        if not all(link["kept"] for link in trial.trial.links)
    }
    measured = _measured(trials)
    rows = [
        replace(
            row,
            beside=_beside(run, row, flows.get((point_key(row.point), row.flow))),
            valid=point_key(row.point) not in invalid,
        )
        for row in sorted(summarize(measured), key=lambda row: place_of(run, row.point))
    ]
    drifts = drifts_in(trials, run.vocabulary.wanted)
    found: list[Found] = []
    if run.settings.search:
        from benchctl.analysis.search.found import found_in, found_rates

        found = found_in(run.settings.search, trials)
        found.sort(key=lambda search: place_of(run, search.point))
        rows += [
            replace(row, beside={**row.beside, **_beside(run, row, None)})
            for row in found_rates(found)
        ]
    outcomes: list[Outcome] = []
    if run.settings.expect:
        from benchctl.analysis.runs.outcomes import outcomes_of

        before = _measured(
            trial for trial in baseline if all(link["kept"] for link in trial.trial.links)
        )
        outcomes = outcomes_of(
            run.settings.expect, measured, rows, before, ended=run.status.has_ended
        )
    broken = summarize(
        replace(measurement, figures=measurement.broken)
        for measurement in measured
        if measurement.broken
    )
    return Report(run, trials, rows, outcomes, found, measured, drifts, broken)


def _measured(trials: Iterable[TrialReport]) -> list[Measured]:
    return [
        measured
        for trial in trials
        for measured in measured_in(
            trial.trial.point,
            {
                "fairness_jain": trial.trial.fairness_jain,
                "fair_after_s": fair_after_s(trial.trial.fair_windows),
            },
            trial.flows,
        )
    ]


def place_of(run: Run, point: Mapping[str, Any]) -> tuple[float, ...]:
    """Return the sort key of a point: its values' positions on their axes, or its searched rate."""
    searched = run.settings.search.axis if run.settings.search else ""
    return tuple(
        math.inf
        if axis not in point
        else parse_rate(point[axis])
        if axis == searched
        else values.index(point[axis])
        for axis, values in run.values.items()
    )


def is_settled(run: Run, row: SummaryRow) -> bool | None:
    """Return whether a figure is known as well as the repeats were to show; None if not asked."""
    until = run.settings.until
    if until is None or row.metric != until.metric or row.spread.n < until.least:
        return None
    from benchctl.analysis.runs.stopping import is_known_to

    return is_known_to(row.values, until.share, until.most)


def is_repeated(run: Run, row: SummaryRow) -> bool:
    """Return whether a row is over repeats: a search tries a rate as often as it has to."""
    return run.settings.search is None or run.settings.search.axis not in row.point


def _beside(run: Run, row: SummaryRow, flow: RecordedFlow | None) -> dict[str, float]:
    """Return the values beside a figure, as far as known."""
    all_reported = run.settings.reported
    reported = reported_of(all_reported, row.point, row.flow or None, row.direction or None)
    known = {"reported": reported.get(row.metric)}
    if flow is not None:
        known["expected"] = flow.expected.get(row.direction, {}).get(row.metric)
        known["asked"] = asked_bps(flow) if row.metric == "sent_bps" else None
    return {kind: value for kind, value in known.items() if value is not None}
