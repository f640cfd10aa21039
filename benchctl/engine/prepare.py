"""From a plan to a run in the store, which the runner can take up, now or again."""

from __future__ import annotations

import time
from pathlib import Path

from benchctl.engine.planning import Planned
from benchctl.engine.site import to_lab_settings
from benchctl.engine.trust import untrusted
from benchctl.run.planned import PlannedRun, Settings
from benchctl.store.record import create_run


def record_plan(prepared: Planned, store: Path, *, trust: bool = False) -> tuple[int, str]:
    """Write a plan into the store as a new run; returns the run's id and name.

    Raises ProfileError where its lab has services of doubtful origin, unless the user trusts them.
    """
    if prepared.distrust and prepared.topology is not None and not trust:
        raise untrusted(prepared.topology.path, prepared.distrust)
    plan = prepared.plan
    profile = plan.document.model
    text = plan.document.text
    lab = None
    if prepared.topology is not None and profile.lab is not None:
        lab = to_lab_settings(prepared.topology, profile.lab)
        text = f"{text}\n# {prepared.topology.path.name}\n{prepared.topology.text}"
    backends = dict.fromkeys(flow.backend for flow in plan.routes)
    # Who reads the run needs no plugin.
    abilities = {name: prepared.registry.load(name).capabilities for name in backends}
    settings = Settings(
        plan.values,
        profile.run.order,
        plan.expected,
        profile.run.attempts,
        profile.run.backoff,
        profile.run.pause,
        prepared.outside,
        lab,
        plan.reported,
        tuple(metric for ability in abilities.values() for metric in ability.metrics),
        {name: ability.headline for name, ability in abilities.items()},
    )
    run = PlannedRun(plan.document.name, profile.title, plan.seed, settings, plan, text)
    return create_run(store, run, time.time())
