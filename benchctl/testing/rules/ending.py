"""The rule of ends: whenever a flow is ended, nothing that it started stays."""

from __future__ import annotations

import asyncio
import os
import signal
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any
from uuid import uuid4

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
)
from benchctl.testing.rules.rule import Fault, NotCheckedError
from benchctl.testing.rules.subject import PORTS, Subject

if TYPE_CHECKING:
    from benchctl.hosts.local.spawn import Process, Spawner

# Every process inherits it, also one that leaves its group and its session.
_MARK = "BENCHCTL_FLOW_OF_CHECK"
# A server that is slower has a parser that does not say that it listens.
_READY_S = 30.0
# Not every tool prints before its end: then it is ended in its middle.
_FIRST_OUTPUT_S = 1.0
# A process that was killed is gone as soon as the kernel has had time for it.
_GONE_S = 10.0
_LOOK_S = 0.01
_NOT_READY = "its parser yields Ready when it listens; is its output flushed?"
_REMEDY = (
    "start the tool in the foreground: benchctl ends the process group of a command, and what"
    " leaves that is never ended"
)


class _PortTakenError(Exception):
    """Something else listens at the server's port."""


class _End:
    """One end of a flow: its process, and what it said so far."""

    def __init__(self, command: Command) -> None:
        self.command = command
        self.process: Process
        self.ready, self.heard = asyncio.Event(), asyncio.Event()
        self.failure: Failure | None = None
        self._parser: Parser | None = command.parser

    async def start(self, spawner: Spawner, mark: str) -> None:
        from benchctl.hosts.secrets import read_secrets
        from benchctl.run.planned import LOCAL

        env = {**self.command.env, **read_secrets(self.command.secrets), _MARK: mark}
        self.process = await spawner.start(LOCAL, self.command.argv, env, self._take)

    def _take(self, channel: Channel, data: bytes) -> None:
        self.heard.set()
        self._parse(lambda parser: parser.feed(data, channel))

    def _parse(self, step: Callable[[Parser], Sequence[Event]]) -> None:
        if self._parser is None:
            return
        try:
            events = step(self._parser)
        except ParserError:
            self._parser = None
            return
        for event in events:
            if isinstance(event, Ready):
                self.ready.set()
            elif isinstance(event, Failure):
                self.failure = self.failure or event

    async def listens(self) -> Fault | None:
        """Let a server begin, and wait until it listens; returns what it did instead.

        Raises _PortTakenError.
        """
        self.process.begin()
        from benchctl.hosts.local.spawn import has_ended

        late = not await has_ended(self.process, _READY_S, unless=self.ready)
        if self.ready.is_set():
            return None
        name = f"the server {self.command.argv[0]}"
        if late:
            return Fault(f"{name} was not ready within {_READY_S:g} s", _NOT_READY)
        code = await self.process.wait()
        self._parse(lambda parser: parser.close(code))
        if self.failure and self.failure.kind is FailureKind.BUSY:
            raise _PortTakenError
        why = self.failure.message if self.failure else f"exit code {code}"
        return Fault(f"{name} ended before it was ready: {why}", _NOT_READY)


def judge_ends(subject: Subject) -> Iterator[Fault | str]:
    """Run the real tool on loopback, end it at different moments, and look what stays."""
    if not Path("/proc/self/environ").exists():
        raise NotCheckedError("needs /proc: on Linux only")
    subject.require_tools()
    moments = ["at its gate", "as it begins", "as it speaks"]
    if subject.backend.capabilities.needs_server:
        moments.append("after its server was killed")
    for moment in moments:
        yield from _ended_at(subject, moment)
    yield f"ended {', '.join(moments)}"


def _ended_at(subject: Subject, moment: str) -> list[Fault]:
    """End a flow at a moment, whose server gets another port if its own was just taken."""
    from benchctl.hosts.tasks import run_to_end

    for _ in range(PORTS):
        with suppress(_PortTakenError):
            return run_to_end(_end_at(subject, moment))
    raise NotCheckedError(f"needs a free port: something else took {PORTS} of them")


async def _end_at(subject: Subject, moment: str) -> list[Fault]:
    from benchctl.hosts.local.spawn import LocalSpawner, has_ended, stop
    from benchctl.testing.loopback import ends_of

    mark = uuid4().hex
    async with LocalSpawner() as spawner:
        commands = await ends_of(
            spawner, subject.backend, parameters=subject.parameters, port=subject.port
        )
        ends = {role: _End(command) for role, (_, command) in commands.items()}
        try:
            if server := ends.get(Role.SERVER):
                await server.start(spawner, mark)
                if fault := await server.listens():
                    return [fault]
            client = ends[Role.CLIENT]
            await client.start(spawner, mark)
            if moment == "at its gate":
                await stop(client.process, "SIGKILL")
                return []
            client.process.begin()
            if moment != "as it begins":
                await has_ended(client.process, _FIRST_OUTPUT_S, unless=client.heard)
            if server and moment == "after its server was killed":
                await stop(server.process, "SIGKILL")
            await stop(client.process, client.command.stop_signal)
        finally:
            for end in ends.values():
                if hasattr(end, "process"):
                    await stop(end.process, end.command.stop_signal)
            strays = await _strays(mark)
    return [
        Fault(f"ended {moment}, {words} stays as process {pid}", _REMEDY)
        for pid, words in strays.items()
    ]


async def _strays(mark: str) -> Mapping[int, str]:
    """Return the processes with a mark that do not end, and end them."""
    deadline_s = asyncio.get_running_loop().time() + _GONE_S
    while (found := _marked(mark)) and asyncio.get_running_loop().time() < deadline_s:
        await asyncio.sleep(_LOOK_S)
    for pid in found:
        with suppress(ProcessLookupError, PermissionError):
            os.kill(pid, signal.SIGKILL)
    return found


def _marked(mark: str) -> Mapping[int, str]:
    """Return the words of each process that has a mark in its environment."""
    wanted = f"{_MARK}={mark}".encode()
    found: dict[int, str] = {}
    for place in Path("/proc").glob("[0-9]*"):
        # It may end meanwhile, or belong to somebody else.
        with suppress(OSError):
            if wanted in (place / "environ").read_bytes().split(b"\0"):
                words: Any = (place / "cmdline").read_bytes().replace(b"\0", b" ").decode()
                found[int(place.name)] = words.strip()[:80]
    return found
