"""A time series of bounded size: minimum, maximum and mean for each bucket of time.

However long a trial lasts, a series has at most `CAPACITY` buckets: when time exceeds them, pairs
of neighbours are merged. Minimum and maximum survive that, so a spike is never lost.
"""

from __future__ import annotations

import math
from array import array
from bisect import bisect_left
from collections.abc import Sequence
from functools import lru_cache
from itertools import accumulate, pairwise
from operator import mul
from typing import NamedTuple

# Twice the dots of the widest plot (200 cells of 2), so that a plot never interpolates.
CAPACITY = 1024
# A line is drawn in a plot and as a sparkline, and again when anything else on the screen changes.
REMEMBERED = 4
# A current rate is that of the last half second: paced and short intervals come in bursts.
NOW_S = 0.5
# Less of all weight is a rounding error.
LIGHTEST = 1e-9


class Range(NamedTuple):
    """The minimum, maximum and mean value over a period."""

    low: float
    high: float
    mean: float


class LineValue(NamedTuple):
    """One value of a line, and the end of its interval."""

    end_s: float
    value: float


class Series:
    """The values of one line, by time.

    ``start_s`` is the start of its first bucket, ``span_s`` the expected time. Earlier values are
    rejected; later ones make the buckets wider.
    """

    __slots__ = (
        "_drawn", "_ends", "_first_s", "_high", "_lasts", "_low", "_times", "_total", "_weight",
        "last", "last_s", "start_s", "width_s",
    )  # fmt: skip

    def __init__(self, start_s: float, span_s: float) -> None:
        self.start_s = start_s
        self.width_s = span_s / CAPACITY
        self._low = array("d")
        self._high = array("d")
        self._total = array("d")
        self._weight = array("d")
        self._ends = array("d")
        self._lasts = array("d")
        self.last = math.nan
        self.last_s = -math.inf
        self._first_s = math.inf
        self._times = 0
        self._drawn: dict[tuple[float, ...], Sequence[Range | None]] = {}

    @property
    def spacing_s(self) -> float:
        """The mean time between two values; infinite with fewer than two."""
        return (self.last_s - self._first_s) / (self._times - 1) if self._times > 1 else math.inf

    def extend(
        self,
        times_s: Sequence[float],
        values: Sequence[float],
        weights: Sequence[float],
        bounds: tuple[Sequence[float], Sequence[float]] | None = None,
    ) -> None:
        """Add one or more values in order of time; the mean is weighted.

        Values that stand for several others come with ``bounds``: the least and the greatest of
        those.
        """
        lows, highs = bounds or (values, values)
        self._drawn.clear()
        self._first_s = min(self._first_s, times_s[0])
        self._times += len(times_s)
        begin, count = 0, len(times_s)
        while (times_s[-1] - self.start_s) / self.width_s >= CAPACITY:
            self._merge()
        while begin < count:
            index = int((times_s[begin] - self.start_s) / self.width_s)
            bucket_end_s = self.start_s + (index + 1) * self.width_s
            end = max(begin + 1, bisect_left(times_s, bucket_end_s, begin))
            self._put(index, values[begin:end], weights[begin:end])
            self._low[index] = min(self._low[index], *lows[begin:end])
            self._high[index] = max(self._high[index], *highs[begin:end])
            if times_s[end - 1] >= self._ends[index]:
                self._ends[index], self._lasts[index] = times_s[end - 1], values[end - 1]
            begin = end
        if times_s[-1] >= self.last_s:
            self.last, self.last_s = values[-1], times_s[-1]

    def _put(self, index: int, values: Sequence[float], weights: Sequence[float]) -> None:
        missing = index + 1 - len(self._low)
        if missing > 0:
            self._low.extend([math.inf] * missing)
            self._high.extend([-math.inf] * missing)
            self._total.extend([0.0] * missing)
            self._weight.extend([0.0] * missing)
            self._ends.extend([-math.inf] * missing)
            self._lasts.extend([math.nan] * missing)
        self._total[index] += sum(map(mul, values, weights))
        self._weight[index] += sum(weights)

    def _merge(self) -> None:
        self.width_s *= 2
        odd = len(self._low) % 2
        pairs = [*zip(self._ends, self._lasts, strict=True), *[(-math.inf, math.nan)] * odd]
        later = [max(pair) for pair in zip(pairs[::2], pairs[1::2], strict=True)]
        self._ends = array("d", (end for end, _ in later))
        self._lasts = array("d", (last for _, last in later))
        for values, neutral, merge in (
            (self._low, math.inf, min),
            (self._high, -math.inf, max),
            (self._total, 0.0, float.__add__),
            (self._weight, 0.0, float.__add__),
        ):
            values.extend([neutral] * odd)
            values[:] = array("d", map(merge, values[::2], values[1::2]))

    def _stop(self, until_s: float) -> int:
        """Return how many buckets have begun at a time."""
        if math.isinf(until_s):  # the whole, or a time before the first value
            return len(self._low) if until_s > 0 else 0
        return max(0, min(len(self._low), int((until_s - self.start_s) / self.width_s) + 1))

    def total(self, until_s: float = math.inf) -> float:
        """Return the weighted sum of the values up to a time."""
        return math.fsum(self._total[: self._stop(until_s)])

    def mean(self, until_s: float = math.inf) -> float | None:
        """Return the weighted mean up to a time; None before the first value."""
        weight = math.fsum(self._weight[: self._stop(until_s)])
        return self.total(until_s) / weight if weight else None

    def bounds(self, from_s: float, to_s: float) -> tuple[float, float] | None:
        """Return the minimum and the maximum within a period; None without any."""
        first, stop = self._stop(from_s - self.width_s), self._stop(to_s)
        low, high = self._low[first:stop], self._high[first:stop]
        return (min(low), max(high)) if len(low) and min(low) <= max(high) else None

    def at(self, time_s: float) -> float | None:
        """Return the line's last value before a time; None without any."""
        if time_s >= self.last_s:
            return None if math.isnan(self.last) else self.last
        for index in reversed(range(self._stop(time_s))):
            if self._weight[index]:
                return self._total[index] / self._weight[index]
        return None

    def nearest(
        self, time_s: float, within_s: float, until_s: float = math.inf
    ) -> LineValue | None:
        """Return the value whose interval ends nearest to a time; None without any ``within_s``.

        Of the values of a bucket, the last one. No bucket from ``until_s`` on is looked at.
        """
        first = max(0, self._stop(time_s - within_s) - 1)
        stop = self._stop(min(until_s, time_s + within_s))
        found = [
            (abs(end_s - time_s), end_s, value)
            for end_s, value in zip(self._ends[first:stop], self._lasts[first:stop], strict=True)
            if abs(end_s - time_s) <= within_s
        ]
        return LineValue(*min(found)[1:]) if found else None

    def recent(self, time_s: float, over_s: float) -> float | None:
        """Return the mean of the last ``over_s`` before a time, of its last value at least."""
        end_s = min(time_s, self.last_s)
        stop = self._stop(end_s)
        first = min(self._stop(end_s - over_s), max(0, stop - 1))
        weight = math.fsum(self._weight[first:stop])
        return math.fsum(self._total[first:stop]) / weight if weight else self.at(time_s)

    def columns(
        self,
        from_s: float,
        to_s: float,
        count: int,
        until_s: float = math.inf,
        smooth_s: float = 0.0,
    ) -> Sequence[Range | None]:
        """Return the line in ``count`` equal columns; None if a column has no value.

        Nothing from ``until_s`` on is shown. With ``smooth_s``, the means are over this time around
        the middle of each column, minima and maxima over the column as ever.
        """
        wanted = (from_s, to_s, count, until_s, smooth_s)
        if wanted not in self._drawn:
            if len(self._drawn) == REMEMBERED:
                self._drawn.clear()
            self._drawn[wanted] = self._columns(*wanted)
        return self._drawn[wanted]

    def _columns(
        self, from_s: float, to_s: float, count: int, until_s: float, smooth_s: float
    ) -> Sequence[Range | None]:
        stop = self._stop(min(until_s, to_s))
        begin = (from_s - self.start_s) / self.width_s
        per_column = (to_s - from_s) / count / self.width_s
        edges = _edges(begin, per_column, count, stop)
        low, high = self._low.tolist(), self._high.tolist()
        total, weight = self._total.tolist(), self._weight.tolist()
        if not smooth_s:
            return [
                Range(min(low[i:j]), max(high[i:j]), sum(total[i:j]) / sum(weight[i:j]))
                if i < j and any(weight[i:j])
                else None
                for i, j in edges
            ]
        totals, weights = [0.0, *accumulate(total)], [0.0, *accumulate(weight)]
        total.append(0.0)
        weight.append(0.0)
        least = LIGHTEST * weights[-1]
        found: list[Range | None] = []
        parts = _around(begin, per_column, count, stop, smooth_s / self.width_s / 2)
        for (i, j), (k, part_of_k, m, part_of_m) in zip(edges, parts, strict=True):
            if i >= j or weights[j] == weights[i]:
                found.append(None)
                continue
            over = weights[m] + part_of_m * weight[m] - weights[k] - part_of_k * weight[k]
            if over > least:
                summed = totals[m] + part_of_m * total[m] - totals[k] - part_of_k * total[k]
            else:
                over, summed = weights[j] - weights[i], totals[j] - totals[i]
            found.append(Range(min(low[i:j]), max(high[i:j]), summed / over))
        return found


# All lines of a plot have the same columns, and mostly the same buckets.
@lru_cache(maxsize=64)
def _edges(begin: float, per_column: float, count: int, stop: int) -> Sequence[tuple[int, int]]:
    """Return the first and the last bucket of each column, of those before ``stop``.

    A bucket belongs to the column that has its middle, those at the ends to the end columns.
    """
    first = min(max(0, math.floor(begin)), stop)
    inner = (math.ceil(begin - 0.5 + place * per_column) for place in range(1, count))
    edges = [first, *(min(stop, max(first, edge)) for edge in inner), stop]
    return [*pairwise(edges)]


@lru_cache(maxsize=64)
def _around(
    begin: float, per_column: float, count: int, stop: int, reach: float
) -> Sequence[tuple[int, float, int, float]]:
    """Return the ends of the time around each column's middle, each a bucket and a part of it."""
    found = []
    for place in range(count):
        middle = begin + (place + 0.5) * per_column
        i, part = divmod(min(max(0.0, middle - reach), stop), 1)
        j, part_of_j = divmod(min(max(0.0, middle + reach), stop), 1)
        found.append((int(i), part, int(j), part_of_j))
    return found
