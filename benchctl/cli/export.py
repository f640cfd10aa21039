"""``benchctl export``: a run in another format, or its samples."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from benchctl.cli import options
from benchctl.errors import UsageError

if TYPE_CHECKING:
    from benchctl.report.output import Output
    from benchctl.run.record import Run
    from benchctl.store.read import Reader


def export(
    name: options.RunName = "last",
    *,
    form: options.Format = None,
    output: options.OutputFile = None,
    samples: Annotated[
        bool, typer.Option("--samples", help="Write every sample as CSV, in SI base units.")
    ] = False,
    store: options.Store,
) -> None:
    """Write a run, or all its samples, in another format."""
    from benchctl.cli.watch import write_result
    from benchctl.report.output import Output

    shown = options.format_for(form, output)
    if samples and shown not in ("table", "csv"):
        raise UsageError(
            "--samples writes CSV only", "remove --format, or use a file name that ends in .csv"
        )
    with options.open_reader(store) as reader:
        run = reader.find(name)
        with Output(output) as out:
            if samples:
                _write_samples(reader, run, out)
                out.publish()
            else:
                write_result(reader, run, shown, out)


def _write_samples(reader: Reader, run: Run, out: Output) -> None:
    import csv

    from benchctl.report.formats import csv_cell
    from benchctl.units import unit_of

    axes = list(run.values)
    writer = csv.writer(out, lineterminator="\n")
    heads = ["trial", "repeat", *map(csv_cell, axes), "flow", "attempt", "told_by", "stream"]
    writer.writerow(
        [*heads, "flow_direction", "start_s", "end_s", "omitted", "metric", "value", "unit"]
    )
    for trial in reader.trials(run.id):
        flows = {flow.id: flow for flow in reader.flows(trial.id, all_attempts=True)}
        point = [csv_cell(trial.point.get(axis, "")) for axis in axes]
        for one in reader.samples_of_trial(trial.id):
            flow = flows[one.flow_id]
            where = [
                trial.position,
                trial.repeat,
                *point,
                csv_cell(flow.name),
                flow.attempt,
                one.role,
            ]
            what = [one.stream, one.direction, one.start_s, one.end_s, int(one.omitted)]
            for metric, value in one.metrics.items():
                writer.writerow([*where, *what, metric, value, unit_of(metric)])
