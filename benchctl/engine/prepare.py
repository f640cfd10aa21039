"""From a plan to a run in the store, which the runner can take up, now or again."""

from __future__ import annotations

import hashlib
import time
from collections.abc import Iterator
from dataclasses import asdict
from pathlib import Path

from benchctl.engine.network import to_settings
from benchctl.engine.planning import Planned
from benchctl.engine.site import to_lab_settings
from benchctl.engine.trust import untrusted
from benchctl.plan.plan import Plan
from benchctl.store.record import NewRun, NewTrial, create_run


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
    settings = {
        "values": plan.values,
        "attempts": profile.run.attempts,
        "backoff_s": profile.run.backoff,
        "pause_s": profile.run.pause,
        "order": str(profile.run.order),
        "network": to_settings(prepared.outside),
        "lab": lab,
        "expect": [asdict(bound) for bound in plan.expected],
        "reported": [asdict(figures) for figures in plan.reported],
        "metrics": [asdict(metric) for ability in abilities.values() for metric in ability.metrics],
        "headlines": {name: ability.headline for name, ability in abilities.items()},
    }
    run = NewRun(
        profile=plan.document.name,
        title=profile.title,
        seed=plan.seed,
        trials=len(plan),
        settings=settings,
        profile_text=text,
        profile_sha256=hashlib.sha256(text.encode()).hexdigest(),
    )
    return create_run(store, run, _trials(plan), time.time())


def _trials(plan: Plan) -> Iterator[NewTrial]:
    for trial in plan:
        flows = [asdict(flow) for flow in trial.flows]
        yield NewTrial(
            trial.repeat, trial.point, flows, trial.lab, trial.duration_s, trial.deadline_s
        )
