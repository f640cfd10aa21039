"""Runs the servers of backends for clients of others, until it is told to end.

A server that ends is started again: a backend may know only servers for one client. None outlives
this process, however it ends: see `benchctl.hosts.local.spawn`.
"""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import Any

from benchctl.api import (
    Channel,
    Command,
    Event,
    Failure,
    FailureKind,
    Flow,
    ParserError,
    Ready,
    Tool,
)
from benchctl.backends import AnyBackend
from benchctl.engine.runner.signals import STOPPING
from benchctl.engine.trial.ends import READY_S
from benchctl.errors import BenchctlError, MissingError, UsageError
from benchctl.hosts.local.spawn import LocalSpawner, Spawner, has_ended, stop
from benchctl.hosts.ssh.programs import located
from benchctl.hosts.tasks import cancel, run_to_end
from benchctl.plugins import plugin_bugs
from benchctl.run.planned import LOCAL

# A server that cannot keep up must not keep the machine busy with its starts.
RESTART_S = 1.0
# The rest of a line that is longer is cut off: nobody reads it.
LONGEST_LINE = 4096


@dataclass(frozen=True, slots=True)
class ServerSpec:
    """One server: its backend, its program, where it listens, and whom it accepts."""

    backend: AnyBackend
    tool: Tool
    address: str
    port: int
    allow: tuple[str, ...] = ()

    def command(self) -> Command:
        """Return its command. Raises UsageError if the backend cannot serve so."""
        can = self.backend.capabilities
        try:
            flow = Flow(
                params=self.backend.parameters(),
                direction=can.directions[0],
                address=self.address,
                port=self.port,
                tool=self.tool,
                owns_server=True,
                lasting=True,
                allow=self.allow,
                second_port=can.port_beside(self.port),
            )
            command = self.backend.server(flow)
        except ValueError as error:
            raise UsageError(f"{self.backend.name}: {error}") from error
        if command is None:
            raise UsageError(f"{self.backend.name} has no server")
        return replace(command, argv=located(command.argv))


@dataclass(frozen=True, slots=True)
class Audience:
    """Who is told: of a server that listens, and of each line that one prints."""

    listens: Callable[[ServerSpec], None]
    says: Callable[[ServerSpec, str], None]


def serve(servers: Sequence[ServerSpec], lasts_s: float | None, audience: Audience) -> None:
    """Run servers until SIGINT, SIGTERM, or the end of a time.

    Raises MissingError if one does not listen.
    """
    run_to_end(_serve(servers, lasts_s, audience))


async def _serve(servers: Sequence[ServerSpec], lasts_s: float | None, audience: Audience) -> None:
    asked, loop = asyncio.Event(), asyncio.get_running_loop()
    for number in STOPPING:
        loop.add_signal_handler(number, asked.set)
    async with LocalSpawner() as spawner:
        listen = [asyncio.Event() for _ in servers]
        watches = [
            asyncio.ensure_future(_watch(spawner, server, audience, listens))
            for server, listens in zip(servers, listen, strict=True)
        ]
        ends: list[asyncio.Future[Any]] = [*watches, asyncio.ensure_future(asked.wait())]
        all_listen = asyncio.ensure_future(_all_set(listen))
        first = asyncio.FIRST_COMPLETED
        await asyncio.wait([*ends, all_listen], return_when=first)
        if all_listen.done():  # the time counts from here
            await asyncio.wait(ends, timeout=lasts_s, return_when=first)
        failed = [task.exception() for task in watches if task.done()]
        await cancel(*ends, all_listen)
    for error in filter(None, failed):
        raise error


async def _all_set(events: Sequence[asyncio.Event]) -> None:
    for event in events:
        await event.wait()


async def _watch(
    spawner: Spawner, served: ServerSpec, audience: Audience, listens: asyncio.Event
) -> None:
    """Keep one server running. Raises MissingError if it does not listen at first."""
    loop = asyncio.get_running_loop()
    while True:
        command, begun_s = served.command(), loop.time()
        output = _Output(command, lambda line: audience.says(served, line))
        process = await spawner.start(LOCAL, command.argv, command.env, output.feed)
        try:
            process.begin()
            late = not await has_ended(process, READY_S, unless=output.ready)
            if output.ready.is_set() and not listens.is_set():
                listens.set()
                audience.listens(served)
            if output.ready.is_set() or not late:
                await process.wait()
        finally:
            output.silent = True
            # No effect on one that has ended.
            code = await stop(process, command.stop_signal)
        if not listens.is_set():
            raise output.failure(served.backend.name, code)
        if code:
            audience.says(served, f"ended with code {code}, and is started again")
        if loop.time() - begun_s < RESTART_S:
            await asyncio.sleep(RESTART_S)


class _Output:
    """What a server prints: until it is ready its parser reads it, and then people do."""

    def __init__(self, command: Command, says: Callable[[str], None]) -> None:
        self.ready = asyncio.Event()
        self.silent = False
        """Set when it is told to end: what it says of that is no news."""
        self._parser = command.parser
        self._says = says
        self._rest = dict.fromkeys(Channel, b"")
        self._failure: Failure | None = None

    def feed(self, channel: Channel, data: bytes) -> None:
        if not self.ready.is_set():
            self._parse(lambda: self._parser.feed(data, channel))
            return
        *lines, rest = (self._rest[channel] + data).split(b"\n")
        self._rest[channel] = rest[:LONGEST_LINE]
        for line in [] if self.silent else lines:
            if text := line[:LONGEST_LINE].decode("utf-8", "replace").strip():
                self._says(text)

    def failure(self, name: str, code: int) -> MissingError:
        """Return why it does not listen, after its end."""
        self._parse(lambda: self._parser.close(code))
        if self._failure is None:
            return MissingError(f"{name} does not listen: it ended with code {code}")
        return MissingError(f"{name} does not listen: {self._failure.message}", self._failure.hint)

    def _parse(self, step: Callable[[], Sequence[Event]]) -> None:
        try:
            with plugin_bugs("the plugin's parser failed", ParserError):
                events = step()
        except (ParserError, BenchctlError) as error:
            events = [Failure(FailureKind.TOOL, f"its output is not understood: {error}")]
        for event in events:
            if isinstance(event, Ready):
                self.ready.set()
            elif isinstance(event, Failure):
                self._failure = self._failure or event


def everywhere() -> str:
    """Return the address on which a server listens for IPv4, and for IPv6 where there is any."""
    return "::" if socket.has_dualstack_ipv6() else "0.0.0.0"


def may_listen(port: int) -> bool:
    """Return whether the kernel lets this user listen on a port (ip_unprivileged_port_start)."""
    with socket.socket() as sock:
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        with suppress(OSError):
            try:
                sock.bind(("127.0.0.1", port))
            except PermissionError:
                return False
    return True
