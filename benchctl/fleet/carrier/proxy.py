"""A tunnel through an HTTP proxy by CONNECT, for a client that knows no proxies."""

from __future__ import annotations

import asyncio
from contextlib import suppress
from typing import Final, Self

CONNECT_S: Final = 10.0
_MOST_HEAD: Final = 16384


class Tunnel:
    """Listens on a port of loopback, and leads each connection to one address and no other.

    Args:
        proxy: host and port of the proxy.
        address: host and port beyond it.
    """

    def __init__(self, proxy: str, address: str) -> None:
        self._proxy = proxy.removeprefix("http://").rstrip("/")
        self._address = address
        self._tasks: set[asyncio.Task[None]] = set()
        self.port = 0
        self.why = ""
        """Why the last connection failed, empty if none did."""

    async def __aenter__(self) -> Self:
        self._server = await asyncio.start_server(self._accept, "127.0.0.1", 0)
        self.port = self._server.sockets[0].getsockname()[1]
        return self

    async def __aexit__(self, *_: object) -> None:
        self._server.close()
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    async def _accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        self._tasks.add(task)
        try:
            async with asyncio.timeout(CONNECT_S):
                far_reader, far_writer = await self._connect()
        except (OSError, TimeoutError, ValueError, asyncio.IncompleteReadError) as error:
            self.why = f"proxy {self._proxy}: {error or 'no answer'}"
            writer.close()
        else:
            self.why = ""
            try:
                await asyncio.gather(_copy(reader, far_writer), _copy(far_reader, writer))
            finally:
                far_writer.close()
                writer.close()
        finally:
            self._tasks.discard(task)

    async def _connect(self) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
        host, _, port = self._proxy.rpartition(":")
        if not host or not port.isdigit():
            raise ValueError("this is no address: HOST:PORT")
        reader, writer = await asyncio.open_connection(
            host.strip("[]"), int(port), limit=_MOST_HEAD
        )
        try:
            request = f"CONNECT {self._address} HTTP/1.1\r\nHost: {self._address}\r\n\r\n"
            writer.write(request.encode())
            head = await reader.readuntil(b"\r\n\r\n")
            status = head.split(b"\r\n", 1)[0].decode("latin-1")
            if status.split(" ")[1:2] != ["200"]:
                raise ConnectionError(f"it answers {status[:80]!r}")
        except BaseException:
            writer.close()
            raise
        return reader, writer


async def _copy(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    with suppress(OSError):
        while data := await reader.read(65536):
            writer.write(data)
            await writer.drain()
    writer.close()
