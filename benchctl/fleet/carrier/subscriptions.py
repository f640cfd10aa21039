"""What a client of nats-py is subscribed to, which outlives its connections.

A consumer of a stream is ordered: its messages have numbers of their own, and at a gap, or after a
silence, another one is made after the last message that arrived.
"""

from __future__ import annotations

import asyncio
import json
import logging
import secrets
from collections.abc import Callable
from contextlib import suppress
from datetime import UTC, datetime
from functools import partial
from random import uniform
from typing import Any, Final, Protocol

import nats.errors
from nats.aio.client import Client
from nats.aio.msg import Msg

from benchctl.fleet.carrier.carrier import Delivered, OnMessage, handle
from benchctl.fleet.carrier.jetstream import UNREACHABLE, ask, why_of
from benchctl.fleet.carrier.streams import STREAMS, matches, may_answer

MOST_WAITING: Final = 4096
"""So many messages wait for their handler; then those of core subjects are lost, streams stop."""
HEARTBEAT_S: Final = 1.0
"""So often the server says that a stream has nothing new."""
SILENCE_S: Final = 3 * HEARTBEAT_S

_MOST_PENDING: Final = 1 << 26
_LOG = logging.getLogger(__name__)


class SubscribedClient(Protocol):
    """Who renews subscriptions with each connection."""

    why: str
    """Why nothing was carried the last time, in a few words."""

    def leave(self, subscription: NatsSubscription) -> None:
        """Renew a subscription no more."""


class NatsSubscription:
    """Hands messages over, one after another, from a queue that outlives a connection."""

    def __init__(self, connection: SubscribedClient, subject: str, on_message: OnMessage) -> None:
        self._connection = connection
        self._subject = subject
        self._on_message = on_message
        self._waiting: asyncio.Queue[Delivered] = asyncio.Queue(MOST_WAITING)
        self._task: asyncio.Task[None] | None = None
        self._drop: Callable[[], Any] | None = None

    def start(self) -> None:
        """Hand over what comes."""
        self._task = asyncio.create_task(self._handing())

    async def attach(self, client: Client) -> None:
        """Subscribe with another connection."""
        raise NotImplementedError

    async def close(self) -> None:
        """Deliver no more."""
        self._connection.leave(self)
        if self._task is not None and self._task is not asyncio.current_task():
            self._task.cancel()
            await asyncio.gather(self._task, return_exceptions=True)
        if self._drop is not None:
            with suppress(*UNREACHABLE):
                await self._drop()

    async def _handing(self) -> None:
        while True:
            await handle(self._on_message, await self._waiting.get())


class CoreSubscription(NatsSubscription):
    """What is sent to a subject while it is connected, as `Carrier.listen` promises."""

    async def attach(self, client: Client) -> None:
        self._drop = (await client.subscribe(self._subject, cb=self._take)).unsubscribe

    async def _take(self, message: Msg) -> None:
        async def reply(data: bytes) -> None:
            try:
                await message.respond(data)
            except nats.errors.Error as error:
                raise ConnectionError(why_of(error)) from error

        may = bool(message.reply) and may_answer(message.subject, message.reply)
        delivered = Delivered(message.subject, message.data, 0, reply if may else None)
        with suppress(asyncio.QueueFull):
            self._waiting.put_nowait(delivered)


