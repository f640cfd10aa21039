"""What a sender waited for: its receiver's window, a retransmission timeout, the network, or data.

The method of Zhang, Breslau, Paxson and Shenker, On the characteristics and origins of Internet
flow rates (SIGCOMM 2002); RFC 6349 names the same causes. Between any two events, the sender waits
for one thing:

- the receiver's window, if it leaves no room for a segment;
- nothing but the application, if all data are acknowledged, or if the newest segment was not full:
  a sender with more data fills it;
- the network else: its capacity, its round trip and its losses bound the congestion window.

The network shows: data are lost, round trips are longer than the least, or more and more data are
in flight, as congestion control has it that has met no bound yet (RFC 5681). A sender that nothing
else holds back, and of which none of that is seen for long, waits for something unexplained: it is
paced, by its application or by a control such as BBR, or its send buffer is full.

A window whose scale is not in the trace is at least as large as its field says. Where it may leave
no room, and the application has data, the window or the network is waited for: unknown.

What passes before a retransmission by timeout is that timeout's, whatever was waited for before.

All of it is the sender's view. A trace taken elsewhere sees an acknowledgement before the sender
does, and the data that answer it after: ``lag_s`` lies between, the round trip from that place to
the sender, and so long is every acknowledgement held back here. Data show when it had come: their
timestamps echo the newest that had (RFC 7323, section 4.3), and what was sent beyond the edge of a
window needed the one that opened it. A link spreads what was sent at once, so a window counts as
closed until its room is used, if that happens within a moment.
"""

from __future__ import annotations

import math
from collections import deque
from typing import NamedTuple

from msgspec import Struct

from benchctl.packets.sender.seen import Cause, Seen

_TICK_S = 1e-9
"""The finest clock of traces: what is shorter is rounding."""
_EARLY = 0.1
"""Of the lag: so much earlier than the handshake's an answer may come, for round trips vary."""
_LATE, _LATE_S = 0.1, 0.002
"""So much later, of the lag and besides, data may come that answer an open window at once."""
_STAMPS_S = 0.002
"""Timestamps tick in milliseconds on most hosts: they say nothing of shorter ways."""
_MASK, _BACK = 0xFFFFFFFF, 1 << 31
RAISED, RAISED_S = 0.25, 0.001
"""A queue adds more to a round trip than so much of the least, and more than a scheduler does."""
_CALM_ROUNDS, _CALM_S, _AFTER_LOSS_S = 8, 0.2, 3.0
"""So long, flights of a sender that the network bounds may not grow by a segment.

A few round trips: Reno takes one, CUBIC two where it is as friendly (RFC 9438, section 4.3), and
hosts pause. After a loss, CUBIC stays within a segment of where that was for twice the cube root of
1 / 0.4 (section 4.2): 2.7 s.
"""
_WINDOW, _APPLICATION, _NETWORK = Cause.WINDOW, Cause.APPLICATION, Cause.NETWORK
_UNKNOWN = Cause.UNKNOWN


class Wait(Struct):
    """How long a sender waited for one thing, how often, and the longest time of all."""

    total_s: float = 0.0
    count: int = 0
    longest_s: float = 0.0
    longest_at_s: float = 0.0

    def add(self, waited_s: float, since_s: float) -> None:
        """Add another time, which began then."""
        self.total_s += waited_s
        self.count += 1
        if waited_s > self.longest_s:
            self.longest_s, self.longest_at_s = waited_s, since_s

    def join(self, other: Wait) -> None:
        """Add all that was waited for the same thing."""
        self.total_s += other.total_s
        self.count += other.count
        if other.longest_s > self.longest_s:
            self.longest_s, self.longest_at_s = other.longest_s, other.longest_at_s


class _Held(NamedTuple):
    """An acknowledgement that passed the place of the trace."""

    at_s: float
    acked: int
    edge: int | None
    least_edge: int
    stamp: int | None


