"""What a sender waited for: its receiver's window, a retransmission timeout, the network, or data.

The method of Zhang, Breslau, Paxson and Shenker, On the characteristics and origins of Internet
flow rates (SIGCOMM 2002); RFC 6349 names the same causes. Between any two events, the sender waits
for one thing:

- the receiver's window, if it leaves no room for a segment;
- nothing but the application, if all data are acknowledged, or if the newest segment was not full:
  a sender with more data fills it;
- the network else: its capacity, its round trip and its losses bound the congestion window.

What passes before a retransmission by timeout is that timeout's, whatever was waited for before.

All of it is the sender's view. A trace taken elsewhere sees an acknowledgement before the sender
does, and the data that answer it after: ``lag_s`` lies between, the round trip from that place to
the sender, and so long is every acknowledgement held back here.
"""

from __future__ import annotations

import math
from collections import deque

from msgspec import Struct

from benchctl.packets.seen import Cause, Seen

_TICK_S = 1e-9
"""The finest clock of traces: what is shorter is rounding."""
_EARLY = 0.1
"""Of the lag: so much earlier than the handshake's an answer may come, for round trips vary."""
_WINDOW, _APPLICATION, _NETWORK = Cause.WINDOW, Cause.APPLICATION, Cause.NETWORK


class Wait(Struct):
    """How long a sender waited for one thing, how often, and the longest time of all."""

    total_s: float = 0.0
    count: int = 0
    longest_s: float = 0.0
    longest_at_s: float = 0.0


class Waiting:
    """The fold: data that were sent and acknowledgements in, shares of time out.

    Sequence numbers begin with 0 and do not wrap. ``segment_bytes`` is the data of a full segment.
    """

    __slots__ = (
        "_acked", "_at_s", "_began_s", "_cause", "_done_s", "_edge", "_first", "_held", "_next",
        "_short", "_since_s", "flight_bytes", "flight_cause", "full_count", "full_s",
        "initial_bytes", "lag_s", "seen", "segment_bytes", "shares",
    )  # fmt: skip

    def __init__(
        self, time_s: float, first: int, edge: int | None, lag_s: float, segment_bytes: int
    ) -> None:
        """Begin with the first data, which begin at ``first``, and what is known by then."""
        self.lag_s = lag_s
        self.segment_bytes = segment_bytes
        self.seen: Seen | None = None
        self.shares: dict[Cause, Wait] = {}
        self.flight_bytes = 0
        """The most that was sent and not acknowledged; `timeline` begins anew in each interval."""
        self.flight_cause: Cause | None = None
        """What was waited for when that much had been sent."""
        self.full_count = 0
        """How often data filled the receiver's window, the last time at ``full_s``."""
        self.full_s: float | None = None
        self.initial_bytes: int | None = None
        """What was sent before the first acknowledgement of data came: the initial window."""
        self._held: deque[tuple[float, int, int | None]] | None = None
        self._first = self._next = self._acked = first
        self._edge = edge
        self._short = 0  # bytes of the newest segment, unless it was full
        self._cause = Cause.APPLICATION
        self._began_s = self._since_s = self._at_s = self._done_s = time_s

    @property
    def lasted_s(self) -> float:
        """From the first data to the acknowledgement of the last, which the shares add up to."""
        return max(0.0, self._since_s - self._began_s)

    @property
    def flying_bytes(self) -> int:
        """What is sent and not acknowledged now."""
        return self._next - self._acked

    def expired(self, time_s: float) -> None:
        """The data that follow were sent again by a timer of the sender."""
        self._release(time_s)
        self._turn(self._at_s, Cause.TIMEOUT)

    def sent(self, time_s: float, end: int, length: int) -> None:
        """Data were sent up to a sequence number, ``length`` bytes of them in this segment."""
        if self._held:
            self._release(time_s)
        self._at_s = time_s
        if end > self._next:
            self._next = end
            self._short = length % self.segment_bytes
            edge = self._edge
            if edge is not None and end >= edge:
                self.full_count += 1
                self.full_s = time_s
            flight_bytes = end - self._acked
            if flight_bytes > self.flight_bytes:
                self.flight_bytes = flight_bytes
                self._wait(time_s)
                self.flight_cause = self._cause
                return
        self._wait(time_s)

    def heard(self, time_s: float, acked: int, edge: int | None) -> None:
        """An acknowledgement passed; data may be sent up to the edge (None if that is unknown)."""
        if self.lag_s:
            if self._held is None:
                self._held = deque()
            self._held.append((time_s + self.lag_s, acked, edge))
        else:
            self._take(time_s, acked, edge)

    def finish(self) -> None:
        """Nothing follows: what was waited for in the end counts up to the last acknowledgement."""
        self._release(math.inf)
        end_s = self._done_s if self._acked >= self._next else self._at_s
        if end_s > self._since_s:
            self._turn(end_s, self._cause)
        if self.initial_bytes is None:
            self.initial_bytes = self._next - self._first

    def _release(self, time_s: float) -> None:
        """Take the acknowledgements that have reached the sender by now."""
        held = self._held
        while held and held[0][0] <= time_s + _EARLY * self.lag_s:
            due_s, acked, edge = held.popleft()
            self._take(min(due_s, time_s), acked, edge)
        if not held:
            self._held = None

    def _take(self, time_s: float, acked: int, edge: int | None) -> None:
        if acked > self._acked:
            if self.initial_bytes is None:
                self.initial_bytes = self._next - self._first
            self._acked = acked
            self._done_s = time_s
        self._edge = edge
        self._at_s = time_s
        self._wait(time_s)

    def _wait(self, time_s: float) -> None:
        """Find out what is waited for from now on."""
        if self._edge is not None and self._edge - self._next < self.segment_bytes:
            cause = _WINDOW
        elif self._short or self._acked >= self._next:
            cause = _APPLICATION
        else:
            cause = _NETWORK
        if cause is not self._cause:
            self._turn(time_s, cause)
        if self.seen is not None:
            window = None if self._edge is None else self._edge - self._acked
            self.seen.flies(time_s, self._next - self._acked, window, cause)

    def _turn(self, time_s: float, cause: Cause) -> None:
        """Something else is waited for from now on."""
        waited_s = time_s - self._since_s
        if waited_s > _TICK_S:
            share = self.shares.get(self._cause)
            if share is None:
                share = self.shares[self._cause] = Wait()
            share.total_s += waited_s
            share.count += 1
            if waited_s > share.longest_s:
                share.longest_s, share.longest_at_s = waited_s, self._since_s
            self._since_s = time_s
        self._cause = cause
