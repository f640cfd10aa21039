"""One two-way session as its sender knows it: its answers so far, and its figures."""

from __future__ import annotations

import socket
from array import array
from collections.abc import Iterable
from typing import NamedTuple

from ..protocol.messages import SessionRequest
from ..protocol.records import SkipRange
from ..protocol.two_way import TwoWayFormat
from .directions import Direction
from .endpoint import TTL
from .round_trip import LostWays, Reflected, RoundTrip


class Way(NamedTuple):
    """The way out, or the way back."""

    delays_ns: array[int]
    synchronized: list[bool]
    """Whether all packets so far say so of the clock where they began, and where they ended."""
    hops: set[int]


class TwoWaySession(Direction):
    """Both directions as one; ``request`` says only what the sender itself keeps to.

    ``delays_ns`` are round trips, without the reflector's own time, which is ``reflector_ns``.
    """

    def __init__(
        self, request: SessionRequest, sock: socket.socket, form: TwoWayFormat, counts: bool
    ) -> None:
        super().__init__("both", request, sock)
        self.form = form
        self.trip = RoundTrip(form, self.receiving, counts)
        self.ways = {name: Way(array("q"), [True, True], set()) for name in ("send", "receive")}
        self.reflector_ns = array("q")
        self.lost_ways: LostWays | None = None

    def take_answer(self, back: Reflected) -> None:
        """Count an answer, in the order of arrival."""
        if back.duplicate:
            self.duplicates += 1
            return
        self.received += 1
        self.reordered += back.seq < self._next_seq
        self._next_seq = max(self._next_seq, back.seq + 1)
        self.delays_ns.append(back.rtt_ns)
        self.reflector_ns.append(back.reflector_ns)
        self.late.add(max(back.sent_ns - self.due_ns(back.seq), 0))
        here, there = back.sent_error.synchronized, back.reflector_error.synchronized
        out, home = self.ways["send"], self.ways["receive"]
        out.delays_ns.append(back.send_ns)
        home.delays_ns.append(back.receive_ns)
        out.hops.add(TTL - back.reflector_ttl)
        if back.ttl is not None:
            home.hops.add(TTL - back.ttl)
        for way, ends in ((out, (here, there)), (home, (there, here))):
            for end, synchronized in enumerate(ends):
                way.synchronized[end] &= synchronized

    def end(self, next_seq: int, skips: Iterable[SkipRange]) -> list[int]:
        """Take what was sent at the end; returns the numbers of the lost packets."""
        lost = super().end(next_seq, skips)
        self.lost_ways = self.trip.lost_ways(lost)
        return lost
