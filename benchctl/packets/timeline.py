"""A connection over time: its data, what was in flight, windows and round trips by interval.

The halves of a connection are looked at when an interval ends, so that a segment costs no more than
a comparison. Memory depends on the number of intervals: of each, what the halves do not keep
themselves is a row of numbers. Without a given length, intervals are 1 ms long at first, and
doubled whenever they are too many.
"""

from __future__ import annotations

from array import array
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from math import inf, isnan, nan
from statistics import fmean
from typing import TYPE_CHECKING, NamedTuple

from benchctl.packets.sender.seen import Cause

if TYPE_CHECKING:
    from benchctl.packets.sender.sending import HalfConnection
    from benchctl.packets.sender.waiting import Waiting

LEAST_STEP_S = 0.001
"""Shorter intervals show single bursts."""
MOST = 800
"""Intervals of a connection: half as many or more are left, about what a picture shows."""
MOST_ASKED = 100_000
"""Intervals of a given length: 3 MB for each direction."""

_EDGE = 1e-6
"""Of an interval: what is so close before its end, by rounding, is at the beginning of the next."""


class Interval(NamedTuple):
    """What was seen in a part of the time, in seconds since the trace began.

    By the names of `benchctl.metrics.METRICS`, as far as it is known.
    """

    start_s: float
    end_s: float
    metrics: Mapping[str, float]


class _Row(NamedTuple):
    """What one half was in an interval; what is not known is not a number."""

    place: float
    """The number of the interval."""
    unique_bytes: float
    """Bytes that had passed at its end, each once."""
    flight_bytes: float
    cwnd_bytes: float
    window_bytes: float
    flight_left_bytes: float
    """In flight at its end."""
    window_left_bytes: float


_WIDTH = len(_Row._fields)
_BLANK = _Row(nan, 0, 0, nan, nan, 0, nan)


class _Track:
    """The intervals of one half. It takes the half's extremes, and gives them back in the end."""

    __slots__ = ("_least_bytes", "_left_bytes", "_most_bytes", "_was_recovering", "half", "noted")

    def __init__(self, half: HalfConnection) -> None:
        self.half = half
        self.noted = array("d")
        self._left_bytes = self._most_bytes = 0
        self._least_bytes: int | None = None
        self._was_recovering = False

    def note(self, place: int, waiting: Waiting) -> None:
        """Note an interval that has ended."""
        half, left_bytes = self.half, waiting.flying_bytes
        flight_bytes, cause = max(waiting.flight_bytes, self._left_bytes), waiting.flight_cause
        recovering = half.is_recovering
        limited = cause is Cause.NETWORK and not recovering and not self._was_recovering
        least, now = half.window_least_bytes, half.window_bytes
        self.noted.extend((
            place, half.unique_bytes, flight_bytes, flight_bytes if limited else nan,
            nan if least is None else least, left_bytes, nan if now is None else now,
        ))  # fmt: skip
        self._left_bytes, self._was_recovering = left_bytes, recovering
        self._most_bytes = max(self._most_bytes, flight_bytes)
        if least is not None and (self._least_bytes is None or least < self._least_bytes):
            self._least_bytes = least
        # One less: what is sent next shows again what is waited for with so much in flight.
        waiting.flight_bytes, waiting.flight_cause = left_bytes - 1, None
        half.window_least_bytes = now

    def give_back(self, waiting: Waiting) -> None:
        """Nothing follows: the half has the extremes of all intervals again."""
        waiting.flight_bytes = self._most_bytes
        self.half.window_least_bytes = self._least_bytes

    def rows(self) -> Iterator[_Row]:
        """Yield what is noted."""
        for at in range(0, len(self.noted), _WIDTH):
            yield _Row(*self.noted[at : at + _WIDTH])


