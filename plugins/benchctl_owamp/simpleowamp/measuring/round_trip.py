"""Reads the answers to probes: RFC 5357, section 4.1; RFC 8762, section 4.2. No I/O.

An answer carries four times: the probe left (1) and reached the reflector (2), the answer left (3)
and came back (4). The round trip, without the reflector's own time, is (4 - 1) - (3 - 2): each
difference is of one clock, so it holds however wrong the clocks are. The halves, 2 - 1 and 4 - 3,
need both clocks.
"""

from __future__ import annotations

from typing import NamedTuple

from ..protocol.packets import TestPacket
from ..protocol.timestamps import ErrorEstimate, from_timestamp, to_timestamp
from ..protocol.two_way import TwoWayFormat
from .receiving import Receiving


class Reflected(NamedTuple):
    """A probe that came back. Times are nanoseconds since the Unix epoch, each of its own clock."""

    seq: int
    duplicate: bool
    sent_ns: int
    reflector_received_ns: int
    reflector_sent_ns: int
    received_ns: int
    sent_error: ErrorEstimate
    reflector_error: ErrorEstimate
    ttl: int | None
    """The TTL with which the answer arrived here."""
    reflector_ttl: int
    """The TTL with which the probe arrived at the reflector."""
    reflector_seq: int

    @property
    def rtt_ns(self) -> int:
        """The round trip without the time that the reflector took."""
        return self.received_ns - self.sent_ns - self.reflector_ns

    @property
    def send_ns(self) -> int:
        """The delay on the way out."""
        return self.reflector_received_ns - self.sent_ns

    @property
    def receive_ns(self) -> int:
        """The delay on the way back."""
        return self.received_ns - self.reflector_sent_ns

    @property
    def reflector_ns(self) -> int:
        """The time that the reflector took to answer."""
        return self.reflector_sent_ns - self.reflector_received_ns


class LostWays(NamedTuple):
    """How many of the lost packets are known to be lost on the way out, and on the way back.

    Those after the last answer may be lost on either.
    """

    send: int
    receive: int


class RoundTrip:
    """The answers to one session's probes; ``probes`` knows when each was due.

    ``counts`` is whether the reflector is known to number its answers itself: TWAMP's must (RFC
    5357, section 4.2.1), those of TWAMP-Light and STAMP may.
    """

    def __init__(self, form: TwoWayFormat, probes: Receiving, counts: bool = False) -> None:
        self._form = form
        self._probes = probes
        self._counts = counts
        self._answered: set[int] = set()
        self._numbers: set[int] = set()
        self._first = (0, 0)
        """The numbers of the first answer: the sender's and the reflector's."""
        self._differs = False
        self.duplicates = 0
        self.short_bytes = 0
        """The size of the last packet that was too short for an answer, or had a false seal."""

    @property
    def received(self) -> int:
        """The number of probes that were answered."""
        return len(self._answered)

    def receive(self, packet: bytes, arrived_ns: int, ttl: int | None) -> Reflected | None:
        """Return what an answer says; None for a packet that answers no probe, or too late."""
        found = self._form.read_answer(packet)
        if found is None:
            self.short_bytes = len(packet)
            return None
        probe = TestPacket(found["sender_seq"], found["sender_time"], found["sender_error"])
        # A number and a time that fit together are those of a probe: nothing else is believed.
        if not self._probes.take(probe, to_timestamp(arrived_ns), 0, ttl):
            return None
        duplicate = probe.seq in self._answered
        self.duplicates += duplicate
        if not self._answered:
            self._first = probe.seq, found["seq"]
        self._answered.add(probe.seq)
        self._numbers.add(found["seq"])
        self._differs = self._differs or found["seq"] != probe.seq
        sent_error = ErrorEstimate.unpack(probe.error)
        error = ErrorEstimate.unpack(found["error"])
        return Reflected(
            probe.seq,
            duplicate,
            from_timestamp(probe.time),
            from_timestamp(found["received_time"], error.ptp),
            from_timestamp(found["time"], error.ptp),
            arrived_ns,
            sent_error,
            error,
            ttl,
            found["sender_ttl"],
            found["seq"],
        )

    def lost_ways(self, lost: list[int]) -> LostWays | None:
        """Return where packets of these numbers were lost, None if the answers don't tell it.

        A gap in the reflector's numbers is an answer that was lost; what is lost besides has not
        reached it. Equal numbers on both sides say nothing: perhaps it repeats the sender's.
        """
        last = max(self._answered, default=-1)
        lost = [seq for seq in lost if seq < last]
        if lost and not (self._counts or self._differs):
            return None
        least, (first_seq, first_number) = 0, self._first
        if first_number > first_seq and not self._counts:
            # It goes on with the numbers of an earlier session: what was before is unknown.
            least = min(self._numbers)
            lost = [seq for seq in lost if seq > first_seq]
        missing = max(self._numbers, default=-1) + 1 - least - len(self._numbers)
        receive = min(missing, len(lost))
        return LostWays(len(lost) - receive, receive)
