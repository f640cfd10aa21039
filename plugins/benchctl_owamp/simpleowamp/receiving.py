"""What the receiver of a test session knows of its packets; no I/O.

It is RFC 4656, sections 3.8 and 4.2. Times are timestamps as packets carry them.
"""

from __future__ import annotations

from array import array
from collections.abc import Iterable, Iterator

from .packets import TestPacket
from .records import NO_TTL, PacketRecord, SkipRange
from .schedule import Slot, offsets

# An error estimate of 0 is not valid (RFC 4656, section 4.1.2).
_MULTIPLIER = 0xFF


class Receiving:
    """One session as its receiver sees it.

    ``records`` are those of packets that were taken, duplicates included, in order of arrival.
    """

    def __init__(
        self, sid: bytes, slots: Iterable[Slot], packet_count: int, start_time: int, timeout: int
    ) -> None:
        self.packet_count = packet_count
        self._start_time = start_time
        self._timeout = timeout
        self._next_offsets = offsets(sid, slots, packet_count)
        self._offsets = array("Q")
        self._arrived = bytearray()

    def due_time(self, seq: int) -> int:
        """Return when a packet is to leave."""
        while len(self._offsets) <= seq:
            self._offsets.append(next(self._next_offsets))
        return self._start_time + self._offsets[seq]

    def take(
        self, packet: TestPacket, receive_time: int, receive_error: int, ttl: int | None
    ) -> PacketRecord | None:
        """Return the record of a packet, None if it must be discarded (RFC 4656, section 4.2).

        Such a packet was sent long before or after it arrived or was due, or is not valid.
        """
        seq, send_time, send_error = packet
        if seq >= self.packet_count or not send_error & _MULTIPLIER:
            return None
        if abs(receive_time - send_time) > self._timeout:
            return None
        if abs(send_time - self.due_time(seq)) > self._timeout:
            return None
        if len(self._arrived) <= seq:
            self._arrived.extend(bytes(seq + 1 - len(self._arrived)))
        self._arrived[seq] = 1
        hops = NO_TTL if ttl is None else ttl
        return PacketRecord(seq, send_error, receive_error, send_time, receive_time, hops)

    def lost(self, next_seq: int, skips: Iterable[SkipRange]) -> Iterator[PacketRecord]:
        """Yield the records of packets that were sent and did not arrive.

        ``next_seq`` and ``skips`` are what the sender says of its end.
        """
        skipped = list(skips)
        for seq in range(min(next_seq, self.packet_count)):
            while skipped and skipped[0].last_seq < seq:
                skipped.pop(0)
            if skipped and skipped[0].first_seq <= seq:
                continue
            if seq >= len(self._arrived) or not self._arrived[seq]:
                yield PacketRecord(seq, 0, 0, self.due_time(seq), 0, NO_TTL)

    def seq_due_at(self, time: int) -> int:
        """Return the number of packets that were due at a time."""
        seq = 0
        while seq < self.packet_count and self.due_time(seq) <= time:
            seq += 1
        return seq
