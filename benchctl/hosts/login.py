"""Logs in to a host elsewhere by ``ssh``, until what starts there has said its first word."""

from __future__ import annotations

import asyncio
import os
import random
import signal
from collections.abc import Sequence
from contextlib import suppress

from benchctl.errors import HostError
from benchctl.hosts import ssh
from benchctl.hosts.frames import HELLO
from benchctl.hosts.tasks import cancel
from benchctl.run.planned import Reach

# A login over a slow path, with a key in hardware that wants to be touched.
LOGIN_S = 60.0
# Start-up files of the shell there, the agent over a slow path, and Python from a slow disk.
START_S = 15.0
# Of logins at the same time sshd refuses some from the tenth on (MaxStartups, sshd_config(5)).
TRIES, AGAIN_S = 6, 0.3
# The time that an ``ssh`` has to end when its input has closed.
_END_S = 2.0
_KEPT = 4096


class Login:
    """One ``ssh`` to one host; use `open`, then `close`."""

    def __init__(self, name: str, reach: Reach, argv: Sequence[str]) -> None:
        self._name, self._reach, self._argv = name, reach, tuple(argv)
        self._process: asyncio.subprocess.Process | None = None
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
        try:
            self._process = await asyncio.create_subprocess_exec(
                *self._argv, start_new_session=True, stdin=asyncio.subprocess.PIPE,
                stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.PIPE,
            )  # fmt: skip
        except OSError as error:
            what = f"host {self._name}: {self._argv[0]} cannot be started: {error.strerror}"
            raise HostError(what, "install OpenSSH's client") from None
        self._hearing = asyncio.ensure_future(self._keep_stderr())
        with suppress(OSError):  # it has ended, and says why
            self.write(first_words)
        try:
            return await self._until_hello()
        except HostError:
            await self.close()
            raise
        except BaseException:  # nobody waits for it any more
            self.kill()
            await self.close()
            raise

    async def _until_hello(self) -> bytes:
        """Return what came after the hello; before it come the words of start-up files there."""
        data, is_in = b"", False
        try:
            async with asyncio.timeout(LOGIN_S) as limit:
                while HELLO not in data:
                    if not is_in and ssh.LOGGED_IN in data:
                        is_in, data = True, data.partition(ssh.LOGGED_IN)[2]
                        limit.reschedule(asyncio.get_running_loop().time() + START_S)
                    more = await self.read()
                    if not more:
                        raise await self._failure(data)
                    data = data[-_KEPT:] + more
        except TimeoutError:
            if is_in:
                raise ssh.stuck(self._name, self._reach, self._told(data), START_S) from None
            what = f"host {self._name}: no login within {LOGIN_S:.0f} s"
            raise HostError(what, "see what ssh waits for") from None
        return data.partition(HELLO)[2]

    async def _failure(self, data: bytes) -> HostError:
        """Return why it has ended; it wrote ``data`` to stdout."""
        assert self._process is not None
        assert self._hearing is not None
        await asyncio.wait([self._hearing], timeout=1.0)
        code = await self._process.wait()
        return ssh.failure(self._name, self._reach, self._told(data), code)

    def _told(self, data: bytes) -> str:
        return self.said.strip() or data.decode("utf-8", "replace")

    async def _keep_stderr(self) -> None:
        assert self._process is not None
        assert self._process.stderr is not None
        while data := await self._process.stderr.read(_KEPT):
            self._stderr += data
            del self._stderr[:-_KEPT]

    async def read(self) -> bytes:
        """Return what came from the host next; nothing if the connection has ended."""
        assert self._process is not None
        assert self._process.stdout is not None
        return await self._process.stdout.read(1 << 16)

    def write(self, data: bytes) -> None:
        """Send data to the host."""
        assert self._process is not None
        assert self._process.stdin is not None
        self._process.stdin.write(data)

    def kill(self) -> None:
        """End it at once; nothing if it has ended, or was never started."""
        if self._process is not None and self._process.returncode is None:
            with suppress(ProcessLookupError):
                os.killpg(self._process.pid, signal.SIGKILL)

    async def close(self) -> None:
        """Close its input, and end it if that does not."""
        if self._process is None or self._process.stdin is None:
            return
        self._process.stdin.close()
        try:
            await asyncio.wait_for(self._process.wait(), _END_S)
        except TimeoutError:
            self.kill()
            await self._process.wait()
        if self._hearing is not None:
            await cancel(self._hearing)
