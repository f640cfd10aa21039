"""The two ends of a flow, wherever they run: prepare, go, events, end.

An end is brought to where it waits: a server until it accepts clients, a client to its gate. It is
told when to go, says what it measures, and ends. `CommandEnd` starts the command of one end by a
`Spawner`. `EndSpec` is an end as data, for a host that starts it itself; what such a host does is
the same `CommandEnd`, and here an end of another kind stands for it.
"""

from __future__ import annotations

import asyncio
import hashlib
import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import cache
from typing import Annotated, Any, NamedTuple, Protocol

from msgspec import Meta, Struct
from msgspec.structs import replace as struct_replace

from benchctl.analysis.flow_result import check
from benchctl.api import (
    Channel,
    Command,
    Event,
    Failure,
    FailureKind,
    Flow,
    Parser,
    ParserError,
    Ready,
    Role,
    Started,
    Tool,
)
from benchctl.backends import AnyBackend, installed
from benchctl.errors import BenchctlError, HostError
from benchctl.hosts.clocks import OURS, HostClock
from benchctl.hosts.local.spawn import Process, Spawner, has_ended, stop
from benchctl.hosts.secrets import read_secrets
from benchctl.hosts.ssh.programs import as_sent, located, name_of
from benchctl.metrics import Direction
from benchctl.plan.bound import parameters_of
from benchctl.plugins import plugin_bugs
from benchctl.run.planned import Host

# A later server will not become ready: a cold start of an interpreter takes tenths of a second.
READY_S = 10.0
# The last lines of stderr give the reason. Nobody reads more than a screenful.
STDERR_KEPT = 8192

_Word = Annotated[str, Meta(max_length=256)]
_Port = Annotated[int, Meta(ge=1, le=65535)]
_Time = Annotated[float, Meta(ge=0, le=2.0**33)]


class EndSpec(Struct, frozen=True, forbid_unknown_fields=True):
    """One end of a flow, as data: everything that a host needs to run it by its own backend.

    ``version`` is that of the plugin's package and ``schema`` the hash of its parameters (see
    `schema_of`): with equal ones, ``parameters`` as a profile writes them mean the same there.
    ``peer`` is the address of the other end, which alone a server admits; empty if it is not known.
    ``start_at_s`` is a time of the host's own clock. ``duration_s`` is the expected time of the
    client, ``deadline_s`` the longest that the end may run. The rest is as in `Flow`.
    """

    backend: Annotated[str, Meta(max_length=64)]
    version: Annotated[str, Meta(max_length=64)]
    schema: Annotated[str, Meta(max_length=64)]
    role: Role
    parameters: dict[str, Any]
    direction: Direction
    address: _Word
    port: _Port | None
    duration_s: Annotated[float, Meta(ge=0, le=1e7)]
    deadline_s: Annotated[float, Meta(gt=0, le=1e7)]
    peer: _Word = ""
    second_port: _Port | None = None
    owns_server: bool = False
    one_clock: bool = False
    source_address: _Word | None = None
    source_device: _Word | None = None
    client_ports: tuple[_Port, _Port] | None = None
    server_ports: tuple[_Port, _Port] | None = None
    start_at_s: _Time | None = None
    expected_bps: Annotated[float, Meta(ge=0, le=1e15)] | None = None

    @classmethod
    def of(
        cls,
        flow: Flow[Any],
        backend: AnyBackend,
        role: Role,
        parameters: Mapping[str, Any],
        *,
        duration_s: float,
        deadline_s: float,
        peer: str = "",
    ) -> EndSpec:
        """Return an end as data; ``parameters`` are the flow's as the profile writes them."""
        return cls(
            backend=backend.name, version=version_of(backend), schema=schema_of(backend), role=role,
            parameters=dict(parameters), direction=flow.direction, address=flow.address,
            port=flow.port, duration_s=duration_s, deadline_s=deadline_s, peer=peer,
            second_port=flow.second_port, owns_server=flow.owns_server, one_clock=flow.one_clock,
            source_address=flow.source_address, source_device=flow.source_device,
            client_ports=flow.client_ports, server_ports=flow.server_ports,
            start_at_s=flow.start_at_s, expected_bps=flow.expected_bps,
        )  # fmt: skip

    def flow(self, backend: AnyBackend, tool: Tool) -> Flow[Any]:
        """Return the flow as its backend sees it. Raises ValueError for parameters of others."""
        return Flow(
            params=parameters_of(backend, self.parameters),
            direction=self.direction, address=self.address, port=self.port, tool=tool,
            owns_server=self.owns_server, one_clock=self.one_clock,
            source_address=self.source_address, source_device=self.source_device,
            client_ports=self.client_ports, server_ports=self.server_ports,
            start_at_s=self.start_at_s, expected_bps=self.expected_bps,
            second_port=self.second_port, allow=(self.peer,) if self.peer else (),
        )  # fmt: skip


@cache
def version_of(backend: AnyBackend) -> str:
    """Return the version of the package that a backend is of; empty for one in a file."""
    candidate = installed().candidates.get(backend.name)
    return candidate.origin.rpartition(" ")[2] if candidate and " " in candidate.origin else ""


