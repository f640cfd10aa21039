"""The packets of two-way tests: TWAMP's (RFC 5357, section 4) and STAMP's (RFC 8762, section 4).

A probe goes out; its answer repeats the probe's number and time, beside the reflector's own. Both
have the same size, so both ways carry the same, and no answer is longer than its probe. No I/O.
"""

from __future__ import annotations

import hmac
import struct
from os import urandom
from typing import Any

from .ciphers import BLOCK_BYTES, Keys, TestCipher
from .layouts import (
    REFLECTED,
    REFLECTED_SECURE,
    STAMP,
    STAMP_REFLECTED,
    STAMP_REFLECTED_SECURE,
    STAMP_SECURE,
    TEST,
    TEST_SECURE,
    Layout,
)
from .packets import Completion, PacketFormat, Seal, completion

# Extra Padding, one of STAMP's extensions: U, which every sender sets, type and length (RFC 8972,
# sections 4 and 4.1).
_EXTRA_PADDING = struct.Struct("!BBH")
_UNRECOGNIZED, _PADDING_TYPE = 0x80, 1


class Sha256Seal:
    """STAMP's authentication: HMAC-SHA-256, the first 16 octets of it (RFC 8762, section 4.4)."""

    def __init__(self, key: bytes, head_bytes: int) -> None:
        self._key = key
        self._head_bytes = head_bytes

    def seal(self, head: bytes) -> bytes:
        """Return a head, whose last 16 octets are the HMAC of all others now."""
        text = head[: self._head_bytes - BLOCK_BYTES]
        return text + hmac.digest(self._key, text, "sha256")[:BLOCK_BYTES]

    def open(self, packet: bytes) -> bytes | None:
        """Return the head of a packet, None if its HMAC is another."""
        head = packet[: self._head_bytes]
        return head if hmac.compare_digest(self.seal(head), head) else None


class TwoWayFormat:
    """The layouts of one protocol and mode. ``seals`` are those of probes and of answers."""

    def __init__(
        self, probe: Layout, answer: Layout, seals: tuple[Seal, Seal] | None = None
    ) -> None:
        self.probe = probe
        self.answer = answer
        self.least_bytes = max(probe.size, answer.size)
        """The size of the smallest probe whose answer is no longer."""
        self._probe_seal = seals[0] if seals else None
        self._answer_seal = seals[1] if seals else None
        # TWAMP-Light's answers are shorter than STAMP's, with the same fields at the same places.
        self._read_answers = REFLECTED if answer is STAMP_REFLECTED else answer

    def padding_bytes(self, wanted: int) -> int:
        """Return how much follows the layout of a probe, for so much after that of OWAMP's packet.

        So packets have one size in all protocols, unless this one needs more.
        """
        one_way = TEST_SECURE if self._probe_seal else TEST
        return max(one_way.size + wanted, self.least_bytes) - self.probe.size

    def probes(self, wanted: int = 0) -> PacketFormat:
        """Return what writes probes, for so much padding as `padding_bytes` takes."""
        return PacketFormat(self.probe, self._padding(self.padding_bytes(wanted)), self._probe_seal)

    def _padding(self, count: int) -> bytes:
        """Return random octets, so that no link on the way compresses them.

        What follows STAMP's probe must be an extension of it.
        """
        if self.probe not in (STAMP, STAMP_SECURE):
            return urandom(count)
        inside = count - _EXTRA_PADDING.size
        if inside < 0:
            return b""
        return _EXTRA_PADDING.pack(_UNRECOGNIZED, _PADDING_TYPE, inside) + urandom(inside)

    def read_probe(self, packet: bytes) -> dict[str, Any] | None:
        """Return a probe's fields, None for what is none or cannot be answered at its size."""
        # TWAMP-Light's may be shorter than STAMP's (RFC 8762, section 4.6).
        if len(packet) < min(self.least_bytes, self._read_answers.size):
            return None
        return _read(self.probe, self._probe_seal, packet.ljust(self.probe.size, b"\0"))

    @property
    def is_sealed(self) -> bool:
        """Whether packets are authenticated."""
        return self._probe_seal is not None

    @property
    def answer_bytes(self) -> int:
        """The size of the smallest answer that is understood."""
        return self._read_answers.size

    def write_answer(self, packet: bytes, **fields: Any) -> Completion:
        """Return what makes the answer to a probe: as long, and with what follows the format."""
        rest = packet[self.answer.size :]
        return completion(self.answer, self._answer_seal, rest, len(packet), **fields)

    def read_answer(self, packet: bytes) -> dict[str, Any] | None:
        """Return an answer's fields, None for what is none."""
        layout = self._read_answers
        return _read(layout, self._answer_seal, packet) if len(packet) >= layout.size else None


def _read(layout: Layout, seal: Seal | None, packet: bytes) -> dict[str, Any] | None:
    head = seal.open(packet) if seal else packet
    return None if head is None else layout.unpack(head)


def twamp_format(mode: int = 0, keys: Keys | None = None, sid: bytes = b"") -> TwoWayFormat:
    """Return the format of TWAMP and TWAMP-Light, open or sealed with a session's keys.

    Raises Problem if a mode other than the open one lacks its library.
    """
    if keys is None:
        return TwoWayFormat(TEST, REFLECTED)
    layouts = TEST_SECURE, REFLECTED_SECURE
    probe, answer = (TestCipher(mode, keys, sid, layout.size) for layout in layouts)
    return TwoWayFormat(*layouts, (probe, answer))


def stamp_format(key: bytes = b"") -> TwoWayFormat:
    """Return STAMP's format, authenticated if there is a key."""
    if not key:
        return TwoWayFormat(STAMP, STAMP_REFLECTED)
    layouts = STAMP_SECURE, STAMP_REFLECTED_SECURE
    probe, answer = (Sha256Seal(key, layout.size) for layout in layouts)
    return TwoWayFormat(*layouts, (probe, answer))


def two_way_format(
    protocol: str, mode: int, keys: Keys | None, sid: bytes, secret: bytes
) -> TwoWayFormat:
    """Return the format of a protocol: twamp, twamp-light or stamp.

    ``keys`` and ``sid`` are those of a session of TWAMP, ``secret`` is the key of STAMP.
    """
    return stamp_format(secret) if protocol == "stamp" else twamp_format(mode, keys, sid)
