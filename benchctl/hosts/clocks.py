"""The clock of a remote host against ours, from round trips over an open connection.

Each round trip says when it left by our clock, what the far clock showed, and when the answer was
back. No way takes less than no time, so the far clock is at most as far ahead as the way there
seems to take, and at least as far as the way back seems to gain. The least of many ways there and
the least of many ways back bound the offset. Their middle is the offset if both ways take the same
time. It is wrong by at most half the least round trip (RFC 5905, 8).
Trips grow old as the clocks drift. The offset follows the drift that was found, by no more than 50
ppm until it is known. Its error does not rely on that: either clock may be corrected from now on.
"""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Iterable

from msgspec import Struct

from benchctl.run.record import ClockReading

# The crystal of a computer is wrong by less.
MOST_DRIFT = 50e-6
# NTP's kernel corrects by 500 ppm at most (adjtimex(2)). Whatever moves a clock faster is a step.
MOST_APART = MOST_DRIFT + 500e-6
# A drift that was found may change a little with the temperature.
WANDER = 1e-6
# At one trip a second, a quarter of an hour: a drift of 50 ppm is 45 ms there.
_KEPT = 1000
# All trips are looked at when a part of them is new: each of a thousand would cost a millisecond.
_PARTS = 20
# What the schedulers of both ends add to a trip that took the least time.
_GRAIN_S = 20e-6
# Of a Unix time as a float, some steps.
_SAME_S = 1e-6


class Trip(Struct, frozen=True):
    """A round trip: when it left and was back by our clock, and what the far clock showed."""

    left_s: float
    theirs_s: float
    back_s: float

    @property
    def length_s(self) -> float:
        """How long it took."""
        return self.back_s - self.left_s

    @property
    def at_s(self) -> float:
        """Its middle, by our clock."""
        return (self.left_s + self.back_s) / 2

    @property
    def offset_s(self) -> float:
        """How far the far clock was ahead, if both ways took the same time."""
        return self.theirs_s - self.at_s