@cache
def schema_of(backend: AnyBackend) -> str:
    """Return a hash of what a backend's parameters are: names, kinds, bounds and defaults."""
    schema = backend.parameters.model_json_schema()
    text = json.dumps(_without_words(schema), sort_keys=True, default=str)
    return hashlib.sha256(text.encode()).hexdigest()[:32]


def _without_words(schema: Any) -> Any:
    """Return a JSON schema without what it says for people only."""
    if isinstance(schema, dict):
        words = ("description", "title", "examples")
        kept = {name: value for name, value in schema.items() if name not in words}
        # Below "properties" these are names of parameters.
        if isinstance(properties := schema.get("properties"), dict):
            kept["properties"] = {
                name: _without_words(parameter) for name, parameter in properties.items()
            }
        return {
            name: value if name == "properties" else _without_words(value)
            for name, value in kept.items()
        }
    if isinstance(schema, list):
        return [_without_words(item) for item in schema]
    return schema


class EndListener(Protocol):
    """Who runs an end, and hears of it."""

    def show(self, role: Role, argv: Sequence[str]) -> None:
        """Take the words of its command, for people."""

    def take(self, role: Role, event: Event, arrived: float | None) -> None:
        """Take its next event, which arrived at a time of our clock; None is now.

        A `Failure` is one of them, such as that of a command that cannot be started.
        """


class FlowEnd(Protocol):
    """One end of a flow; its listener hears what it says."""

    @property
    def name(self) -> str:
        """The name of its program, for people."""

    @property
    def runs(self) -> bool:
        """Whether it was started, and its end was not taken yet."""

    @property
    def is_ready(self) -> bool:
        """Whether a server has said that it accepts clients."""

    @property
    def stays(self) -> bool:
        """Whether a server does not end after its client."""

    @property
    def exit_code(self) -> int | None:
        """Its exit code, negative for a signal; None before its end was taken."""

    @property
    def stderr(self) -> str:
        """The last of what it wrote there."""

    @property
    def lead_s(self) -> float:
        """How long before its start it must be told to go."""

    @property
    def waits_for_host(self) -> bool:
        """Whether its host is away for a time, and may still bring what it measures."""

    async def prepare(self) -> None:
        """Bring a server to where it accepts clients, a client to its gate.

        If that fails, the listener has heard why.
        """

    async def go(self, at: float | None = None) -> None:
        """Let a client begin at a time of our clock, now if None. Returns when it is told."""

    async def ended(self, timeout_s: float | None, unless: asyncio.Event | None = None) -> bool:
        """Wait until it has ended by itself, until a timeout or an event; returns if it has."""

    async def take_end(self) -> None:
        """Let the listener hear the last events of an end that has ended."""

    async def stop(self) -> None:
        """End it in order and take its last events; one that waits at its gate is killed."""

    def kill(self) -> None:
        """Kill it; for a `stop` that takes long."""

    def take_counters(self) -> Mapping[str, Any] | None:
        """Return once what its host told with it: its counters as it waited, or had ended.

        None if the host is to be asked for them.
        """


def how_it_ended(end: FlowEnd) -> str:
    """Describe how an end ended: ``iperf3 ended with code 1: the last line of its stderr``."""
    assert end.exit_code is not None
    code = end.exit_code
    how = f"was ended by signal {-code}" if code < 0 else f"ended with code {code}"
    said = [line.strip() for line in end.stderr.splitlines() if line.strip()]
    return f"{end.name} {how}{f': {said[-1]}' if said else ''}"


class EndPlace(NamedTuple):
    """Which attempt an end is of: the run's name, the trial's position, the attempt's number."""

    run: str
    trial: int
    attempt: int
    deadline_s: float
    """Its longest time."""
    adopts: bool = False
    """Whether its ends were started before, by another process."""


class EndLink(Protocol):
    """A link to a host that runs ends itself."""

    def end(self, place: EndPlace, flow: str, spec: EndSpec, listener: EndListener) -> FlowEnd:
        """Return an end of a flow there, which is still to be prepared."""


class EndPlan(NamedTuple):
    """What an end does: its backend makes a command of the flow, which is made when it starts."""

    role: Role
    backend: AnyBackend
    flow: Callable[[], Flow[Any]]
    """May raise as the methods of a backend."""


class EndHost(NamedTuple):
    """Where an end runs: its host, what starts commands there, the host's clock and ours."""

    host: Host
    spawner: Spawner
    clock: HostClock
    wall: Callable[[], float]


