"""``benchctl resume``: go on with a run that was stopped or killed."""

from __future__ import annotations

import sys

from benchctl.cli.options import Format, Output, RunName, StorePath, format_for
from benchctl.cli.run import Events, Quiet


def resume(
    name: RunName = "last",
    form: Format = None,
    output: Output = None,
    events: Events = False,
    quiet: Quiet = False,
    store: StorePath = None,
) -> None:
    """Go on with a run that was stopped or killed.

    Only what is missing is measured.
    """
    from benchctl.cli.options import open_reader
    from benchctl.cli.watch import measure
    from benchctl.errors import UsageError
    from benchctl.store.schema import OPEN

    reader = open_reader(store)
    run = reader.find(name)
    if reader.is_alive(run):
        raise UsageError(f"run {run.name} is being measured right now", "wait for its end")
    left = sum(trial.status in OPEN for trial in reader.trials(run.id))
    if not left:
        raise UsageError(f"run {run.name} has nothing left to measure", "see benchctl show")
    if not quiet:
        print(f"run {run.name}: {left} of {run.trials} trials left", file=sys.stderr)
    shown = format_for(form, output)
    measure(reader.path, run.id, shown, output, live_events=events, quiet=quiet)
