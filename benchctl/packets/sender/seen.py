"""What a trace shows of one direction of a connection at each moment, for who wants more than sums.

`sending.HalfConnection` and `waiting.Waiting` call a `Seen` as they go, if they have one. What they
keep themselves is not passed on: retransmissions, round-trip times, zero windows.
"""

from __future__ import annotations

from collections.abc import Sequence
from enum import Enum


class Cause(Enum):
    """What a sender waits for."""

    WINDOW = "window"
    TIMEOUT = "timeout"
    APPLICATION = "application"
    NETWORK = "network"
    UNEXPLAINED = "unexplained"
    """The network for all that is seen of the sender, but nothing is seen of the network."""
    UNKNOWN = "unknown"
    """The network or the receiver's window, whose scale is not in the trace."""


class Sent(Enum):
    """How a segment came: the first of its bytes, overtaken, doubled by the network, or again."""

    NEW = "new"
    LATE = "out of order"
    DOUBLED = "doubled"
    AGAIN = "again"


class Seen:
    """Takes everything and does nothing; sequence numbers count from 0 and do not wrap."""

    def sent(self, time_s: float, start: int, end: int, how: Sent) -> None:
        """Data, a SYN or a FIN passed the place of the trace."""

    def probed(self, time_s: float, start: int) -> None:
        """A segment repeated an acknowledged byte: a keep-alive, or a zero-window probe."""

    def heard(
        self, time_s: float, acked: int, edge: int | None, blocks: Sequence[tuple[int, int]]
    ) -> None:
        """An acknowledgement passed the place of the trace, with its SACK blocks.

        Data may be sent up to ``edge``: None if that is unknown, ``acked`` if the window is zero.
        """

    def flies(
        self, time_s: float, flight_bytes: int, window_bytes: int | None, cause: Cause
    ) -> None:
        """From now on, the sender waits for this, with so much in flight.

        In the sender's view, after each segment that it sent and each answer that reached it. While
        it waits for the network, what is in flight is what its congestion window allows.
        """
