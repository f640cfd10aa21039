"""Runs commands once, and takes down what they print and when: transcripts.

The commands run as those of a trial do (`hosts.local.spawn`): each in a process group of its
own, and none outlives this process, however it ends.
"""

from __future__ import annotations

import asyncio
import os
import shutil
import signal
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from ipaddress import ip_address
from pathlib import Path
from typing import Any

from benchctl.api import Channel, Command, Direction, Flow, Parser, Ready, Role, Tool
from benchctl.backends import AnyBackend
from benchctl.engine.checks.tools import Toolbox
from benchctl.engine.runner.signals import STOPPING
from benchctl.engine.trial.ends import READY_S
from benchctl.engine.trial.flow import GRACE_S
from benchctl.errors import MissingError, UsageError
from benchctl.hosts.local.spawn import LocalSpawner, Process, Spawner, has_ended, stop
from benchctl.hosts.secrets import read_secrets
from benchctl.hosts.ssh.programs import located
from benchctl.hosts.tasks import run_to_end
from benchctl.run.planned import LOCAL
from benchctl.testing.loopback import ends_of, said
from benchctl.testing.transcript import Piece, Stop, StoppedBy, Transcript
from benchctl.units import quoted

# People read a transcript, and tests replay it hundreds of times.
MOST_BYTES = 4 << 20
MOST_PIECES = 50_000
# Longer than a first try of a tool takes. It ends one that waits for a peer, or for ever.
COMMAND_S = 60.0
# Beyond the duration of a flow: to connect, to exchange results, to end.
SLACK_S = 15.0


@dataclass(frozen=True, slots=True)
class Job:
    """What to record: a command as it stands, or without one the own commands of a backend.

    ``backend`` is None if there is none of that name yet. ``role`` is the command's. ``limit_s``
    limits the time of the one that measures; by default, its kind decides.
    """

    name: str
    backend: AnyBackend | None
    argv: tuple[str, ...] = ()
    role: Role = Role.CLIENT
    direction: Direction | None = None
    parameters: Mapping[str, Any] = field(default_factory=dict)
    limit_s: float | None = None


def record(job: Job) -> list[Transcript]:
    """Record a command, or both ends of a flow on loopback; see `Session`.

    Ctrl-C and SIGTERM are passed to a command; at both, a backend's own get their stop signals.
    Raises UsageError if the backend does not accept the flow, MissingError if a program is missing
    or the plugin fails, OSError.
    """
    return run_to_end(_record(job))


async def _record(job: Job) -> list[Transcript]:
    async with LocalSpawner() as spawner:
        session = Session(spawner, job.limit_s)
        recorded = await (_command(session, job) if job.argv else _flow(session, job))
    return [
        replace(transcript, backend=job.name, parameters=job.parameters) for transcript in recorded
    ]


async def _command(session: Session, job: Job) -> list[Transcript]:
    if shutil.which(located(job.argv)[0]) is None:
        raise MissingError(
            f"no program {quoted(job.argv[0])}", "it must be in the PATH, or a file to execute"
        )
    tool = Tool("")
    if job.backend is not None:
        with suppress(MissingError):  # its own program need not be the one that is recorded
            tool = await Toolbox(session.spawner).find(job.backend, job.role, LOCAL)
    _obey_signals(session)
    recorded = await session.command(job.argv)
    recorded = replace(recorded, role=job.role, direction=job.direction, tool=tool)
    return [replace(recorded, address=_address(job.argv) or recorded.address)]


def _address(argv: Sequence[str]) -> str | None:
    """Return the address that a command names; None if it names none, or several."""
    found = set()
    for word in argv:
        with suppress(ValueError):
            found.add(str(ip_address(word)))
    return found.pop() if len(found) == 1 else None


async def _flow(session: Session, job: Job) -> list[Transcript]:
    assert job.backend is not None, "only a command needs no backend"
    try:
        ends = await ends_of(session.spawner, job.backend, job.direction, job.parameters)
        _obey_signals(session)
        return await session.flow(job.backend, ends)
    except ValueError as error:
        raise UsageError(f"{job.name}: {error}") from None


def _obey_signals(session: Session) -> None:
    loop = asyncio.get_running_loop()
    for number in STOPPING:
        loop.add_signal_handler(number, session.stop, "user", signal.Signals(number).name)


