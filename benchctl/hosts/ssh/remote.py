"""One connection to the agent of a remote host: commands, questions, and its clock.

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
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from types import ModuleType
from typing import Any, NamedTuple

from benchctl.api import Channel
from benchctl.errors import HostError
from benchctl.hosts.clocks import HostClock
from benchctl.hosts.local.spawn import STOP_GRACE_S, OnData, Process
from benchctl.hosts.local.users import user_name
from benchctl.hosts.log import Ended, command_log
from benchctl.hosts.sent.filter import PortPair
from benchctl.hosts.sent.messages import ANSWERS, ASKED, SAID, MessageReader, check_answer, packed
from benchctl.hosts.ssh import ssh
from benchctl.hosts.ssh.login import Login
from benchctl.hosts.ssh.programs import agent_text, as_sent, module_text, sendable
from benchctl.hosts.ssh.sockets import tcp_ports
from benchctl.hosts.tasks import cancel
from benchctl.run.planned import SshTarget
from benchctl.visible import visible

PING_S = 1.0
# More trips than these make the least one no shorter (measured with 5 ms of jitter).
FIRST_TRIPS = 20
# A clock that is set again and again is known by the last trip alone.
MOST_TRIPS = 2 * FIRST_TRIPS
# The agent ends after its own patience, and has then ended what it started.
LATER_S = 1.0
# An answer waits behind output: 1 MiB in the agent and 2 MiB in SSH, at 0.5 Mbit/s.
ANSWER_S = 60.0
# An agent answers in order, so what it owes comes before the answer to a later ping. Only the end
# of a command that was killed may take longer: a child of it may hold its output (DRAIN_S).
PROMPT_S = 5.0
# When somebody waits for the end, commands have `STOP_GRACE_S` to end, and are then killed. What a
# host owes then is due in this time, which is more than a round trip by satellite.
HURRY_S, HURRIED_LOOK_S = 0.7, 0.1
# An agent sends at most 3 MiB before the answer to a ping: 1 MiB waits in it, and SSH sends 2 MiB
# before our side has taken some, which it says on the way of the ping. More is a flood.
MOST_BEFORE_PONG = 8 << 20
# Far more than a run says at once; ssh takes nothing while the connection stands still.
MOST_UNSENT = 8 << 20
# The exit code of ssh itself when its connection breaks.
LOST = 255
# That of a shell for a command that it cannot start.
NOT_STARTED = 127


class RemoteProcess:
    """A command on a remote host; see `benchctl.hosts.local.spawn.Process`."""

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
        there: dict[str, Any] = {}
        if at is not None:
            there["at_s"] = max(0.0, self._link.clock.theirs(at))
        self._link.send("begin", number=self._number, **there)

    def send_signal(self, name: str) -> None:
        if not self._ended.done():
            self._link.send("signal", number=self._number, name=name)
            if name == "SIGKILL":
                self._link.expect(self._number, "the end of a command that was killed")

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
        if self._error is not None:
            return
        try:
            self._on_data(channel, data)
        except Exception as error:  # the caller that waits for the end gets it
            self._error = error
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


class Debt(NamedTuple):
    """What a host owes: since when, by when at the latest, and before the answer to which ping.

    ``taken`` is how many bytes had come from the host before.
    """

    what: str
    since_s: float
    due_s: float
    ping: int
    taken: int


class RemoteHost:
    """A connection to one host; use `open`, then `close`.

    No wait on it is without a limit: it is lost when nothing came for its patience, when it does
    not answer in time, and when it says what `benchctl.hosts.sent.messages` does not know.
    """

    def __init__(
        self, name: str, argv: Sequence[str], reach: SshTarget, settings: Mapping[str, Any]
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
        self.missing_features = ""
        """What cannot be done there that an agent can do, for people; empty for an agent."""
        self.away = ""
        self.reach = reach
        self._settings = {"patience_s": reach.patience_s, **settings}
        self._patience_s = float(self._settings["patience_s"])
        self._login = Login(name, reach, argv)
        self.log = command_log()
        self._messages = MessageReader(SAID)
        self._tasks: list[asyncio.Task[None]] = []
        self._answers: dict[int, tuple[Callable[[Any], Any], asyncio.Future[Any]]] = {}
        """What reads each answer, and who waits for it."""
        self._owed: dict[int, Debt] = {}
        """By number."""
        self._hurried_s: float | None = None
        self._processes: dict[int, RemoteProcess] = {}
        self._programs: set[str] = set()
        self._number = 0
        self._heard = 0.0
        self._taken = 0
        """How many bytes have come."""
        self._pings: deque[tuple[float, Debt]] = deque()
        """When each ping left that is not answered yet, in Unix time."""
        self._pinged = 0
        self._of_other_path = 0
        """How many pings say nothing of the clock."""
        self._at_once = 0
        """How many more pings follow an answer at once."""
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
                for name, fields, body in self._messages.feed(data):
                    getattr(self, f"_take_{name}")(body, **fields)
                if self._pings and self._taken - self._pings[0][1].taken > MOST_BEFORE_PONG:
                    flood = f"{MOST_BEFORE_PONG >> 20} MiB"
                    self._break(f"its agent sent more than {flood} before it answered a ping")
                data = await self._login.read()
                if not data:
                    break
                self._heard = time.monotonic()
                self._taken += len(data)
        except ValueError as error:
            self._break(f"what its agent says is not allowed: {visible(str(error))}")
        self._break(await self._login.last_words() or "the connection was closed")

    async def _keep_alive(self) -> None:
        """Send a ping each second, and at first one after the other."""
        while not self.lost:
            self._at_once = FIRST_TRIPS
            self._ping()
            await asyncio.sleep(PING_S)
            self._look()

    def _look(self) -> None:
        """Break the connection if the host is late."""
        now_s = time.monotonic()
        silent_s = now_s - self._heard
        if silent_s > self._patience_s + LATER_S:
            self._break(f"it has been silent for {silent_s:.0f} s")
        for debt in (*(debt for _, debt in self._pings), *self._owed.values()):
            if now_s > self._due_s(debt):
                self._break(f"its agent owes {debt.what} for {now_s - debt.since_s:.0f} s")
                break

    def _due_s(self, debt: Debt) -> float:
        if self._hurried_s is None:
            return debt.due_s
        return max(self._hurried_s + STOP_GRACE_S, debt.since_s) + HURRY_S

    def expect(self, number: int, what: str) -> None:
        """Break the connection if what has a number does not come in time."""
        self._owed.setdefault(number, self._debt(what))

    def _debt(self, what: str) -> Debt:
        now_s = time.monotonic()
        due_s = now_s + max(ANSWER_S, self._patience_s)
        return Debt(what, now_s, due_s, self._pinged + 1, self._taken)

    def hurry(self) -> None:
        """Wait for nothing any longer than `STOP_GRACE_S` and a little: somebody wants to end."""
        if self._hurried_s is None and not self.lost:
            self._hurried_s = time.monotonic()
            self._look_often()

    def abandon(self) -> None:
        """Give it up at once."""
        self._break("it is not waited for any more")

    def _look_often(self) -> None:
        self._look()
        if not self.lost:
            asyncio.get_running_loop().call_later(HURRIED_LOOK_S, self._look_often)

    def _break(self, why: str) -> None:
        if self.lost:
            return
        self.lost = f"host {self.name}: {why}"
        for _, future in self._answers.values():
            if not future.done():
                future.set_exception(HostError(self.lost))
        for process in list(self._processes.values()):
            process.take(Channel.STDERR, f"{self.lost}\n".encode(), None)
            process.take_end(LOST)
        self._processes.clear()
        self._owed.clear()
        self._pings.clear()
        self.ended.set_result(self.lost)
        self._is_timed.set()
        self._answered.set()
        self._login.kill()

    @property
    def ports(self) -> frozenset[PortPair]:
        """Those of the TCP connections that this one goes over, as they are seen here and there.

        With NAT they differ. Those of a master that a person has opened are known only from there.
        """
        words = (word for word in self.about.get("connection", ()) if word.isdecimal())
        ports = [int(word) for word in words]
        there = {(ports[0], ports[1])} if len(ports) == 2 and max(ports) < 1 << 16 else set()
        return frozenset(there | tcp_ports(self.pid))

    @property
    def pid(self) -> int:
        """The process, and the group, of its ``ssh``."""
        return self._login.pid

    async def close(self) -> None:
        """End the agent, which ends what it started, and the connection."""
        self.closes = True
        await self._login.close(at_once=self._hurried_s is not None)
        self._break("the connection was closed")
        await cancel(*self._tasks)

    # --- messages -------------------------------------------------------------------------

    def send(self, message: str, body: bytes = b"", /, **fields: Any) -> None:
        """Send a message of `ASKED`; nothing if the connection has broken."""
        self._write(packed(ASKED, message, body, **fields))

    def _write(self, data: bytes) -> None:
        if not self.lost:
            self._login.write(data)
            if self._login.unsent > MOST_UNSENT:
                self._break(f"it takes nothing of {MOST_UNSENT >> 20} MiB")

    def _ping(self) -> int:
        """Send a ping; returns its number."""
        self._pinged += 1
        self._pings.append((time.time(), self._debt("an answer to a ping")))
        self.send("ping", number=self._pinged)
        return self._pinged

    def _take_pong(self, __: bytes, number: int, time_s: float) -> None:
        if not self._pings or number != self._ponged + 1:
            raise ValueError(f"pong: {number}, after {self._ponged} of {self._pinged}")
        left_s, _ = self._pings.popleft()
        self._answered.set()
        soon_s = time.monotonic() + PROMPT_S
        for key, debt in self._owed.items():
            if debt.ping <= number:
                self._owed[key] = debt._replace(due_s=min(debt.due_s, soon_s))
        trips = number - self._of_other_path
        if trips <= 0:
            return
        self.clock.add(left_s, time_s, time.time())
        if len(self.clock) >= FIRST_TRIPS or trips >= MOST_TRIPS:
            self._is_timed.set()
        elif self._at_once:
            self._at_once -= 1
            self._ping()

    @property
    def _ponged(self) -> int:
        return self._pinged - len(self._pings)

    def _take_hello(self, _: bytes, **about: Any) -> None:
        self.about = about

    def _take_started(self, _: bytes, number: int, pid: int) -> None:
        if process := self._processes.get(number):
            process.take_start(pid)

    def _take_output(self, body: bytes, number: int, channel: int, time_s: float) -> None:
        if process := self._processes.get(number):
            to = Channel.STDOUT if channel == 1 else Channel.STDERR
            process.take(to, body, self.clock.ours(time_s))

    def _take_refused(self, _: bytes, number: int, error: str) -> None:
        if process := self._processes.get(number):
            process.take(Channel.STDERR, f"{error}\n".encode(), None)
            self._take_ended(b"", number, NOT_STARTED)

    def _take_ended(self, _: bytes, number: int, code: int) -> None:
        self._owed.pop(number, None)
        if process := self._processes.pop(number, None):
            process.take_end(code)

    def _take_answer(self, _: bytes, number: int, value: Any = None, error: str = "") -> None:
        self._owed.pop(number, None)
        read, answer = self._answers.get(number, (None, None))
        if read is None or answer is None or answer.done():  # nobody waits for it any more
            return
        if error:
            answer.set_exception(HostError(f"host {self.name}: {visible(error)}"))
        else:
            answer.set_result(read(value))

    def _take_bye(self, _: bytes, why: str) -> None:
        self._break(f"its agent ended: {visible(why)}")

    def _question(self, what: str, read: Callable[[Any], Any]) -> tuple[int, asyncio.Future[Any]]:
        """Return the number of a question, and what is done with what ``read`` makes of its answer.

        What ``read`` refuses by ValueError breaks the connection.
        """
        if self.lost:
            raise HostError(self.lost)
        self._number += 1
        future = asyncio.get_running_loop().create_future()
        self._answers[self._number] = read, future
        future.add_done_callback(lambda _, number=self._number: self._answers.pop(number, None))  # type: ignore[misc]
        self.expect(self._number, f"an answer to {what}")
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
                self.send("program", zlib.compress(text), name=name)
        self._number += 1
        number = self._number
        self.send("start", number=number, argv=words, env=dict(env), **more)
        logs = partial(self.log.started, self.name, as_sent(argv))
        process = self._processes[number] = RemoteProcess(self, number, on_data, logs)
        return process

    async def check_room(self, commands: int) -> None:
        """Raise HostError if so many commands cannot run at once; an agent starts any number."""

    async def ask(self, module: ModuleType, function: str, *arguments: Any) -> Any:
        """Call a function of a stand-alone module there; returns its result, as JSON-like data.

        Raises HostError if it fails there, or the connection has broken.
        """
        name = f"{module.__name__.rpartition('.')[2]}.{function}"
        assert name in ANSWERS, f"{name} is to be in the table of answers"
        number, future = self._question(name, partial(check_answer, name))
        text = module_text(module)
        self.send("ask", text, number=number, function=name, arguments=list(arguments))
        return await future

    async def lock(self, run: str) -> str:
        """Take the host for a run; returns who has it, empty if it is taken. Raises HostError."""
        number, future = self._question("lock", partial(check_answer, "lock"))
        self.send("lock", number=number, who=holder(run))
        return visible(str(await future))

    def unlock(self) -> None:
        """Leave the host to other runs."""
        self.send("unlock")

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
        self._of_other_path = self._pinged
        self._ping()

    async def timed(self) -> HostClock:
        """Return its clock, once it is known well. Raises HostError."""
        await self._is_timed.wait()
        if self.lost:
            raise HostError(self.lost)
        return self.clock


def link_to(name: str, reach: SshTarget, **settings: Any) -> RemoteHost:
    """Return a connection to a host, which is still to be opened."""
    return RemoteHost(name, ssh.command(reach), reach, settings)
