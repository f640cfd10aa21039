"""Why flows of an attempt failed: a host or the lab that was lost, or a port that is closed.

Tools see only the effect, and each says it in its own words.
"""

from __future__ import annotations

import asyncio

from benchctl.api import Failure, FailureKind
from benchctl.engine.checks.reachability import HostPair, remedy, try_pair
from benchctl.engine.site.context import RunContext
from benchctl.engine.trial.attempt import Attempt
from benchctl.engine.trial.flow import FlowAttempt
from benchctl.errors import HostError
from benchctl.hosts.local.spawn import Spawner
from benchctl.run.planned import FleetTarget
from benchctl.run.status import FAILURES


async def reach_hosts(attempt: Attempt, hosts: Spawner) -> None:
    """Log in to the hosts of flows where a connection was lost, and fail flows if that fails."""
    await asyncio.gather(*(_reach(flow, hosts) for flow in attempt.flows))


async def _reach(flow: FlowAttempt, hosts: Spawner) -> None:
    try:
        await asyncio.gather(*map(hosts.clock_of, flow.setup.hosts))
    except HostError as error:
        flow.fail(Failure(FailureKind.PEER, error.message, error.hint))


async def watch_hosts(flow: FlowAttempt, hosts: Spawner) -> None:
    """End a flow when one of its hosts is lost: the other end may wait for very long."""
    lost = [hosts.lost(host) for host in flow.setup.hosts]
    done, _ = await asyncio.wait(lost, return_when=asyncio.FIRST_COMPLETED)
    if not flow.result.has_ended:
        flow.fail(Failure(FailureKind.PEER, done.pop().result()))


async def diagnose_lost_host(attempt: Attempt, context: RunContext) -> None:
    """Replace the reasons of failed flows with the cause, if a host is lost, or the lab."""
    failed = [flow for flow in attempt.flows if flow.result.failure]
    for flow in failed:
        # A host ends what runs there as soon as it misses us, which may be before we miss it.
        reasons = await asyncio.gather(*map(context.hosts.why_lost, flow.setup.hosts))
        if why := next(filter(None, reasons), ""):
            flow.blame(Failure(FailureKind.PEER, why))
    if failed and (why := await context.site.failure_reason()):
        for flow in failed:
            flow.blame(Failure(FailureKind.PEER, why))


async def diagnose_closed_ports(attempt: Attempt, hosts: Spawner) -> None:
    """Replace the reasons of failed flows that got no data with a closed port, if it is one.

    Both ends have ended, so the port is free to be tried. A time is out, a server is stuck: so
    tools call it.
    """
    await asyncio.gather(
        *(_diagnose(flow, hosts) for flow in attempt.flows if _may_be_closed(flow))
    )


def _may_be_closed(flow: FlowAttempt) -> bool:
    setup = flow.setup
    return (
        setup.target is not None
        and setup.port is not None
        and setup.source.reach != setup.target.reach
        and not isinstance(setup.source.reach, FleetTarget)  # which starts no program of ours
        and flow.was_ready
        and flow.result.status in FAILURES
        and not flow.result.has_measured
    )


async def _diagnose(flow: FlowAttempt, hosts: Spawner) -> None:
    for port in filter(None, (flow.setup.port, flow.setup.second_port)):
        if (failure := await _closed(flow, port, hosts)) is not None:
            flow.blame(failure)
            return


async def _closed(flow: FlowAttempt, port: int, hosts: Spawner) -> Failure | None:
    setup, target = flow.setup, flow.setup.target
    assert target is not None
    address = setup.flow.address_at(target)
    found = await try_pair(HostPair(setup.source, target, address, port, port), hosts)
    closed = [kind for kind in ("tcp", "udp") if found.get(kind)]
    # Some tools measure UDP without TCP.
    failure = flow.result.failure
    if failure is None or failure.kind is not FailureKind.UNREACHABLE:
        closed = [kind for kind in closed if kind == setup.flow.demand.protocol]
    if not closed:
        return None
    kind = closed[0]
    what = f"{target.name} is not reached from {setup.source.name} at {kind.upper()} port "
    why = f"{what}{port}: {found[kind]}"
    hint = remedy(setup.source.name, target.name, kind.upper(), found[kind])
    return Failure(FailureKind.UNREACHABLE, why, hint)
