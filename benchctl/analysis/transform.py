"""The discrete Fourier transform of a series, in time that grows little faster than its length."""

from __future__ import annotations

import cmath
import math
from collections.abc import Sequence

# A length with a larger prime factor takes nearly the square of its time.
FACTORS = (2, 3, 5)


def smooth_length(longest: int) -> int:
    """Return the largest length up to ``longest`` with no other prime factors than 2, 3 and 5."""
    return next(n for n in range(longest, 0, -1) if _left(n) == 1)


def _left(n: int) -> int:
    for factor in FACTORS:
        while n % factor == 0:
            n //= factor
    return n


def transform(values: Sequence[complex]) -> list[complex]:
    """Return the transform of a series: element k is the sum of values[t] exp(-2 pi i k t / n).

    Cooley and Tukey, Mathematics of Computation 19 (1965), for any factors of the length.
    """
    n = len(values)
    factor = next((divisor for divisor in FACTORS if n % divisor == 0), n)
    if n <= 1:
        return list(values)
    turns = [cmath.exp(-2j * math.pi * k / n) for k in range(n)]
    parts = [transform(values[first::factor]) for first in range(factor)] if factor < n else [
        [value] for value in values
    ]  # fmt: skip
    part = n // factor
    return [
        sum(parts[first][k % part] * turns[k * first % n] for first in range(factor))
        for k in range(n)
    ]
