"""Asks the hosts of a fleet what of a plan they would refuse, before anything of it runs."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Sequence

from msgspec.structs import replace

from benchctl.api import Role, Tool
from benchctl.engine.prepare.planning import Planned
from benchctl.engine.trial.ends import EndSpec
from benchctl.errors import HostError
from benchctl.fleet.driven.host import DrivenHost
from benchctl.fleet.driven.hosts import FleetHosts
from benchctl.fleet.host_messages import JudgeEnds, PreparedEnd
from benchctl.fleet.messages import Done, EndRef
from benchctl.plan.bound import BoundFlow
from benchctl.run.planned import FleetTarget
from benchctl.visible import visible

# Of a large matrix, the others differ by numbers.
_MOST_ENDS = 200
_TOOLS = {role: Tool("") for role in Role}


async def refusals(prepared: Planned, fleet: FleetHosts) -> list[str]:
    """Return why hosts would not take a plan, a line each; a host that is away is not asked."""
    ends: dict[str, list[PreparedEnd]] = {}
    for host, end in _ends(prepared):
        of_host = ends.setdefault(host, [])
        if len(of_host) < _MOST_ENDS:
            of_host.append(end)
    there = [(state, asked) for name, asked in ends.items() if (state := fleet.hosts.get(name))]
    answers = await asyncio.gather(*(_asked(state, asked) for state, asked in there))
    return list(dict.fromkeys(line for lines in answers for line in lines))


def _ends(prepared: Planned) -> Iterator[tuple[str, PreparedEnd]]:
    """Yield the ends of all points, each with the name of its host in the fleet."""
    for trial in prepared.plan.of_points():
        for flow in trial.flows:
            for role in Role:
                network, plan = prepared.network, flow.plan
                ours = network.hosts[plan.source], network.target(plan.to)
                own, other = ours if role is Role.CLIENT else ours[::-1]
                if own is None or not isinstance(own.reach, FleetTarget):
                    continue
                if role is Role.SERVER and not flow.backend.capabilities.needs_server:
                    continue
                spec = _spec(prepared, flow, role, trial.plan.deadline_s)
                peer = flow.address_at(other) if other else spec.address
                ref = EndRef("plan", trial.plan.position, 0, plan.name, str(role))
                yield own.reach.name, PreparedEnd(ref, replace(spec, peer=peer))


def _spec(prepared: Planned, flow: BoundFlow, role: Role, deadline_s: float) -> EndSpec:
    network, backend = prepared.network, flow.backend
    target = network.target(flow.plan.to)
    ports = target.ports if target else network.peers[flow.plan.to].ports
    port = ports[0] if ports else backend.capabilities.default_port
    second_port = backend.capabilities.port_beside(port)
    described = flow.described(network, port, _TOOLS, role, second_port=second_port)
    return EndSpec.of(
        described, backend, role, flow.plan.parameters, duration_s=flow.duration_s,
        deadline_s=deadline_s,
    )  # fmt: skip


async def _asked(state: DrivenHost, ends: Sequence[PreparedEnd]) -> list[str]:
    if state.away:
        return [state.away] if state.is_other else []
    try:
        answer = await state.ask(JudgeEnds(list(ends)))
    except HostError as error:
        return [error.message]
    if not isinstance(answer, Done) or not isinstance(answer.value, list):
        return [f"host {state.name} did not answer what it was asked; is its agent older?"]
    return [visible(line) for line in answer.value if isinstance(line, str) and line]
