"""A carrier within one process, with the promises of the real one and its faults on demand.

For tests of everything above. Messages are delivered by the event loop, each subscription's one
after another, in the order in which they were sent.
"""

from __future__ import annotations

import asyncio
import time
from asyncio import FIRST_COMPLETED
from collections.abc import Callable, Sequence
from typing import Any, Self

from msgspec import Struct

from benchctl.fleet.carrier.carrier import (
    Delivered,
    LeaseError,
    OnMessage,
    StreamFullError,
    handle,
)
from benchctl.fleet.carrier.streams import (
    LEASE_LIFE_S,
    REPEATS_WITHIN_S,
    STREAMS,
    Stream,
    matches,
)


class _Stored(Struct, frozen=True):
    sequence: int
    subject: str
    data: bytes
    at_s: float


class _Kept:
    """A stream's messages."""

    def __init__(self, stream: Stream) -> None:
        self.stream = stream
        self.messages: list[_Stored] = []
        self.last = 0
        self.bytes = 0
        self.numbers: dict[str, float] = {}

    def add(self, subject: str, data: bytes, number: str, now_s: float) -> _Stored | None:
        """Keep a message, or return None for a repeat. Raises StreamFullError."""
        self.forget(now_s)
        if number in self.numbers:
            return None
        if self.bytes + len(data) > self.stream.max_bytes and not self.stream.discards_old:
            raise StreamFullError(f"stream {self.stream.name} is full")
        self.last += 1
        self.numbers[number] = now_s
        stored = _Stored(self.last, subject, data, now_s)
        self.messages.append(stored)
        self.bytes += len(data)
        while self.bytes > self.stream.max_bytes:
            self._drop_first()
        return stored

    def forget(self, now_s: float) -> None:
        """Drop what is too old, messages and the numbers that repeats are known by."""
        while self.messages and now_s - self.messages[0].at_s > self.stream.max_age_s:
            self._drop_first()
        while self.numbers:
            number, at_s = next(iter(self.numbers.items()))
            if now_s - at_s <= REPEATS_WITHIN_S:
                break
            del self.numbers[number]

    def _drop_first(self) -> None:
        self.bytes -= len(self.messages.pop(0).data)


class _Lease(Struct, frozen=True):
    revision: int
    value: bytes
    until_s: float


class Broker:
    """What carries the messages of its carriers, and keeps streams and leases.

    ``now_s`` is its clock in seconds: by it, leases end, and messages and the numbers of repeats
    are dropped. ``twice`` delivers every message twice. ``loses_answers`` keeps what is published,
    but its acknowledgement gets lost, so that it is published again.
    """

    def __init__(
        self,
        streams: Sequence[Stream] = STREAMS,
        now_s: Callable[[], float] = time.monotonic,
    ) -> None:
        self.now_s = now_s
        self.twice = False
        self.loses_answers = False
        self._stands = False
        self._changed = asyncio.Condition()
        self._kept = [_Kept(stream) for stream in streams]
        self._leases: dict[str, _Lease] = {}
        self._revision = 0
        self._subscriptions: list[_Subscription] = []

    def carrier(self) -> MemoryCarrier:
        """Return the carrier of one more client, connected at once."""
        return MemoryCarrier(self)

    async def stand_still(self) -> None:
        """Carry nothing, as a server that was killed: nobody is connected until `go_on`.

        Streams and leases stay; messages of core subjects on their way are lost.
        """
        self._stands = True
        for subscription in self._subscriptions:
            subscription.lose_core()
        await self.change()

    async def go_on(self) -> None:
        """Carry again; all clients are connected at once, and streams go on where they were."""
        self._stands = False
        await self.change()

    @property
    def stands(self) -> bool:
        """Whether nothing is carried."""
        return self._stands

    def messages(self, name: str) -> list[tuple[int, str, bytes]]:
        """Return what a stream has: sequences, subjects and data."""
        kept = next(kept for kept in self._kept if kept.stream.name == name)
        kept.forget(self.now_s())
        return [(each.sequence, each.subject, each.data) for each in kept.messages]

    def kept(self, subject: str) -> _Kept:
        """Return the stream of a subject. Raises LookupError if it is of none."""
        for kept in self._kept:
            if matches(kept.stream.subject, subject):
                return kept
        raise LookupError(f"no stream has the subject {subject}")

    def deliver(
        self, subject: str, data: bytes, reply: Callable[[bytes], Any] | None = None
    ) -> bool:
        """Deliver a message of a core subject; returns whether anybody listens."""
        listened = False
        for subscription in self._subscriptions:
            if subscription.hears(subject):
                listened = True
                for _ in range(2 if self.twice else 1):
                    subscription.put(Delivered(subject, data, 0, reply))
        return listened

    async def add(self, subject: str, data: bytes, number: str) -> None:
        """Keep a message of a stream and wake those who follow. Raises StreamFullError."""
        self.kept(subject).add(subject, data, number, self.now_s())
        await self.change()

    async def change(self) -> None:
        """Wake whoever waits for something here."""
        async with self._changed:
            self._changed.notify_all()

    async def wait(self, until: Callable[[], bool]) -> None:
        """Wait until something is so."""
        async with self._changed:
            await self._changed.wait_for(until)

    def lease(self, key: str, value: bytes, revision: int) -> int:
        """Take or renew a lease. Raises LeaseError."""
        now_s = self.now_s()
        held = self._leases.get(key)
        if held is not None and held.until_s <= now_s:
            held = None
        if (held.revision if held else 0) != revision:
            raise LeaseError(f"lease {key}: {'somebody else has it' if held else 'it was lost'}")
        self._revision += 1
        self._leases[key] = _Lease(self._revision, value, now_s + LEASE_LIFE_S)
        return self._revision

    def enter(self, subscription: _Subscription) -> None:
        """Deliver to a subscription."""
        self._subscriptions.append(subscription)

    def leave(self, subscription: _Subscription) -> None:
        """Deliver to it no more."""
        if subscription in self._subscriptions:
            self._subscriptions.remove(subscription)


