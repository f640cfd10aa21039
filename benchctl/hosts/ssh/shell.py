"""A host without Python: plain ``sh`` there, over one connection of ``ssh``.

A first shell keeps the connection: it answers pings and questions, and holds the lock of the host.
Each command is a child of a shell of its own, a session of the same connection (ControlMaster of
ssh_config(5), whose socket is in a folder that only we may enter). That shell waits at a gate and
passes signals on. The tool runs in its foreground: one that ``sh`` starts in the background ignores
SIGINT.

Nothing stays behind. Every shell ends its process group when its input closes, and when nothing
came for the patience of its host: see `benchctl.hosts.ssh.scripts`.
"""

from __future__ import annotations

import asyncio
import shlex
import shutil
import signal
import tempfile
import time
from collections.abc import Mapping, Sequence
from types import ModuleType
from typing import Any, cast

from msgspec.structs import replace

from benchctl.api import Channel
from benchctl.errors import HostError
from benchctl.hosts.clocks import HostClock
from benchctl.hosts.local.spawn import LocalProcess, OnData, Pipes, Process
from benchctl.hosts.log import Ended
from benchctl.hosts.sent.frames import HELLO, MOST_HEAD
from benchctl.hosts.sent.messages import SAID, MessageReader, check, check_answer
from benchctl.hosts.ssh import ssh
from benchctl.hosts.ssh.login import START_S
from benchctl.hosts.ssh.posix import QUESTIONS
from benchctl.hosts.ssh.programs import as_sent
from benchctl.hosts.ssh.remote import LOST, RemoteHost
from benchctl.hosts.ssh.scripts import gated, keeper
from benchctl.run.planned import SshTarget
from benchctl.run.record import ClockReading

LACKS = (
    "no Python 3.9 or newer there, so commands run by plain sh; lost: starts by the host's own "
    "clock (they are within half a round trip), the time of output there (it has that of its "
    "arrival here), and what benchctl brings (simpleperf, owamp, its own ping, capture)"
)
"""What is lost, for people."""
_REFUSED = "Session open refused by peer"
_SAID_KEPT = 1 << 16


class PlainClock(HostClock):
    """The clock of a host by its ``date``, which may show whole seconds only."""

    def __init__(self) -> None:
        super().__init__()
        self._grain_s = 0.0

    def shown(self, text: str) -> float:
        """Return what ``date +%s.%N`` shows: the middle of a second, where it knows no parts."""
        seconds, _, part = text.strip().partition(".")
        self._grain_s = 0.0 if part.isdigit() else 1.0
        return int(seconds) + (float(f"0.{part}") if part.isdigit() else 0.5)

    def add(self, left_s: float, theirs_s: float, back_s: float) -> None:
        # It showed this at some time of a trip that is longer by the grain.
        super().add(left_s - self._grain_s / 2, theirs_s, back_s + self._grain_s / 2)

    def reading(self, at_s: float) -> ClockReading:
        found = super().reading(at_s)
        return replace(found, rtt_s=found.rtt_s - self._grain_s)


class _NoSessionError(HostError):
    """The SSH server opens no further session on the connection."""


class _Answers(MessageReader):
    """Takes what the first shell says, as the messages of an agent."""

    def __init__(self, clock: PlainClock) -> None:
        super().__init__(SAID)
        self._buffer = bytearray()
        self._clock = clock

    def feed(self, data: bytes) -> Sequence[tuple[str, dict[str, Any], bytes]]:
        *whole, rest = data.split(b"\0")
        found: list[tuple[str, dict[str, Any], bytes]] = []
        for piece in whole:
            self._buffer += piece
            found += self._message(self._buffer.decode("utf-8", "replace"))
            self._buffer.clear()
        self._buffer += rest
        if len(self._buffer) > MOST_HEAD:
            raise ValueError(f"an answer of more than {MOST_HEAD >> 20} MiB")
        return found

    def _message(self, text: str) -> Sequence[tuple[str, dict[str, Any], bytes]]:
        first, _, said = text.partition("\n")
        tag, code = first.split()
        if tag == "-":
            return []
        fields: dict[str, Any]
        if tag.startswith("p"):
            name = "pong"
            fields = {"number": int(tag[1:]), "time_s": self._clock.shown(said)}
        else:
            name = "answer"
            fields = {"number": int(tag), "error" if int(code) else "value": said}
        check(SAID, name, fields)
        return [(name, fields, b"")]


