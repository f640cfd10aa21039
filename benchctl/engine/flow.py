"""One attempt of one flow: its server and client, what they tell, and how it went."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any

from benchctl.analysis.figures import FlowFold
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
    Sample,
    Started,
    Summary,
    Warn,
)
from benchctl.hosts.host import Host
from benchctl.hosts.spawn import Process, Spawner, stop
from benchctl.store.record import Recorder

# A server that is not ready by then will not be: a cold start of an interpreter takes tenths.
READY_S = 10.0
# What a one-shot server may take to end by itself after its client did.
SERVER_GRACE_S = 2.0
# The last lines of stderr say why; more than a screen of them is never read.
STDERR_KEPT = 8192
# What an end of a trial is called in the store.
OK, FAILED, TIMED_OUT, INTERRUPTED, SKIPPED = "ok", "failed", "timed_out", "interrupted", "skipped"


@dataclass(slots=True)
class End:
    """One end of a flow: a command on a host, and what it has told so far."""

    role: Role
    host: Host
    command: Command
    process: Process | None = None
    stderr: bytearray = field(default_factory=bytearray)
    exit_code: int | None = None
    failure: Failure | None = None
    mute: bool = False
    """Set when the parser gave up: what follows cannot be understood."""


class FlowAttempt:
    """Runs the two ends of a flow once and hands what they tell to the store.

    The trial calls, in this order: `prepare` (server ready, client at its gate), `begin`,
    `finished`, and always `end`.
    """

    def __init__(
        self,
        name: str,
        flow_id: int,
        client: End,
        server: End | None,
        fold: FlowFold,
        spawner: Spawner,
        recorder: Recorder,
        wall_clock: Callable[[], float],
        waits_for_start: bool = False,
    ) -> None:
        self.name = name
        self.flow_id = flow_id
        self.fold = fold
        self.status = ""
        self.has_ended = False
        """Whether the client has ended by itself."""
        self.waits_for_start = waits_for_start
        """Whether the tool was told the common start, and is to be begun before it."""
        self.second_0: float | None = None
        """Unix time of the measurement's own start."""
        self._client = client
        self._server = server
        self._spawner = spawner
        self._recorder = recorder
        self._wall = wall_clock
        self._ready = asyncio.Event()
        self._common_start = self._begun = 0.0
        self._told_start = False
        self._effective: dict[str, Any] = {}
        self._interrupted_by = ""

    @property
    def _ends(self) -> list[End]:
        return [end for end in (self._client, self._server) if end is not None]

    @property
    def failure(self) -> Failure | None:
        """Why the flow failed; the client's reason goes before the server's."""
        return next((end.failure for end in self._ends if end.failure), None)

    async def prepare(self) -> None:
        """Start the server and wait until it is ready; start the client up to its gate."""
        if self._server is not None:
            process = await self._start(self._server)
            process.begin()
            if not await self._server_is_ready(process):
                return
        await self._start(self._client)

    async def _start(self, end: End) -> Process:
        command = end.command
        end.process = await self._spawner.start(
            end.host,
            command.argv,
            command.env,
            lambda channel, data: self._feed(end, channel, data),
        )
        return end.process

    async def _server_is_ready(self, process: Process) -> bool:
        assert self._server is not None
        ready = asyncio.ensure_future(self._ready.wait())
        ended = asyncio.ensure_future(process.wait())
        try:
            await asyncio.wait([ready, ended], timeout=READY_S, return_when=asyncio.FIRST_COMPLETED)
        finally:
            ready.cancel()
            # Only the waiting is given up; the process is still there.
            ended.cancel()
        if not self._ready.is_set() and self._server.failure is None:
            what = " ".join(self._server.command.argv[:1])
            self._server.failure = Failure(
                FailureKind.TOOL, f"the server {what} was not ready within {READY_S:.0f} s"
            )
        return self._ready.is_set()

    def begin(self, common_start: float) -> None:
        """Open the client's gate. ``common_start`` is the trial's second 0, in Unix time."""
        self._common_start = common_start
        self._begun = self._wall()
        if self._client.process is not None:
            self._client.process.begin()

    async def finished(self) -> None:
        """Wait until the client has ended by itself."""
        if self._client.process is not None and self.failure is None:
            self._client.exit_code = await self._client.process.wait()
            self.has_ended = True
            self._close(self._client)

    async def end(self, status: str, reason: str = "") -> None:
        """End what is still running, take the last events, and write the result.

        ``status`` is "" for a flow that had its time; otherwise why it was cut short.
        """
        self._interrupted_by = reason
        if self._client.process is not None and not self.has_ended:
            if self._begun:
                self._client.exit_code = await stop(
                    self._client.process, self._client.command.stop_signal
                )
                self._close(self._client)
            else:
                await stop(self._client.process, "SIGKILL")
        if self._server is not None and self._server.process is not None:
            self._server.exit_code = await self._end_server(self._server)
            self._close(self._server)
        self._judge(status)
        self._write()

    async def _end_server(self, server: End) -> int:
        assert server.process is not None
        if self._begun and self.failure is None:
            with suppress(TimeoutError):
                return await asyncio.wait_for(asyncio.shield(server.process.wait()), SERVER_GRACE_S)
        return await stop(server.process, server.command.stop_signal)

    # --- what the ends tell ---------------------------------------------------------------

    def _feed(self, end: End, channel: Channel, data: bytes) -> None:
        if channel is Channel.STDERR:
            end.stderr += data
            del end.stderr[:-STDERR_KEPT]
        self._parse(end, lambda parser: parser.feed(data, channel))

    def _close(self, end: End) -> None:
        assert end.exit_code is not None
        code = end.exit_code
        self._parse(end, lambda parser: parser.close(code))
        if end.role is Role.CLIENT and code != 0 and end.failure is None:
            lines = end.stderr.decode("utf-8", "replace").split("\n")
            said = next((line.strip() for line in reversed(lines) if line.strip()), "")
            how = f"was ended by signal {-code}" if code < 0 else f"ended with code {code}"
            text = f"{end.command.argv[0]} {how}{': ' if said else ''}{said}"
            end.failure = Failure(FailureKind.TOOL, text)

    def _parse(self, end: End, step: Callable[[Parser], Sequence[Event]]) -> None:
        if end.mute:
            return
        try:
            events = step(end.command.parser)
        except ParserError as error:
            end.mute = True
            end.failure = end.failure or Failure(FailureKind.TOOL, f"not understood: {error}")
            return
        except Exception as error:  # a stranger's parser may fail in any way at all
            end.mute = True
            text = f"the plugin's parser failed: {type(error).__name__}: {error}"
            end.failure = end.failure or Failure(FailureKind.TOOL, text, "tell its author")
            return
        for event in events:
            self._take(end, event)

    def _take(self, end: End, event: Event) -> None:
        match event:
            case Sample():
                self._take_sample(end, event)
            case Summary():
                self.fold.add_summary(event)
            case Effective():
                self._effective.update(event.settings)
            case Started() if end.role is Role.CLIENT:
                self.second_0 = event.epoch_s
                self._told_start = True
            case Warn():
                self._note(event.message)
            case Failure():
                end.failure = end.failure or event
            case Ready() if end.role is Role.SERVER:
                self._ready.set()

    def _take_sample(self, end: End, sample: Sample) -> None:
        now = self._wall()
        if end.role is Role.CLIENT and not self._told_start:
            # A sample cannot arrive before its interval ended: the least difference is nearest.
            start = now - sample.end_s
            self.second_0 = start if self.second_0 is None else min(self.second_0, start)
        self.fold.add_sample(end.role, sample)
        self._recorder.add_sample(
            self.flow_id, end.role, sample.stream, sample.direction, sample.start_s, sample.end_s,
            now - self._common_start, sample.omitted, sample.metrics,
        )  # fmt: skip

    def _note(self, text: str) -> None:
        self._recorder.add_note(text, "warning", self._wall(), None, self.flow_id)

    # --- how it went ----------------------------------------------------------------------

    def _judge(self, status: str) -> None:
        figures = self.fold.figures()
        if status:
            self.status = status
        elif self.failure is None:
            moved = [f.value for (_, name), f in figures.items() if name == "throughput_bps"]
            if not figures:
                self._client.failure = Failure(FailureKind.TOOL, "ended without any result")
            elif moved and min(moved) <= 0:
                self._client.failure = Failure(FailureKind.TOOL, "moved no data")
        if not self.status:
            self.status = FAILED if self.failure else OK
        for text in self.fold.disagreements() if self.status == OK else ():
            self._note(text)

    def _write(self) -> None:
        failure = self.failure
        error = self._interrupted_by or (failure.message if failure else "")
        self._recorder.add_figures(self.flow_id, self.fold.figures())
        self._recorder.update_flow(
            self.flow_id,
            status=self.status,
            failure=str(failure.kind) if failure else "",
            error="" if self.status == OK else error,
            hint=failure.hint if failure and self.status == FAILED else "",
            effective=self._effective,
            started_time=self.second_0 or self._begun or None,
            finished_time=self._wall(),
            exit_code=self._client.exit_code,
            stderr="".join(e.stderr.decode("utf-8", "replace") for e in self._ends),
        )
