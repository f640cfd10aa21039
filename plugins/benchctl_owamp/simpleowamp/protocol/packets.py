"""Writes and reads OWAMP's test packets; no I/O."""

from __future__ import annotations

import struct
from typing import Any, Callable, NamedTuple, Protocol

from .ciphers import Keys, TestCipher
from .layouts import TEST, TEST_SECURE, Layout
from .messages import OPEN
from .timestamps import to_timestamp

Completion = Callable[[int], bytes]
"""Makes a packet with its timestamp: all else is ready, so the time is as late as it can be."""

_TIME = struct.Struct("!Q")
_TIME_AT = 4  # in all layouts without a seal


class Seal(Protocol):
    """What authenticates or encrypts a packet's head."""

    def seal(self, head: bytes) -> bytes:
        """Return the head as it goes over the wire."""

    def open(self, packet: bytes) -> bytes | None:
        """Return the head of a packet as it was, None if it is not the peer's."""


def completion(
    layout: Layout, seal: Seal | None, rest: bytes, most_bytes: int | None = None, **fields: Any
) -> Completion:
    """Return what makes a packet of fields and of the rest, cut after so many bytes."""
    if seal:
        return lambda time: seal.seal(layout.pack(**fields, time=time)) + rest
    packet = bytearray((layout.pack(**fields) + rest)[:most_bytes])

    def complete(time: int) -> bytes:
        _TIME.pack_into(packet, _TIME_AT, time)
        return bytes(packet)

    return complete


class TestPacket(NamedTuple):
    """What a test packet carries; the time and the error as they are on the wire."""

    seq: int
    time: int
    error: int


class PacketFormat:
    """The layout of a session's packets, and what fills them up.

    The layout begins with a sequence number, a time and an error estimate, as all of OWAMP, TWAMP
    and STAMP do.
    """

    def __init__(self, layout: Layout, padding: bytes = b"", seal: Seal | None = None) -> None:
        self.layout = layout
        self._padding = padding
        self._seal = seal

    def prepare(self, seq: int, error: int) -> Completion:
        """Return what makes the packet that leaves next."""
        return completion(self.layout, self._seal, self._padding, seq=seq, error=error)

    def write(self, seq: int, now_ns: int, error: int) -> bytes:
        """Return the packet that leaves now."""
        return self.prepare(seq, error)(to_timestamp(now_ns))

    def read(self, data: bytes) -> TestPacket | None:
        """Return what a packet carries, None if it is too short or not the peer's."""
        head = self._seal.open(data) if self._seal else data
        if head is None or len(head) < self.layout.size:
            return None
        fields: dict[str, Any] = self.layout.unpack(head)
        return TestPacket(fields["seq"], fields["time"], fields["error"])


def owamp_format(
    padding: bytes = b"", mode: int = OPEN, keys: Keys | None = None, sid: bytes = b""
) -> PacketFormat:
    """Return the format of OWAMP's packets (RFC 4656, section 4.1.2).

    Raises Problem if a mode other than the open one lacks its library.
    """
    if keys is None:
        return PacketFormat(TEST, padding)
    return PacketFormat(TEST_SECURE, padding, TestCipher(mode, keys, sid))
