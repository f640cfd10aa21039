"""Runs that a fleet measures: submitted, followed, and watched as those that are measured here."""

from __future__ import annotations

import os
import secrets
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from benchctl.cli.shared.watch import FleetRunner, Showing, watch_fleet
from benchctl.errors import UsageError
from benchctl.units import format_count
from benchctl.visible import visible

if TYPE_CHECKING:
    from benchctl.fleet.person_messages import Submit


def submission(
    profile: str,
    assignments: Sequence[str],
    only: Sequence[str],
    repeats: int | None,
    tags: Sequence[str],
    *,
    yes: bool,
) -> Submit:
    """Return a profile as it is submitted. Raises ProfileError or UsageError."""
    from benchctl.fleet.person_messages import ProfileFile, Submit
    from benchctl.profile.load import load_profile

    document = load_profile(profile, assignments)
    files = tuple(ProfileFile(source.path.name, source.text) for source in document.sources)
    return Submit(
        secrets.token_hex(16), files, tuple(assignments), tuple(only), repeats, tuple(tags), yes
    )


def check_with_fleet(file: Path, message: Submit) -> UsageError | None:
    """Print what a fleet would refuse of a plan; returns the error of that, None if it takes all.

    Raises UsageError if it cannot be planned there, and FleetError.
    """
    from benchctl.fleet.person import ask_fleet
    from benchctl.fleet.person_messages import CheckPlan, PlanChecked

    checked = ask_fleet(file, CheckPlan(message), PlanChecked)
    for line in checked.away:
        print(visible(f"benchctl: {line}; its trials would wait"), file=sys.stderr)
    for line in checked.refusals[1:]:
        print(visible(f"benchctl: refused: {line}"), file=sys.stderr)
    return UsageError(f"refused: {checked.refusals[0]}") if checked.refusals else None


def run_on_fleet(file: Path, message: Submit, showing: Showing, *, detach: bool) -> int:
    """Submit a run and watch it as one that is measured here; returns its exit code.

    With ``detach``, only its name is printed. Raises UsageError if it is refused, FleetError and
    StoreError.
    """
    from benchctl.fleet.person import ask_fleet
    from benchctl.fleet.person_messages import Submitted

    submitted = ask_fleet(file, message, Submitted)
    if not showing.quiet:
        print(f"run {submitted.run}: {format_count(submitted.trials, 'trial')}", file=sys.stderr)
        for note in submitted.notes:
            print(visible(note), file=sys.stderr)
    if detach:
        print(submitted.run)
        return 0
    return attach_to_fleet(file, submitted.run, showing)


def attach_to_fleet(file: Path, name: str, showing: Showing) -> int:
    """Watch a run of a fleet to its end and print its result; returns its exit code.

    Raises UsageError if there is no such run, FleetError and StoreError.
    """
    copy, run_id, runner = follow(file, name)
    return watch_fleet(copy, run_id, runner, showing)


def follow(file: Path, name: str) -> tuple[Path, int, FleetRunner]:
    """Bring a run into the copy and start what follows it there; returns copy, id and that.

    Raises UsageError if there is no such run, FleetError and StoreError.
    """
    from benchctl.engine.runner.launch import launch_follower
    from benchctl.fleet.copy import bring_run

    copy, run_id = bring_run(file, name)
    argv = ["benchctl.fleet.following", os.fspath(file.resolve()), name]
    return copy, run_id, FleetRunner(launch_follower(copy, run_id, argv), file)