class Waiting:
    """The fold: data that were sent and acknowledgements in, shares of time out.

    Sequence numbers begin with 0 and do not wrap. ``segment_bytes`` is the data of a full segment.
    """

    __slots__ = (
        "_acked", "_at_s", "_began_s", "_calm", "_calm_s", "_cause", "_done_s", "_edge", "_first",
        "_lag_s", "_lost_s", "_more_bytes", "_next", "_opening", "_short", "_shown_s", "_since_s",
        "_used_edge", "flight_bytes", "flight_cause", "full_count", "full_s", "held",
        "initial_bytes", "lag_s", "least_edge", "round_s", "seen", "segment_bytes", "shares",
        "stamped",
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
        self.least_edge = edge or 0
        """Data may be sent at least up to here, if the edge is unknown."""
        self.round_s = 0.0
        """The mean round trip beyond the place of the trace, of the newest acknowledgements."""
        self.stamped = lag_s >= _STAMPS_S
        """Whether timestamps say what had reached the sender."""
        # What was waited for since the network was last seen, at ``_shown_s``, and how many bytes
        # in flight are a segment more than the most since the last loss.
        self._calm = Wait()
        self._shown_s = self._calm_s = time_s
        self._more_bytes = 0
        self._lost_s = -math.inf
        self.held: deque[_Held] | None = None
        """Acknowledgements on their way to the sender; None if there is nothing on its way."""
        # Those of which only the window may be.
        self._opening: deque[_Held] | None = None
        self._lag_s = lag_s
        self._first = self._next = self._acked = first
        self._edge = edge
        # Up to here, or to the edge, data have shown that the sender knows of it.
        self._used_edge = edge
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

    def expired(self, time_s: float, end: int = 0, echo: int | None = None) -> None:
        """The data that follow were sent again by a timer of the sender; see `sent`."""
        self._release(time_s, end, echo)
        self._turn(self._at_s, Cause.TIMEOUT)

    def sent(self, time_s: float, end: int, length: int, echo: int | None = None) -> None:
        """Data were sent up to a sequence number, ``length`` bytes of them in this segment.

        ``echo`` is the timestamp of the newest acknowledgement that had reached the sender.
        """
        if self.held is not None:
            self._release(time_s, end, echo)
        self._at_s = time_s
        if end > self._next:
            self._next = end
            self._short = length % self.segment_bytes
            edge = self._edge
            if edge is not None and end >= edge:
                self.full_count += 1
                self.full_s = time_s
            flight_bytes = end - self._acked
            if flight_bytes >= self._more_bytes:
                self._more_bytes = flight_bytes + self.segment_bytes
                self.shows(time_s)
            if flight_bytes > self.flight_bytes:
                self.flight_bytes = flight_bytes
                self._wait(time_s)
                self.flight_cause = self._cause_at(time_s)
                return
        self._wait(time_s)

    def shows(self, time_s: float) -> None:
        """The network is seen to bound what may be in flight."""
        if time_s - self._shown_s >= _CALM_S and self._is_calm(time_s):
            if self._cause is _NETWORK:
                self._turn(time_s, _NETWORK)
            self._settle(Cause.UNEXPLAINED)
        self._shown_s = time_s

    def lost(self, time_s: float) -> None:
        """Data are sent again: how much may be in flight begins anew."""
        self.shows(time_s)
        self._more_bytes = 0
        self._lost_s = time_s

    def doubt(self) -> None:
        """Round trips are shorter than ever: those before were longer than the least."""
        if Cause.UNEXPLAINED in self.shares:
            self._share(_NETWORK).join(self.shares.pop(Cause.UNEXPLAINED))

    def _is_calm(self, time_s: float) -> bool:
        """Return whether the network was not seen for so long that it shows."""
        rounds_s = _CALM_ROUNDS * (self.round_s + self._lag_s)
        return (
            time_s - self._shown_s >= max(_CALM_S, rounds_s)
            and time_s - self._lost_s >= _AFTER_LOSS_S
        )

    def _cause_at(self, time_s: float) -> Cause:
        if self._cause is _NETWORK and self._is_calm(time_s):
            return Cause.UNEXPLAINED
        return self._cause

    def _settle(self, cause: Cause) -> None:
        """Count what was waited for since the network was last seen."""
        if self._calm.count:
            self._share(cause).join(self._calm)
            self._calm = Wait()

    def heard(
        self, time_s: float, acked: int, edge: int | None, least_edge: int = 0,
        stamp: int | None = None,
    ) -> None:  # fmt: skip
        """An acknowledgement passed; data may be sent up to the edge.

        If that is unknown (None), at least up to the other. ``stamp`` is its timestamp.
        """
        if self.lag_s:
            if self.held is None:
                self.held, self._opening = deque(), deque()
            self.held.append(_Held(time_s, acked, edge, least_edge, stamp))
        else:
            self._at_s = time_s
            self._acknowledge(time_s, acked)
            self._edge, self._used_edge, self.least_edge = edge, edge, least_edge
            self._wait(time_s)

    def finish(self) -> None:
        """Nothing follows: what was waited for in the end counts up to the last acknowledgement."""
        self._release(math.inf)
        end_s = self._done_s if self._acked >= self._next else self._at_s
        if end_s > self._since_s:
            self._turn(end_s, self._cause)
        self._settle(Cause.UNEXPLAINED if self._is_calm(end_s) else _NETWORK)
        if self.initial_bytes is None:
            self.initial_bytes = self._next - self._first

    def _release(self, time_s: float, end: int = 0, echo: int | None = None) -> None:
        """Take the acknowledgements that have reached the sender by now, as data show.

        Those that data up to ``end`` needed have; of those with timestamps, those up to ``echo``.
        """
        held, opening = self.held, self._opening
        if held is None or opening is None:
            return
        newest: _Held | None = None
        while held:
            next_held = held[0]
            edge = opening[-1].edge if opening else self._edge
            due_s = next_held.at_s + self._lag_s
            if edge is None or end <= edge:
                if echo is None or next_held.stamp is None:
                    if due_s > time_s + _EARLY * self.lag_s:
                        break
                elif (echo - next_held.stamp) & _MASK >= _BACK:
                    break
            opening.append(held.popleft())
            newest = next_held
            self._at_s = max(self._at_s, min(due_s, time_s))
            self._acknowledge(self._at_s, next_held.acked)
            self._wait(self._at_s)
        if newest is not None and time_s < math.inf:
            self._measure(time_s, newest, is_newest=not held)
        while opening:
            opener = opening[0]
            due_s = opener.at_s + self._lag_s
            late = due_s + _LATE * self.lag_s + _LATE_S <= time_s
            used_edge = opener.edge
            if (
                self._used_edge is not None
                and opener.edge is not None
                and end < opener.edge
                and not late
            ):
                if end <= self._used_edge:
                    break
                used_edge = end
            else:
                opening.popleft()
            self._edge, self._used_edge, self.least_edge = opener.edge, used_edge, opener.least_edge
            self._at_s = max(self._at_s, due_s if late else time_s)
            self._wait(self._at_s)
            if used_edge != opener.edge:
                break
        if not held and not opening:
            self.held = self._opening = None  # empty ones hold a kilobyte

    def _measure(self, time_s: float, held: _Held, *, is_newest: bool) -> None:
        """Take how long after an acknowledgement data passed that show that it had come."""
        lag_s = time_s - held.at_s
        # The sender may have been silent since the newest of all came.
        if held.stamp is not None and (lag_s < self._lag_s or not is_newest):
            self._lag_s = max(self.lag_s, lag_s)
        if held.stamp is None or self._lag_s > (1 + RAISED) * self.lag_s + RAISED_S:
            self.shows(time_s)  # or may: without timestamps, nothing tells

    def _acknowledge(self, time_s: float, acked: int) -> None:
        if acked > self._acked:
            if self.initial_bytes is None:
                self.initial_bytes = self._next - self._first
            self._acked = acked
            self._done_s = time_s

    def _wait(self, time_s: float) -> None:
        """Find out what is waited for from now on."""
        if self._used_edge is not None and self._used_edge - self._next < self.segment_bytes:
            cause = _WINDOW
        elif self._short or self._acked >= self._next:
            cause = _APPLICATION
        elif self._edge is None and self.least_edge - self._next < self.segment_bytes:
            cause = _UNKNOWN
        else:
            cause = _NETWORK
        if cause is not self._cause:
            self._turn(time_s, cause)
        if self.seen is not None:
            window = None if self._edge is None else self._edge - self._acked
            self.seen.flies(time_s, self._next - self._acked, window, self._cause_at(time_s))

    def _turn(self, time_s: float, cause: Cause) -> None:
        """Something else is waited for from now on."""
        waited_s = time_s - self._since_s
        if waited_s > _TICK_S:
            if self._cause is _NETWORK:
                self._wait_calmly(time_s)
            else:
                self._share(self._cause).add(waited_s, self._since_s)
            self._since_s = time_s
        self._cause = cause

    def _wait_calmly(self, time_s: float) -> None:
        """Count a time that is the network's if that was seen since, or is soon."""
        shown_s, since_s = self._shown_s, self._since_s
        if self._calm_s != shown_s:
            self._settle(_NETWORK)
            self._calm_s = shown_s
        if since_s < shown_s:
            until_s = min(shown_s, time_s)
            self._share(_NETWORK).add(until_s - since_s, since_s)
            since_s = until_s
        if time_s - since_s > _TICK_S:
            self._calm.add(time_s - since_s, since_s)

    def _share(self, cause: Cause) -> Wait:
        share = self.shares.get(cause)
        if share is None:
            share = self.shares[cause] = Wait()
        return share
