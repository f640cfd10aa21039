"""Starts commands on hosts, and ensures that none outlives the runner.

Every command starts as a shell that waits at a gate: it reads one line, then becomes the command.
So all flows of a trial are forked and ready before any of them starts, and a command whose runner
died before the gate opened never starts. Each command leads a process group of its own, with a
parent-death signal where the system has one, and a guardian process as a backup.
"""

from __future__ import annotations

import asyncio
import errno
import os
import shutil
import signal
import sys
from collections.abc import Callable, Collection, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from types import ModuleType
from typing import Any, Protocol, cast

from benchctl.api import Channel
from benchctl.hosts.clocks import OURS, HostClock
from benchctl.hosts.local.children import wait_without_threads
from benchctl.hosts.log import Ended, command_log
from benchctl.hosts.sent import guardian
from benchctl.hosts.sent.filter import PortPair
from benchctl.hosts.sent.gated import GATE
from benchctl.hosts.tasks import cancel
from benchctl.run.planned import Host

OnData = Callable[[Channel, bytes], None]

# After its stop signal a tool may still write its summary; iperf3 needs one exchange with its peer.
STOP_GRACE_S = 2.0
# Limits the wait for output that a grandchild still holds open after the command has ended.
DRAIN_S = 1.0
# Of a short command, whose output somebody reads whole.
MOST_PRINTED = 1 << 20


class Process(Protocol):
    """A command that was started; it waits at its gate until `begin`."""

    pid: int
    arrived: float | None
    """When the output that is being delivered came, in Unix time by our clock; None is now."""

    def begin(self, at: float | None = None) -> None:
        """Open the gate, on a remote host at a time of our clock, if it is given."""

    def send_signal(self, name: str) -> None:
        """Send a signal to the command and everything it started; no error if it has ended."""

    async def wait(self) -> int:
        """Wait until the command has ended and all its output was delivered.

        Returns its exit code, negative for a signal. Raises what ``on_data`` raised; the command
        was killed for it.
        """


class Spawner(Protocol):
    """Starts commands."""

    async def start(
        self, host: Host, argv: Sequence[str], env: Mapping[str, str], on_data: OnData
    ) -> Process:
        """Start a command up to its gate; its output goes to ``on_data`` as it arrives.

        Raises OSError if it cannot be started.
        """

    async def clock_of(self, host: Host) -> HostClock:
        """Return what is known of a host's clock. Raises HostError if it cannot be reached."""

    def forget_clocks(self) -> None:
        """Time the clocks of remote hosts anew: the ways there were others for some time."""

    async def ask(self, host: Host, module: ModuleType, function: str, *arguments: Any) -> Any:
        """Call a function of a module on a host; returns its result, which is as JSON's.

        The module needs nothing but Python 3.9. Raises HostError as `clock_of`.
        """

    def lost(self, host: Host) -> asyncio.Future[str]:
        """Return what is done, with the reason, when the connection to a host has broken."""

    async def why_lost(self, host: Host) -> str:
        """Return why the connection to a host has broken; empty if the host answers now."""

    def hurry(self) -> None:
        """Wait for no host any longer than for a tool: the user wants to end."""

    def own_ports(self) -> Collection[PortPair]:
        """Return the ports of the TCP connections to remote hosts: they are not measured."""


async def has_ended(
    process: Process, timeout_s: float | None, unless: asyncio.Event | None = None
) -> bool:
    """Wait for the end of a command, until a timeout or an event.

    Returns whether it has ended. The command keeps running.
    """
    waits: list[asyncio.Future[Any]] = [asyncio.ensure_future(process.wait())]
    if unless is not None:
        waits.append(asyncio.ensure_future(unless.wait()))
    try:
        done, _ = await asyncio.wait(waits, timeout=timeout_s, return_when=asyncio.FIRST_COMPLETED)
    finally:
        await cancel(*waits)
    if waits[0] not in done:
        return False
    waits[0].result()
    return True


async def stop(process: Process, name: str, grace_s: float = STOP_GRACE_S) -> int:
    """Send a command its stop signal, kill it if it does not end, and return its exit code."""
    process.send_signal(name)
    if not await has_ended(process, grace_s):
        process.send_signal("SIGKILL")
    return await process.wait()


async def run(
    spawner: Spawner, host: Host, argv: Sequence[str], timeout_s: float
) -> tuple[int, str]:
    """Run a short command to its end; returns its exit code and its output.

    Stdout comes first, then stderr. Raises TimeoutError after ``timeout_s``, and OSError if it
    prints more than `MOST_PRINTED`.
    """
    output: dict[Channel, bytearray] = {channel: bytearray() for channel in Channel}

    def take(channel: Channel, data: bytes) -> None:
        if sum(map(len, output.values())) + len(data) > MOST_PRINTED:
            raise OSError(errno.EFBIG, f"it prints more than {MOST_PRINTED >> 20} MiB")
        output[channel].extend(data)

    process = await spawner.start(host, argv, {}, take)
    process.begin()
    try:
        if not await has_ended(process, timeout_s):
            raise TimeoutError
    finally:
        # No effect on a command that has ended.
        code = await stop(process, "SIGKILL")
    return code, b"".join(output.values()).decode("utf-8", "replace")


def _death_signal() -> tuple[str, ...]:
    # setpriv is part of util-linux; without it, the guardian alone does this.
    return ("setpriv", "--pdeathsig", "KILL", "--") if shutil.which("setpriv") else ()