class HostClock:
    """Folds round trips into what is known of a far clock; without any, it is ours."""

    def __init__(self) -> None:
        self._trips: deque[Trip] = deque(maxlen=_KEPT)
        self.steps = 0
        """How often the clock, or ours, was set while we watched."""
        self._there = self._back = Trip(0.0, 0.0, 0.0)
        """The trips whose ways there and back say most of the offset."""
        self._highest = self._lowest = self._there
        """And those that bound it for certain."""
        self._new = 0
        """How many trips came since all of them were looked at."""
        self._least_s = 0.0
        self._drift: float | None = 0.0
        self._doubt = 0.0

    def add(self, left_s: float, theirs_s: float, back_s: float) -> None:
        """Take a round trip; one that took less than no time shows that our clock was set."""
        trip = Trip(left_s, theirs_s, back_s)
        if trip.length_s < 0:
            return
        if self._trips:
            now = self.reading(trip.at_s)
            if abs(trip.offset_s - now.offset_s) > trip.length_s / 2 + now.error_s + _GRAIN_S:
                self._trips.clear()
                self.steps += 1
        self._trips.append(trip)
        self._new += 1
        if self._new * _PARTS >= len(self._trips):
            self._new = 0
            self._least_s = min(trip.length_s for trip in self._trips)
            self._drift, self._doubt = self._drifting()
            self._choose(self._trips, trip.at_s)
        else:
            self._least_s = min(self._least_s, trip.length_s)
            best = self._there, self._back, self._highest, self._lowest, trip
            self._choose(best, trip.at_s)

    def _choose(self, trips: Iterable[Trip], at_s: float) -> None:
        """Choose the trips that say most at a time.

        In one loop without calls: a coordinator does this for each of its hosts, each second.
        """
        drift, doubt = self._drift or 0.0, self._doubt
        most_s = high_s = math.inf
        least_s = low_s = -math.inf
        for trip in trips:
            left_s, theirs_s, back_s = trip.left_s, trip.theirs_s, trip.back_s
            there_s, here_s = theirs_s - left_s, theirs_s - back_s
            since_s = at_s - (left_s + back_s) / 2
            age_s = abs(since_s) + (back_s - left_s) / 2
            moved_s, unsure_s, apart_s = drift * since_s, doubt * age_s, MOST_APART * age_s
            if (said_s := there_s + moved_s + unsure_s) < most_s:
                most_s, self._there = said_s, trip
            if (said_s := here_s + moved_s - unsure_s) > least_s:
                least_s, self._back = said_s, trip
            if (said_s := there_s + apart_s) < high_s:
                high_s, self._highest = said_s, trip
            if (said_s := here_s - apart_s) > low_s:
                low_s, self._lowest = said_s, trip

    def forget(self) -> None:
        """Know nothing any more, as after a change of the way."""
        self._trips.clear()

    def __len__(self) -> int:
        return len(self._trips)

    def reading(self, at_s: float) -> ClockReading:
        """Return what is known of the clock at a time of ours."""
        if not self._trips:
            return ClockReading(0.0, 0.0, 0.0, 0.0)
        there, back, highest, lowest = self._there, self._back, self._highest, self._lowest
        moved_s = (self._drift or 0.0) * (2 * at_s - there.at_s - back.at_s)
        # An old trip is less sure, but no more likely to err to its own side.
        offset_s = (there.theirs_s - there.left_s + back.theirs_s - back.back_s + moved_s) / 2
        high_s = highest.theirs_s - highest.left_s + MOST_APART * _age_s(highest, at_s)
        low_s = lowest.theirs_s - lowest.back_s - MOST_APART * _age_s(lowest, at_s)
        offset_s = min(max(offset_s, low_s), high_s)
        error_s = max(high_s - offset_s, offset_s - low_s)
        return ClockReading(offset_s, error_s, self._least_s, self._drift)

    def theirs(self, ours_s: float) -> float:
        """Return what the far clock shows at a time of ours."""
        return ours_s + self.reading(ours_s).offset_s

    def ours(self, theirs_s: float) -> float:
        """Return the time of ours at which the far clock shows a time."""
        near_s = theirs_s
        for _ in range(3):  # each is closer by the drift, which is less than 1e-3
            last_s, near_s = near_s, theirs_s - self.reading(near_s).offset_s
            if abs(near_s - last_s) < _SAME_S:
                break
        return near_s

    def _drifting(self) -> tuple[float | None, float]:
        """Return the drift, None if unknown, and the most by which it may differ.

        Of the best trips of an early and a late part. It is known if these took hardly longer than
        the least, but proven only by their whole lengths: what both took may differ by the way.
        """
        third = len(self._trips) // 3
        if not third:
            return None, MOST_DRIFT
        trips = list(self._trips)
        first, last = (min(part, key=_length_s) for part in (trips[:third], trips[-third:]))
        apart_s = last.at_s - first.at_s
        if apart_s <= 0:
            return None, MOST_DRIFT
        slope = (last.offset_s - first.offset_s) / apart_s
        proven = (first.length_s + last.length_s) / 2 / apart_s + WANDER
        low, high = max(-MOST_DRIFT, slope - proven), min(MOST_DRIFT, slope + proven)
        if low > high:  # it is being corrected, faster than any crystal drifts
            return slope, proven
        excess_s = first.length_s + last.length_s - 2 * self._least_s
        is_known = excess_s / 2 + 2 * _GRAIN_S < MOST_DRIFT * apart_s
        drift = min(max(slope if is_known else 0.0, low), high)
        return (drift if is_known or drift else None), max(high - drift, drift - low)


class ClockSpan(Struct, frozen=True):
    """A far clock over a time of ours: what was known of it when that began and ended."""

    began_s: float
    first: ClockReading
    ended_s: float
    last: ClockReading

    @property
    def drift(self) -> float:
        """What the far clock gained in each second."""
        lasted_s = self.ended_s - self.began_s
        return (self.last.offset_s - self.first.offset_s) / lasted_s if lasted_s > 0 else 0.0

    @property
    def error_s(self) -> float:
        """The most by which `ours` may be wrong: between two readings it is no more."""
        return max(self.first.error_s, self.last.error_s)

    def ours(self, theirs_s: float) -> float:
        """Return the time of ours at which the far clock showed a time."""
        since_s = theirs_s - self.began_s - self.first.offset_s
        return self.began_s + since_s / (1 + self.drift)


def _age_s(trip: Trip, at_s: float) -> float:
    # The far clock was read at some time of the trip.
    return abs(at_s - trip.at_s) + trip.length_s / 2


def _length_s(trip: Trip) -> float:
    return trip.length_s


OURS = HostClock()
"""The clock of this machine."""
