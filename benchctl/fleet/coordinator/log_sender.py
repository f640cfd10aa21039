"""Sends the log of each run to those who follow it: in order, each message until it is there.

What was not sent when a coordinator ended is in its store, and is sent by the next one.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

from benchctl.fleet.carrier.carrier import Carrier, StreamFullError
from benchctl.fleet.person_messages import RunWrites
from benchctl.store.log.logged import forget_sent, unsent

# Each is a transaction of its own, on a connection of its own.
_FORGET_S = 5.0
_AGAIN_S = 0.5
# Of several messages, none waits for the acknowledgement of the one before.
_AT_ONCE = 64


class LogSender:
    """Sends what was logged. ``seal`` signs a message for all people."""

    def __init__(self, carrier: Carrier, store: Path, seal: Callable[[RunWrites], bytes]) -> None:
        self._carrier, self._store, self._seal = carrier, store, seal
        self._queue: asyncio.Queue[tuple[int, str, int, bytes]] = asyncio.Queue()
        self._names: dict[int, str] = {}
        self._sent: dict[int, int] = {}

    def begin(self) -> None:
        """Take what the last coordinator left."""
        for message in unsent(self._store):
            self._names[message[0]] = message[1]
            self._queue.put_nowait(message)

    def name(self, run_id: int, name: str) -> None:
        """Say what a run is called, before anything of it is logged."""
        self._names[run_id] = name

    def logged(self, run_id: int, number: int, data: bytes) -> None:
        """Take the next message of a run, which is in the store."""
        self._queue.put_nowait((run_id, self._names[run_id], number, data))

    async def run(self) -> None:
        """Send for ever."""
        forgetting = asyncio.create_task(self._forget())
        try:
            while True:
                batch = [await self._queue.get()]
                while len(batch) < _AT_ONCE and not self._queue.empty():
                    batch.append(self._queue.get_nowait())
                for message in batch:
                    await self._send(*message)
        finally:
            forgetting.cancel()

    async def drain(self, timeout_s: float) -> None:
        """Wait until all is sent, but not for long: what is left stays in the store."""
        with suppress(TimeoutError):
            async with asyncio.timeout(timeout_s):
                while not self._queue.empty():
                    await asyncio.sleep(0.01)
        self._forget_now()

    async def _send(self, run_id: int, run: str, number: int, data: bytes) -> None:
        entry = RunWrites(run, number, data)
        while True:
            try:
                await self._carrier.publish(
                    f"bench.log.{run}", self._seal(entry), f"{run}/{number}"
                )
            except (ConnectionError, StreamFullError):
                await asyncio.sleep(_AGAIN_S)
            else:
                break
        self._sent[run_id] = number

    async def _forget(self) -> None:
        while True:
            await asyncio.sleep(_FORGET_S)
            self._forget_now()

    def _forget_now(self) -> None:
        sent, self._sent = self._sent, {}
        if sent:
            forget_sent(self._store, sent)