class Pipes(asyncio.SubprocessProtocol):
    """Delivers output, and reports when the command and its output have both ended."""

    def __init__(self, on_data: OnData) -> None:
        self._on_data = on_data
        self.exited: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self.closed: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self.error: Exception | None = None
        """The first that ``on_data`` raised."""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast("asyncio.SubprocessTransport", transport)

    def pipe_data_received(self, fd: int, data: bytes | str) -> None:
        try:
            self._on_data(Channel.STDOUT if fd == 1 else Channel.STDERR, cast("bytes", data))
        except Exception as error:
            # The event loop would only log it; the caller that waits for the end gets it.
            self.error = self.error or error
            with suppress(ProcessLookupError):
                self._transport.kill()

    def process_exited(self) -> None:
        if not self.exited.done():
            self.exited.set_result(None)

    def connection_lost(self, exc: Exception | None) -> None:
        if not self.closed.done():
            self.closed.set_result(None)


@dataclass(slots=True)
class LocalProcess:
    """A command as a child of this process."""

    pid: int
    _transport: asyncio.SubprocessTransport
    _pipes: Pipes
    _ended: Callable[[int], None]
    _started: Callable[[], Ended]
    _log_end: Ended | None = None
    _is_reported: bool = False
    arrived: float | None = None

    def begin(self, at: float | None = None) -> None:
        self._log_end = self._started()
        gate = cast("asyncio.WriteTransport", self._transport.get_pipe_transport(0))
        gate.write(b"\n")
        gate.close()

    def send_signal(self, name: str) -> None:
        if not self._pipes.exited.done():
            # It ended a moment ago, and its exit code is on its way. macOS reports EPERM then.
            with suppress(ProcessLookupError, PermissionError):
                os.killpg(self.pid, signal.Signals[name])

    async def wait(self) -> int:
        # Shielded: a cancelled caller must not cancel the wait of others.
        await asyncio.shield(self._pipes.exited)
        done, _ = await asyncio.wait([self._pipes.closed], timeout=DRAIN_S)
        if not done:
            # A child of it still holds its output: end that too.
            with suppress(ProcessLookupError, PermissionError):
                os.killpg(self.pid, signal.SIGKILL)
        self._transport.close()
        code = self._transport.get_returncode() or 0
        if not self._is_reported:
            self._is_reported = True
            self._ended(self.pid)
            if self._log_end is not None:
                self._log_end(code)
        if self._pipes.error is not None:
            raise self._pipes.error
        return code


# Without benchctl, whose import takes long; its folder comes last, and hides no module of Python's.
_GUARDIAN = "import sys; sys.path.append(sys.argv[1]); from guardian import guard; guard(0)"


class LocalSpawner:
    """Starts commands as children of this process; use as an async context manager."""

    def __init__(self) -> None:
        self._death_signal = _death_signal()
        self._log = command_log()
        self._guardian: asyncio.subprocess.Process | None = None
        self._running: dict[int, LocalProcess] = {}

    async def __aenter__(self) -> LocalSpawner:
        wait_without_threads()
        self._guardian = await asyncio.create_subprocess_exec(
            sys.executable, "-I", "-S", "-c", _GUARDIAN, str(Path(guardian.__file__).parent),
            stdin=asyncio.subprocess.PIPE, start_new_session=True,
        )  # fmt: skip
        return self

    async def __aexit__(self, *exception: object) -> None:
        # An error may have left some, such as that of a store that cannot be written any more.
        left = [*self._running.values()]
        for process in left:
            process.send_signal("SIGKILL")
        await asyncio.gather(*(process.wait() for process in left), return_exceptions=True)
        if self._guardian is not None and self._guardian.stdin is not None:
            self._guardian.stdin.close()
            await self._guardian.wait()

    async def start(
        self, host: Host, argv: Sequence[str], env: Mapping[str, str], on_data: OnData
    ) -> Process:
        loop = asyncio.get_running_loop()
        transport, pipes = await loop.subprocess_exec(
            lambda: Pipes(on_data),
            *host.prefix, *self._death_signal, *GATE, *argv,
            env={**os.environ, "LC_ALL": "C", **env}, start_new_session=True,
        )  # fmt: skip
        pid = transport.get_pid()
        self.guard(pid)
        started = partial(self._log.started, host.name, tuple(argv), pid)
        process = LocalProcess(pid, transport, pipes, self._ended, started)
        self._running[pid] = process
        return process

    async def clock_of(self, host: Host) -> HostClock:
        return OURS

    def forget_clocks(self) -> None:
        """Do nothing: there is one clock."""

    async def ask(self, host: Host, module: ModuleType, function: str, *arguments: Any) -> Any:
        return getattr(module, function)(*arguments)

    def lost(self, host: Host) -> asyncio.Future[str]:
        return asyncio.get_running_loop().create_future()

    async def why_lost(self, host: Host) -> str:
        return ""

    def hurry(self) -> None:
        """Do nothing: the kernel ends what is killed."""

    def own_ports(self) -> Collection[PortPair]:
        return ()

    def _ended(self, pid: int) -> None:
        del self._running[pid]
        self.forget(pid)

    def guard(self, left: int | str) -> None:
        """Let the guardian end a process group, or remove a folder, if this process ends first."""
        self._tell(f"+{left}\n")

    def forget(self, left: int | str) -> None:
        """Note that a process group has ended, or that a folder is removed."""
        self._tell(f"-{left}\n")

    def _tell(self, line: str) -> None:
        assert self._guardian is not None, "use the spawner as an async context manager"
        assert self._guardian.stdin is not None
        self._guardian.stdin.write(line.encode())