class ShellProcess:
    """A command in a session of its own; see `benchctl.hosts.local.spawn.Process`."""

    arrived: float | None = None

    def __init__(self, link: ShellHost, number: int, argv: Sequence[str], on_data: OnData) -> None:
        self.number = number
        self.pid = 0
        """0 until it is known."""
        self._link, self._argv, self._on_data = link, argv, on_data
        self._early = dict.fromkeys(Channel, b"")
        """What came before the first word of the shell, from start-up files or ``ssh``."""
        self.is_ready: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._log_end: Ended | None = None
        self._killed = self._is_over = False

    async def start(self, argv: Sequence[str], first_words: bytes) -> None:
        """Open the session, and wait until the command is at its gate.

        Raises HostError, after `START_S` at the latest.
        """
        transport, pipes = await asyncio.get_running_loop().subprocess_exec(
            lambda: Pipes(self._take), *argv, start_new_session=True
        )
        self._input = cast("asyncio.WriteTransport", transport.get_pipe_transport(0))
        self._input.write(first_words)
        self._ssh = LocalProcess(
            transport.get_pid(), transport, pipes, lambda _: None, lambda: lambda _: None
        )
        self.exited = pipes.exited
        try:
            await asyncio.wait(
                [self.is_ready, pipes.exited],
                timeout=START_S, return_when=asyncio.FIRST_COMPLETED,
            )  # fmt: skip
        finally:
            if not self.is_ready.done():
                is_stuck = not pipes.exited.done()
                self._ssh.send_signal("SIGKILL")
        if not self.is_ready.done():
            await self._ssh.wait()
            raise self._link.why_not(self._early, is_stuck=is_stuck)

    def _take(self, channel: Channel, data: bytes) -> None:
        if channel in self._early:
            before, found, data = (self._early[channel] + data).partition(HELLO)
            if not found or (channel is Channel.STDOUT and b"\n" not in data):
                self._early[channel] = (before + found + data)[-_SAID_KEPT:]
                return
            del self._early[channel]
            if channel is Channel.STDOUT:
                pid, _, data = data.partition(b"\n")
                self.pid = int(pid) if pid.isdigit() and len(pid) < 8 else 0
                self.is_ready.set_result(None)
            if not data:
                return
        self._on_data(channel, data)

    def begin(self, at: float | None = None) -> None:
        self._log_end = self._link.log.started(self._link.name, as_sent(self._argv), self.pid)
        now = time.time()
        way_s = self._link.clock.reading(now).rtt_s / 2
        wait_s = max(0.0, (at or now) - now - way_s)
        asyncio.get_running_loop().call_later(wait_s, self.say, "go")

    def send_signal(self, name: str) -> None:
        self.say(name.removeprefix("SIG"))
        if name == "SIGKILL" and not self.exited.done():
            self._killed = True
            self._link.expect(self.number, "the end of a command that was killed")

    def say(self, word: str) -> None:
        """Send a word to its shell; nothing if that has ended."""
        if not self.exited.done():
            self._input.write(f"{word}\n".encode())

    async def wait(self) -> int:
        code = await self._ssh.wait()
        if code < 0:  # our end of the session was killed
            code = LOST
        if code == LOST and self._killed and not self._link.lost:
            code = -signal.SIGKILL
        elif 128 < code < LOST:  # as a shell reports a signal
            code = 128 - code
        if not self._is_over:
            self._is_over = True
            if code == LOST and (why := await self._link.why_lost()):
                self._on_data(Channel.STDERR, f"{why}\n".encode())
            if self._log_end is not None:
                self._log_end(code)
        return code


