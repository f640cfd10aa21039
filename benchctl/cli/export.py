"""``benchctl export``: a run in another format, or its samples."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from benchctl.cli import options
from benchctl.errors import UsageError
from benchctl.report.exports import EXPORTS

if TYPE_CHECKING:
    from benchctl.report.report import StoredRun


def export(
    name: options.RunOrFile = "last",
    *,
    form: options.Format = None,
    output: options.OutputFile = None,
    samples: Annotated[
        bool, typer.Option("--samples", help="Write every sample as CSV, in SI base units.")
    ] = False,
    trial: Annotated[
        int | None,
        typer.Option(
            "--trial",
            metavar="N",
            min=1,
            help="The trial of a flent file; with a directory as -o, each has a file.",
        ),
    ] = None,
    _units: options.Units = None,
    store: options.Store,
) -> None:
    """Write a run, or all its samples, in another format."""
    from benchctl.report.output import Output
    from benchctl.report.report import StoredRun

    shown = options.format_for(form, output)
    if samples and shown not in ("table", "csv"):
        raise UsageError(
            "--samples writes CSV only", "remove --format, or use a file name that ends in .csv"
        )
    if trial is not None and shown != "flent":
        raise UsageError("--trial is for --format flent", "remove one of the two")
    name, store = options.run_and_store(name, store)
    with options.open_reader(store) as reader:
        stored = StoredRun(reader, reader.find(name), trial)
        files = {output: stored}
        if shown == "flent" and output is not None and output.is_dir():
            files = {
                output / f"{stored.run.name}-{number}.flent.gz": StoredRun(
                    reader, stored.run, number
                )
                for number in _ended(stored)
                if trial in (None, number)
            }
        for path, one in files.items():
            with Output(path) as out:
                EXPORTS["samples" if samples else shown].write(one, out)


def _ended(stored: StoredRun) -> list[int]:
    """Return the numbers of the trials that have ended well, from 1."""
    from benchctl.run.status import Status

    trials = stored.reader.trials(stored.run.id)
    return [trial.position + 1 for trial in trials if trial.status is Status.OK]
