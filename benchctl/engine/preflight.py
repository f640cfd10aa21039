"""Checks before any traffic: programs, and the exact commands."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from benchctl.api import Role, Tool
from benchctl.backends import Registry
from benchctl.engine.tools import Toolbox
from benchctl.errors import MissingError
from benchctl.hosts.spawn import LocalSpawner
from benchctl.plan.bound import BoundFlow, BoundTrial
from benchctl.run.network import LOCAL, Network
from benchctl.run.trial import PlannedFlow

Tools = Mapping[tuple[str, Role], Tool | MissingError]
"""The probe results of both ends of each backend."""


@dataclass(frozen=True, slots=True)
class FlowCommands:
    """The exact commands of a flow; ``server`` is empty if benchctl runs none."""

    flow: str
    client: tuple[str, ...]
    server: tuple[str, ...]


def needed(flows: Iterable[PlannedFlow], network: Network) -> set[tuple[str, Role]]:
    """Return the ends of the backends that benchctl runs."""
    ways = {(flow.backend, flow.to) for flow in flows}
    clients = {(backend, Role.CLIENT) for backend, _ in ways}
    return clients | {(backend, Role.SERVER) for backend, to in ways if network.target(to)}


def look(registry: Registry, ends: Iterable[tuple[str, Role]]) -> Tools:
    """Look for the programs of backends."""
    return asyncio.run(_look(registry, sorted(ends)))


async def _look(
    registry: Registry, ends: Iterable[tuple[str, Role]]
) -> dict[tuple[str, Role], Tool | MissingError]:
    found: dict[tuple[str, Role], Tool | MissingError] = {}
    async with LocalSpawner() as spawner:
        toolbox = Toolbox(spawner)
        for name, role in ends:
            try:
                backend = registry.load(name)
                if role is Role.CLIENT or backend.capabilities.needs_server:
                    found[name, role] = await toolbox.find(backend, role, LOCAL)
            except MissingError as error:
                found[name, role] = error
    return found


def first_missing(tools: Tools) -> MissingError | None:
    """Return the error of the first missing program, if any."""
    return next((tool for tool in tools.values() if isinstance(tool, MissingError)), None)


def check_root(registry: Registry, flows: Iterable[PlannedFlow]) -> None:
    """Raise MissingError for a flow on this machine whose tool needs root."""
    for flow in flows:
        if os.geteuid() != 0 and registry.load(flow.backend).capabilities.needs_root:
            raise MissingError(
                f'flow {flow.name}: backend "{flow.backend}" needs root',
                "run benchctl as root, or measure in a lab, whose hosts have what it needs",
            )


def commands_of(trial: BoundTrial, network: Network, tools: Tools) -> list[FlowCommands]:
    """Return the commands of a trial's first attempt, with default ports instead of free ones.

    Raises MissingError for a missing program, ValueError if a tool cannot do what the flow asks.
    """
    return [_commands(flow, network, tools) for flow in trial.flows]


def _commands(flow: BoundFlow, network: Network, tools: Tools) -> FlowCommands:
    plan, backend = flow.plan, flow.backend
    there: dict[Role, Tool] = {}
    for role in Role:
        tool = tools.get((plan.backend, role))
        if isinstance(tool, MissingError):
            raise tool
        if tool is not None:
            there[role] = tool
    target = network.target(plan.to)
    ports = None if target else network.peers[plan.to].ports
    port = ports[0] if ports else backend.capabilities.default_port
    client = backend.client(flow.described(network, port, there, Role.CLIENT))
    server = None
    if target is not None and backend.capabilities.needs_server:
        server = backend.server(flow.described(network, port, there, Role.SERVER))
    return FlowCommands(plan.name, client.argv, server.argv if server else ())
