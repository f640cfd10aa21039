"""A histogram of nanoseconds with a bounded error and a bounded size."""

from __future__ import annotations

# This many values are kept exactly. Beyond, values share buckets, as few as keep to this.
_BUCKETS_LIMIT = 8192
# At worst 128 steps between a value and its double: half a step is 0.4 %.
_LEAST_BITS = 8
# Bits that are dropped at once: recomputing all buckets takes a millisecond or two.
_STEP_BITS = 2


class Histogram:
    """Counts values: exactly while few differ, then by their leading bits above a base.

    The log-linear buckets are those of HdrHistogram (Gil Tene): equal steps for each power of two.
    If they become too many, neighbours are merged in pairs, as in UDDSketch (Epicoco et al. 2020),
    so old values are as accurate as new ones. The error of a percentile is at most 0.4 % of its
    distance from the base, which is the least of the first `_BUCKETS_LIMIT` different values. With
    the few thousand buckets allowed, it is rarely more than a thousandth of the spread.
    """

    def __init__(self) -> None:
        self._buckets: dict[int, int] = {}
        self._base = 0
        self._bits: int | None = None
        """Leading bits that make a bucket; None while values are exact."""
        self._count = 0
        self._sum = 0
        self._least = 0
        self._most = 0

    def add(self, value: int, count: int = 1) -> None:
        """Count a value so many times."""
        bucket = value - self._base
        if self._bits is not None:
            bucket = _lower_end(bucket, self._bits)
        buckets = self._buckets
        if bucket in buckets:
            buckets[bucket] += count
        else:
            buckets[bucket] = count
            if len(buckets) > _BUCKETS_LIMIT:
                self._join()
        self._sum += value * count
        if not self._count:
            self._least = self._most = value
        elif value > self._most:
            self._most = value
        elif value < self._least:
            self._least = value
        self._count += count

    def merge(self, other: Histogram) -> None:
        """Add the counts of another histogram."""
        least, most, total = other._least, other._most, self._sum + other._sum
        for bucket, count in other._buckets.items():
            self.add(min(max(other._middle(bucket), least), most), count)
        if other._count:
            self._least, self._most = min(self._least, least), max(self._most, most)
        self._sum = total

    def __len__(self) -> int:
        return self._count

    def percentiles(self, *ratios: float) -> list[int]:
        """Return the values below which the given fractions lie (nearest rank), in rising order."""
        found: list[int] = []
        seen = 0
        buckets = iter(sorted(self._buckets.items()))
        bucket = 0
        for ratio in ratios:
            while seen < ratio * self._count:
                bucket, count = next(buckets)
                seen += count
            found.append(min(max(self._middle(bucket), self._least), self._most))
        return found

    def summary_s(self) -> dict[str, float]:
        """Return min, mean, median, p95, p99 and max in seconds; empty without values."""
        if not self._count:
            return {}
        median, p95, p99 = self.percentiles(0.5, 0.95, 0.99)
        nanoseconds = {
            "min": self._least,
            "mean": self._sum / self._count,
            "median": median,
            "p95": p95,
            "p99": p99,
            "max": self._most,
        }
        return {name: value / 1e9 for name, value in nanoseconds.items()}

    def _middle(self, bucket: int) -> int:
        """Return the value that represents a bucket."""
        width = 1
        if self._bits is not None:
            width = 1 << max(bucket.bit_length() - self._bits, 0)
        return self._base + bucket + (width >> 1)

    def _join(self) -> None:
        """Merge buckets, to at most half of the limit if the lowest bits permit it."""
        if self._bits is None:
            self._base = min(self._buckets)
            self._buckets = {value - self._base: n for value, n in self._buckets.items()}
            self._bits = max(self._buckets).bit_length()
        while len(self._buckets) > _BUCKETS_LIMIT // 2 and self._bits > _LEAST_BITS:
            self._bits = max(self._bits - _STEP_BITS, _LEAST_BITS)
            joined: dict[int, int] = {}
            for bucket, count in self._buckets.items():
                lower = _lower_end(bucket, self._bits)
                joined[lower] = joined.get(lower, 0) + count
            self._buckets = joined


def _lower_end(value: int, bits: int) -> int:
    """Return the least value that has the same leading bits."""
    shift = value.bit_length() - bits
    return value >> shift << shift if shift > 0 else value
