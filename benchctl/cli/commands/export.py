"""``benchctl export``: a run in another format, or its samples."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Annotated

import typer

from benchctl.cli.shared import options
from benchctl.errors import UsageError

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
            help="The trial of a format such as flent's, whose files hold one;"
            " with a directory as -o, each has a file.",
        ),
    ] = None,
    _units: options.Units = None,
    _fleet: options.Fleet = None,
    store: options.Store,
) -> None:
    """Write a run, or all its samples, in another format."""
    from benchctl.report.output import formats
    from benchctl.report.output.output import Output
    from benchctl.report.report import StoredRun

    shown = options.format_for(form, output)
    if samples and shown not in ("table", "csv"):
        raise UsageError(
            "--samples writes CSV only", "remove --format, or use a file name that ends in .csv"
        )
    exporter = formats.load("samples" if samples else shown)
    if trial is not None and not exporter.single_trial:
        raise UsageError(
            f"--trial is for formats whose files hold one trial, and not for {exporter.name}",
            "remove it, or choose another --format, such as flent",
        )
    name, store = options.run_and_store(name, store)
    with options.open_reader(store) as reader:
        stored = StoredRun(reader, reader.find(name), trial)
        files = {output: stored}
        if exporter.single_trial and output is not None and output.is_dir():
            files = {
                output / ".".join([f"{part.run.name}-{part.trial}", *exporter.endings[:1]]): part
                for part in _each_trial(stored)
            }
        for path, exported in files.items():
            with Output(path) as out:
                formats.write(exporter, exported, out)


def _each_trial(stored: StoredRun) -> Iterator[StoredRun]:
    """Yield a run with each trial that has ended well, of those that are exported."""
    from msgspec.structs import replace

    from benchctl.run.status import Status

    for trial in stored.trials():
        if trial.status is Status.OK:
            yield replace(stored, trial=trial.position + 1)
