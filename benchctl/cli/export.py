"""``benchctl export``: a run in another format, or its samples."""

from __future__ import annotations

from typing import Annotated

import typer

from benchctl.cli import options
from benchctl.errors import UsageError
from benchctl.report.exports import EXPORTS


def export(
    name: options.RunOrFile = "last",
    *,
    form: options.Format = None,
    output: options.OutputFile = None,
    samples: Annotated[
        bool, typer.Option("--samples", help="Write every sample as CSV, in SI base units.")
    ] = False,
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
    name, store = options.run_and_store(name, store)
    with options.open_reader(store) as reader:
        stored = StoredRun(reader, reader.find(name))
        with Output(output) as out:
            EXPORTS["samples" if samples else shown].write(stored, out)
