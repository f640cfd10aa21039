"""Logs in to a remote host by ``ssh``, until what starts there has said its first word."""

from __future__ import annotations

import asyncio
import os
import random
import signal
from collections.abc import Sequence
from contextlib import suppress

from benchctl.errors import HostError
from benchctl.hosts.sent.frames import HELLO
from benchctl.hosts.ssh import ssh
from benchctl.hosts.tasks import cancel
from benchctl.run.planned import SshTarget

# A login over a slow path, with a key in hardware that wants to be touched.
LOGIN_S = 60.0
# Start-up files of the shell there, the agent over a slow path, and Python from a slow disk.
START_S = 15.0
# Of logins at the same time sshd refuses some from the tenth on (MaxStartups, sshd_config(5)).
TRIES, AGAIN_S = 6, 0.3
# The time that an ``ssh`` has to end when its input has closed; and when somebody waits for it.
_END_S, _HURRY_S = 2.0, 0.2
# That of what it wrote to stderr before it ended.
_WORDS_S = 1.0
_KEPT = 4096
# Start-up files print less than that; what prints more prints without an end.
MOST_BEFORE = 1 << 20
_PIECE = 1 << 16


class Login:
    """One ``ssh`` to one host; use `open`, then `close`."""

    def __init__(self, name: str, reach: SshTarget, argv: Sequence[str]) -> None:
        self._name, self._reach, self._argv = name, reach, tuple(argv)
        self._process: asyncio.subprocess.Process | None = None
        self._transport: asyncio.SubprocessTransport | None = None
        self._hearing: asyncio.Future[None] | None = None
        self._stderr = bytearray()

    @property
    def said(self) -> str:
        """What it and the host last wrote to stderr."""
        return self._stderr.decode("utf-8", "replace")

    @property
    def pid(self) -> int:
        """The process, and the group, of the ``ssh``."""
        assert self._process is not None
        return self._process.pid

    async def open(self, first_words: bytes) -> bytes:
        """Log in, and give the shell there the words that make it what is wanted.

        Returns what that said after its hello. Raises HostError with the reason and what mends it.
        """
        for turn in range(TRIES - 1):
            try:
                return await self._start(first_words)
            except HostError:
                if not ssh.is_busy(self.said):
                    raise
            await asyncio.sleep(AGAIN_S * 2**turn * random.uniform(0.5, 1.5))
        return await self._start(first_words)

    async def _start(self, first_words: bytes) -> bytes:
        self._stderr.clear()
        loop = asyncio.get_running_loop()
        try:
            # As `asyncio.create_subprocess_exec`, which hides what closes the pipes.
            self._transport, protocol = await loop.subprocess_exec(
                lambda: asyncio.subprocess.SubprocessStreamProtocol(_PIECE, loop),
                *self._argv, start_new_session=True,
            )  # fmt: skip
        except OSError as error:
            what = f"host {self._name}: {self._argv[0]} cannot be started: {error.strerror}"
            raise HostError(what, "install OpenSSH's client") from None
        self._process = asyncio.subprocess.Process(self._transport, protocol, loop)
        self._hearing = asyncio.ensure_future(self._keep_stderr())
        with suppress(OSError):  # it has ended, and says why
            self.write(first_words)
        try:
            return await self._until_hello()
        except BaseException:
            self.kill()
            await self.close()
            raise

    async def _until_hello(self) -> bytes:
        """Return what came after the hello; before it come the words of start-up files there."""
        data, before, is_in = b"", 0, False
        try:
            async with asyncio.timeout(LOGIN_S) as limit:
                while HELLO not in data:
                    more = await self.read()
                    if not more:
                        raise await self._failure(data)
                    data, before = data[-_KEPT:] + more, before + len(more)
                    if before > MOST_BEFORE and HELLO not in data:
                        why = f"before it has printed {MOST_BEFORE >> 20} MiB"
                        raise ssh.stuck(self._name, self._reach, self._printed(data), why)
                    if not is_in:  # ssh itself prints nothing else
                        is_in, data = True, data.replace(ssh.LOGGED_IN, b"", 1)
                        limit.reschedule(asyncio.get_running_loop().time() + START_S)
        except TimeoutError:
            if is_in:
                why = f"within {START_S:.0f} s"
                raise ssh.stuck(self._name, self._reach, self._printed(data), why) from None
            what = f"host {self._name}: no login within {LOGIN_S:.0f} s"
            raise HostError(what, "see what ssh waits for") from None
        return data.partition(HELLO)[2]

    async def _failure(self, data: bytes) -> HostError:
        """Return why it has ended; it wrote ``data`` to stdout."""
        assert self._process is not None
        await self.last_words()
        await self.close()
        code = self._process.returncode
        return ssh.failure(self._name, self._reach, self._printed(data), code)

    def _printed(self, data: bytes) -> str:
        return self.said.strip() or data.decode("utf-8", "replace")

    async def _keep_stderr(self) -> None:
        assert self._process is not None
        assert self._process.stderr is not None
        while data := await self._process.stderr.read(_KEPT):
            self._stderr += data
            del self._stderr[:-_KEPT]

    async def last_words(self) -> str:
        """Return the last line of stderr, for people, when its output has ended."""
        if self._hearing is not None:
            await asyncio.wait([self._hearing], timeout=_WORDS_S)
        return ssh.last_line(self.said)

    async def read(self) -> bytes:
        """Return what came from the host next; nothing if the connection has ended."""
        assert self._process is not None
        assert self._process.stdout is not None
        return await self._process.stdout.read(_PIECE)

    def write(self, data: bytes) -> None:
        """Send data to the host."""
        assert self._process is not None
        assert self._process.stdin is not None
        self._process.stdin.write(data)

    @property
    def unsent(self) -> int:
        """How many bytes of what was written it has not taken yet."""
        assert self._process is not None
        assert self._process.stdin is not None
        return self._process.stdin.transport.get_write_buffer_size()

    def kill(self) -> None:
        """End it at once; nothing if it has ended, or was never started."""
        if self._process is not None and self._process.returncode is None:
            with suppress(ProcessLookupError):
                os.killpg(self._process.pid, signal.SIGKILL)

    async def close(self, *, at_once: bool = False) -> None:
        """Close its input, and end it if that does not."""
        if self._process is None or self._transport is None:
            return
        assert self._process.stdin is not None
        self._process.stdin.close()
        ending = asyncio.ensure_future(self._process.wait())
        try:
            await asyncio.wait([ending], timeout=_HURRY_S if at_once else _END_S)
        finally:
            self.kill()
            # Nobody reads its output to the end, for which the wait would go on.
            self._transport.close()
            await asyncio.wait([ending], timeout=_END_S)
            await cancel(ending, *filter(None, [self._hearing]))
