"""Statistics of repeats: mean, its 95 % interval, quantiles, fairness."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from statistics import fmean

# Quantiles t(0.975, df) of Student's distribution for df = 1..30 (Abramowitz and Stegun, Handbook
# of Mathematical Functions, table 26.10).
_T975 = (
    12.7062, 4.3027, 3.1824, 2.7764, 2.5706, 2.4469, 2.3646, 2.3060, 2.2622, 2.2281,
    2.2010, 2.1788, 2.1604, 2.1448, 2.1314, 2.1199, 2.1098, 2.1009, 2.0930, 2.0860,
    2.0796, 2.0739, 2.0687, 2.0639, 2.0595, 2.0555, 2.0518, 2.0484, 2.0452, 2.0423,
)  # fmt: skip
_Z975 = 1.959964


def t975(degrees: int) -> float:
    """Return the 97.5 % quantile of Student's t for ``degrees`` of freedom, 1 or more.

    Beyond 30 the Cornish-Fisher expansion of the normal quantile (Abramowitz and Stegun, 26.7.5)
    is within 1e-4.
    """
    if degrees <= len(_T975):
        return _T975[degrees - 1]
    z = _Z975
    return z + (z**3 + z) / (4 * degrees) + (5 * z**5 + 16 * z**3 + 3 * z) / (96 * degrees**2)


def quantile(ordered: Sequence[float], share: float) -> float:
    """Return a quantile of sorted values by linear interpolation (Hyndman and Fan, type 7)."""
    position = (len(ordered) - 1) * share
    below = math.floor(position)
    above = min(below + 1, len(ordered) - 1)
    return ordered[below] + (ordered[above] - ordered[below]) * (position - below)


def variance(values: Sequence[float]) -> float:
    """Return the sample variance of two or more values.

    In floating point: `statistics.variance` computes in fractions, and differs in the last digit.
    """
    mean = fmean(values)
    return math.fsum((value - mean) ** 2 for value in values) / (len(values) - 1)


@dataclass(frozen=True, slots=True)
class Spread:
    """The statistics of one figure over its repeats.

    ``ci95_low`` and ``ci95_high`` bound the mean with 95 % confidence by Student's t; ``stdev`` is
    the standard deviation of a single value. All are None for a single value.
    """

    n: int
    mean: float
    stdev: float | None
    ci95_low: float | None
    ci95_high: float | None
    median: float
    min: float
    max: float


def spread(values: Sequence[float]) -> Spread:
    """Summarize one or more repeats of a figure."""
    n = len(values)
    ordered = sorted(values)
    mean = fmean(values)
    stdev = low = high = None
    if n > 1:
        stdev = math.sqrt(variance(values))
        half = t975(n - 1) * stdev / math.sqrt(n)
        low, high = mean - half, mean + half
    return Spread(n, mean, stdev, low, high, quantile(ordered, 0.5), ordered[0], ordered[-1])


def fairness_jain(shares: Sequence[float]) -> float | None:
    """Return Jain's index (sum x)^2 / (n sum x^2): 1 if all are equal, 1/n if one has all.

    None if the sum is 0. Jain, Chiu and Hawe, DEC-TR-301 (1984).
    """
    squares = math.fsum(share * share for share in shares)
    return math.fsum(shares) ** 2 / (len(shares) * squares) if squares else None
