"""``benchctl run``: measure a profile."""

from __future__ import annotations

import sys
from typing import Annotated

import typer

from benchctl.cli.options import (
    Assignments,
    Format,
    LabFile,
    Only,
    Output,
    ProfileName,
    Repeats,
    StorePath,
    Yes,
    format_for,
)

Events = Annotated[
    bool, typer.Option("--events", help="Write the events as they happen, one JSON line each.")
]
Quiet = Annotated[bool, typer.Option("-q", "--quiet", help="No progress on stderr.")]


def run(
    profile: ProfileName,
    assignments: Assignments = None,
    only: Only = None,
    repeats: Repeats = None,
    form: Format = None,
    output: Output = None,
    events: Events = False,
    quiet: Quiet = False,
    lab: LabFile = None,
    yes: Yes = False,
    store: StorePath = None,
) -> None:
    """Measure: run every trial of a profile, then print the summary."""
    from benchctl.cli.watch import measure
    from benchctl.engine.planning import planned
    from benchctl.engine.preflight import first_missing
    from benchctl.engine.prepare import record_plan
    from benchctl.store.database import default_path

    prepared = planned(profile, assignments, only, repeats, yes, lab)
    if missing := first_missing(prepared.tools):
        raise missing
    path = store or default_path()
    run_id, name = record_plan(prepared, path)
    if not quiet:
        trials = "1 trial" if len(prepared.plan) == 1 else f"{len(prepared.plan)} trials"
        print(f"run {name}: {trials}, store {path}", file=sys.stderr)
    shown = format_for(form, output)
    measure(path, run_id, shown, output, live_events=events, quiet=quiet)
