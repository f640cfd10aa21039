"""Statistics of repeats: mean, median, their 95 % intervals, scatter, outliers, fairness."""

from __future__ import annotations

import math
from collections.abc import Sequence
from statistics import fmean, median

from msgspec import Struct

from benchctl.analysis.distributions import binomial_at_most, t975

# Two values cannot show that a third would differ more.
FEW = 3
# Of four or fewer values of a normal distribution, too many pass for outliers.
OUTLIERS_FROM = 5


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


def median_interval(ordered: Sequence[float]) -> tuple[float, float] | None:
    """Return the interval of the median of sorted values, with at least 95 % confidence.

    Between two order statistics, of any distribution; None for fewer than six values, whose whole
    range holds the median less often. Conover, Practical Nonparametric Statistics, 3.2.
    """
    n = len(ordered)
    # The largest rank with no more than 2.5 % of a fair coin's outcomes below it.
    below = [rank for rank in range(n // 2) if binomial_at_most(rank, n, 0.5) <= 0.025]
    return (ordered[below[-1]], ordered[n - 1 - below[-1]]) if below else None


def outliers(values: Sequence[float]) -> tuple[float, ...]:
    """Return the values whose modified z-score exceeds 3.5, of five or more.

    The distance from the median in units of the scaled median absolute deviation, or of the scaled
    mean deviation if more than half of the values are equal. Iglewicz and Hoaglin, How to Detect
    and Handle Outliers (ASQC, 1993), section 3.3.
    """
    if len(values) < OUTLIERS_FROM:
        return ()
    middle = median(values)
    deviations = [abs(value - middle) for value in values]
    unit = median(deviations) / 0.6745 or 1.253314 * fmean(deviations)
    return tuple(value for value in values if abs(value - middle) > 3.5 * unit)


class Spread(Struct, frozen=True):
    """The statistics of one figure over its repeats.

    ``ci95_low`` and ``ci95_high`` bound the mean with 95 % confidence by Student's t; ``stdev`` is
    the standard deviation of a single value. All are None for a single value. ``median_low`` and
    ``median_high`` bound the median; None for fewer than six values. ``outliers`` are values far
    from the others; they count like all others.
    """

    n: int
    mean: float
    stdev: float | None
    ci95_low: float | None
    ci95_high: float | None
    median: float
    min: float
    max: float
    median_low: float | None = None
    median_high: float | None = None
    outliers: tuple[float, ...] = ()

    @property
    def half(self) -> float | None:
        """Half the interval of the mean."""
        if self.ci95_low is None or self.ci95_high is None:
            return None
        return (self.ci95_high - self.ci95_low) / 2

    @property
    def variation(self) -> float | None:
        """The coefficient of variation: the standard deviation relative to the mean."""
        return None if self.stdev is None or not self.mean else self.stdev / abs(self.mean)

    @property
    def missing(self) -> str:
        """Why there is no interval of the mean, or of the median; empty if there are both."""
        if self.n < FEW:
            return f"too few: {FEW} repeats or more show how much a figure scatters"
        if self.median_low is None:
            return "no interval of the median: it needs 6 repeats"
        return ""


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
    median_low, median_high = median_interval(ordered) or (None, None)
    return Spread(
        n, mean, stdev, low, high, quantile(ordered, 0.5), ordered[0], ordered[-1],
        median_low, median_high, outliers(values),
    )  # fmt: skip


def fairness_jain(shares: Sequence[float]) -> float | None:
    """Return Jain's index (sum x)^2 / (n sum x^2): 1 if all are equal, 1/n if one has all.

    None if the sum is 0. Jain, Chiu and Hawe, DEC-TR-301 (1984).
    """
    squares = math.fsum(share * share for share in shares)
    return math.fsum(shares) ** 2 / (len(shares) * squares) if squares else None