class _Subscription:
    def __init__(self, carrier: MemoryCarrier, subject: str, on_message: OnMessage) -> None:
        self._carrier = carrier
        self._broker = carrier.broker
        self._subject = subject
        self._on_message = on_message
        self._waiting: asyncio.Queue[Delivered] = asyncio.Queue()
        self._task: asyncio.Task[None] | None = None

    def hears(self, subject: str) -> bool:
        return self._carrier.is_connected and matches(self._subject, subject)

    def put(self, message: Delivered) -> None:
        self._waiting.put_nowait(message)

    def lose_core(self) -> None:
        while not self._waiting.empty():
            self._waiting.get_nowait()

    def listen(self) -> Self:
        self._broker.enter(self)
        self._task = asyncio.create_task(self._listening())
        return self

    def follow(self, after: int) -> Self:
        self._task = asyncio.create_task(self._following(after))
        return self

    async def close(self) -> None:
        self._broker.leave(self)
        self._carrier.subscriptions.discard(self)
        if self._task is not None and self._task is not asyncio.current_task():
            self._task.cancel()
            await asyncio.gather(self._task, return_exceptions=True)

    async def _listening(self) -> None:
        while True:
            await handle(self._on_message, await self._waiting.get())

    async def _following(self, after: int) -> None:
        kept = self._broker.kept(self._subject)

        def is_next() -> bool:
            return self._carrier.is_connected and kept.last > after

        while True:
            await self._broker.wait(is_next)
            kept.forget(self._broker.now_s())
            for stored in [each for each in kept.messages if each.sequence > after]:
                if not self._carrier.is_connected:
                    break
                after = stored.sequence
                if matches(self._subject, stored.subject):
                    for _ in range(2 if self._broker.twice else 1):
                        await handle(
                            self._on_message,
                            Delivered(stored.subject, stored.data, stored.sequence),
                        )
            else:
                after = max(after, kept.last)


class MemoryCarrier:
    """A client of a `Broker`; see `Carrier` for what each method promises."""

    def __init__(self, broker: Broker) -> None:
        self.broker = broker
        self.subscriptions: set[_Subscription] = set()
        self._is_cut = False
        self._is_closed = False

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        self._is_closed = True
        for subscription in list(self.subscriptions):
            await subscription.close()
        await self.broker.change()

    async def cut(self) -> None:
        """Cut this client off; what is sent to it by core subjects is lost."""
        self._is_cut = True
        for subscription in self.subscriptions:
            subscription.lose_core()
        await self.broker.change()

    async def mend(self) -> None:
        """Connect this client again."""
        self._is_cut = False
        await self.broker.change()

    @property
    def is_connected(self) -> bool:
        return not (self._is_cut or self._is_closed or self.broker.stands)

    @property
    def certificate_ends_s(self) -> float:
        return 0.0

    async def wait_connected(self, timeout_s: float) -> None:
        try:
            await asyncio.wait_for(self.broker.wait(lambda: self.is_connected), timeout_s)
        except TimeoutError:
            self._demand()

    async def send(self, subject: str, data: bytes) -> None:
        self._demand()
        self.broker.deliver(subject, data)

    async def request(self, subject: str, data: bytes, timeout_s: float) -> bytes:
        self._demand()
        answer: asyncio.Future[bytes] = asyncio.get_running_loop().create_future()

        async def reply(data: bytes) -> None:
            if self.is_connected and not answer.done():
                answer.set_result(data)

        if not self.broker.deliver(subject, data, reply):
            raise TimeoutError(f"nobody listens to {subject}")
        lost = asyncio.create_task(self.broker.wait(lambda: not self.is_connected))
        try:
            await asyncio.wait((answer, lost), timeout=timeout_s, return_when=FIRST_COMPLETED)
        finally:
            lost.cancel()
        if answer.done():
            return answer.result()
        self._demand()
        raise TimeoutError(f"no answer from {subject} in {timeout_s:g} s")

    async def publish(self, subject: str, data: bytes, number: str) -> None:
        while True:
            await self.broker.wait(lambda: self.is_connected or self._is_closed)
            if self._is_closed:
                raise ConnectionError("this carrier is closed")
            await self.broker.add(subject, data, number)
            if not self.broker.loses_answers:
                return
            await asyncio.sleep(0)

    async def listen(self, subject: str, on_message: OnMessage) -> _Subscription:
        subscription = _Subscription(self, subject, on_message)
        self.subscriptions.add(subscription)
        return subscription.listen()

    async def follow(
        self, subject: str, after: int, on_message: OnMessage, since_s: float = 0.0
    ) -> _Subscription:
        self.broker.kept(subject)
        subscription = _Subscription(self, subject, on_message)
        self.subscriptions.add(subscription)
        return subscription.follow(after)

    async def lease(self, key: str, value: bytes, revision: int) -> int:
        self._demand()
        return self.broker.lease(key, value, revision)

    def _demand(self) -> None:
        if not self.is_connected:
            raise ConnectionError("the broker cannot be reached")
