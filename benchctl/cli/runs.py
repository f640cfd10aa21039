"""``benchctl runs``: all runs in the store."""

from __future__ import annotations

import json
import sys
from typing import Annotated

import typer

from benchctl.cli import options
from benchctl.visible import visible


def runs(
    *,
    store: options.Store,
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON object per run.")] = False,
) -> None:
    """List all runs, newest first."""
    from benchctl.errors import StoreDamagedError
    from benchctl.report.entries import run_entry
    from benchctl.units import format_time

    with options.open_reader(store) as reader:
        if not as_json:
            print(f"{'run':<24}{'when':<18}{'profile':<24}{'trials':>7}  status")
        lost = None
        for run_id in reader.run_ids():
            try:
                run = reader.run(run_id)
            except StoreDamagedError as error:
                lost = lost or error
                continue
            if as_json:
                print(json.dumps(run_entry(run)))
            else:
                when = format_time(run.created_time)
                profile = visible(run.profile)
                print(f"{run.name:<24}{when:<18}{profile:<24}{run.trials:>7}  {run.status}")
        if lost is not None:
            sys.stdout.flush()
            raise lost
