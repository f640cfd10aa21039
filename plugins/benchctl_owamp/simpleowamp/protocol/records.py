"""What a session's two ends tell each other of its packets: records and ranges that were skipped.

Times and errors stay as packets carry them; `timestamps` says what they mean.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

from benchctl_standalone.errors import Problem

from .layouts import RECORD, SKIP_RANGE

NO_TTL = 255  # the packet was lost, or its TTL isn't known (RFC 4656, section 3.9)


class PacketRecord(NamedTuple):
    """One packet as its receiver saw it, in the order of the wire (RFC 4656, section 3.9)."""

    seq: int
    send_error: int
    receive_error: int
    send_time: int
    """When it was due, if it is lost."""
    receive_time: int
    """0 if it is lost."""
    ttl: int

    @property
    def lost(self) -> bool:
        """Whether the packet did not arrive in time."""
        return not self.receive_time


class SkipRange(NamedTuple):
    """Packets that were due and never sent, from the first to the last one (section 3.8)."""

    first_seq: int
    last_seq: int


def pack_records(records: Iterable[PacketRecord]) -> bytes:
    """Return records, one after another."""
    return b"".join(map(RECORD.pack_row, records))


def unpack_records(data: bytes) -> tuple[PacketRecord, ...]:
    """Return the records that data consists of."""
    return tuple(map(PacketRecord._make, RECORD.unpack_rows(data)))


def pack_skips(skips: Iterable[SkipRange]) -> bytes:
    """Return ranges, one after another."""
    return b"".join(map(SKIP_RANGE.pack_row, skips))


def unpack_skips(data: bytes) -> tuple[SkipRange, ...]:
    """Return the ranges that data consists of.

    Raises Problem unless each begins after the one before has ended.
    """
    skips = tuple(map(SkipRange._make, SKIP_RANGE.unpack_rows(data)))
    before = -1
    for first, last in skips:
        if not before < first <= last:
            raise Problem("peer", "ranges of skipped packets that are not in order")
        before = last
    return skips
