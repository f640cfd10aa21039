"""Checks before any traffic: programs, and the exact commands."""

from __future__ import annotations

import os
import shutil
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from benchctl.api import Command, Flow, Probe, Role, Tool
from benchctl.backends import AnyBackend, Registry
from benchctl.errors import HostError, MissingError
from benchctl.hosts.local.spawn import LocalSpawner, Spawner, run
from benchctl.hosts.secrets import read_secrets
from benchctl.hosts.sent import recorder
from benchctl.hosts.ssh.programs import located
from benchctl.hosts.ssh.remote import LOST, NOT_STARTED
from benchctl.hosts.tasks import run_to_end
from benchctl.plan.bound import UNPROMISED, BoundFlow, BoundTrial, Promised
from benchctl.plugins import plugin_bugs
from benchctl.run.planned import LOCAL, FleetTarget, Host, Network, PlannedFlow
from benchctl.visible import visible

PROBE_TIMEOUT_S = 10.0
ROOT_THERE = (
    "recording needs Linux, Python 3.9 and root there: set sudo=true for the host, or log in as "
    "root"
)


class Toolbox:
    """Probes each backend's programs once; hosts of a lab share this machine's programs.

    ``tell`` takes a host and the versions of its programs so far, by backend, after each new one.
    """

    def __init__(
        self, spawner: Spawner, tell: Callable[[Host, Mapping[str, str]], None] | None = None
    ) -> None:
        self._spawner = spawner
        self._tell = tell
        self._found: dict[tuple[str, str, Role], Tool] = {}
        """By host, which is empty for this machine."""
        self._printed: dict[tuple[str, ...], tuple[int, str]] = {}
        self._deaf: dict[str, str] = {}
        """Why remote hosts cannot record packets, by name."""

    async def find(self, backend: AnyBackend, role: Role, host: Host) -> Tool:
        """Return the program of one end of a backend's flows.

        Raises MissingError, with the reason and how to get it, if it is not usable.
        """
        where = host.name if host.reach else ""
        key = (where, backend.name, role)
        if key not in self._found:
            self._found[key] = await self._probe(backend, role, host)
            if self._tell:
                tools = {name: tool for (at, name, _), tool in self._found.items() if at == where}
                self._tell(
                    host, {name: tool.version for name, tool in tools.items() if tool.version}
                )
        return self._found[key]

    async def _probe(self, backend: AnyBackend, role: Role, host: Host) -> Tool:
        with plugin_bugs(f'backend "{backend.name}" failed in probe'):
            probe = backend.probe(role)
        if isinstance(host.reach, FleetTarget):
            return await self._ask_agent(backend, role, host)
        if probe is None:
            return Tool("")
        try:
            return await self._ask(backend, role, host, probe)
        except MissingError:
            # A program that the settings name is wanted, and no other.
            if probe.otherwise is None or located(probe.argv) != probe.argv:
                raise
            return await self._ask(backend, role, host, probe.otherwise)

    async def _ask_agent(self, backend: AnyBackend, role: Role, host: Host) -> Tool:
        """Ask a host of a fleet, whose own backend looks there."""
        # The module stands for a name in the table of questions: no code is sent to such a host.
        here = sys.modules[__name__]
        found = await self._spawner.ask(host, here, "tool", backend.name, str(role))
        if why := found.get("why_not"):
            what = f'host {host.name}: backend "{backend.name}"'
            raise MissingError(f"{what}: {visible(why)}", visible(found.get("hint", "")))
        return Tool(found["version"], frozenset(found["features"]))

    async def _ask(self, backend: AnyBackend, role: Role, host: Host, probe: Probe) -> Tool:
        argv = located(probe.argv) if host.reach is None else probe.argv
        program = argv[0]
        what = f'backend "{backend.name}"'
        if host.reach is not None:
            what = f"host {host.name}: {what}"
        elif shutil.which(program) is None:
            raise MissingError(f"{what}: no program {program} in the PATH", probe.install)
        key = (host.name if host.reach else "", *argv)
        try:
            # Client and server are often one program.
            printed = self._printed.get(key) or await run(
                self._spawner, host, argv, PROBE_TIMEOUT_S
            )
        except TimeoutError:
            raise MissingError(
                f"{what}: {' '.join(argv)} did not end within {PROBE_TIMEOUT_S:.0f} s"
            ) from None
        except ConnectionError as error:  # it names the host
            raise HostError(f"{error.strerror}") from error
        except OSError as error:
            raise MissingError(f"{what}: {program} cannot be started: {error.strerror}") from error
        if printed[0] == LOST and (why := await self._spawner.why_lost(host)):
            raise HostError(why)
        if host.reach is not None and printed[0] == NOT_STARTED:
            raise MissingError(f"{what}: {printed[1].strip()}", probe.install)
        try:
            with plugin_bugs(f'backend "{backend.name}" failed in read_probe', ValueError):
                tool = backend.read_probe(role, *printed)
        except ValueError as error:  # perhaps of a host that has just died: asked again next time
            raise MissingError(f"{what}: {error}", probe.install) from error
        self._printed[key] = printed
        return tool

    async def of_flow(
        self, backend: AnyBackend, source: Host, target: Host | None
    ) -> dict[Role, Tool]:
        """Return the programs of both ends; the server's only if benchctl runs it."""
        tools = {Role.CLIENT: await self.find(backend, Role.CLIENT, source)}
        if target is not None and backend.capabilities.needs_server:
            tools[Role.SERVER] = await self.find(backend, Role.SERVER, target)
        return tools

    async def check_capture(self, flow: PlannedFlow, network: Network) -> None:
        """Raise MissingError if a remote host cannot record the packets of a flow."""
        for host in captured_at(flow, network):
            if host.reach is not None and (why := await self.why_no_packets(host)):
                raise MissingError(
                    f"flow {flow.name}: packets cannot be recorded on {host.name}: {why}",
                    f"{ROOT_THERE}, or set capture=false",
                )

    async def why_no_packets(self, host: Host) -> str:
        """Return why the packets of a remote host cannot be recorded; empty if they can."""
        if host.name not in self._deaf:
            self._deaf[host.name] = visible(await self._spawner.ask(host, recorder, "why_not"))
        return self._deaf[host.name]


