"""One connection to the agent of a host elsewhere: commands, questions, and its clock.

The connection lives as long as the run. When it breaks, every command there has ended, with the
reason on its stderr; the agent at the far end sees the same and leaves nothing behind.
"""

from __future__ import annotations

import asyncio
import hashlib
import os
import socket
import time
import zlib
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from types import ModuleType
from typing import Any

from benchctl.api import Channel
from benchctl.errors import HostError
from benchctl.hosts import frames, ssh
from benchctl.hosts.clocks import HostClock
from benchctl.hosts.filter import PortPair
from benchctl.hosts.log import Ended, command_log
from benchctl.hosts.login import Login
from benchctl.hosts.programs import agent_text, as_sent, module_text, sendable
from benchctl.hosts.sockets import tcp_ports
from benchctl.hosts.spawn import OnData, Process
from benchctl.hosts.tasks import cancel
from benchctl.hosts.users import user_name
from benchctl.run.planned import Reach
from benchctl.visible import visible

PING_S = 1.0
# More trips than these make the least one no shorter (measured with 5 ms of jitter).
FIRST_TRIPS = 20
# The agent ends after its own patience, and has then ended what it started.
PATIENCE_S = frames.PATIENCE_S + 1.0
# The exit code of ssh itself when its connection breaks.
LOST = 255
# That of a shell for a command that it cannot start.
NOT_STARTED = 127


class RemoteProcess:
    """A command on a host elsewhere; see `benchctl.hosts.spawn.Process`."""

    def __init__(
        self, link: RemoteHost, number: int, on_data: OnData, logs: Callable[[int], Ended]
    ) -> None:
        self.pid = 0
        """0 until it is known."""
        self.arrived: float | None = None
        self._link, self._number, self._on_data = link, number, on_data
        self._ended: asyncio.Future[int] = asyncio.get_running_loop().create_future()
        self._error: Exception | None = None
        self._logs = logs
        self._log_end: Ended | None = None

    def begin(self, at: float | None = None) -> None:
        there = {} if at is None else {"at": self._link.clock.theirs(at)}
        self._link.send({"call": "begin", "number": self._number, **there})

    def send_signal(self, name: str) -> None:
        if not self._ended.done():
            self._link.send({"call": "signal", "number": self._number, "name": name})

    async def wait(self) -> int:
        # Shielded: a cancelled caller must not cancel the wait of others.
        code = await asyncio.shield(self._ended)
        if self._error is not None:
            raise self._error
        return code

    def take_start(self, pid: int) -> None:
        """Note that the command waits at its gate."""
        self.pid = pid
        self._log_end = self._logs(pid)

    def take(self, channel: Channel, data: bytes, arrived: float | None) -> None:
        """Pass on what the command wrote."""
        self.arrived = arrived
        try:
            self._on_data(channel, data)
        except Exception as error:  # the caller that waits for the end gets it
            self._error = self._error or error
            self.send_signal("SIGKILL")

    def take_end(self, code: int) -> None:
        """Note that the command has ended, and all its output was passed on."""
        if not self._ended.done():
            self._ended.set_result(code)
            if self._log_end is not None:
                self._log_end(code)


def holder(run: str) -> str:
    """Return what others read of a run that holds a host; it has no name before it is recorded."""
    user = f"{user_name(os.geteuid())}@{socket.gethostname()}"
    return f"run {run} of {user}" if run else f"a run of {user} that is being started"


