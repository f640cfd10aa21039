"""A run as one JSON-like document: what ``--format json`` prints, and what the tables are made of.

Figures that others reported stand only here, not in the events of flows and trials.
The keys are documented in docs/output.md; ``schema_version`` changes when one changes its meaning.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from datetime import UTC, datetime
from typing import Any

from benchctl.analysis.figures import Figure, Figures
from benchctl.analysis.summary import Measured, Row, judge, measured_in, reported_of, summarize
from benchctl.metrics import OF_TRIALS
from benchctl.run.record import Flow, Run, Trial
from benchctl.run.status import Status
from benchctl.store.read import Reader
from benchctl.units import unit_of

SCHEMA_VERSION = 1

Document = dict[str, Any]


def document_of(reader: Reader, run: Run) -> Document:
    """Read a run, finished or not, as a document. Raises StoreError."""
    trials: list[dict[str, Any]] = []
    measured: list[Measured] = []
    reported = run.settings.reported
    for trial in reader.trials(run.id):
        if not trial.status.has_ended:
            continue
        flows: list[dict[str, Any]] = []
        found: list[tuple[str, Status, Figures]] = []
        attempts = reader.attempts(trial.id)
        for flow in reader.flows(trial.id):
            figures = reader.figures(flow.id)
            for entry in flow_entries(flow, figures, attempts):
                known = reported_of(reported, trial.point, flow.name, entry["direction"])
                flows.append(entry | {"reported": _only(known, entry["metrics"])})
            found.append((flow.name, flow.status, figures))
        measured += measured_in(trial.point, trial.fairness_jain, found)
        known = reported_of(reported, trial.point)
        trials.append(trial_entry(trial, flows) | {"reported": _only(known, OF_TRIALS)})
    rows = sorted(summarize(measured), key=lambda row: _place(run, row))
    verdicts = judge(run.settings.expect, rows)
    return {
        "schema_version": SCHEMA_VERSION,
        "run": run_entry(run),
        "trials": trials,
        "summary": [summary_entry(row) for row in rows],
        "expectations": [{"text": verdict.text, "met": verdict.met} for verdict in verdicts],
    }


def _only(figures: Mapping[str, float], metrics: Collection[str]) -> dict[str, float]:
    return {metric: figure for metric, figure in figures.items() if metric in metrics}


def _place(run: Run, row: Row) -> tuple[int, ...]:
    """Return where a row stands: as its values do on their axes."""
    return tuple(
        values.index(row.point[axis]) if axis in row.point else len(values)
        for axis, values in run.values.items()
    )


def run_entry(run: Run) -> dict[str, Any]:
    """Return what a document says of the run itself."""
    return {
        "id": run.name,
        "profile": run.profile,
        "title": run.title,
        "started": timestamp(run.started_time),
        "finished": timestamp(run.finished_time),
        "status": run.status,
        "error": run.error,
        "seed": run.seed,
        "order": run.settings.order,
        "trials": run.trials,
        "axes": run.values,
        "profile_sha256": run.profile_sha256,
        "facts": run.facts,
    }


def trial_entry(trial: Trial, flows: list[dict[str, Any]]) -> dict[str, Any]:
    """Return what a document says of a trial."""
    return {
        "index": trial.position,
        "repeat": trial.repeat,
        "point": trial.point,
        "status": trial.status,
        "error": trial.error,
        "started": timestamp(trial.started_time),
        "finished": timestamp(trial.finished_time),
        "start_skew_s": trial.start_skew_s,
        "fairness_jain": trial.fairness_jain,
        "links": trial.links,
        "links_kept": all(link["kept"] for link in trial.links) if trial.links else None,
        "flows": flows,
    }


def flow_entries(flow: Flow, figures: Figures, attempts: int) -> Iterator[dict[str, Any]]:
    """Yield what a document says of a flow: one entry for each direction it measured."""
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
            "attempts": attempts,
            "port": flow.port,
            "command": flow.client,
            "server_command": flow.server,
            "requested": flow.requested,
            "effective": flow.effective,
            "expected": flow.expected.get(direction, {}),
            "metrics": {metric: _value(figure) for metric, figure in own.items()},
            "sources": {metric: figure.origin for metric, figure in own.items()},
        }


def _value(figure: Figure) -> float | Mapping[str, float]:
    if not figure.spread:
        return figure.value
    names = ("min", "mean", "median", "p95", "max")
    spread = {**figure.spread, "mean": figure.value}
    return {name: spread[name] for name in names if name in spread}


def summary_entry(row: Row) -> dict[str, Any]:
    """Return what a document says of one metric over the repeats."""
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
        "median": spread.median,
        "min": spread.min,
        "max": spread.max,
        "unit": unit_of(row.metric),
    }


def timestamp(time: float | None) -> str | None:
    """Write a Unix time in ISO 8601, UTC, to the millisecond."""
    if time is None:
        return None
    return datetime.fromtimestamp(time, UTC).isoformat(timespec="milliseconds")
