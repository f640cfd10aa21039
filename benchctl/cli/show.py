"""``benchctl show``: one run."""

from __future__ import annotations

import json
import shlex
from typing import TYPE_CHECKING, Annotated

import typer

from benchctl.cli import options
from benchctl.visible import visible

if TYPE_CHECKING:
    from benchctl.run.record import Run, Trial
    from benchctl.store.read import Reader


def show(
    name: options.RunName = "last",
    *,
    trials: Annotated[
        bool, typer.Option("--trials", help="Show every attempt of every flow.")
    ] = False,
    facts: Annotated[
        bool, typer.Option("--facts", help="Show facts about the host at the time of the run.")
    ] = False,
    profile: Annotated[
        bool, typer.Option("--profile", help="Show the text of the profile.")
    ] = False,
    _units: options.Units = None,
    store: options.Store,
) -> None:
    """Show one run: summary, trials, facts or profile."""
    from benchctl.report.exports.table import export as table
    from benchctl.report.report import StoredRun

    with options.open_reader(store) as reader:
        run = reader.find(name)
        if profile:
            print(run.profile_text)
        elif facts:
            print(json.dumps(run.facts, indent=2))
        elif trials:
            _print_trials(reader, run)
        else:
            _print_head(run)
            print(*table(StoredRun(reader, run)), sep="", end="")
            for note in reader.notes(run.id):
                print(visible(f"{note.level}: {note.text}"))


def _print_head(run: Run) -> None:
    from benchctl.units import format_time

    print(visible(f"run {run.name}  {run.profile}{f': {run.title}' if run.title else ''}"))
    started = format_time(run.started_time) if run.started_time is not None else "-"
    print(f"started {started}  {run.status}", end="")
    print(f"  {run.trials} trials, {run.settings.order}, seed {run.seed}\n")


def _print_trials(reader: Reader, run: Run) -> None:
    from benchctl.report.progress import trial_title
    from benchctl.units import format_value

    for trial in reader.trials(run.id):
        print(visible(f"{trial_title(trial, run)}: {trial.status}{_sharing(trial)}"))
        for flow in reader.flows(trial.id, all_attempts=True):
            error = f": {flow.error}" if flow.error else ""
            print(visible(f"  {flow.name}, attempt {flow.attempt}: {flow.status}{error}"))
            if flow.hint:
                print(visible(f"    {flow.hint}"))
            print(f"    $ {shlex.join(flow.client)}")
            for key, value in flow.effective.items():
                asked = flow.requested.get(key)
                beside = f" (asked {asked})" if asked is not None else ""
                print(visible(f"    {key} = {value}{beside}"))
            for (direction, metric), figure in reader.figures(flow.id).items():
                told = "" if figure.origin == "tool" else "  (from the samples)"
                print(f"    {direction:<10} {metric} = {format_value(metric, figure.value)}{told}")


def _sharing(trial: Trial) -> str:
    from benchctl.units import format_value

    if trial.fairness_jain is None or trial.start_skew_s is None:
        return ""
    index = format_value("fairness_jain", trial.fairness_jain)
    skew = format_value("start_skew_s", trial.start_skew_s)
    return f", Jain's index {index}, start skew {skew}"
