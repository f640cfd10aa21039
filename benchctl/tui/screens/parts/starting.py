"""Starts a plan: what is asked before, and the run that is recorded and launched.

Only a key to start imports this; planning takes a fifth of a second to import.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from msgspec import Struct

from benchctl.engine.prepare.consent import unagreed
from benchctl.engine.prepare.planning import Planned
from benchctl.engine.prepare.stored_plan import record_plan
from benchctl.engine.prepare.volume import expected_traffic, over_limit, reached_outside
from benchctl.engine.runner.launch import launch_detached
from benchctl.hosts.local.priority import at_full_priority
from benchctl.interrupts import held
from benchctl.report.lines.plan import start_text, traffic_text
from benchctl.settings import settings
from benchctl.store.manage import read_tags
from benchctl.units import format_count, format_duration
from benchctl.visible import visible

# Running a longer profile needs a confirmation.
LONG_S = 3600.0


class Question(Struct, frozen=True):
    """What is asked before a start, and the commands that a yes agrees to."""

    text: str
    detail: str
    commands: Sequence[str]
    needed: bool
    """Whether it is asked in any case: long, far, much traffic, or commands."""


def question(prepared: Planned) -> Question:
    """Return what is asked before a plan is started."""
    plan = prepared.plan
    much, places = over_limit(prepared), reached_outside(prepared)
    commands = unagreed(prepared.commands)
    lasts = format_duration(plan.duration_s)
    text, detail = f"Run {plan.document.name} for {lasts}?", start_text(prepared)
    if much:
        text = f"{text} It would send {much}."
    if places:
        text = f"Run {plan.document.name} towards addresses outside this machine?"
        named = ", ".join(
            name if name == address else f"{name} ({address})" for name, address in places.items()
        )
        traffic = much or traffic_text(expected_traffic(prepared))
        detail = f"servers  {named}\ntraffic  {traffic}\ntime     {lasts}"
    if commands:
        runs = f"it runs {format_count(len(commands), 'command')} with your rights:"
        detail = "\n".join([detail, runs, *map(visible, commands)])
    needed = plan.duration_s >= LONG_S or bool(much or places or commands)
    return Question(text, detail, commands, needed)


def start_run(prepared: Planned, store: Path, *, agreed: bool) -> int:
    """Record a plan and launch its runner; ``agreed`` to its commands. Returns the run's id."""
    tags = read_tags(settings()["tags"])
    with held():
        trust = agreed and not prepared.distrust
        run_id, _ = record_plan(prepared, store, yes=True, tags=tags, trust=trust)
        at_full_priority(launch_detached, store, run_id)
    return run_id
