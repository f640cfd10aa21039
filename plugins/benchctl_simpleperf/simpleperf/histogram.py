"""A histogram of nanoseconds with a bounded error and a bounded size."""

from __future__ import annotations

__all__ = ["Histogram"]

# 128 steps between a value and its double: a percentile is at most 0.4 % off.
_STEP_BITS = 8


class Histogram:
    """Counts values by their leading bits; 15,000 buckets at most, negative values too.

    The log-linear buckets are those of HdrHistogram (Gil Tene): exact below 256, then 128 equal
    steps for each power of two.
    """

    def __init__(self) -> None:
        self._buckets: dict[int, int] = {}
        self._count = 0
        self._sum = 0
        self._least = 0
        self._most = 0

    def add(self, value: int, count: int = 1) -> None:
        """Count a value so many times."""
        shift = value.bit_length() - _STEP_BITS
        bucket = value >> shift << shift if shift > 0 else value
        buckets = self._buckets
        buckets[bucket] = buckets.get(bucket, 0) + count
        self._sum += value * count
        if not self._count:
            self._least = self._most = value
        elif value > self._most:
            self._most = value
        elif value < self._least:
            self._least = value
        self._count += count

    def merge(self, other: Histogram) -> None:
        """Count everything that another histogram counted."""
        for bucket, count in other._buckets.items():
            self._buckets[bucket] = self._buckets.get(bucket, 0) + count
        if other._count:
            self._least = min(self._least, other._least) if self._count else other._least
            self._most = max(self._most, other._most) if self._count else other._most
        self._count += other._count
        self._sum += other._sum

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
            middle = bucket + (1 << max(bucket.bit_length() - _STEP_BITS, 0) >> 1)
            found.append(min(max(middle, self._least), self._most))
        return found

    def summary_s(self) -> dict[str, float]:
        """Return min, mean, median, p95, p99 and max in seconds; empty when nothing was counted."""
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
