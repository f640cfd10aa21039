"""``benchctl runs``: everything that was ever measured."""

from __future__ import annotations

import json
from typing import Annotated

import typer

from benchctl.cli.options import StorePath, open_reader


def runs(
    store: StorePath = None,
    as_json: Annotated[bool, typer.Option("--json", help="One JSON object a run.")] = False,
) -> None:
    """List every run, the newest first."""
    import time

    from benchctl.report.document import run_entry

    reader = open_reader(store)
    if not as_json:
        print(f"{'run':<22}{'when':<18}{'profile':<24}{'trials':>7}  status")
    for run in reader.runs():
        status = run.status
        if status == "running" and not reader.is_alive(run):
            status = "died"
        if as_json:
            print(json.dumps({**run_entry(run), "status": status}))
        else:
            when = time.strftime("%Y-%m-%d %H:%M", time.localtime(run.created_time))
            print(f"{run.name:<22}{when:<18}{run.profile:<24}{run.trials:>7}  {status}")
