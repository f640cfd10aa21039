"""One direction of a measurement, as the client knows it: its packets so far, and its figures."""

from __future__ import annotations

import socket
from array import array
from collections.abc import Iterable
from typing import NamedTuple

from benchctl_standalone.histogram import Histogram

from ..protocol.messages import SessionRequest
from ..protocol.records import PacketRecord, SkipRange
from ..protocol.timestamps import ErrorEstimate, from_interval, from_timestamp, to_timestamp
from .clock import SECOND_NS
from .endpoint import TTL
from .quota import duration_s
from .receiving import Receiving

_LATE_SHARE = 0.8
_STEP = 10_000


class Packet(NamedTuple):
    """A packet that arrived; its times are on the clocks of its sender and its receiver."""

    seq: int
    sent_ns: int
    received_ns: int
    sent: ErrorEstimate
    received: ErrorEstimate
    ttl: int

    @classmethod
    def of_record(cls, record: PacketRecord) -> Packet:
        """Return what a record says of a packet that was not lost."""
        return cls(
            record.seq,
            from_timestamp(record.send_time),
            from_timestamp(record.receive_time),
            ErrorEstimate.unpack(record.send_error),
            ErrorEstimate.unpack(record.receive_error),
            record.ttl,
        )


class Direction:
    """One session: ``name`` is send or receive, as seen from the client."""

    def __init__(self, name: str, request: SessionRequest, sock: socket.socket) -> None:
        self.name = name
        self.request = request
        self.sock = sock
        self.receiving = Receiving(
            request.sid, request.slots, request.packet_count, request.start_time, request.timeout
        )
        self.delays_ns = array("q")
        self.received = self.duplicates = self.reordered = self.lost = self.skipped = 0
        self.late = Histogram()
        self.hops: set[int] = set()
        self.synchronized = [True, True]
        """Whether all packets so far say so of the sender's clock, and of the receiver's."""
        self._next_seq = 0
        self._seen: set[int] = set()

    @property
    def sent(self) -> int:
        """The packets whose fate is known."""
        return self.received + self.lost

    @property
    def complete(self) -> bool:
        """Whether every packet has arrived."""
        return self.received == self.request.packet_count

    def take(self, packet: Packet) -> None:
        """Count a packet, in the order of arrival."""
        if packet.seq in self._seen:
            self.duplicates += 1
            return
        self._seen.add(packet.seq)
        self.received += 1
        # RFC 4737, section 3.3: a packet is reordered if a later one has arrived before.
        self.reordered += packet.seq < self._next_seq
        self._next_seq = max(self._next_seq, packet.seq + 1)
        self.delays_ns.append(packet.received_ns - packet.sent_ns)
        self.late.add(max(packet.sent_ns - self.due_ns(packet.seq), 0))
        self.hops.add(TTL - packet.ttl)
        for end, estimate in enumerate((packet.sent, packet.received)):
            self.synchronized[end] &= estimate.synchronized

    def due_ns(self, seq: int) -> int:
        """Return when a packet was to leave, on its sender's clock."""
        return from_timestamp(self.receiving.due_time(seq))

    def due_before(self, own_ns: int) -> int:
        """Return how many packets were due at a time of this end's clock."""
        time = to_timestamp(own_ns)
        while not self.receiving.work_out(time, _STEP):
            pass
        return self.receiving.seq_due_at(time)

    def end_ns(self, now_ns: int) -> int | None:
        """Return until when packets may be under way; None long before that.

        The schedule is worked out to its end late, when most of it has been needed anyway.
        """
        start_ns = from_timestamp(self.request.start_time)
        if now_ns < start_ns + _LATE_SHARE * duration_s(self.request) * SECOND_NS:
            return None
        return self.due_ns(self.request.packet_count - 1) + self.timeout_ns

    @property
    def seen_to(self) -> int:
        """The number after the highest that arrived."""
        return self._next_seq

    @property
    def timeout_ns(self) -> int:
        """How long after it was due a packet may arrive."""
        return from_interval(self.request.timeout)

    def end(self, next_seq: int, skips: Iterable[SkipRange]) -> list[int]:
        """Take what the sender says at its end; returns the numbers of the lost packets."""
        skips = tuple(skips)
        self.skipped = sum(skip.last_seq - skip.first_seq + 1 for skip in skips)
        lost = [seq for seq in self.receiving.lost_seqs(next_seq, skips) if seq not in self._seen]
        self.lost = len(lost)
        return lost
