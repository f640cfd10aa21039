"""``benchctl baseline``: the run of each profile that others are compared with."""

from __future__ import annotations

import json
from typing import Annotated

import typer

from benchctl.cli.shared import completion, options
from benchctl.cli.shared.command import PlainCommand, group

baseline = group(
    "Set or show the run that others of its profile are compared with.\n\n"
    "It has the tag baseline, and every command accepts that as its name."
)


@baseline.command(cls=PlainCommand, name="set")
def choose(name: options.RunName = "last", *, store: options.Store) -> None:
    """Make a run the baseline of its profile, and the only one."""
    from benchctl.store.manage import set_baseline

    with options.open_reader(store) as reader:
        run = reader.find(name)
    set_baseline(store, run)
    print(run.name)


@baseline.command(cls=PlainCommand)
def show(
    profile: Annotated[
        str | None,
        typer.Argument(
            metavar="[PROFILE]",
            help="Only the baseline of this profile, or of a unique part of its name.",
            autocompletion=completion.measured_profiles,
        ),
    ] = None,
    *,
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON object per run.")] = False,
    store: options.Store,
) -> None:
    """Show the baseline of each profile."""
    from benchctl.cli.commands.runs import print_table
    from benchctl.report.exports.entries import run_entry
    from benchctl.store.read import unique

    with options.open_reader(store) as reader:
        found = reader.baselines()
        if profile is not None:
            hint = f"with a baseline are: {', '.join(found) or 'none'}"
            name = unique(profile, found, "profile", hint)
            found = {name: found[name]}
        runs = [reader.run(run_id) for run_id in found.values()]
    if as_json:
        for run in runs:
            print(json.dumps(run_entry(run)))
    else:
        print_table(runs)
