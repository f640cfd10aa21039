"""From a profile's name to a checked plan: what ``plan`` and ``run`` both begin with."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from benchctl.backends import Registry, installed
from benchctl.engine.network import Network, network_of
from benchctl.engine.preflight import Tools, look, needed
from benchctl.engine.prepare import expectations
from benchctl.profile.load import load_profile
from benchctl.profile.plan import MOST_TRIALS, Plan, make_plan


@dataclass(frozen=True, slots=True)
class Planned:
    """A plan, the network it runs on, and what was found of the programs it needs."""

    plan: Plan
    network: Network
    registry: Registry
    tools: Tools


def planned(
    profile: str,
    assignments: Sequence[str] | None,
    only: Sequence[str] | None,
    repeats: int | None,
    yes: bool,
) -> Planned:
    """Load, check and plan a profile, and look for its tools. Sends nothing.

    Raises ProfileError, UsageError, or MissingError for a backend or a device that is not there.
    """
    document = load_profile(profile, assignments or ())
    registry = installed()
    plan = make_plan(
        document,
        registry,
        only=only or (),
        repeats=repeats,
        most_trials=None if yes else MOST_TRIALS,
    )
    expectations(document)  # a bound that cannot be read is found before anything runs
    network = network_of(document.model)
    return Planned(plan, network, registry, look(registry, network, needed(plan, network)))
