"""Every sample of a run in SI base units, as CSV: one line for each metric of each sample."""

from __future__ import annotations

from collections.abc import Iterator

from benchctl.report.exports.csv import csv_lines
from benchctl.report.report import StoredRun
from benchctl.run.record import Run
from benchctl.store.read import Reader
from benchctl.units import unit_of


def export(stored: StoredRun) -> Iterator[str]:
    """Yield a stored run in this form. Raises StoreError."""
    yield from csv_lines(_rows(stored.reader, stored.run))


def _rows(reader: Reader, run: Run) -> Iterator[list[object]]:
    axes = list(run.values)
    heads = ["trial", "repeat", *axes, "flow", "attempt", "told_by", "stream", "flow_direction"]
    yield [*heads, "start_s", "end_s", "omitted", "metric", "value", "unit"]
    for trial in reader.trials(run.id):
        flows = {flow.id: flow for flow in reader.flows(trial.id, all_attempts=True)}
        where = [trial.position, trial.repeat, *(trial.point.get(axis, "") for axis in axes)]
        for sample in reader.samples_of_trial(trial.id):
            flow = flows[sample.flow_id]
            teller = [flow.name, flow.attempt, sample.role, sample.stream, sample.direction]
            interval = [sample.start_s, sample.end_s, int(sample.omitted)]
            for metric, value in sample.metrics.items():
                yield [*where, *teller, *interval, metric, value, unit_of(metric)]
