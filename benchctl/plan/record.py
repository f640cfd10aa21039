"""From a plan and its network to a planned run for the store."""

from __future__ import annotations

import math

from benchctl.backends import Registry
from benchctl.plan.plan import Plan
from benchctl.profile.model import LabTable
from benchctl.run.planned import LabSettings, PlannedChange, PlannedRun, Settings
from benchctl.toml.source import TomlSource


def planned_run(plan: Plan, topology: TomlSource | None, registry: Registry) -> PlannedRun:
    """Return a plan as a run; ``topology`` is the file of its lab, if any."""
    profile = plan.document.model
    text = plan.document.text
    lab = None
    if topology is not None and profile.lab is not None:
        lab = lab_settings(topology, profile.lab)
        text = f"{text}\n# {topology.path.name}\n{topology.text}"
    backends = dict.fromkeys(flow.backend for flow in plan.routes)
    # Readers of the run need no plugin.
    abilities = {name: registry.load(name).capabilities for name in backends}
    settings = Settings(
        plan.values,
        profile.run.order,
        plan.expected,
        profile.run.attempts,
        profile.run.backoff,
        profile.run.pause,
        profile.outside,
        lab,
        plan.reported,
        tuple(metric for ability in abilities.values() for metric in ability.metrics),
        {name: ability.headline for name, ability in abilities.items()},
    )
    return PlannedRun(plan.document.name, profile.title, plan.seed, settings, plan, text)


def lab_settings(source: TomlSource, table: LabTable) -> LabSettings:
    """Return what `LabSite` needs of the topology file and of the profile's lab table."""
    changes = []
    for change in table.changes:
        rate = "unlimited" if change.rate == math.inf else change.rate
        changes.append(PlannedChange(**{**dict(change), "rate": rate}))
    return LabSettings(str(source.path), source.text, table.emulator, table.verify, tuple(changes))
