"""A report as JSON: its keys and their values.

Figures that others reported appear only here, not in the events of flows and trials.
docs/output-reference.md documents the keys. ``schema_version`` changes if the meaning of a key
changes.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from typing import TYPE_CHECKING, Any

from msgspec import to_builtins
from msgspec.structs import asdict

from benchctl.analysis.flow.sharing import fair_after_s
from benchctl.analysis.results import FlowReport, TrialReport
from benchctl.analysis.runs.summary import SummaryRow, reported_of
from benchctl.metrics import OF_TRIALS
from benchctl.report.report import Report, is_settled
from benchctl.report.text.clocks import clock_entry, clocks_in, over_entries
from benchctl.report.text.lawful import broken_counts, place_of
from benchctl.report.text.limiting import limit_entry, limits_of
from benchctl.run.record import Figure, Figures, RecordedFlow, Run, Trial
from benchctl.units import timestamp, unit_of

if TYPE_CHECKING:
    from benchctl.analysis.runs.compare import Comparison
    from benchctl.analysis.search.found import Found
    from benchctl.store.read import StoredSample

SCHEMA_VERSION = 1

Entry = dict[str, Any]
EVENT_KEYS = (
    "metric", "at_s", "until_s", "level_before", "level_after", "confidence", "period_s", "beside",
)  # fmt: skip
OUTCOME_KEYS = (
    "text", "met", "answer", "severity", "why", "point", "flow", "direction", "figure",
)  # fmt: skip


def report_entry(report: Report) -> Entry:
    """Return a whole report."""
    broken = broken_counts(report)
    return {
        "schema_version": SCHEMA_VERSION,
        "run": run_entry(report.run),
        "trials": [_ended_entry(report.run, trial) for trial in report.trials],
        "clocks": over_entries(report),
        "drift": [asdict(drift) for drift in report.drifts],
        "summary": [
            {
                **summary_entry(row),
                "settled": is_settled(report.run, row),
                "broken": broken.get(place_of(row), 0),
            }
            for row in report.summary
        ],
        "searches": [_search_entry(search) for search in report.found],
        "expectations": [
            {key: getattr(outcome, key) for key in OUTCOME_KEYS} for outcome in report.outcomes
        ],
    }


def _search_entry(found: Found) -> Entry:
    finding = found.finding
    return {
        "point": found.point,
        "repeat": found.repeat,
        "outcome": finding.outcome,
        "passing_bps": finding.passing_bps,
        "failing_bps": finding.failing_bps,
        "confirmed": finding.confirmed,
        "tries": finding.tries,
        "why": finding.why,
        "expected_bps": found.expected_bps,
    }


def _ended_entry(run: Run, ended: TrialReport) -> Entry:
    all_reported, point = run.settings.reported, ended.trial.point
    flows = [
        entry
        | {
            "reported": _only(reported, entry["metrics"]),
            "limit": limit_entry(limits[direction]) if direction in limits else None,
            "clocks": clock_entry(clocks) if clocks is not None else None,
            "events": _events(flow, entry),
        }
        for flow in ended.flows
        for limits in (limits_of(flow),)
        for clocks in (clocks_in(run, flow),)
        for entry in flow_entries(flow.flow, flow.reported)
        for direction in (entry["direction"],)
        for reported in (reported_of(all_reported, point, flow.flow.name, direction),)
    ]
    of_trial = {"reported": _only(reported_of(all_reported, point), OF_TRIALS)}
    return {**trial_entry(ended.trial), "flows": flows, **of_trial}


def _events(report: FlowReport, entry: Entry) -> list[Entry]:
    return [
        {"kind": event.kind, **{key: getattr(event, key) for key in EVENT_KEYS}}
        for event in report.events
        if event.direction == entry["direction"]
    ]


def _only(figures: Mapping[str, float], metrics: Collection[str]) -> dict[str, float]:
    return {metric: figure for metric, figure in figures.items() if metric in metrics}


def run_entry(run: Run) -> Entry:
    """Return the entry of the run itself."""
    return {
        "id": run.name,
        "profile": run.profile,
        "title": run.title,
        "started": moment(run.started_time),
        "finished": moment(run.finished_time),
        "status": run.status,
        "error": run.error,
        "seed": run.seed,
        "order": run.settings.order,
        "trials": run.trials,
        "axes": run.values,
        "profile_sha256": run.profile_sha256,
        "facts": run.facts,
        "hosts": run.hosts,
        "tags": run.tags,
        "origin": run.origin,
        "hooks": [asdict(hook) for hook in run.hooks],
    }


def trial_entry(trial: Trial) -> Entry:
    """Return the entry of a trial, without its flows."""
    return {
        "index": trial.position,
        "repeat": trial.repeat,
        "point": trial.point,
        "status": trial.status,
        "error": trial.error,
        "started": moment(trial.started_time),
        "finished": moment(trial.finished_time),
        "start_skew_s": trial.start_skew_s,
        "fairness_jain": trial.fairness_jain,
        "fair_after_s": fair_after_s(trial.fair_windows),
        "fair_windows": [asdict(window) for window in trial.fair_windows],
        "links": trial.links,
        "hooks": [asdict(hook) for hook in trial.hooks],
        "links_kept": all(link["kept"] for link in trial.links) if trial.links else None,
        "file": trial.file,
        "clocks": {name: asdict(clock) for name, clock in trial.clocks.items()},
        "counters": to_builtins(trial.counters),
        "beside": trial.beside,
    }


def flow_entries(flow: RecordedFlow, figures: Figures) -> Iterator[Entry]:
    """Yield the entries of an attempt of a flow: one for each direction it measured."""
    directions = sorted({direction for direction, _ in figures}) or [flow.direction]
    for direction in directions:
        own = {metric: figure for (d, metric), figure in figures.items() if d == direction}
        yield {
            "name": flow.name,
            "backend": flow.backend,
            "from": flow.source,
            "to": flow.target,
            "direction": direction,
            "status": flow.status,
            "error": flow.error,
            "hint": flow.hint,
            "attempts": flow.attempt,
            "port": flow.port,
            "command": flow.client,
            "server_command": flow.server,
            "requested": flow.requested,
            "effective": flow.effective,
            "expected": flow.expected.get(direction, {}),
            "metrics": {metric: _value(figure) for metric, figure in own.items()},
            "sources": {metric: figure.origin for metric, figure in own.items()},
            "broken": {
                metric: {**asdict(figure.broken), "rejected": figure.rejected}
                for metric, figure in own.items()
                if figure.broken is not None
            },
            "resolution": {
                metric: figure.resolution
                for metric, figure in own.items()
                if figure.resolution is not None
            },
            "route": [
                {
                    "addresses": hop.addresses,
                    "metrics": {metric: _value(figure) for metric, figure in hop.figures.items()},
                }
                for hop in flow.route
            ],
            "captures": [asdict(capture) for capture in flow.captures],
            "paired": list(flow.paired),
        }


def sample_entry(flow: RecordedFlow, sample: StoredSample) -> Entry:
    """Return the entry of a sample."""
    return {
        "flow": flow.name,
        "attempt": flow.attempt,
        "told_by": sample.role,
        "stream": sample.stream,
        "direction": sample.direction,
        "start_s": sample.start_s,
        "end_s": sample.end_s,
        "omitted": sample.omitted,
        "metrics": sample.metrics,
    }


def _value(figure: Figure) -> float | Mapping[str, float]:
    if not figure.spread:
        return figure.value
    names = ("min", "mean", "median", "p95", "max")
    spread = {**figure.spread, "mean": figure.value}
    return {name: spread[name] for name in names if name in spread}


def summary_entry(row: SummaryRow) -> Entry:
    """Return the entry of one metric over the repeats."""
    spread = row.spread
    return {
        "point": row.point,
        "flow": row.flow,
        "direction": row.direction,
        "metric": row.metric,
        "n": spread.n,
        "mean": spread.mean,
        "stdev": spread.stdev,
        "ci95_low": spread.ci95_low,
        "ci95_high": spread.ci95_high,
        "variation": spread.variation,
        "median": spread.median,
        "median_ci95_low": spread.median_low,
        "median_ci95_high": spread.median_high,
        "min": spread.min,
        "max": spread.max,
        "outliers": spread.outliers,
        "missing": spread.missing,
        "unit": unit_of(row.metric),
    }


def comparison_entry(comparison: Comparison) -> Entry:
    """Return a comparison as JSON-like data, in SI base units."""
    return {
        "point": comparison.point,
        "flow": comparison.flow,
        "direction": comparison.direction,
        "metric": comparison.metric,
        "unit": unit_of(comparison.metric),
        "n_a": len(comparison.a),
        "n_b": len(comparison.b),
        "mean_a": comparison.mean_a,
        "mean_b": comparison.mean_b,
        "difference": comparison.difference,
        "relative": comparison.relative,
        "ci95_low": comparison.low,
        "ci95_high": comparison.high,
        "p": comparison.p,
        "p_adjusted": comparison.adjusted,
        "family": comparison.family,
        "borrows_variance": comparison.borrows,
        "effect_size": comparison.effect,
        "repeats_needed": comparison.repeats_needed,
        "disturbed_ratio": comparison.disturbed,
        "same_within": comparison.same_within,
        "verdict": str(comparison.verdict),
        "valid": comparison.valid,
    }


def moment(time: float | None) -> str | None:
    """Return a Unix time as the JSON has it."""
    return None if time is None else timestamp(time)
