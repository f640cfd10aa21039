"""Runs commands on a remote host, for a runner at the other end of one connection.

This file is sent with `frames`, `messages`, `gated`, `guardian` and `hostlock` over the standard
input of ``python3``, and runs from memory: nothing is written to the host's disk. It needs Python
3.9, a POSIX system, and nothing else of benchctl.

A command starts as a shell that waits at a gate, and leads a process group of its own. The gate
opens at once or at a time of this host's clock. Output carries the time of its arrival by that
clock.

Nothing stays behind. When the connection closes or has been silent for as long as its runner says,
the agent kills every group that it started, and ends. If the agent itself dies, its guardian kills
them: a process that reads a pipe from the agent.
"""

from __future__ import annotations

import heapq
import marshal
import os
import selectors
import signal
import subprocess
import sys
import threading
import time
import zlib
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from typing import IO, Any

from benchctl.hosts.sent.frames import HELLO
from benchctl.hosts.sent.gated import GATE, GatedCommand, caller, kill, pour, program_path
from benchctl.hosts.sent.guardian import guard
from benchctl.hosts.sent.hostlock import NAME, HostLock
from benchctl.hosts.sent.messages import (
    ASKED,
    MOST_PIECE,
    MOST_REASON,
    SAID,
    MessageReader,
    check_answer,
    packed,
)

# Limits the wait for output that a grandchild still holds open after the command has ended.
DRAIN_S = 1.0
# What a tool prints while the connection carries less, or nothing; the rest waits in its own pipe.
MOST_UNSENT = 1 << 20
# No timer of a busy machine is later; the rest of the wait is slept to the microsecond.
EARLY_S = 0.002


