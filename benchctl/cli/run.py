"""``benchctl run``: measure a profile."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path

import click

from benchctl.cli import options


@click.command()
@options.profile
@options.assignments
@options.only
@options.repeats
@options.form
@options.output
@options.events
@options.quiet
@options.lab
@options.trust
@options.yes
@options.store
def run(
    profile: str,
    assignments: Sequence[str],
    only: Sequence[str],
    repeats: int | None,
    form: str | None,
    output: Path | None,
    events: bool,
    quiet: bool,
    lab: str | None,
    trust: bool,
    yes: bool,
    store: Path | None,
) -> None:
    """Measure: run every trial of a profile, then print the summary."""
    from benchctl.cli.watch import measure
    from benchctl.engine.planning import planned
    from benchctl.engine.preflight import first_missing
    from benchctl.engine.prepare import record_plan
    from benchctl.report.output import Output
    from benchctl.store.database import default_path

    shown = options.format_for(form, output, live_events=events)
    with Output(output) as out:
        prepared = planned(profile, assignments, only, repeats, yes, lab)
        if missing := first_missing(prepared.tools):
            raise missing
        path = store or default_path()
        run_id, name = record_plan(prepared, path, trust=trust)
        if not quiet:
            trials = "1 trial" if len(prepared.plan) == 1 else f"{len(prepared.plan)} trials"
            print(f"run {name}: {trials}, store {path}", file=sys.stderr)
        code = measure(path, run_id, shown, out, live_events=events, quiet=quiet)
    sys.exit(code)
