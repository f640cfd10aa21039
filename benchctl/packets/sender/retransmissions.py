"""What was sent again, and why: by what its sender knew.

The receiver had reported a gap by SACK or duplicate acknowledgements: fast retransmission
(RFC 5681, RFC 6675). Nothing had come from it for more than a round trip: timeout (RFC 6298), or a
probe if it is the newest data while older ones are in flight (RFC 8985, tail loss). What was in
flight when a loss was found so is sent again for that cause, as in the states of Linux.
"""

from __future__ import annotations

from array import array
from enum import IntEnum


class Why(IntEnum):
    """Why data were sent again; other if the trace does not show it."""

    FAST = 0
    TIMEOUT = 1
    PROBE = 2
    OTHER = 3


class Retransmissions:
    """All retransmissions of one direction; ``needless`` marks what the receiver had already."""

    def __init__(self) -> None:
        self.times_s = array("d")
        self.starts, self.ends = array("q"), array("q")
        self.kinds, self.needless = bytearray(), bytearray()
        # Of what was in flight when the last loss was found: all of it has that cause.
        self._cause, self._until = Why.OTHER, 0

    def add(self, time_s: float, start: int, end: int, kind: Why, needless: bool) -> None:
        self.times_s.append(time_s)
        self.starts.append(start)
        self.ends.append(end)
        self.kinds.append(kind)
        self.needless.append(needless)

    def why(self, start: int, end: int, flying: range, *, silent: bool, reported: bool) -> Why:
        """Return why bytes are sent again while those of ``flying`` are sent and not acknowledged.

        ``silent`` says that nothing had come from the receiver for longer than it takes to answer,
        ``reported`` that it had reported a gap.
        """
        if silent:
            if start > flying.start and end >= flying.stop:
                return Why.PROBE
            self._cause, self._until = Why.TIMEOUT, flying.stop
        elif start >= self._until:
            if not reported:
                return Why.OTHER
            self._cause, self._until = Why.FAST, flying.stop
        return self._cause

    def received_twice(self, start: int, end: int) -> bool:
        """The receiver had bytes already (RFC 2883): the newest that repeats them was needless.

        Returns whether there is one among the newest; else the network doubled a packet.
        """
        for at in range(len(self.kinds) - 1, max(-1, len(self.kinds) - 1000), -1):
            if self.starts[at] < end and start < self.ends[at] and not self.needless[at]:
                self.needless[at] = True
                return True
        return False

    def count(self, kind: Why | None = None, *, needless: bool = False) -> int:
        """Return how many there are, of one kind, or needless ones only."""
        pairs = zip(self.kinds, self.needless, strict=True)
        return sum(
            (kind is None or why == kind) and unneeded >= needless for why, unneeded in pairs
        )
