"""What a carrier of messages promises; `benchctl.fleet.carrier.nats` keeps it over a network."""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable
from typing import Protocol

from msgspec import Struct

_LOG = logging.getLogger(__name__)


class Delivered(Struct, frozen=True):
    """A message as it arrives.

    ``sequence`` is its number in its stream, 0 for one of no stream. ``reply`` answers it, None if
    nobody waits for an answer.
    """

    subject: str
    data: bytes
    sequence: int = 0
    reply: Callable[[bytes], Awaitable[None]] | None = None


OnMessage = Callable[[Delivered], Awaitable[None]]
"""Is awaited for each message, one after another. What it raises is logged; the next one comes."""


async def handle(on_message: OnMessage, message: Delivered) -> None:
    """Hand a message over; a failure of whoever gets it ends no subscription."""
    try:
        await on_message(message)
    except Exception:
        _LOG.exception("a message of %s was not handled", message.subject)


class Subscription(Protocol):
    """Messages of a subject that are delivered until it is closed."""

    async def close(self) -> None:
        """Deliver no more."""


class Carrier(Protocol):
    """Carries messages; use as an async context manager.

    It connects by itself, again and again. `send`, `request` and `lease` raise ConnectionError
    while nothing is carried. Messages of core subjects arrive once or not at all, those of a stream
    in order, each at least once.
    """

    async def wait_connected(self, timeout_s: float) -> None:
        """Wait until messages are carried. Raises ConnectionError, which says why they are not."""

    async def send(self, subject: str, data: bytes) -> None:
        """Send a message that may be lost."""

    async def request(self, subject: str, data: bytes, timeout_s: float) -> bytes:
        """Send a message and return its answer. Raises TimeoutError if none comes in time."""

    async def publish(self, subject: str, data: bytes, number: str) -> None:
        """Bring a message into its stream; returns when the stream has it, however long it takes.

        ``number`` is its own: a repeat within the stream's window is dropped there. Raises
        StreamFullError if the stream takes no more.
        """

    async def listen(self, subject: str, on_message: OnMessage) -> Subscription:
        """Deliver the messages of a core subject, which may end with a wildcard.

        If messages are carried now, none that is sent after the return is left out.
        """

    async def follow(
        self, subject: str, after: int, on_message: OnMessage, since_s: float = 0.0
    ) -> Subscription:
        """Deliver the messages of a stream after a sequence, and all that come; none is left out.

        With ``since_s``, what the stream got before that time of the server may be left out.

        Those that the stream no longer has are skipped: the next sequence then shows a gap. If the
        stream was lost and is another one now, all of it is delivered, with lower sequences.
        """

    async def lease(self, key: str, value: bytes, revision: int) -> int:
        """Take (``revision`` 0) or renew a lease; returns its revision. Raises LeaseError."""

    @property
    def is_connected(self) -> bool:
        """Whether messages are carried now, as far as is known."""

    @property
    def certificate_ends_s(self) -> float:
        """When the server's certificate ends, a Unix time; 0 if it has shown none yet."""


class StreamFullError(Exception):
    """A stream takes no more messages; its bound is reached."""


class LeaseError(Exception):
    """Somebody else has the lease, or it was lost."""
