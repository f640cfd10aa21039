"""The people of a fleet and what they measure, as commands show them. Pure."""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from msgspec import to_builtins

from benchctl.fleet.admin.members import Members, Person
from benchctl.fleet.person_messages import QueuedRun
from benchctl.units import format_count, format_size

MOST = 2**53 - 1
"""Of a limit."""

HEADS = ("person", "role", "hosts", "trials", "bytes a day")
NUMERIC = (False, False, True, True, True)

QUEUE_HEADS = ("run", "person", "profile", "hosts", "trials", "since", "state")
QUEUE_NUMERIC = (False, False, False, True, True, False, False)


def people_rows(members: Members) -> Iterator[tuple[str, ...]]:
    """Yield a row for each person: name, role, hosts and trials at once, bytes a day."""
    for name, person in sorted(members.people.items()):
        yield (
            name, person.rights, str(person.hosts_at_once), str(person.trials_at_once),
            format_size(person.bytes_a_day),
        )  # fmt: skip


def person_object(name: str, person: Person) -> Mapping[str, Any]:
    """Return a person as JSON has it."""
    fields: dict[str, Any] = to_builtins(person)
    del fields["nkey"]
    return {"person": name, "role": fields.pop("rights")} | fields


def limits_text(name: str, person: Person) -> str:
    """Return in words how much a person may use."""
    hosts = format_count(person.hosts_at_once, "host")
    trials = format_count(person.trials_at_once, "trial")
    size = format_size(person.bytes_a_day)
    return f"{name} may use {hosts}, measure {trials} at once, and send {size} a day"


def queue_rows(runs: Iterable[QueuedRun]) -> Iterator[tuple[str, ...]]:
    """Yield a row for each run that is measured, or waits."""
    for run in runs:
        yield (
            run.run, run.person, run.profile, str(run.hosts), f"{run.ended}/{run.trials}",
            time.strftime("%m-%d %H:%M", time.localtime(run.submitted_s)),
            f"waits: {run.waits_for}" if run.waits_for else "measured",
        )  # fmt: skip