class Agent:
    """One agent: what it started, and its connection."""

    def __init__(
        self,
        guardian: int,
        guardian_pid: int,
        skew_s: float,
        drift: float,
        lock: str,
        patience_s: float,
    ) -> None:
        self._guardian, self._guardian_pid = guardian, guardian_pid
        self._skew_s, self._drift, self._patience_s = skew_s, drift, patience_s
        self._lock = HostLock(lock)
        self._caller = caller()
        self._selector = selectors.DefaultSelector()
        self._messages = MessageReader(ASKED)
        self._unsent = bytearray()
        self._paused: list[tuple[IO[bytes], Callable[[object], None]]] = []
        self._commands: dict[int, GatedCommand] = {}
        self._programs: dict[str, bytes] = {}
        self._timers: list[tuple[float, int, Callable[[], None]]] = []
        self._turn = 0
        self._heard = time.monotonic()
        self._over = ""

    def now(self) -> float:
        """The time of this host, in Unix time."""
        return time.time() * (1 + self._drift) + self._skew_s

    # --- the loop -------------------------------------------------------------------------

    def run(self) -> None:
        """Serve the runner until the connection ends."""
        wake, wakeup = os.pipe()
        os.set_blocking(wakeup, False)
        os.set_blocking(wake, False)
        signal.set_wakeup_fd(wakeup)
        # Handlers, since what is ignored stays ignored in the commands.
        for name in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
            signal.signal(name, self._on_signal)
        signal.signal(signal.SIGCHLD, lambda *_: None)
        os.set_blocking(1, False)
        self._selector.register(wake, selectors.EVENT_READ, self._reap)
        self._selector.register(0, selectors.EVENT_READ, self._read)
        self._unsent += HELLO
        self._send(
            "hello", python=sys.version.split()[0], system=sys.platform, pid=os.getpid(),
            # The words of SSH_CONNECTION, ssh(1): addresses and ports of both ends.
            connection=sys.argv[1:],
        )  # fmt: skip
        try:
            while not self._over:
                for key, _ in self._selector.select(self._wait_s()):
                    key.data(key.fileobj)
                self._run_timers()
        finally:
            self._end()

    def _wait_s(self) -> float:
        now = time.monotonic()
        due = min(
            [self._heard + self._patience_s, *(timer[0] - EARLY_S for timer in self._timers[:1])]
        )
        return max(0.0, due - now)

    def _run_timers(self) -> None:
        while self._timers and self._timers[0][0] - time.monotonic() <= EARLY_S:
            due, _, call = heapq.heappop(self._timers)
            time.sleep(max(0.0, due - time.monotonic()))
            call()
        if time.monotonic() - self._heard >= self._patience_s:
            self._over = self._over or "the connection was silent"

    def _after(self, wait_s: float, call: Callable[[], None]) -> None:
        self._turn += 1
        heapq.heappush(self._timers, (time.monotonic() + wait_s, self._turn, call))

    def _on_signal(self, number: int, _: object) -> None:
        self._over = f"the agent was ended by {signal.Signals(number).name}"

    def _end(self) -> None:
        for command in self._commands.values():
            kill(command.process.pid, signal.SIGKILL)
        self._lock.give_back()
        with suppress(OSError):  # nobody reads, or nothing fits: the runner sees that it ended
            os.write(1, bytes(self._unsent) + packed(SAID, "bye", why=self._over[:MOST_REASON]))
        os.close(self._guardian)
        if self._guardian_pid:
            os.waitpid(self._guardian_pid, 0)

    # --- the connection -------------------------------------------------------------------

    def _read(self, source: int) -> None:
        try:
            data = os.read(source, 1 << 16)
        except BlockingIOError:  # it may be one socket with the output
            return
        self._heard = time.monotonic()
        if not data:
            self._over = "the connection was closed"
            return
        try:
            for name, fields, body in self._messages.feed(data):
                getattr(self, "do_" + name)(body, **fields)
        except Exception as error:  # something else speaks
            self._over = f"not understood: {type(error).__name__}: {error}"

    def _send(self, message: str, body: bytes = b"", /, **fields: Any) -> None:
        self._unsent += packed(SAID, message, body, **fields)
        self._write(1)

    def _answer(self, number: int, function: str, call: Callable[[], Any]) -> None:
        try:
            said = packed(SAID, "answer", number=number, value=check_answer(function, call()))
        except Exception as error:  # of a system that nobody has seen yet
            why = f"{type(error).__name__}: {error}"[:MOST_REASON]
            said = packed(SAID, "answer", number=number, error=why)
        self._unsent += said
        self._write(1)

    def _write(self, target: int) -> None:
        try:
            del self._unsent[: os.write(target, self._unsent)]
        except BlockingIOError:
            pass
        except OSError:
            self._over = "the connection was closed"
            self._unsent.clear()
        waits = 1 in self._selector.get_map()
        if self._unsent and not waits:
            self._selector.register(1, selectors.EVENT_WRITE, self._write)
        elif not self._unsent and waits:
            self._selector.unregister(1)
        if self._paused and len(self._unsent) < MOST_UNSENT:
            paused, self._paused = self._paused, []
            for stream, take in paused:
                self._selector.register(stream, selectors.EVENT_READ, take)

    # --- what the runner asks for -----------------------------------------------------------

    def do_ping(self, _: bytes, number: int) -> None:
        """Answer with this host's time."""
        self._send("pong", number=number, time_s=self.now())

    def do_program(self, body: bytes, name: str) -> None:
        """Keep a Python program, for commands that name it."""
        # Compiled once: simpleperf takes 0.1 s, and each trial starts it twice.
        code = compile(zlib.decompress(body), "program", "exec", dont_inherit=True)
        self._programs[name] = marshal.dumps(code)

    def do_ask(self, body: bytes, number: int, function: str, arguments: list[Any]) -> None:
        """Call a function of a module whose text is the body."""

        def call() -> Any:
            module: dict[str, Any] = {"__name__": "asked"}
            exec(compile(zlib.decompress(body), "asked", "exec"), module)
            return module[function.rpartition(".")[2]](*arguments)

        self._answer(number, function, call)

    def do_lock(self, _: bytes, number: int, who: str) -> None:
        """Take the host for one run, or answer who has it."""
        self._answer(number, "lock", lambda: self._lock.take(who))

    def do_unlock(self, _: bytes) -> None:
        """Leave the host to others."""
        self._lock.give_back()

    def do_start(
        self,
        _: bytes,
        number: int,
        argv: list[str | None],
        env: dict[str, str],
        program: str = "",
        as_root: bool = False,
    ) -> None:
        """Start a command up to its gate."""
        pipe, feed = os.pipe() if program else (-1, -1)
        try:
            process = subprocess.Popen(
                [*GATE, *self._words(argv, pipe)],
                stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, bufsize=0,
                start_new_session=True, pass_fds=[pipe] if program else (),
                env={**os.environ, "LC_ALL": "C", **env}, **({} if as_root else self._caller),
            )  # fmt: skip
        except (OSError, ValueError) as error:
            why = getattr(error, "strerror", None) or str(error)
            self._send("refused", number=number, error=why[:MOST_REASON])
            if program:
                os.close(feed)
            return
        finally:
            if program:
                os.close(pipe)
        os.write(self._guardian, b"+%d\n" % process.pid)
        if program:
            text = self._programs[program]
            threading.Thread(target=pour, args=(feed, text), daemon=True).start()
        command = self._commands[number] = GatedCommand(number, process)
        for stream in command.streams:
            self._watch(command, stream)
        self._send("started", number=number, pid=process.pid)

    def _words(self, argv: list[str | None], pipe: int) -> list[str]:
        """Return a command as it is started here: by our Python, its script by a pipe."""
        if argv[0] is None:
            script = ["-c", f"import marshal; exec(marshal.load(open({pipe},'rb')))"]
            words = [script if word is None else [word] for word in argv[1:]]
            return [sys.executable, *(word for several in words for word in several)]
        return [program_path(argv[0]), *(word for word in argv[1:] if word is not None)]

    def _watch(self, command: GatedCommand, stream: IO[bytes]) -> None:
        def take(_: object) -> None:
            if self._pass_on(command, stream):
                if len(self._unsent) > MOST_UNSENT:
                    self._selector.unregister(stream)
                    self._paused.append((stream, take))
                return
            self._selector.unregister(stream)
            self._close(command, stream)

        self._selector.register(stream, selectors.EVENT_READ, take)

    def _pass_on(self, command: GatedCommand, stream: IO[bytes]) -> bool:
        """Send what a command has printed; returns whether that was anything."""
        data = os.read(stream.fileno(), MOST_PIECE)
        if data:
            channel = command.streams[stream]
            self._send("output", data, number=command.number, channel=channel, time_s=self.now())
        return bool(data)

    def do_begin(self, _: bytes, number: int, at_s: float = 0.0) -> None:
        """Open a command's gate, at a time of this host or at once."""
        command = self._commands.get(number)
        if command is not None:
            self._after(max(0.0, at_s - self.now()) if at_s else 0.0, command.open_gate)

    def do_signal(self, _: bytes, number: int, name: str) -> None:
        """Send a signal to a command and all that it started; nothing if it has ended."""
        command = self._commands.get(number)
        if command is not None and command.process.returncode is None:
            kill(command.process.pid, signal.Signals[name])

    # --- the end of a command -------------------------------------------------------------

    def _reap(self, source: int) -> None:
        with suppress(BlockingIOError):
            os.read(source, 512)
        for command in list(self._commands.values()):
            if command.process.returncode is None and command.process.poll() is not None:
                self._tell_end(command)
                if command.number in self._commands:
                    self._after(DRAIN_S, partial(self._cut, command))
        if self._guardian_pid and os.waitpid(self._guardian_pid, os.WNOHANG)[0]:
            self._guardian_pid, self._over = 0, "the agent's guardian was killed"

    def _cut(self, command: GatedCommand) -> None:
        """End what holds the output of a command that has ended."""
        if command.number not in self._commands:
            return
        kill(command.process.pid, signal.SIGKILL)
        self._paused = [paused for paused in self._paused if paused[0] not in command.streams]
        for stream in list(command.streams):
            if stream in self._selector.get_map():
                self._selector.unregister(stream)
            # What waits for a slow connection is no more than a pipe holds.
            os.set_blocking(stream.fileno(), False)
            with suppress(BlockingIOError):
                self._pass_on(command, stream)
            self._close(command, stream)

    def _close(self, command: GatedCommand, stream: IO[bytes]) -> None:
        del command.streams[stream]
        stream.close()
        self._tell_end(command)

    def _tell_end(self, command: GatedCommand) -> None:
        if command.streams or command.process.returncode is None:
            return
        command.open_gate()
        del self._commands[command.number]
        os.write(self._guardian, b"-%d\n" % command.process.pid)
        self._send("ended", number=command.number, code=command.process.returncode)


def main(patience_s: float, skew_s: float = 0.0, drift: float = 0.0, lock: str = NAME) -> None:
    """Serve a runner on standard input and output, until it is silent for ``patience_s``.

    It sends a ping each second. To try hosts whose clocks differ, the clock is ``skew_s`` ahead at
    the Unix time 0, and gains ``drift`` seconds in each. ``lock`` names the lock.
    """
    read, write = os.pipe()
    pid = os.fork()
    if pid == 0:
        os.close(write)
        null = os.open(os.devnull, os.O_RDWR)
        for number in (0, 1, 2):  # else they would keep the connection open
            os.dup2(null, number)
        os.setsid()
        guard(read)
        os._exit(0)
    os.close(read)
    Agent(write, pid, skew_s, drift, lock, patience_s).run()
