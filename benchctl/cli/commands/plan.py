"""``benchctl plan``: what would run."""

from __future__ import annotations

import json
import shlex
import sys
from typing import TYPE_CHECKING, Annotated

import typer

from benchctl.cli.shared import options
from benchctl.visible import visible

if TYPE_CHECKING:
    from benchctl.engine.prepare.planning import Planned
    from benchctl.plan.bound import BoundTrial

# A screenful; the whole of a large matrix is shown only on request.
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
    fleet: options.FleetFile = None,
    _pager: options.Pager = False,
    _units: options.Units = None,
) -> None:
    """Show what would run, without sending anything.

    Trials, their order, the exact commands and the total time.
    """
    from benchctl.engine.prepare.planning import planned
    from benchctl.report.lines.plan import plan_lines
    from benchctl.report.lines.spans import to_text

    if fleet is not None:
        options.reject_beside("--fleet", {"--lab": lab})
        from benchctl.cli.shared.fleet_run import check_with_fleet, submission

        asked = submission(profile, assignments, only, repeats, (), yes=yes)
        prepared = planned(profile, assignments, only, repeats, yes, lab)
        refused = check_with_fleet(fleet, asked)
    else:
        prepared, refused = planned(profile, assignments, only, repeats, yes, lab), None
    if as_json:
        for index in range(len(prepared.plan)):
            print(json.dumps(_entry(prepared.plan.trial(index), prepared)))
    else:
        for line in plan_lines(prepared, most=None if every else SHOWN):
            print(visible(to_text([line])))
    sys.stdout.flush()
    if refused is not None:
        raise refused
    if missing := prepared.missing:
        raise missing


def _entry(bound: BoundTrial, prepared: Planned) -> dict[str, object]:
    from benchctl.report.lines.plan import commands

    trial = bound.plan
    return {
        "index": trial.position,
        "repeat": trial.repeat,
        "point": trial.point,
        "duration_s": trial.duration_s,
        "deadline_s": trial.deadline_s,
        "commands": [
            {
                "flow": command.flow,
                "end": command.end,
                "host": command.host,
                "command": command.command,
            }
            for command in commands(bound, prepared)
        ],
        "services": [
            {"host": host, "command": shlex.join(argv)} for host, argv in prepared.services
        ],
        "hooks": [
            {"host": hook.host, "when": hook.when, "command": hook.command}
            for hook in prepared.hooks
        ],
        "needs_trust": prepared.needs_trust,
    }