class OrderedSubscription(NatsSubscription):
    """All messages of a stream's subject in order, as `Carrier.follow` promises."""

    def __init__(
        self,
        connection: SubscribedClient,
        subject: str,
        after: int,
        on_message: OnMessage,
        since_s: float,
    ) -> None:
        super().__init__(connection, subject, on_message)
        self._stream = next(s.name for s in STREAMS if matches(s.subject, subject))
        self._last = after
        self._last_time = datetime.fromtimestamp(since_s, UTC) if since_s else None
        """When the server got the last message that came."""
        self._is_another = since_s > 0
        """Whether it goes on by this time: the stream has lost messages that came, and gave their
        numbers to others."""
        self._number = 0
        self._consumer = ""
        self._heard_s = 0.0
        self._is_broken = asyncio.Event()
        self._keeping: asyncio.Task[None] | None = None

    async def attach(self, client: Client) -> None:
        await self._cease()
        self._keeping = asyncio.create_task(self._keep(client))

    async def close(self) -> None:
        await self._cease()
        await super().close()

    async def _cease(self) -> None:
        if self._keeping is not None:
            self._keeping.cancel()
            await asyncio.gather(self._keeping, return_exceptions=True)

    async def _keep(self, client: Client) -> None:
        """Make a consumer, and another one when a message is missing or nothing is heard."""
        loop = asyncio.get_running_loop()
        while client.is_connected:
            try:
                await self._make(client)
                while loop.time() - self._heard_s < SILENCE_S or self._waiting.full():
                    with suppress(TimeoutError):
                        await asyncio.wait_for(self._is_broken.wait(), HEARTBEAT_S)
                        break
            except Exception as error:
                if not isinstance(error, UNREACHABLE):  # no such stream yet, or cut off
                    _LOG.exception("the stream %s", self._stream)
                self._connection.why = why_of(error)
                await asyncio.sleep(uniform(0.2, 0.5))

    async def _make(self, client: Client) -> None:
        if self._drop is not None:
            with suppress(*UNREACHABLE):
                await self._drop()
        state = (await ask(client, f"$JS.API.STREAM.INFO.{self._stream}", b"{}"))["state"]
        self._is_another |= state["last_seq"] < self._last
        consumer, to = secrets.token_hex(8), client.new_inbox()
        self._consumer = consumer
        self._number = 0
        self._is_broken.clear()
        self._drop = (
            await client.subscribe(
                to,
                cb=partial(self._take, client, consumer),
                pending_bytes_limit=_MOST_PENDING,
            )
        ).unsubscribe
        config = {
            "name": consumer,
            "deliver_subject": to,
            **self._start(),
            "filter_subject": self._subject,
            "ack_policy": "none",
            "max_deliver": 1,
            "mem_storage": True,
            "num_replicas": 1,
            "flow_control": True,
            "idle_heartbeat": int(HEARTBEAT_S * 1e9),
            "inactive_threshold": int(SILENCE_S * 1e9),
        }
        body = {"stream_name": self._stream, "config": config, "action": "create"}
        create = f"$JS.API.CONSUMER.CREATE.{self._stream}.{consumer}.{self._subject}"
        await ask(client, create, json.dumps(body).encode())
        self._heard_s = asyncio.get_running_loop().time()

    def _start(self) -> dict[str, Any]:
        """Return where a consumer begins: with the last message, which shows if it is the same."""
        if self._last_time is None:
            return {
                "deliver_policy": "by_start_sequence",
                "opt_start_seq": 1 if self._is_another else self._last + 1,
            }
        if self._is_another:
            return {
                "deliver_policy": "by_start_time",
                "opt_start_time": self._last_time.isoformat(),
            }
        return {"deliver_policy": "by_start_sequence", "opt_start_seq": self._last}

    async def _take(self, client: Client, consumer: str, message: Msg) -> None:
        if consumer != self._consumer:
            return
        self._heard_s = asyncio.get_running_loop().time()
        headers = message.headers or {}
        if headers.get("Status") == "100":  # a heartbeat, or the server asks whether it may go on
            if answer_to := headers.get("Nats-Consumer-Stalled") or message.reply:
                await client.publish(answer_to)
            if int(headers.get("Nats-Last-Consumer", self._number)) != self._number:
                self._is_broken.set()
            return
        sequence, time = message.metadata.sequence, message.metadata.timestamp
        if sequence.consumer != self._number + 1:
            self._is_broken.set()
            return
        if sequence.stream == self._last and self._last_time is not None and not self._is_another:
            self._number += 1
            if time != self._last_time:
                self._is_another, self._consumer = True, ""
                self._is_broken.set()
            return
        await self._waiting.put(Delivered(message.subject, message.data, sequence.stream))
        if consumer == self._consumer:
            self._number += 1
            self._last, self._last_time, self._is_another = sequence.stream, time, False
