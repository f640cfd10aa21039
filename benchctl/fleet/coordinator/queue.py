"""Which runs of which people may begin. Pure.

Runs begin in the order in which they were submitted, as far as the limits of their people let them.
A run that waits for its person's limit holds up nobody else's. Runs that share hosts run at the
same time: each trial takes its hosts for itself.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from msgspec import Struct

from benchctl.fleet.admin.members import Person
from benchctl.units import format_size

DAY_S = 86_400.0


class AskedRun(Struct, frozen=True):
    """A run that a person asked for: what it needs."""

    run_id: int
    name: str
    person: str
    hosts: frozenset[str]
    trials: int
    """How many it measures at once."""
    sent_bytes: float
    submitted_s: float


def refusal(request: AskedRun, limits: Person, earlier: Iterable[AskedRun]) -> str:
    """Return why a run is not even to wait; ``earlier`` are the person's of the last day."""
    if limits.rights == "view":
        return f"{request.person} may look, and not submit runs"
    if len(request.hosts) > limits.hosts_at_once:
        return (
            f"{request.person} may use {limits.hosts_at_once} hosts at once, and the profile needs"
            f" {len(request.hosts)}"
        )
    if request.trials > limits.trials_at_once:
        return (
            f"{request.person} may measure {limits.trials_at_once} trials at once, and the profile"
            f" up to {request.trials}: set run.parallel.trials={limits.trials_at_once}"
        )
    used = sum(run.sent_bytes for run in earlier if request.submitted_s - run.submitted_s < DAY_S)
    if used + request.sent_bytes > limits.bytes_a_day:
        return (
            f"{request.person} may send {format_size(limits.bytes_a_day)} a day: of these"
            f" {format_size(used)} are planned already, and this run would send"
            f" {format_size(request.sent_bytes)}"
        )
    return ""


def waits_for(request: AskedRun, limits: Person, running: Sequence[AskedRun]) -> str:
    """Return what a run waits for, empty if it may begin; ``running`` are those of all people."""
    own = [run for run in running if run.person == request.person]
    hosts = frozenset[str]().union(*(run.hosts for run in own))
    if len(hosts | request.hosts) > limits.hosts_at_once:
        used = f"{request.person} uses {len(hosts)} of {limits.hosts_at_once} hosts"
        return f"{used}, and this run needs {len(request.hosts)}"
    trials = sum(run.trials for run in own)
    if trials + request.trials > limits.trials_at_once:
        used = f"{request.person} measures {trials} of {limits.trials_at_once} trials at once"
        return f"{used}, and this run up to {request.trials}"
    return ""


def may_stop(person: str, limits: Person, owner: str) -> bool:
    """Return whether a person may stop a run, or skip trials of it."""
    return limits.rights == "admin" or (limits.rights == "run" and person == owner)
