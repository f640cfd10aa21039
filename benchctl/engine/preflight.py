"""Checks before any traffic: programs, and the exact commands."""

from __future__ import annotations

import asyncio
import os
import shutil
import sys
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass

from benchctl.api import Probe, Role, Tool
from benchctl.backends import AnyBackend, Registry
from benchctl.errors import MissingError, PluginError
from benchctl.hosts.programs import located
from benchctl.hosts.spawn import LocalSpawner, Spawner, run
from benchctl.plan.bound import BoundFlow, BoundTrial
from benchctl.run.planned import LOCAL, Host, Network, PlannedFlow

PROBE_TIMEOUT_S = 10.0


class Toolbox:
    """Probes each backend's programs once; hosts share this machine's programs.

    ``tell`` takes the versions of all programs so far, by backend, after each new one.
    """

    def __init__(
        self, spawner: Spawner, tell: Callable[[Mapping[str, str]], None] | None = None
    ) -> None:
        self._spawner = spawner
        self._tell = tell
        self._found: dict[tuple[str, Role], Tool] = {}
        self._printed: dict[tuple[str, ...], tuple[int, str]] = {}

    async def find(self, backend: AnyBackend, role: Role, host: Host) -> Tool:
        """Return the program of one end of a backend's flows.

        Raises MissingError, with the reason and how to get it, if it is not usable.
        """
        key = (backend.name, role)
        if key not in self._found:
            self._found[key] = await self._probe(backend, role, host)
            if self._tell:
                found = self._found.items()
                self._tell({name: tool.version for (name, _), tool in found if tool.version})
        return self._found[key]

    async def _probe(self, backend: AnyBackend, role: Role, host: Host) -> Tool:
        try:
            probe = backend.probe(role)
        except Exception as error:  # third-party code may fail in any way
            raise _failed(backend, "probe", error) from error
        if probe is None:
            return Tool("")
        try:
            return await self._ask(backend, role, host, probe)
        except MissingError:
            # A program that the settings name is wanted, and no other.
            if probe.otherwise is None or located(probe.argv) != probe.argv:
                raise
            return await self._ask(backend, role, host, probe.otherwise)

    async def _ask(self, backend: AnyBackend, role: Role, host: Host, probe: Probe) -> Tool:
        argv = located(probe.argv)
        program = argv[0]
        what = f'backend "{backend.name}"'
        if shutil.which(program) is None:
            raise MissingError(f"{what}: no program {program} in the PATH", probe.install)
        try:
            # Client and server are often one program.
            printed = self._printed.get(argv) or await run(
                self._spawner, host, argv, PROBE_TIMEOUT_S
            )
        except TimeoutError:
            raise MissingError(
                f"{what}: {' '.join(argv)} did not end within {PROBE_TIMEOUT_S:.0f} s"
            ) from None
        except OSError as error:
            raise MissingError(f"{what}: {program} cannot be started: {error.strerror}") from error
        try:
            tool = backend.read_probe(role, *printed)
        except ValueError as error:  # perhaps of a host that has just died: asked again next time
            raise MissingError(f"{what}: {error}", probe.install) from error
        except Exception as error:
            raise _failed(backend, "read_probe", error) from error
        self._printed[argv] = printed
        return tool

    async def of_flow(
        self, backend: AnyBackend, source: Host, target: Host | None
    ) -> dict[Role, Tool]:
        """Return the programs of both ends; the server's only if benchctl runs it."""
        tools = {Role.CLIENT: await self.find(backend, Role.CLIENT, source)}
        if target is not None and backend.capabilities.needs_server:
            tools[Role.SERVER] = await self.find(backend, Role.SERVER, target)
        return tools


def _failed(backend: AnyBackend, method: str, error: Exception) -> PluginError:
    return PluginError(
        f'backend "{backend.name}" failed in {method}: {type(error).__name__}: {error}',
        "report it to the author of the plugin",
    )


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
    """Raise MissingError for a flow on this machine that needs root: its tool, or its capture."""
    for flow in flows:
        if flow.capture and (os.geteuid() != 0 or not sys.platform.startswith("linux")):
            raise MissingError(
                f"flow {flow.name}: capture needs root, and Linux",
                "run benchctl as root, measure in a lab, or set capture=false",
            )
        if os.geteuid() != 0 and registry.load(flow.backend).capabilities.needs_root:
            raise MissingError(
                f'flow {flow.name}: backend "{flow.backend}" needs root',
                "run benchctl as root, or measure in a lab, whose hosts have what it needs",
            )


def commands_of(trial: BoundTrial, network: Network, tools: Tools) -> list[FlowCommands]:
    """Return the commands of a trial's first attempt, with default ports instead of free ones.

    Raises MissingError for a missing program.
    """
    return [commands_of_flow(flow, network, tools) for flow in trial.flows]


def commands_of_flow(flow: BoundFlow, network: Network, tools: Tools) -> FlowCommands:
    """Return the commands of a flow; also raises ValueError if its tool cannot do what it asks."""
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
    server = None
    try:
        client = backend.client(flow.described(network, port, there, Role.CLIENT))
        if target is not None and backend.capabilities.needs_server:
            server = backend.server(flow.described(network, port, there, Role.SERVER))
    except ValueError:
        raise
    except Exception as error:  # third-party code may fail in any way
        raise MissingError(
            f'flow {plan.name}: backend "{plan.backend}" failed to build a command: '
            f"{type(error).__name__}: {error}",
            "report it to the author of the plugin",
        ) from error
    return FlowCommands(plan.name, located(client.argv), located(server.argv) if server else ())
