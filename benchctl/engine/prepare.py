"""From a plan to a run in the store, which the runner can take up, now or again."""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import asdict
from pathlib import Path

from benchctl.engine.network import Network, to_settings
from benchctl.profile.plan import Plan
from benchctl.store.record import NewRun, NewTrial, create_run


def record_plan(plan: Plan, network: Network, store: Path) -> tuple[int, str]:
    """Write a plan into the store as a new run; returns the run's id and name."""
    profile = plan.document.model
    settings = {
        "axes": list(plan.matrix.axes),
        "varying": list(plan.varying),
        "attempts": profile.run.attempts,
        "backoff_s": profile.run.backoff,
        "pause_s": profile.run.pause,
        "order": str(profile.run.order),
        "network": to_settings(network),
        "expect": [expectation.model_dump(exclude_none=True) for expectation in profile.expect],
    }
    run = NewRun(
        profile=plan.document.name,
        title=profile.title,
        seed=plan.seed,
        trials=len(plan),
        settings=settings,
        profile_text=plan.document.text,
        profile_sha256=plan.document.sha256,
    )
    return create_run(store, run, _trials(plan), time.time())


def _trials(plan: Plan) -> Iterator[NewTrial]:
    for trial in plan:
        flows = [asdict(flow) for flow in trial.flows]
        yield NewTrial(
            trial.repeat, trial.point, flows, trial.lab, trial.duration_s, trial.deadline_s
        )
