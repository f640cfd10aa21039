"""The hosts elsewhere of a trial: their clocks, and what is done when one is lost."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

from benchctl.api import Failure, FailureKind
from benchctl.engine.site.site import Site
from benchctl.engine.trial.flow import FlowAttempt
from benchctl.engine.trial.place import FlowSetup
from benchctl.errors import HostError
from benchctl.hosts.clocks import OURS
from benchctl.hosts.local.spawn import Spawner
from benchctl.run.record import ClockReading


async def reach_hosts(
    places: Sequence[FlowSetup], flows: Sequence[FlowAttempt], spawner: Spawner
) -> None:
    """Log in to the hosts of flows where a connection was lost, and fail flows if that fails."""
    await asyncio.gather(*(_reach(*pair, spawner) for pair in zip(places, flows, strict=True)))


async def _reach(place: FlowSetup, flow: FlowAttempt, spawner: Spawner) -> None:
    try:
        await asyncio.gather(*map(spawner.clock_of, place.hosts))
    except HostError as error:
        flow.fail(Failure(FailureKind.PEER, error.message, error.hint))


async def watch_hosts(place: FlowSetup, flow: FlowAttempt, spawner: Spawner) -> None:
    """End a flow when one of its hosts is lost: the other end may wait for very long."""
    lost = [spawner.lost(host) for host in place.hosts]
    done, _ = await asyncio.wait(lost, return_when=asyncio.FIRST_COMPLETED)
    if not flow.has_ended:
        flow.fail(Failure(FailureKind.PEER, done.pop().result()))


def clocks_at(flows: Sequence[FlowAttempt], time: float) -> dict[str, ClockReading]:
    """Return what is known of the clocks of the flows' hosts elsewhere, at a Unix time."""
    clocks = {host: clock for flow in flows for host, clock in flow.clocks.items()}
    return {host: clock.reading(time) for host, clock in clocks.items() if clock is not OURS}


async def diagnose_lost_host(
    places: Sequence[FlowSetup], flows: Sequence[FlowAttempt], spawner: Spawner, site: Site
) -> None:
    """Replace the reasons of failed flows with the cause, if a host is lost, or the lab."""
    failed = [(place, flow) for place, flow in zip(places, flows, strict=True) if flow.failure]
    for place, flow in failed:
        # A host ends what runs there as soon as it misses us, which may be before we miss it.
        reasons = await asyncio.gather(*map(spawner.why_lost, place.hosts))
        if why := next(filter(None, reasons), ""):
            flow.blame(Failure(FailureKind.PEER, why))
    if failed and (failure_reason := await site.failure_reason()):
        for _, flow in failed:
            flow.blame(Failure(FailureKind.PEER, failure_reason))
