"""``benchctl export``: a run in another format, or its samples."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING

import click

from benchctl.cli import options

if TYPE_CHECKING:
    from benchctl.store.read import Reader, Run


@click.command()
@options.run
@options.form
@options.output
@click.option("--samples", is_flag=True, help="Every sample as CSV, in SI base units.")
@options.store
def export(
    name: str, form: str | None, output: Path | None, samples: bool, store: Path | None
) -> None:
    """Write a run, or all its samples, in another format."""
    from benchctl.cli.watch import write_result

    reader = options.open_reader(store)
    run = reader.find(name)
    if samples:
        _write_samples(reader, run, output)
    else:
        write_result(reader, run, options.format_for(form, output), output)


def _write_samples(reader: Reader, run: Run, output: Path | None) -> None:
    import csv

    axes = list(run.values)
    file = sys.stdout if output is None else output.open("w", encoding="utf-8", newline="")
    writer = csv.writer(file, lineterminator="\n")
    heads = ["trial", "repeat", *axes, "flow", "attempt", "told_by", "stream"]
    writer.writerow(
        [*heads, "flow_direction", "start_s", "end_s", "omitted", "metric", "value", "unit"]
    )
    from benchctl.units import unit_of

    for trial in reader.trials(run.id):
        flows = {flow.id: flow for flow in reader.flows(trial.id, all_attempts=True)}
        point = [trial.point.get(axis, "") for axis in axes]
        for one in reader.samples_of_trial(trial.id):
            flow = flows[one.flow_id]
            where = [trial.position, trial.repeat, *point, flow.name, flow.attempt, one.role]
            what = [one.stream, one.direction, one.start_s, one.end_s, int(one.omitted)]
            for metric, value in one.metrics.items():
                writer.writerow([*where, *what, metric, value, unit_of(metric)])
    if output is not None:
        file.close()
