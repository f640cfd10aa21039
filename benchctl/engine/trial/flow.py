"""One attempt of one flow: its server and client, their events, and its outcome."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

from benchctl.analysis.flow_result import check
from benchctl.api import (
    Channel,
    Command,
    Event,
    Failure,
    FailureKind,
    Parser,
    ParserError,
    Ready,
    Role,
    Started,
)
from benchctl.engine.site.context import RunContext
from benchctl.engine.trial.capture import FlowRecorder
from benchctl.engine.trial.setup import FlowSetup
from benchctl.errors import HostError
from benchctl.hosts.clocks import OURS, ClockSpan, HostClock
from benchctl.hosts.local.spawn import Process, has_ended, stop
from benchctl.hosts.secrets import read_secrets
from benchctl.hosts.ssh.programs import name_of
from benchctl.run.planned import Host
from benchctl.run.status import Status
from benchctl.store.flow_recording import FlowRecording

# A later server will not become ready: a cold start of an interpreter takes tenths of a second.
READY_S = 10.0
# Time for a one-shot server to end after its client, and for a client to end after it reported a
# failure. How a tool ends by itself says more than how it reacts to a signal.
GRACE_S = 2.0
# The last lines of stderr give the reason. Nobody reads more than a screenful.
STDERR_KEPT = 8192


@dataclass(slots=True)
class End:
    """One end of a flow: its command, and its events so far."""

    role: Role
    command: Command
    process: Process | None = None
    """None if it could not be started."""
    stderr: bytearray = field(default_factory=bytearray)
    exit_code: int | None = None
    clock: HostClock = OURS
    """That of its host."""
    mute: bool = False
    """Set when the parser failed: later output cannot be understood."""


class FlowAttempt:
    """Runs the two ends of a flow once and passes their events to its recording.

    The attempt calls, in this order: `start_server` if there is one, `record`, `start_client` (up
    to its gate), `begin`, `finished`, and always `end`. After a failure it continues with `end`.
    """

    def __init__(
        self,
        setup: FlowSetup,
        recording: FlowRecording,
        context: RunContext,
        tap: FlowRecorder | None = None,
    ) -> None:
        """``tap`` records its packets."""
        self.setup = setup
        self.recording = recording
        self.result = recording.result
        self._hosts = context.hosts
        self._wall = context.wall
        self._tap = tap
        self._ends: dict[Role, End] = {}
        self.clocks: dict[str, HostClock] = {}
        """Those of its hosts."""
        self.captured_by: Mapping[str, ClockSpan | None] = {}
        """The clocks of the hosts where its packets were recorded."""
        self._ready = asyncio.Event()
        self._failed = asyncio.Event()

    def fail(self, failure: Failure, role: Role = Role.CLIENT) -> None:
        """Note why the flow failed; the first reason of each end counts."""
        self.result.fail(failure, role)
        self._failed.set()

    def blame(self, failure: Failure) -> None:
        """Replace the reasons of the ends, which saw only the effect, with the cause."""
        self.result.failures = {Role.CLIENT: failure}
        self._failed.set()

    @property
    def was_ready(self) -> bool:
        """Whether its server has said that it listens."""
        return self._ready.is_set()

    # --- from start to end ----------------------------------------------------------------

    async def start_server(self, host: Host, command: Command) -> None:
        """Start the server and wait until it is ready."""
        server = await self._start(Role.SERVER, host, command)
        if server.process is None:
            return
        server.process.begin()
        if await has_ended(server.process, READY_S, unless=self._ready):
            await self._take_end(server)
            self.fail(Failure(FailureKind.TOOL, f"the server {_how_it_ended(server)}"), Role.SERVER)
        elif not self._ready.is_set():
            text = f"the server {name_of(command.argv)} was not ready within {READY_S:.0f} s"
            self.fail(Failure(FailureKind.TOOL, text), Role.SERVER)

    async def record(self) -> None:
        """Start what records its packets, if that is asked for."""
        if self._tap and (why := await self._tap.start()):
            self.fail(Failure(FailureKind.TOOL, why))

    async def start_client(self, host: Host, command: Command) -> None:
        """Start the client up to its gate."""
        await self._start(Role.CLIENT, host, command)

    async def _start(self, role: Role, host: Host, command: Command) -> End:
        end = self._ends[role] = End(role, command)
        try:
            end.clock = self.clocks[host.name] = await self._hosts.clock_of(host)
            end.process = await self._hosts.start(
                host,
                command.argv,
                {**command.env, **read_secrets(command.secrets)},
                lambda channel, data: self._feed(end, channel, data),
            )
        except HostError as error:
            self.fail(Failure(FailureKind.PEER, error.message, error.hint), role)
        except ValueError as error:
            self.fail(Failure(FailureKind.PARAMETER, str(error)), role)
        except OSError as error:  # no memory, no more processes, a command too long
            text = f"{command.argv[0]} cannot be started: {error.strerror}"
            self.fail(Failure(FailureKind.TOOL, text), role)
        return end

    def begin(self, common_start: float, at: float | None = None) -> None:
        """Open the client's gate. ``common_start`` is the trial's second 0, in Unix time.

        On a host elsewhere it opens at the time ``at``.
        """
        self.recording.begin(common_start)
        self._running_client().begin(at)

    async def finished(self) -> None:
        """Wait until the client has ended by itself, or has failed and had time to end."""
        client = self._running_client()
        if await has_ended(client, None, unless=self._failed) or await has_ended(client, GRACE_S):
            self.result.client_ended = self._wall()
            end = self._ends[Role.CLIENT]
            await self._take_end(end)
            if end.exit_code != 0:
                self.fail(Failure(FailureKind.TOOL, _how_it_ended(end)))

    def _running_client(self) -> Process:
        process = self._ends[Role.CLIENT].process
        assert process is not None, "a flow that failed is taken no further"
        return process

    async def end(self, cut_short: Status | None = None, reason: str = "") -> None:
        """End what is still running, take the last events, and judge; the result is written later.

        ``cut_short`` is None for a flow that ran its full time, else its status with the reason.
        """
        client, server = self._ends.get(Role.CLIENT), self._ends.get(Role.SERVER)
        result = self.result
        failures = dict(result.failures)
        if client and client.process and not result.has_ended:
            # Before its gate opens it is still the shell, which has nothing to report.
            await stop(client.process, client.command.stop_signal if result.begun else "SIGKILL")
            if result.begun:
                await self._take_end(client)
        if server and server.process and server.exit_code is None:
            may_end = result.begun and not result.failure and not server.command.stays
            grace_s = GRACE_S if may_end else 0.0
            by_itself = await has_ended(server.process, grace_s)
            await stop(server.process, server.command.stop_signal)
            await self._take_end(server)
            if by_itself and server.exit_code:
                how = _how_it_ended(server)
                if not (result.failure and how.endswith(result.failure.message)):  # of a lost host
                    self.recording.note(f"the server {how}")
        if not result.has_ended:
            said = result.failures.get(Role.CLIENT)
            result.failures = failures  # a tool's reaction to our signal is not a failure
            silent = cut_short is Status.TIMED_OUT and not result.has_measured
            if silent and said and said.kind is not FailureKind.TOOL:
                result.failures[Role.CLIENT] = said  # but it may give the reason for the wait
        result.exit_code = client.exit_code if client else None
        result.stderr = "".join(_stderr(self._ends[role]) for role in Role if role in self._ends)
        result.judge(self._wall(), cut_short, reason)
        if self._tap:
            result.captures = await self._tap.stop()
            self.captured_by = self._tap.clocks
            for text in self._tap.notes:
                self.recording.note(text)

    def kill(self) -> None:
        """Kill what still runs; for an `end` that takes long."""
        for end in self._ends.values():
            if end.process is not None and end.exit_code is None:
                end.process.send_signal("SIGKILL")
        if self._tap:
            self._tap.kill()

    # --- events of the ends ---------------------------------------------------------------

    def _feed(self, end: End, channel: Channel, data: bytes) -> None:
        if channel is Channel.STDERR:
            end.stderr += data
            del end.stderr[:-STDERR_KEPT]
        self._parse(end, lambda parser: parser.feed(data, channel))

    async def _take_end(self, end: End) -> None:
        assert end.process is not None
        code = end.exit_code = await end.process.wait()
        self._parse(end, lambda parser: parser.close(code))

    def _parse(self, end: End, step: Callable[[Parser], Sequence[Event]]) -> None:
        if end.mute:
            return
        try:
            events = [check(event) for event in step(end.command.parser)]
        except ParserError as error:
            end.mute = True
            self.fail(Failure(FailureKind.TOOL, f"not understood: {error}"), end.role)
            return
        except Exception as error:  # a third-party parser may fail in any way
            end.mute = True
            text = f"the plugin's parser failed: {type(error).__name__}: {error}"
            self.fail(
                Failure(FailureKind.TOOL, text, "report it to the author of the plugin"), end.role
            )
            return
        arrived = end.process.arrived if end.process else None
        for event in events:
            match event:
                case Started():
                    event = Started(end.clock.ours(event.epoch_s))
                case Ready() if end.role is Role.SERVER:
                    self._ready.set()
                case Failure():
                    self._failed.set()
                case _:
                    pass
            self.recording.take(end.role, event, arrived)


def _how_it_ended(end: End) -> str:
    """Describe how a command ended: ``iperf3 ended with code 1: the last line of its stderr``."""
    assert end.exit_code is not None
    code = end.exit_code
    how = f"was ended by signal {-code}" if code < 0 else f"ended with code {code}"
    said = [line.strip() for line in _stderr(end).splitlines() if line.strip()]
    return f"{name_of(end.command.argv)} {how}{f': {said[-1]}' if said else ''}"


def _stderr(end: End) -> str:
    return end.stderr.decode("utf-8", "replace")
