"""One attempt of one flow: its server and client, their events, and its outcome."""

from __future__ import annotations

import asyncio
import json
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from benchctl.analysis.events import events_of
from benchctl.analysis.figures import FlowFold
from benchctl.analysis.loaded import Period, loaded_figures
from benchctl.analysis.rising import rises_of
from benchctl.analysis.steady import steady_figures
from benchctl.api import (
    Channel,
    Command,
    Effective,
    Event,
    Failure,
    FailureKind,
    Parser,
    ParserError,
    Ready,
    Role,
    Started,
    Warn,
)
from benchctl.hosts.secrets import read_secrets
from benchctl.hosts.spawn import Process, Spawner, has_ended, stop
from benchctl.metrics import Sample, Summary
from benchctl.run.planned import Host
from benchctl.run.status import Status
from benchctl.store.record import Recorder

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
    mute: bool = False
    """Set when the parser failed: later output cannot be understood."""


class FlowAttempt:
    """Runs the two ends of a flow once and passes their events to the store.

    The trial calls, in this order: `start_server` if there is one, `start_client` (up to its gate),
    `begin`, `finished`, and always `end` and `write`. After a failure it continues with `end`.
    """

    def __init__(
        self,
        name: str,
        flow_id: int,
        fold: FlowFold,
        spawner: Spawner,
        recorder: Recorder,
        wall_clock: Callable[[], float],
    ) -> None:
        self.name = name
        self.flow_id = flow_id
        self.fold = fold
        self.status = Status.PLANNED
        self.has_ended = False
        """Whether the client has ended by itself."""
        self.second_0: float | None = None
        """Unix time of the measurement's own start."""
        self.server_second_0: float | None = None
        """That of what the server sends, by the server's clock."""
        self._spawner = spawner
        self._recorder = recorder
        self._wall = wall_clock
        self._ends: dict[Role, End] = {}
        self._failures: dict[Role, Failure] = {}
        self._ready = asyncio.Event()
        self._failed = asyncio.Event()
        self._common_start = self._begun = 0.0
        self._told_start = self._sampled = False
        self._effective: dict[str, Any] = {}
        self._reason, self._ended = "", 0.0

    @property
    def failure(self) -> Failure | None:
        """Why the flow failed; the client's reason takes precedence over the server's."""
        return self._failures.get(Role.CLIENT) or self._failures.get(Role.SERVER)

    @property
    def has_measured(self) -> bool:
        """Whether the client has reported data, or has ended well."""
        return self._sampled or self.status is Status.OK

    def fail(self, failure: Failure, role: Role = Role.CLIENT) -> None:
        """Note why the flow failed; the first reason of each end counts."""
        self._failures.setdefault(role, failure)
        self._failed.set()

    def blame(self, failure: Failure) -> None:
        """Replace the reasons of the ends, which saw only the effect, with the cause."""
        self._failures = {Role.CLIENT: failure}
        self._failed.set()

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
            text = f"the server {command.argv[0]} was not ready within {READY_S:.0f} s"
            self.fail(Failure(FailureKind.TOOL, text), Role.SERVER)

    async def start_client(self, host: Host, command: Command) -> None:
        """Start the client up to its gate."""
        await self._start(Role.CLIENT, host, command)

    async def _start(self, role: Role, host: Host, command: Command) -> End:
        end = self._ends[role] = End(role, command)
        try:
            end.process = await self._spawner.start(
                host,
                command.argv,
                {**command.env, **read_secrets(command.secrets)},
                lambda channel, data: self._feed(end, channel, data),
            )
        except ValueError as error:
            self.fail(Failure(FailureKind.PARAMETER, str(error)), role)
        except OSError as error:  # no memory, no more processes, a command too long
            text = f"{command.argv[0]} cannot be started: {error.strerror}"
            self.fail(Failure(FailureKind.TOOL, text), role)
        return end

    def begin(self, common_start: float) -> None:
        """Open the client's gate. ``common_start`` is the trial's second 0, in Unix time."""
        self._common_start = common_start
        self._begun = self._wall()
        self._running_client().begin()

    async def finished(self) -> None:
        """Wait until the client has ended by itself, or has failed and had time to end."""
        client = self._running_client()
        if await has_ended(client, None, unless=self._failed) or await has_ended(client, GRACE_S):
            self.has_ended = True
            end = self._ends[Role.CLIENT]
            await self._take_end(end)
            if end.exit_code != 0:
                self.fail(Failure(FailureKind.TOOL, _how_it_ended(end)))

    def _running_client(self) -> Process:
        process = self._ends[Role.CLIENT].process
        assert process is not None, "a flow that failed is taken no further"
        return process

    async def end(self, cut_short: Status | None = None, reason: str = "") -> None:
        """End what is still running, take the last events, and judge; `write` follows.

        ``cut_short`` is None for a flow that ran its full time, else its status with the reason.
        """
        client, server = self._ends.get(Role.CLIENT), self._ends.get(Role.SERVER)
        failures = dict(self._failures)
        if client and client.process and not self.has_ended:
            # Before its gate opens it is still the shell, which has nothing to report.
            await stop(client.process, client.command.stop_signal if self._begun else "SIGKILL")
            if self._begun:
                await self._take_end(client)
        if server and server.process and server.exit_code is None:
            grace_s = GRACE_S if self._begun and not self.failure else 0.0
            by_itself = await has_ended(server.process, grace_s)
            await stop(server.process, server.command.stop_signal)
            await self._take_end(server)
            if by_itself and server.exit_code:
                self._note(f"the server {_how_it_ended(server)}")
        if not self.has_ended:
            said = self._failures.get(Role.CLIENT)
            self._failures = failures  # a tool's reaction to our signal is not a failure
            silent = cut_short is Status.TIMED_OUT and not self.has_measured
            if silent and said and said.kind is not FailureKind.TOOL:
                self._failures[Role.CLIENT] = said  # but it may give the reason for the wait
        self._judge(cut_short)
        self._reason, self._ended = reason, self._wall()

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
        for event in events:
            self._take(end.role, event)

    def _take(self, role: Role, event: Event) -> None:
        match event:
            case Sample():
                self._take_sample(role, event)
            case Summary():
                self.fold.add_summary(event)
            case Effective():
                self._effective.update(event.settings)
            case Started() if role is Role.SERVER:
                self.server_second_0 = event.epoch_s
            case Started():
                self.second_0 = event.epoch_s
                self._told_start = True
            case Warn():
                self._note(event.message)
            case Failure():
                self.fail(event, role)
            case Ready() if role is Role.SERVER:
                self._ready.set()

    def _take_sample(self, role: Role, sample: Sample) -> None:
        now = self._wall()
        self._sampled |= role is Role.CLIENT
        if role is Role.CLIENT and not self._told_start:
            # A sample cannot arrive before its interval ends: the smallest difference is the
            # closest.
            start = now - sample.end_s
            self.second_0 = start if self.second_0 is None else min(self.second_0, start)
        self.fold.add_sample(role, sample)
        self._recorder.add_sample(
            self.flow_id, role, sample.stream, sample.direction, sample.start_s, sample.end_s,
            now - self._common_start, sample.omitted, sample.metrics,
        )  # fmt: skip

    def _note(self, text: str) -> None:
        self._recorder.add_note(text, "warning", self._wall(), None, self.flow_id)

    # --- outcome --------------------------------------------------------------------------

    def _judge(self, cut_short: Status | None) -> None:
        if cut_short:
            self.status = cut_short
            return
        figures = self.fold.figures()
        moved = [f.value for (_, name), f in figures.items() if name == "throughput_bps"]
        if not self.failure and not figures:
            self.fail(Failure(FailureKind.TOOL, "ended without any result"))
        elif not self.failure and moved and min(moved) <= 0:
            self.fail(Failure(FailureKind.TOOL, "moved no data"))
        self.status = Status.FAILED if self.failure else Status.OK
        for text in self.fold.disagreements() if self.status is Status.OK else ():
            self._note(text)

    def write(self, loads: Sequence[Period], *, rises: bool = False) -> None:
        """Write the flow's result; ``loads`` are when the flows of the trial carried data.

        With ``rises``, its events include delays that rise, the sign of overload for a search.
        To be called when nothing of the trial runs any more: a long flow takes tens of
        milliseconds.
        """
        failure, client = self.failure, self._ends.get(Role.CLIENT)
        loaded = loaded_figures(self.fold, self.second_0, loads) if self.second_0 else {}
        figures = {**self.fold.figures(), **steady_figures(self.fold), **loaded}
        self._recorder.add_figures(self.flow_id, figures)
        found = [*events_of(self.fold), *(rises_of(self.fold) if rises else ())]
        self._recorder.add_events(self.flow_id, found)
        self._recorder.update_flow(
            self.flow_id,
            status=self.status,
            failure=str(failure.kind) if failure else "",
            error=": ".join(filter(None, (self._reason, failure.message if failure else ""))),
            hint=failure.hint if failure else "",
            effective=self._effective,
            started_time=self.second_0 or self._begun or None,
            finished_time=self._ended,
            exit_code=client.exit_code if client else None,
            stderr="".join(_stderr(self._ends[role]) for role in Role if role in self._ends),
        )