class RemoteHost:
    """A connection to one host; use `open`, then `close`."""

    def __init__(
        self, name: str, argv: Sequence[str], reach: Reach, settings: Mapping[str, Any]
    ) -> None:
        """``settings`` are those of the agent's `main`."""
        self.name = name
        self.clock = HostClock()
        self.about: Mapping[str, Any] = {}
        """The host's Python and system."""
        self.lost = ""
        """Why the connection has broken; empty while it works."""
        self.closes = False
        """Whether it ends because it is needed no more."""
        self.lacks = ""
        """What cannot be done there that an agent can do, for people; empty for an agent."""
        self.reach = reach
        self._login, self._settings = Login(name, reach, argv), settings
        self.log = command_log()
        self._frames = frames.FrameReader()
        self._tasks: list[asyncio.Task[None]] = []
        self._answers: dict[int, asyncio.Future[Any]] = {}
        self._processes: dict[int, RemoteProcess] = {}
        self._programs: set[str] = set()
        self._number = 0
        self._heard = 0.0
        self._pinged = self._ponged = 0
        """How many pings were sent and answered, in order."""
        self._of_other_way = 0
        """How many of them say nothing of the clock."""
        self.ended: asyncio.Future[str] = asyncio.get_running_loop().create_future()
        """Done when the connection has broken, with the reason."""
        self._is_timed = asyncio.Event()
        self._answered = asyncio.Event()

    # --- the connection -------------------------------------------------------------------

    async def open(self) -> None:
        """Log in and start the agent. Raises HostError with the reason and what mends it."""
        rest = await self._login.open(self._first_words())
        self._heard = time.monotonic()
        self._tasks = [
            asyncio.ensure_future(self._hear(rest)), asyncio.ensure_future(self._keep_alive()),
        ]  # fmt: skip

    def _first_words(self) -> bytes:
        """Return what makes a shell there the agent."""
        text = agent_text(self._settings)
        return b"%d\n" % len(text) + text

    async def _hear(self, data: bytes) -> None:
        try:
            while True:
                for head, body in self._frames.feed(data):
                    self._take(head, body)
                data = await self._login.read()
                if not data:
                    break
                self._heard = time.monotonic()
        except (ValueError, KeyError, TypeError) as error:
            self._break(f"what its agent says is not understood: {error}")
        self._break(ssh.last_line(self._login.said) or "the connection was closed")

    async def _keep_alive(self) -> None:
        """Send a ping each second, and at first one after the other."""
        while not self.lost:
            self._ping()
            await asyncio.sleep(PING_S)
            silent_s = time.monotonic() - self._heard
            if silent_s > PATIENCE_S:
                self._break(f"it has been silent for {silent_s:.0f} s")

    def _break(self, why: str) -> None:
        if self.lost:
            return
        self.lost = f"host {self.name}: {why}"
        for future in self._answers.values():
            if not future.done():
                future.set_exception(HostError(self.lost))
        for process in list(self._processes.values()):
            process.take(Channel.STDERR, f"{self.lost}\n".encode(), None)
            process.take_end(LOST)
        self._processes.clear()
        self.ended.set_result(self.lost)
        self._is_timed.set()
        self._answered.set()
        self._login.kill()

    @property
    def ports(self) -> frozenset[PortPair]:
        """Those of the TCP connections that this one goes over, as they are seen here and there.

        With NAT they differ. Those of a master that a person has opened are known only from there.
        """
        words = [word for word in self.about.get("connection", ()) if str(word).isdecimal()]
        there = {(int(words[0]), int(words[1]))} if len(words) == 2 else set()
        return frozenset(there | tcp_ports(self.pid))

    @property
    def pid(self) -> int:
        """The process, and the group, of its ``ssh``."""
        return self._login.pid

    async def close(self) -> None:
        """End the agent, which ends what it started, and the connection."""
        self.closes = True
        await self._login.close()
        self._break("the connection was closed")
        await cancel(*self._tasks)

    # --- messages -------------------------------------------------------------------------

    def send(self, head: Mapping[str, Any], body: bytes = b"") -> None:
        """Send a message; nothing if the connection has broken."""
        self._write(frames.frame(dict(head), body))

    def _write(self, data: bytes) -> None:
        if not self.lost:
            self._login.write(data)

    def _ping(self) -> int:
        """Send a ping; returns its number."""
        self.send({"call": "ping", "sent": time.time()})
        self._pinged += 1
        return self._pinged

    def _take(self, head: Mapping[str, Any], body: bytes) -> None:
        if "output" in head:
            if process := self._processes.get(head["output"]):
                process.take(
                    Channel.STDOUT if head["channel"] == 1 else Channel.STDERR,
                    body,
                    self.clock.ours(head["time"]),
                )
        elif "pong" in head:
            self._ponged += 1
            self._answered.set()
            if self._ponged <= self._of_other_way:
                return
            self.clock.add(head["pong"], head["time"], time.time())
            if len(self.clock) < FIRST_TRIPS:
                self._ping()
            else:
                self._is_timed.set()
        elif "ended" in head:
            if process := self._processes.pop(head["ended"], None):
                process.take_end(head["code"])
        elif "started" in head:
            if process := self._processes.get(head["started"]):
                process.take_start(head["pid"])
        elif "refused" in head:
            if process := self._processes.pop(head["refused"], None):
                process.take(Channel.STDERR, f"{head['error']}\n".encode(), None)
                process.take_end(NOT_STARTED)
        elif "answer" in head:
            answer = self._answers.get(head["answer"])
            if answer is not None and not answer.done():  # else nobody waits for it any more
                if "error" in head:
                    what = f"host {self.name}: {visible(head['error'])}"
                    answer.set_exception(HostError(what))
                else:
                    answer.set_result(head["value"])
        elif "hello" in head:
            self.about = head["hello"]
        elif "bye" in head:
            self._break(f"its agent ended: {visible(head['bye'])}")

    def _new(self) -> tuple[int, asyncio.Future[Any]]:
        if self.lost:
            raise HostError(self.lost)
        self._number += 1
        future = self._answers[self._number] = asyncio.get_running_loop().create_future()
        future.add_done_callback(lambda _, number=self._number: self._answers.pop(number, None))  # type: ignore[misc]
        return self._number, future

    # --- what the engine asks for ----------------------------------------------------------

    async def start(
        self,
        argv: Sequence[str],
        env: Mapping[str, str],
        on_data: OnData,
        *,
        as_root: bool = False,
    ) -> Process:
        """Start a command up to its gate, with sudo ``as_root`` if it needs that.

        Nothing waits for an answer: what follows is done there in this order, and one that cannot
        be started ends as a shell ends it, with code 127 and the reason on stderr. Raises HostError
        if the connection has broken.
        """
        if self.lost:
            raise HostError(self.lost)
        words, text = sendable(argv)
        more: dict[str, Any] = {"as_root": True} if as_root else {}
        if text:
            more["program"] = name = hashlib.sha256(text).hexdigest()
            if name not in self._programs:
                self._programs.add(name)
                self.send({"call": "program", "name": name}, zlib.compress(text))
        self._number += 1
        number = self._number
        self.send({"call": "start", "number": number, "argv": words, "env": dict(env), **more})
        logs = partial(self.log.started, self.name, as_sent(argv))
        process = self._processes[number] = RemoteProcess(self, number, on_data, logs)
        return process

    async def check_room(self, commands: int) -> None:
        """Raise HostError if so many commands cannot run at once; an agent starts any number."""

    async def ask(self, module: ModuleType, function: str, *arguments: Any) -> Any:
        """Call a function of a stand-alone module there; returns its result, as JSON-like data.

        Raises HostError if it fails there, or the connection has broken.
        """
        number, future = self._new()
        head = {"call": "ask", "number": number, "function": function, "arguments": arguments}
        self.send(head, module_text(module))
        return await future

    async def lock(self, run: str) -> str:
        """Take the host for a run; returns who has it, empty if it is taken. Raises HostError."""
        number, future = self._new()
        self.send({"call": "lock", "number": number, "who": holder(run)})
        return visible(str(await future))

    def unlock(self) -> None:
        """Leave the host to other runs."""
        self.send({"call": "unlock"})

    async def why_lost(self) -> str:
        """Return why the connection has broken; empty if the host answers what is sent now."""
        number = self._ping()
        while not self.lost and self._ponged < number:
            self._answered.clear()
            await self._answered.wait()
        return self.lost

    def forget_clock(self) -> None:
        """Time its clock anew: the way there was another one for some time."""
        if self.lost:
            return
        self.clock.forget()
        self._is_timed.clear()
        self._of_other_way = self._pinged
        self._ping()

    async def timed(self) -> HostClock:
        """Return its clock, once it is known well. Raises HostError."""
        await self._is_timed.wait()
        if self.lost:
            raise HostError(self.lost)
        return self.clock


def link_to(name: str, reach: Reach, **settings: Any) -> RemoteHost:
    """Return a connection to a host, which is still to be opened."""
    return RemoteHost(name, ssh.command(reach), reach, settings)
