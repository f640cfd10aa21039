"""Flows that got no data because a firewall closes their port: the reason names it."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

from benchctl.api import Failure, FailureKind
from benchctl.engine.checks.reachability import HostPair, remedy, try_pair
from benchctl.engine.trial.flow import FlowAttempt
from benchctl.engine.trial.place import FlowSetup
from benchctl.hosts.local.spawn import Spawner
from benchctl.run.status import Status


async def diagnose_closed_ports(
    places: Sequence[FlowSetup], flows: Sequence[FlowAttempt], spawner: Spawner
) -> None:
    """Replace the reasons of failed flows that got no data with a closed port, if it is one.

    Both ends have ended, so the port is free to be tried. Tools say little of it, and each in its
    own words: a time is out, a server is stuck.
    """
    pairs = zip(places, flows, strict=True)
    await asyncio.gather(*(_blame(*pair, spawner) for pair in pairs if _may_be_closed(*pair)))


def _may_be_closed(place: FlowSetup, flow: FlowAttempt) -> bool:
    return (
        place.target is not None
        and place.port is not None
        and place.source.reach != place.target.reach
        and flow.was_ready
        and flow.status in (Status.FAILED, Status.TIMED_OUT)
        and not flow.has_measured
    )


async def _blame(place: FlowSetup, flow: FlowAttempt, spawner: Spawner) -> None:
    target, port = place.target, place.port
    assert target is not None
    assert port is not None
    address = place.flow.address_at(target)
    found = await try_pair(HostPair(place.source, target, address, port, port), spawner)
    closed = [kind for kind in ("tcp", "udp") if found.get(kind)]
    # Some tools measure UDP without TCP.
    if flow.failure is None or flow.failure.kind is not FailureKind.UNREACHABLE:
        closed = [kind for kind in closed if kind == place.flow.demand.protocol]
    if closed:
        kind = closed[0]
        what = f"{target.name} is not reached from {place.source.name} at {kind.upper()} port "
        why = f"{what}{port}: {found[kind]}"
        hint = remedy(place.source.name, target.name, kind.upper(), found[kind])
        flow.blame(Failure(FailureKind.UNREACHABLE, why, hint))
