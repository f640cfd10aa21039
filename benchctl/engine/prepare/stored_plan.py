"""From a plan to a run in the store, which a runner can start or resume."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from pathlib import Path

from msgspec.structs import replace

from benchctl.engine.prepare.consent import refusal, unagreed
from benchctl.engine.prepare.planning import Planned
from benchctl.engine.prepare.trust import untrusted
from benchctl.engine.prepare.volume import check_traffic
from benchctl.plan.plan import planned_run
from benchctl.store.record import RunRequest, create_run


def record_plan(
    prepared: Planned,
    store: Path,
    *,
    trust: bool = False,
    yes: bool = False,
    tags: Sequence[str] = (),
    server_wait_s: float = 0.0,
    gives_up: bool = False,
    before_commit: Callable[[], object] = lambda: None,
    asked: RunRequest | None = None,
) -> tuple[int, str]:
    """Write a plan into the store as a new run; returns the run's id and name.

    ``before_commit`` is called when all of it is written, before it is there for others. ``asked``
    says who asked a fleet for it.
    Raises ProfileError if it runs commands that others may have written, or that this person has
    not agreed to, unless the user trusts them. Raises UsageError if it would send very much, unless
    the user says yes.
    """
    if not yes:
        check_traffic(prepared)
    if prepared.distrust and not trust:
        of_lab = prepared.topology is not None and prepared.distrusted == prepared.topology.path
        what = "services" if of_lab else "prepare and cleanup"
        raise untrusted(prepared.distrusted, prepared.distrust, what)
    if not trust and (commands := unagreed(prepared.commands)):
        raise refusal(prepared.plan.document.name, commands)
    run = planned_run(
        prepared.plan, prepared.outside, prepared.topology, prepared.registry, server_wait_s
    )
    run = replace(run, settings=replace(run.settings, gives_up=gives_up))
    return create_run(store, run, time.time(), tags, before_commit, asked)
