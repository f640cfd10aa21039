"""Samples in order of value as they come, in bounded memory: for quantiles of a run in progress."""

from __future__ import annotations

import math
from bisect import bisect_right
from collections import Counter
from collections.abc import Iterable, Sequence
from itertools import accumulate, repeat
from typing import overload

# Of a delay in microseconds, as kernels report it, these are all that there are within 8 ms.
MOST_VALUES = 8192
# The significant bits of a value if there are more: it is off by at most a part in 2000.
BITS = 11


class ValueHistogram(Sequence[float]):
    """Samples by rank, the least first, with how often each value occurs.

    Everything is exact for up to ``most`` different values. Of more, all but the least and the
    greatest sample are rounded to so many significant bits that no more are different, `BITS` at
    most. Mean, least and greatest stay exact.
    """

    def __init__(self, most: int = MOST_VALUES) -> None:
        self._most = most
        self._bits: int | None = None
        self._counts: Counter[float] = Counter()
        self._total = self._weight = 0.0
        self._count = 0
        self._least, self._greatest = math.inf, -math.inf
        self._values: Sequence[float] | None = None
        self._reached: Sequence[int] = ()
        """How many samples there are up to each value."""

    @property
    def is_exact(self) -> bool:
        """Whether no sample was rounded."""
        return self._bits is None

    @property
    def mean(self) -> float:
        """The mean of at least one sample, by their weights."""
        return self._total / self._weight

    def extend(self, samples: Iterable[float], weights: Iterable[float] = repeat(1.0)) -> None:
        """Take more samples, but for those that are not finite.

        A rate weighs as long as its interval is: a short last one hardly counts in the mean. Ranks
        are of samples.
        """
        pairs = [
            (value, weight)
            for value, weight in zip(samples, weights, strict=False)
            if math.isfinite(value)
        ]
        if not pairs:
            return
        new = [value for value, _ in pairs]
        self._total += math.fsum(value * weight for value, weight in pairs)
        self._weight += math.fsum(weight for _, weight in pairs)
        self._count += len(new)
        self._least = min(self._least, *new)
        self._greatest = max(self._greatest, *new)
        self._counts.update(new if self._bits is None else [_rounded(v, self._bits) for v in new])
        while len(self._counts) > self._most:
            self._bits = BITS if self._bits is None else self._bits - 1
            counts, self._counts = self._counts, Counter()
            for value, count in counts.items():
                self._counts[_rounded(value, self._bits)] += count
        self._values = None

    def __len__(self) -> int:
        return self._count

    @overload
    def __getitem__(self, rank: int) -> float: ...
    @overload
    def __getitem__(self, rank: slice) -> Sequence[float]: ...
    def __getitem__(self, rank: int | slice) -> float | Sequence[float]:
        if isinstance(rank, slice):
            return [self[at] for at in range(*rank.indices(self._count))]
        place = rank + self._count if rank < 0 else rank
        if not 0 <= place < self._count:
            raise IndexError(rank)
        if place in (0, self._count - 1):
            return self._greatest if place else self._least
        if self._values is None:
            self._values = sorted(self._counts)
            self._reached = [*accumulate(self._counts[value] for value in self._values)]
        value = self._values[bisect_right(self._reached, place)]
        return min(max(value, self._least), self._greatest)


def _rounded(value: float, bits: int) -> float:
    part, exponent = math.frexp(value)
    return math.ldexp(round(math.ldexp(part, bits)), exponent - bits)