class Session:
    """Records commands until they end by themselves, or the user or a limit stops them."""

    def __init__(self, spawner: Spawner, limit_s: float | None = None) -> None:
        self.spawner = spawner
        self.over = asyncio.Event()
        self.ready = asyncio.Event()
        """Set when nobody waits for a server any more: it is ready, or all is over."""
        self.signal = "SIGINT"
        self.stopped_by: StoppedBy = "time"
        self._limit_s = limit_s

    def stop(self, by: StoppedBy, name: str = "SIGINT") -> None:
        """Stop what runs, by a signal; the first call counts."""
        if not self.over.is_set():
            self.stopped_by, self.signal = by, name
            self.over.set()
            self.ready.set()

    async def command(self, argv: Sequence[str]) -> Transcript:
        """Record one command, of no backend. Raises OSError."""
        scribe = _Scribe(self)
        await scribe.start(located(argv), {})
        limit_s = COMMAND_S if self._limit_s is None else self._limit_s
        return await scribe.end(limit_s, self.over)

    async def flow(
        self, backend: AnyBackend, ends: Mapping[Role, tuple[Flow[Any], Command]]
    ) -> list[Transcript]:
        """Record the ends of a flow: first the server's, then the client's if that was ready.

        Raises ValueError for a secret that cannot be read, OSError.
        """
        found = []
        server = _Scribe(self)
        if Role.SERVER in ends:
            await server.start_of(ends[Role.SERVER][1])
            await server.has_ended(READY_S, self.ready)
        else:
            self.ready.set()
        if self.ready.is_set() and not self.over.is_set():
            flow, command = ends[Role.CLIENT]
            limit_s = said(backend, backend.duration_s, flow.params) + SLACK_S
            limit_s = limit_s if self._limit_s is None else self._limit_s
            client = _Scribe(self)
            await client.start_of(command)
            recorded = await client.end(limit_s, self.over, command.stop_signal)
            found.append(_of_flow(recorded, Role.CLIENT, flow))
        if Role.SERVER in ends:
            flow, command = ends[Role.SERVER]
            if found and not self.over.is_set():
                self.stopped_by = "client"
            grace_s = GRACE_S if found and not command.stays else 0.0
            recorded = await server.end(grace_s, None, command.stop_signal)
            found.insert(0, _of_flow(recorded, Role.SERVER, flow))
        return found


class _Scribe:
    """Takes down one command."""

    def __init__(self, session: Session) -> None:
        self._session = session
        self._clock = asyncio.get_running_loop().time
        self._parser: Parser | None = None
        self._pieces: list[Piece] = []
        self._room = MOST_BYTES
        self._ended = False

    async def start_of(self, command: Command) -> None:
        """Start an end of a flow; the session is ready when it is, by its parser."""
        self._parser = command.parser
        await self.start(command.argv, {**command.env, **read_secrets(command.secrets)})

    async def start(self, argv: Sequence[str], env: Mapping[str, str]) -> None:
        self._argv = argv
        self._process: Process = await self._session.spawner.start(LOCAL, argv, env, self._take)
        self._begun = self._clock()
        self._process.begin()

    def _take(self, channel: Channel, data: bytes) -> None:
        if len(data) > self._room or len(self._pieces) == MOST_PIECES:
            self._room = 0
            self._session.stop("size")
            return
        self._room -= len(data)
        self._pieces.append(Piece(self._now(), channel, data))
        if self._parser is not None and not self._session.ready.is_set():
            try:
                events = self._parser.feed(data, channel)
            except Exception:  # a plugin may fail in any way: replaying shows how
                self._parser = None
            else:
                if any(isinstance(event, Ready) for event in events):
                    self._session.ready.set()

    async def has_ended(self, limit_s: float, unless: asyncio.Event | None) -> bool:
        """Wait for its end, at most for a time or until an event; returns whether it has ended."""
        self._ended = self._ended or await has_ended(self._process, limit_s, unless)
        return self._ended

    async def end(
        self, limit_s: float, unless: asyncio.Event | None, stop_signal: str = ""
    ) -> Transcript:
        """Wait for its end as `has_ended` does, then stop it; by default as the user did."""
        stopped = None
        if not await self.has_ended(limit_s, unless):
            name = stop_signal or self._session.signal
            stopped = Stop(self._now(), name, self._session.stopped_by)
        # Without effect on one that has ended.
        exit_code = await stop(self._process, stopped.signal if stopped else "SIGKILL")
        return Transcript(
            backend="",
            argv=tuple(map(shown, self._argv)),
            exit_code=exit_code,
            lasted_s=self._now(),
            stop=stopped,
            pieces=tuple(self._pieces),
        )

    def _now(self) -> float:
        return round(self._clock() - self._begun, 6)


def shown(word: str) -> str:
    """Return a word of a command line for others, without where this machine has its files."""
    word = os.fsencode(word).decode(errors="backslashreplace")
    path = Path(word)
    return f"…/{path.name}" if path.is_absolute() and path.is_file() else word


def _of_flow(recorded: Transcript, role: Role, flow: Flow[Any]) -> Transcript:
    return replace(
        recorded,
        role=role,
        direction=flow.direction,
        tool=flow.tool,
        address=flow.address,
        port=flow.port,
        second_port=flow.second_port,
        owns_server=flow.owns_server,
    )
