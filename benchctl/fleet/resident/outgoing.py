"""Brings what the spool keeps to the coordinator, again and again until its store has it."""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Callable, Coroutine
from contextlib import suppress
from typing import Any

import msgspec

from benchctl.fleet.carrier.carrier import Carrier, StreamFullError
from benchctl.fleet.host_messages import EndOver, OfEnd
from benchctl.fleet.messages import EndRef
from benchctl.fleet.resident.ends import FLUSH_S, Outbox
from benchctl.fleet.spool import Spool, Spooled, SpooledMessage, sync_and_close

# What was sent and not committed is sent again: the broker's streams are not for ever.
AGAIN_S = 60.0
RETRY_S = 1.0
_log = logging.getLogger(__name__)
_OF_END = msgspec.msgpack.Decoder(OfEnd)


class Outgoing:
    """The messages of a host's ends: in the spool first, then in their streams.

    Args:
        host: the name of this host.
        carrier: brings them into the streams.
        spool: keeps them until they are committed.
        seal: signs them.
    """

    def __init__(
        self, host: str, carrier: Carrier, spool: Spool, seal: Callable[[OfEnd], bytes]
    ) -> None:
        self._host, self._carrier, self._spool, self._seal = host, carrier, spool, seal
        self._overs: dict[EndRef, int] = {}
        """The numbers of the last messages of ends that are over and not committed."""
        self._queues: dict[Spooled, asyncio.Queue[SpooledMessage]] = {
            kind: asyncio.Queue() for kind in (Spooled.SAMPLES, Spooled.RESULT)
        }
        self._sent: dict[SpooledMessage, float] = {}

    def loops(self) -> list[Coroutine[Any, Any, None]]:
        """Return what is to run as long as the agent."""
        return [*map(self._publish, self._queues), self._send_again(), self._keep_synced()]

    def outbox(self, ref: EndRef) -> Outbox:
        """Return what an end writes its messages to."""
        return Outbox(ref, self._spool, self._queue)

    def take_up(self) -> list[EndRef]:
        """Send what an earlier start left, and the end of what it did not end.

        Returns the ends of which something was left.
        """
        refs = [*self._spool.account.kept]
        for ref in refs:
            kept = self._spool.account.kept[ref]
            last = max(kept, key=lambda spooled: spooled.number)
            message = None
            if last.kind is Spooled.RESULT:
                with suppress(OSError, msgspec.MsgspecError):
                    message = _OF_END.decode(self._spool.body(last))
            for spooled in kept:
                if spooled.kind is not Spooled.MARK:
                    self._queues[spooled.kind].put_nowait(spooled)
            if isinstance(message, EndOver):
                self._overs[ref] = message.number
            elif any(spooled.kind is Spooled.MARK for spooled in kept):
                outbox = self.outbox(ref)
                outbox.after(last.number)
                outbox.over(None, "", f"the agent of {self._host} was ended meanwhile")
        return refs

    def _queue(self, kept: SpooledMessage) -> None:
        self._queues[kept.kind].put_nowait(kept)
        # The last result of an end may be its last message.
        if kept.kind is Spooled.RESULT:
            self._overs[kept.ref] = kept.number

    def forget(self, ref: EndRef, number: int, *, runs: bool) -> None:
        """Drop what the coordinator's store has: an end's messages up to a number."""
        self._spool.commit(ref, number)
        self._sent = {kept: at for kept, at in self._sent.items() if self._spool.has(kept)}
        if not runs and number >= self._overs.get(ref, 0):
            self._overs.pop(ref, None)
            self._spool.close_end(ref)

    async def _publish(self, kind: Spooled) -> None:
        """Bring messages into their stream, one after the other."""
        place = "smp" if kind is Spooled.SAMPLES else "res"
        subject = f"bench.{place}.{self._host}"
        while True:
            kept = await self._queues[kind].get()
            if not self._spool.has(kept):
                continue
            ref = kept.ref
            number = f"{subject}/{ref.run}/{ref.trial}/{ref.attempt}/{ref.flow}/{ref.role}/"
            try:
                data = self._seal(_OF_END.decode(self._spool.body(kept)))
                await self._carrier.publish(subject, data, f"{number}{kept.number}")
            except (StreamFullError, ConnectionError):
                self._queues[kind].put_nowait(kept)
                await asyncio.sleep(RETRY_S)
                continue
            self._sent[kept] = time.monotonic()

    async def _send_again(self) -> None:
        while True:
            await asyncio.sleep(RETRY_S)
            now_s = time.monotonic()
            for kept, at_s in [*self._sent.items()]:
                if now_s - at_s > AGAIN_S:
                    del self._sent[kept]
                    self._queues[kept.kind].put_nowait(kept)

    async def _keep_synced(self) -> None:
        """Sync the spool each second: a power cut costs no more."""
        while True:
            await asyncio.sleep(FLUSH_S)
            if (file := self._spool.unsynced()) is not None:
                try:
                    await asyncio.to_thread(sync_and_close, file)
                except OSError as error:
                    _log.error("the spool is not synced: %s", error.strerror)