class Timeline:
    """The intervals of a connection, from ``began_s`` on, when its first segment passed."""

    __slots__ = ("_began_s", "_halves", "_index", "_most", "_tracks", "step_s")

    def __init__(
        self, began_s: float, halves: Sequence[HalfConnection], step_s: float | None
    ) -> None:
        self.step_s = step_s or LEAST_STEP_S
        self._most = MOST_ASKED if step_s else MOST
        self._began_s = began_s
        self._halves = halves
        self._index = -1
        self._tracks = tuple(map(_Track, halves))

    def turn(self, time_s: float) -> float:
        """Another interval begins: note how the last one ended. Returns when this one will end.

        At infinity, nothing follows.
        """
        for track in self._tracks:
            if track.half.waiting is not None:
                track.note(self._index, track.half.waiting)
                if time_s == inf:
                    track.give_back(track.half.waiting)
        if time_s == inf:
            return inf
        self._index = self._index_of(time_s)
        if self._index >= self._most:
            self._double()
        return self._began_s + (self._index + 1 - _EDGE) * self.step_s

    def _double(self) -> None:
        """Make intervals twice as long until they are few enough."""
        while self._index >= self._most:
            self.step_s *= 2
            self._index //= 2
            for track in self._tracks:
                joined: dict[float, _Row] = {}
                for row in track.rows():
                    place = row.place // 2
                    before = joined.get(place)
                    joined[place] = (_joined(before, row) if before else row)._replace(place=place)
                track.noted = array("d", [value for row in joined.values() for value in row])

    def intervals(self, direction: int) -> Iterator[Interval]:
        """Yield the intervals of one half, from its first data until the last are acknowledged.

        The rate ends with the last data. The first and the last interval with data are from
        half to one and a half times as long as the others: less would show a burst as a rate.
        """
        half = self._halves[direction]
        if half.first_data_s is None or half.last_data_s is None:
            return
        first_s = half.first_data_s - self._began_s
        last_s = max(first_s, half.last_data_s - self._began_s)
        span = _Span(first_s, last_s, self.step_s)
        rows: dict[int, _Row] = {}
        for row in self._tracks[direction].rows():
            place = span.place(int(row.place))
            rows[place] = _joined(rows[place], row) if place in rows else row
        trips: dict[int, list[float]] = {}
        for time_s, rtt_s in zip(half.rtt_times_s, half.rtt_s, strict=True):
            if time_s >= half.first_data_s:  # and not that of the handshake
                trips.setdefault(span.place(self._index_of(time_s)), []).append(rtt_s)
        again = half.retransmissions.times_s if half.retransmissions is not None else ()
        repeated = Counter(span.place(self._index_of(time_s)) for time_s in again)
        before, passed = _BLANK, 0.0
        for place in range(span.low, max(span.end, *trips, 0) + 1):
            if span.high < place <= span.end:
                continue
            # Where nothing passed, what was in flight still is.
            row = rows.get(place) or _still(before)
            start_s, end_s = span.times_s(place)
            metrics: dict[str, float] = {}
            if place <= span.high and end_s > start_s:
                metrics["throughput_bps"] = (row.unique_bytes - passed) * 8 / (end_s - start_s)
            if place <= span.high:
                metrics["retransmits"] = repeated[place]
            if place in trips:
                metrics["rtt_s"], metrics["rtt_max_s"] = fmean(trips[place]), max(trips[place])
            known = {
                "flight_bytes": row.flight_bytes,
                "cwnd_estimated_bytes": row.cwnd_bytes,
                "peer_window_bytes": row.window_bytes,
            }
            if half.peer.packets:  # else nothing is known to be acknowledged
                metrics |= {name: value for name, value in known.items() if not isnan(value)}
            yield Interval(self._began_s + start_s, self._began_s + end_s, metrics)
            before, passed = row, row.unique_bytes

    def _index_of(self, time_s: float) -> int:
        return int((time_s - self._began_s) / self.step_s + _EDGE)


class _Span:
    """The intervals with data, as `Timeline.intervals` gives them: none of them is short."""

    def __init__(self, first_s: float, last_s: float, step_s: float) -> None:
        self._first_s, self._last_s, self._step_s = first_s, last_s, step_s
        self.low, self.end = int(first_s / step_s + _EDGE), int(last_s / step_s + _EDGE)
        self.high = self.end
        if self.high > self.low and (self.low + 1) * step_s - first_s < step_s / 2:
            self.low += 1
        if self.high > self.low and last_s - self.high * step_s < step_s / 2:
            self.high -= 1

    def place(self, index: int) -> int:
        """Return the interval that an index belongs to."""
        return index if index > self.end else max(self.low, min(index, self.high))

    def times_s(self, place: int) -> tuple[float, float]:
        """Return when an interval begins and ends."""
        return (
            self._first_s if place == self.low else place * self._step_s,
            self._last_s if place == self.high else (place + 1) * self._step_s,
        )


def _joined(row: _Row, other: _Row) -> _Row:
    """Return the row of two intervals, of which the other follows the one."""
    return other._replace(
        flight_bytes=max(row.flight_bytes, other.flight_bytes),
        cwnd_bytes=_of_known(max, row.cwnd_bytes, other.cwnd_bytes),
        window_bytes=_of_known(min, row.window_bytes, other.window_bytes),
    )


def _of_known(pick: Callable[[Iterable[float]], float], *values: float) -> float:
    known = [value for value in values if not isnan(value)]
    return pick(known) if known else nan


def _still(before: _Row) -> _Row:
    """Return the row of an interval in which nothing passed."""
    return before._replace(
        flight_bytes=before.flight_left_bytes,
        cwnd_bytes=nan,
        window_bytes=before.window_left_bytes,
    )
