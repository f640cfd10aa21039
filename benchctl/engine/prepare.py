"""From a plan to a run in the store, which the runner can take up, now or again."""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import asdict
from pathlib import Path
from typing import Any

from benchctl.engine.network import Network, to_settings
from benchctl.profile.load import Document
from benchctl.profile.plan import Plan
from benchctl.store.record import NewRun, NewTrial, create_run
from benchctl.units import parse_value


def expectations(document: Document) -> list[dict[str, Any]]:
    """Return the bounds that a profile expects to be met, in SI units. Raises ProfileError."""
    bounds = []
    for index, wanted in enumerate(document.model.expect):
        bound = wanted.model_dump(exclude_none=True)
        for name in ("at_least", "at_most"):
            if name in bound:
                try:
                    bound[name] = parse_value(wanted.metric, bound[name])
                except ValueError as error:
                    raise document.error(("expect", index, name), str(error)) from None
        bounds.append(bound)
    return bounds


def record_plan(plan: Plan, network: Network, store: Path) -> tuple[int, str]:
    """Write a plan into the store as a new run; returns the run's id and name."""
    profile = plan.document.model
    settings = {
        "values": {
            axis: list(dict.fromkeys(v.shown for p in plan.points for v in p if v.axis == axis))
            for axis in plan.matrix.axes
        },
        "attempts": profile.run.attempts,
        "backoff_s": profile.run.backoff,
        "pause_s": profile.run.pause,
        "order": str(profile.run.order),
        "network": to_settings(network),
        "expect": expectations(plan.document),
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
