"""What the receiver of a test session knows of its packets; no I/O.

It is RFC 4656, sections 3.8 and 4.2. Times are timestamps as packets carry them.
"""

from __future__ import annotations

from array import array
from bisect import bisect_right
from collections.abc import Iterable, Iterator

from ..protocol.packets import TestPacket
from ..protocol.records import NO_TTL, PacketRecord, SkipRange
from ..protocol.schedule import Slot, offsets

# An error estimate of 0 is not valid (RFC 4656, section 4.1.2).
_MULTIPLIER = 0xFF
# Packets whose times are worked out for one that arrives: those before it were lost.
_AHEAD = 10_000


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

    def _is_near(self, seq: int) -> bool:
        """Whether it is known when a packet is due, or soon found out.

        A number far beyond all that could be due is not worth the work.
        """
        for _ in range(_AHEAD):
            if len(self._offsets) > seq:
                return True
            self.due_time(len(self._offsets))
        return len(self._offsets) > seq

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
        if not self._is_near(seq) or abs(send_time - self.due_time(seq)) > self._timeout:
            return None
        if len(self._arrived) <= seq:
            self._arrived.extend(bytes(seq + 1 - len(self._arrived)))
        self._arrived[seq] = 1
        hops = NO_TTL if ttl is None else ttl
        return PacketRecord(seq, send_error, receive_error, send_time, receive_time, hops)

    def work_out(self, time: int, most: int) -> bool:
        """Work out what is due until a time, so many packets at most; True if that is all of it.

        Each takes microseconds: who has others to serve does it a little at a time.
        """
        offset = time - self._start_time
        for _ in range(most):
            known = len(self._offsets)
            if known == self.packet_count or (known and self._offsets[-1] > offset):
                return True
            self.due_time(known)
        return False

    def seq_due_at(self, time: int) -> int:
        """Return the number of packets that were due at a time, of those worked out."""
        return bisect_right(self._offsets, max(time - self._start_time, -1))

    def lost_seqs(self, next_seq: int, skips: Iterable[SkipRange]) -> Iterator[int]:
        """Yield the numbers of the packets that were sent and did not arrive.

        ``next_seq`` and ``skips`` are what the sender says of its end.
        """
        for first, end in self._sent(next_seq, skips):
            for seq in range(first, end):
                if seq >= len(self._arrived) or not self._arrived[seq]:
                    yield seq

    def lost_count(self, next_seq: int, skips: Iterable[SkipRange]) -> int:
        """Return how many they are."""
        sent = self._sent(next_seq, skips)
        return sum(end - first - self._arrived[first:end].count(1) for first, end in sent)

    def lost(self, seqs: Iterable[int]) -> Iterator[PacketRecord]:
        """Yield the records of lost packets; an error of 0 would not be valid, even there."""
        return (PacketRecord(seq, 1, 1, self.due_time(seq), 0, NO_TTL) for seq in seqs)

    def _sent(self, next_seq: int, skips: Iterable[SkipRange]) -> Iterator[tuple[int, int]]:
        """Yield the ranges of packets that were sent: the first one, and the first after it."""
        end, first = min(next_seq, self.packet_count), 0
        for skip in skips:
            if skip.first_seq >= end:
                break
            yield first, skip.first_seq
            first = skip.last_seq + 1
        if first < end:
            yield first, end
