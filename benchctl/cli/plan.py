"""``benchctl plan``: what would run."""

from __future__ import annotations

import json
import os
import shlex
import sys
from typing import TYPE_CHECKING, Annotated

import typer

from benchctl.cli import options
from benchctl.visible import visible

if TYPE_CHECKING:
    from benchctl.engine.planning import Planned
    from benchctl.plan.bound import BoundTrial

# A screen's worth; the whole of a large matrix helps nobody who did not ask for it.
SHOWN = 12


def plan(
    profile: options.Profile,
    *,
    assignments: options.Assignments,
    only: options.Only,
    repeats: options.Repeats = None,
    every: Annotated[
        bool, typer.Option("--all", help="Show every trial, not only the first twelve.")
    ] = False,
    as_json: Annotated[
        bool, typer.Option("--json", help="Print one JSON object per trial.")
    ] = False,
    lab: options.Lab = None,
    yes: options.Yes = False,
) -> None:
    """Show what would run, without sending anything.

    Trials, their order, the exact commands and the total time.
    """
    from benchctl.engine.planning import planned
    from benchctl.engine.preflight import first_missing

    prepared = planned(profile, assignments, only, repeats, yes, lab)
    shown = len(prepared.plan) if every or as_json else min(SHOWN, len(prepared.plan))
    if not as_json:
        _print_head(prepared)
    for index in range(shown):
        trial = prepared.plan.trial(index)
        if as_json:
            print(json.dumps(_entry(trial, prepared)))
        else:
            _print_trial(trial, prepared)
    if shown < len(prepared.plan):
        print(f"\n… and {len(prepared.plan) - shown:,} more; --all shows them")
    if missing := first_missing(prepared.tools):
        sys.stdout.flush()
        raise missing


def _print_head(prepared: Planned) -> None:
    from benchctl.units import format_duration

    plan = prepared.plan
    model = plan.document.model
    trials = "1 trial" if len(plan) == 1 else f"{len(plan):,} trials"
    points = "1 point" if len(plan.points) == 1 else f"{len(plan.points):,} points"
    order = f"{model.run.order}, seed {plan.seed}" if len(plan) > 1 else f"seed {plan.seed}"
    title = f": {model.title}" if model.title else ""
    print(visible(f"{plan.document.name}{title}"))
    print(f"{trials}: {points} x {plan.repeats}, {order}")
    print(f"expected time {format_duration(plan.duration_s)}")
    for axis, values in plan.values.items():
        print(visible(f"  {axis}: {', '.join(map(str, values))}"))
    _print_services(prepared)


def _print_services(prepared: Planned) -> None:
    from benchctl.engine.trust import user_name

    if not prepared.services or prepared.topology is None:
        return
    name = prepared.topology.path.name
    print(visible(f"services of {name}, run as {user_name(os.geteuid())} while the lab exists:"))
    for host, argv in prepared.services:
        print(f"  {host}: {shlex.join(argv)}")
    if prepared.distrust:
        print(visible(f"they need --trust: {prepared.distrust}"))


def _print_trial(bound: BoundTrial, prepared: Planned) -> None:
    from benchctl.units import format_duration

    trial = bound.plan
    point = " ".join(f"{axis}={value}" for axis, value in trial.point.items())
    repeat = f"repeat {trial.repeat}" if prepared.plan.repeats > 1 else ""
    print("\n" + "  ".join(filter(None, [
        f"[{trial.position + 1}]", visible(point), repeat, format_duration(trial.duration_s),
    ])))  # fmt: skip
    for flow, role, argv in _commands(bound, prepared):
        name = f"{flow} {role}" if len(trial.flows) > 1 else role
        print(f"  {name}: {argv}")


def _commands(trial: BoundTrial, prepared: Planned) -> list[tuple[str, str, str]]:
    from benchctl.engine.preflight import commands_of
    from benchctl.errors import MissingError

    try:
        found = commands_of(trial, prepared.network, prepared.tools)
    except (MissingError, ValueError) as error:
        return [("", "no command", str(error))]
    return [
        (commands.flow, role, shlex.join(argv))
        for commands in found
        for role, argv in (("server", commands.server), ("client", commands.client))
        if argv
    ]


def _entry(bound: BoundTrial, prepared: Planned) -> dict[str, object]:
    trial = bound.plan
    return {
        "index": trial.position,
        "repeat": trial.repeat,
        "point": trial.point,
        "duration_s": trial.duration_s,
        "deadline_s": trial.deadline_s,
        "commands": [
            {"flow": flow, "end": role, "command": argv}
            for flow, role, argv in _commands(bound, prepared)
        ],
        "services": [
            {"host": host, "command": shlex.join(argv)} for host, argv in prepared.services
        ],
        "needs_trust": prepared.distrust,
    }