class CommandEnd:
    """An end as the command that its backend builds, started by a spawner; see `FlowEnd`."""

    lead_s = 0.0
    waits_for_host = False

    def __init__(self, plan: EndPlan, where: EndHost, listener: EndListener) -> None:
        self._role, self._backend, self._flow = plan
        self._host, self._spawner, self._clock, self._wall = where
        self._listener = listener
        self._command: Command | None = None
        self._process: Process | None = None
        self._stderr = bytearray()
        self._has_begun = self._is_mute = False
        self._ready = asyncio.Event()
        self.exit_code: int | None = None

    @property
    def name(self) -> str:
        return "" if self._command is None else name_of(self._command.argv)

    @property
    def runs(self) -> bool:
        return self._process is not None and self.exit_code is None

    @property
    def is_ready(self) -> bool:
        return self._ready.is_set()

    @property
    def stays(self) -> bool:
        return self._command is not None and self._command.stays

    @property
    def stderr(self) -> str:
        return self._stderr.decode("utf-8", "replace")

    async def prepare(self) -> None:
        self._command = self._built()
        if self._command is not None:
            self._process = await self._start(self._command)
        if self._process is not None and self._role is Role.SERVER:
            await self._wait_until_ready(self._process)

    def _built(self) -> Command | None:
        """Return its command; None if there is none, or if the flow failed because of it."""
        build = self._backend.server if self._role is Role.SERVER else self._backend.client
        try:
            with plugin_bugs("the plugin failed to build a command", ValueError):
                command = build(self._flow())
        except ValueError as error:  # the tool on this host cannot do what the flow asks
            self._fail(FailureKind.PARAMETER, str(error))
            return None
        except BenchctlError as error:
            self._fail(FailureKind.PARAMETER, error.message, error.hint)
            return None
        if command is None or self._host.reach is not None:
            return command
        return replace(command, argv=located(command.argv))

    async def _start(self, command: Command) -> Process | None:
        host, argv = self._host, command.argv
        self._listener.show(self._role, argv if host.reach is None else as_sent(argv))
        # What needs root gets it by sudo where the host has that.
        as_root = self._backend.capabilities.needs_root or command.wants_root
        try:
            return await self._spawner.start(
                struct_replace(host, as_root=as_root),
                argv,
                {**command.env, **read_secrets(command.secrets)},
                self._feed,
            )
        except HostError as error:
            self._fail(FailureKind.PEER, error.message, error.hint)
        except ValueError as error:
            self._fail(FailureKind.PARAMETER, str(error))
        except OSError as error:  # no memory, no more processes, a command too long
            self._fail(FailureKind.TOOL, f"{argv[0]} cannot be started: {error.strerror}")
        return None

    async def _wait_until_ready(self, process: Process) -> None:
        self._has_begun = True
        process.begin()
        if await has_ended(process, READY_S, unless=self._ready):
            await self.take_end()
            self._fail(FailureKind.TOOL, f"the server {how_it_ended(self)}")
        elif not self._ready.is_set():
            text = f"the server {self.name} was not ready within {READY_S:.0f} s"
            self._fail(FailureKind.TOOL, text)

    def _fail(self, kind: FailureKind, text: str, hint: str = "") -> None:
        self._listener.take(self._role, Failure(kind, text, hint), None)

    async def go(self, at: float | None = None) -> None:
        assert self._process is not None, "a flow that failed is taken no further"
        if at is not None and self._host.reach is None:
            await asyncio.sleep(max(0.0, at - self._wall()))
        self._has_begun = True
        self._process.begin(at)

    async def ended(self, timeout_s: float | None, unless: asyncio.Event | None = None) -> bool:
        assert self._process is not None, "an end that was not started does not end"
        return await has_ended(self._process, timeout_s, unless)

    async def take_end(self) -> None:
        assert self._process is not None
        code = self.exit_code = await self._process.wait()
        self._parse(lambda parser: parser.close(code))

    async def stop(self) -> None:
        if self._process is None or self._command is None or self.exit_code is not None:
            return
        if not self._has_begun:  # it is still the shell, which has nothing to report
            process, self._process = self._process, None
            await stop(process, "SIGKILL")
            return
        await stop(self._process, self._command.stop_signal)
        await self.take_end()

    def kill(self) -> None:
        if self._process is not None and self.exit_code is None:
            self._process.send_signal("SIGKILL")

    def take_counters(self) -> None:
        """Return None: its host is asked."""

    # --- its events -------------------------------------------------------------------------

    def _feed(self, channel: Channel, data: bytes) -> None:
        if channel is Channel.STDERR:
            self._stderr += data
            del self._stderr[:-STDERR_KEPT]
        self._parse(lambda parser: parser.feed(data, channel))

    def _parse(self, step: Callable[[Parser], Sequence[Event]]) -> None:
        if self._is_mute or self._command is None:
            return
        try:
            with plugin_bugs("the plugin's parser failed", ParserError):
                events = [check(event) for event in step(self._command.parser)]
        except ParserError as error:
            self._is_mute = True  # later output cannot be understood
            self._fail(FailureKind.TOOL, f"not understood: {error}")
            return
        except BenchctlError as error:
            self._is_mute = True
            self._fail(FailureKind.TOOL, error.message, error.hint)
            return
        arrived = self._process.arrived if self._process else None
        for event in events:
            if isinstance(event, Ready) and self._role is Role.SERVER:
                self._ready.set()
            self._listener.take(self._role, by_our_clock(event, self._clock), arrived)


def by_our_clock(event: Event, clock: HostClock = OURS) -> Event:
    """Return an event of a host with its times of the day by our clock."""
    return Started(clock.ours(event.epoch_s)) if isinstance(event, Started) else event