Tools = Mapping[tuple[str, Role], Tool | MissingError]
"""The probe results of both ends of each backend."""


@dataclass(frozen=True, slots=True)
class FlowCommands:
    """The exact commands of a flow; ``server`` is empty if benchctl runs none."""

    flow: str
    client: tuple[str, ...]
    server: tuple[str, ...]


def needed(
    flows: Iterable[PlannedFlow], network: Network, *, remote: bool = False
) -> set[tuple[str, Role]]:
    """Return the ends of the backends that benchctl runs with the programs of this machine.

    Or ``remote``, with those of hosts that SSH reaches.
    """
    found = set()
    for flow in flows:
        ends = (Role.CLIENT, network.hosts[flow.source]), (Role.SERVER, network.target(flow.to))
        for role, host in ends:
            if host is not None and (host.reach is not None) is remote:
                found.add((flow.backend, role))
    return found


def likely(registry: Registry, ends: Iterable[tuple[str, Role]]) -> Tools:
    """Return what the programs of remote hosts are taken to be: those of this machine, if any.

    A plan asks no other host. A run looks for them there.
    """
    found = look(registry, ends)
    return {
        end: Tool("") if isinstance(tool, MissingError) else tool for end, tool in found.items()
    }


def look(registry: Registry, ends: Iterable[tuple[str, Role]]) -> Tools:
    """Look for the programs of backends."""
    wanted = sorted(ends)
    return run_to_end(_look(registry, wanted)) if wanted else {}


async def _look(
    registry: Registry, ends: Sequence[tuple[str, Role]]
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


def captured_at(flow: PlannedFlow, network: Network) -> list[Host]:
    """Return the hosts on which the packets of a flow are recorded."""
    if flow.capture is None:
        return []
    ends = {"from": network.hosts[flow.source], "to": network.target(flow.to)}
    hosts = [host for end in flow.capture.ends if (host := ends[end]) is not None]
    return [*{host.name: host for host in hosts}.values()]


def check_root(registry: Registry, flows: Iterable[PlannedFlow], network: Network) -> None:
    """Raise MissingError for a flow on this machine that needs root: its tool, or its capture."""
    for flow in flows:
        here = any(host.reach is None for host in captured_at(flow, network))
        if here and (os.geteuid() != 0 or not sys.platform.startswith("linux")):
            raise MissingError(
                f"flow {flow.name}: capture needs root, and Linux",
                "run benchctl as root, measure in a lab, or set capture=false",
            )
        if network.hosts[flow.source].reach is not None:
            continue  # which is seen there
        if os.geteuid() != 0 and registry.load(flow.backend).capabilities.needs_root:
            raise MissingError(
                f'flow {flow.name}: backend "{flow.backend}" needs root',
                "run benchctl as root, or measure in a lab, whose hosts have what it needs",
            )


def commands_of(
    trial: BoundTrial, network: Network, tools: Tools, expected: Mapping[str, Promised]
) -> list[FlowCommands]:
    """Return the commands of a trial's first attempt, with default ports instead of free ones.

    ``expected`` is what theory expects of its flows in a lab, by name. Raises MissingError for a
    missing program.
    """
    return [
        commands_of_flow(flow, network, tools, expected.get(flow.plan.name, UNPROMISED))
        for flow in trial.flows
    ]


def commands_of_flow(
    flow: BoundFlow, network: Network, tools: Tools, expected: Promised = UNPROMISED
) -> FlowCommands:
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
    ports = target.ports if target else network.peers[plan.to].ports
    port = ports[0] if ports else backend.capabilities.default_port

    def described(role: Role) -> Flow[Any]:
        second_port = backend.capabilities.port_beside(port)
        return flow.described(
            network, port, there, role, expected=expected, second_port=second_port
        )

    server = None
    failed = f'flow {plan.name}: backend "{plan.backend}" failed to build a command'
    with plugin_bugs(failed, ValueError):
        client = backend.client(described(Role.CLIENT))
        if target is not None and backend.capabilities.needs_server:
            server = backend.server(described(Role.SERVER))
        for command in filter(None, (client, server)):
            _check_secrets(command, flow)
    return FlowCommands(plan.name, located(client.argv), located(server.argv) if server else ())


def _check_secrets(command: Command, flow: BoundFlow) -> None:
    for variable, path in command.secrets.items():
        try:
            read_secrets({variable: path})
        except ValueError as error:
            named = [name for name, value in vars(flow.parameters).items() if value == path]
            raise ValueError(": ".join([*named[:1], str(error)])) from None