class ShellHost(RemoteHost):
    """A connection to the plain shells of one host; use `open`, then `close`."""

    def __init__(
        self, name: str, reach: SshTarget, no_python: str, lock: str = "benchctl", **settings: Any
    ) -> None:
        """``no_python`` is the message about its Python; ``settings`` are those of an agent."""
        # The path of a socket is short, unlike that of some temporary folders.
        self.folder = folder = tempfile.mkdtemp(prefix="benchctl-", dir="/tmp")
        """That of its socket."""
        self._socket = f"{folder}/ssh"
        super().__init__(name, ssh.plain(reach, self._socket), reach, settings)
        self.clock = clock = PlainClock()
        self._messages = _Answers(clock)
        self._no_python = no_python
        self._lock = lock
        self._sessions: set[ShellProcess] = set()
        self.missing_features = LACKS

    async def open(self) -> None:
        try:
            await super().open()
        except HostError as error:
            self._remove_folder()
            why = error.message.removeprefix(f"host {self.name}: ")
            raise HostError(f"{self._no_python}, and no plain shell: {why}", ssh.INSTALL) from None
        except BaseException:
            self._remove_folder()
            raise
        if self.reach.sudo:
            await self._check_sudo()

    async def _check_sudo(self) -> None:
        """Raise HostError if sudo does not serve: the first shell needs none."""
        try:
            process = await self.start(("true",), {}, lambda *_: None, as_root=True)
            process.send_signal("SIGKILL")
            await process.wait()
        except BaseException:
            await self.close()
            raise

    def _first_words(self) -> bytes:
        return keeper(self._lock, self._patience_s)

    def _break(self, why: str) -> None:
        super()._break(why)
        self._remove_folder()

    def _remove_folder(self) -> None:
        shutil.rmtree(self.folder, ignore_errors=True)

    def _ping(self) -> int:
        for process in self._sessions:
            process.say("beat")
        return super()._ping()

    def send(self, message: str, body: bytes = b"", /, **fields: Any) -> None:
        match message:
            case "ping":
                self._ask_shell(f"p{fields['number']}", "date +%s.%N")
            case "lock":
                self._ask_shell(fields["number"], f"take {shlex.quote(fields['who'])}")
            case "unlock":
                self._ask_shell("-", "leave")

    def _ask_shell(self, tag: object, script: str) -> None:
        self._write(f"{tag} {script}\n".encode())

    async def start(
        self,
        argv: Sequence[str],
        env: Mapping[str, str],
        on_data: OnData,
        *,
        as_root: bool = False,
    ) -> Process:
        """Start a command up to its gate, which is there when this returns.

        Raises HostError if the connection has broken, or takes no further session.
        """
        if self.lost:
            raise HostError(self.lost)
        self._number += 1
        process = ShellProcess(self, self._number, argv, on_data)
        opened = ssh.session(self.reach, self._socket, as_root=as_root)
        await process.start(opened, gated(argv, env, self._patience_s))
        self._sessions.add(process)  # a word before its own would end what counts the time
        process.exited.add_done_callback(lambda _: self._forget(process))
        return process

    def _forget(self, process: ShellProcess) -> None:
        self._sessions.discard(process)
        self._owed.pop(process.number, None)

    def why_not(self, early: Mapping[Channel, bytes], *, is_stuck: bool) -> HostError:
        """Return why a command did not come to its gate, by what ``ssh`` and the host said."""
        if self.lost:
            return HostError(self.lost)
        said = {channel: data.decode("utf-8", "replace") for channel, data in early.items()}
        complaint = said.get(Channel.STDERR, "").strip()
        if _REFUSED in complaint:
            return _NoSessionError(
                f"host {self.name}: its SSH server opens no more sessions at once (MaxSessions in "
                "its sshd_config), and without Python each command there needs one"
            )
        if is_stuck:
            printed = complaint or said.get(Channel.STDOUT, "")
            return ssh.stuck(self.name, self.reach, printed, f"within {START_S:.0f} s")
        return ssh.failure(self.name, self.reach, complaint, None)

    async def check_room(self, commands: int) -> None:
        """Raise HostError if the SSH server does not let so many commands run at once."""
        trials = (self.start(("true",), {}, lambda *_: None) for _ in range(commands))
        started = await asyncio.gather(*trials, return_exceptions=True)
        opened = [process for process in started if not isinstance(process, BaseException)]
        for process in opened:
            process.send_signal("SIGKILL")
            await process.wait()
        for error in started:
            if isinstance(error, BaseException) and not isinstance(error, _NoSessionError):
                raise error
        if len(opened) < commands and not self.lost:
            most = f"{len(opened)} at once" if opened else "none beside the first"
            raise HostError(
                f"host {self.name}: without Python each command there needs a session, and its SSH "
                f"server opens {most}, where a trial needs {commands}",
                f"set MaxSessions {commands + 1} in its sshd_config, or {ssh.INSTALL}",
            )

    async def ask(self, module: ModuleType, function: str, *arguments: Any) -> Any:
        known = QUESTIONS.get((module, function))
        name = f"{module.__name__.rpartition('.')[2]}.{function}"
        if known is None:
            raise HostError(f"host {self.name}: {name} needs Python 3.9 there", ssh.INSTALL)
        script, read = known

        def checked(text: str) -> Any:
            try:
                return check_answer(name, read(text, *arguments))
            except (ArithmeticError, LookupError) as error:
                raise ValueError(f"{name}: {type(error).__name__}: {error}") from None

        number, future = self._question(name, checked)
        self._ask_shell(number, script)
        return await future