def check(event: Event) -> Event:
    """Return an event of a plugin unchanged.

    Raises ValueError or TypeError if it cannot be stored: JSON and statistics have no NaN and no
    infinity.
    """
    match event:
        case Sample():
            _check_numbers({"start_s": event.start_s, "end_s": event.end_s, **event.metrics})
        case Summary():
            for name, value in event.metrics.items():
                _check_numbers(value if isinstance(value, Mapping) else {name: value})
        case Started():
            _check_numbers({"epoch_s": event.epoch_s})
        case Effective():
            json.dumps(dict(event.settings), allow_nan=False)
        case _:
            pass
    return event


def _check_numbers(values: Mapping[str, float]) -> None:
    for name, value in values.items():
        if not math.isfinite(value):
            raise ValueError(f"{name} is {value}")


def _how_it_ended(end: End) -> str:
    """Describe how a command ended: ``iperf3 ended with code 1: the last line of its stderr``."""
    assert end.exit_code is not None
    code = end.exit_code
    how = f"was ended by signal {-code}" if code < 0 else f"ended with code {code}"
    said = [line.strip() for line in _stderr(end).splitlines() if line.strip()]
    return f"{end.command.argv[0]} {how}{f': {said[-1]}' if said else ''}"


def _stderr(end: End) -> str:
    return end.stderr.decode("utf-8", "replace")
