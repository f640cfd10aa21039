"""What the other points of a profile say about the scatter of a figure: its variance, and outliers.

Two repeats say little about how much a figure scatters; fifty points with two repeats each say how
much such figures scatter. The variances of the points are taken as draws from one distribution, a
scaled inverse chi-square, and each is moved towards its middle: the more, the more alike all are
(Smyth, Statistical Applications in Genetics and Molecular Biology 3, 2004, sections 3 and 6). If
they differ by more than few repeats explain, nothing is borrowed.

Repeats of a shared machine are a mixture: some trials are disturbed, and run at half the rate. If
all repeats of a figure are, they agree with each other and no variance shows it. The other points
show how often a trial is disturbed, by repeats of one figure that are too far apart.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Collection, Sequence
from itertools import pairwise
from statistics import fmean, median

from msgspec import Struct

from benchctl.analysis.distributions import digamma, trigamma, trigamma_inverse
from benchctl.analysis.statistics import variance

# With fewer points, how alike their variances are is itself a guess.
LEAST_POINTS = 6
# No such distribution has points that never vary, as loss that is mostly none has: where some was
# seen, it would look far too certain.
MOST_STILL = 0.1
# Standard errors by which variances are taken to differ more than they seem to.
CAUTION = 2.0
# Standard deviations of the difference of two repeats; 3 in 1000 normal ones are further apart.
# With 3.5, too many trials at half rate are missed where the others vary by 10 %.
FAR = 3.0
# Of normal repeats, more would often be that far apart; and so many are hardly ever all disturbed.
MOST_LOOKED_AT = 5
# The median of the absolute value of a standard normal.
MEDIAN_DEVIATION = 0.6745


class Scatter(Struct, frozen=True):
    """A variance, and the degrees of freedom that it is known with."""

    variance: float
    degrees: float


def borrowed(own: Sequence[Scatter], levels: Sequence[float]) -> list[Scatter]:
    """Return the variances of a metric's points after borrowing; ``levels`` are their means.

    The variances, or those relative to the squared level, are moved, whichever are more alike.
    Empty if there are too few points, or many that never vary.
    """
    varying = [
        place for place, scatter in enumerate(own) if scatter.variance > 0 and scatter.degrees > 0
    ]
    if len(varying) < LEAST_POINTS or len(own) - len(varying) > MOST_STILL * len(own):
        return []
    scales = [[1.0] * len(own)]
    if min(levels) > 0:
        scales.append([level * level for level in levels])
    fits = [
        (_fit([Scatter(own[at].variance / scale[at], own[at].degrees) for at in varying]), scale)
        for scale in scales
    ]
    (prior, _), scale = min(fits, key=lambda fit: fit[0][1])
    most = math.fsum(scatter.degrees for scatter in own)
    return [
        Scatter(_between(scatter, prior, unit), min(scatter.degrees + prior.degrees, most))
        for scatter, unit in zip(own, scale, strict=True)
    ]


def _between(scatter: Scatter, prior: Scatter, unit: float) -> float:
    if math.isinf(prior.degrees):
        return prior.variance * unit
    whole = scatter.degrees + prior.degrees
    return (scatter.degrees * scatter.variance + prior.degrees * prior.variance * unit) / whole


def _fit(scatters: Sequence[Scatter]) -> tuple[Scatter, float]:
    """Return the distribution that variances were drawn from, and the spread of their logarithms.

    By moments of the logarithm (Smyth, section 6.2); infinite degrees if all may be equal.
    """
    logs = [
        math.log(scatter.variance) - digamma(scatter.degrees / 2) + math.log(scatter.degrees / 2)
        for scatter in scatters
    ]
    spread = variance(logs)
    # Of few variances, the spread may come out too small, and they pass for more alike than they
    # are: verdicts would be too bold. So standard errors are added.
    error = spread * math.sqrt(2 / (len(scatters) - 1))
    excess = spread + CAUTION * error - fmean(trigamma(scatter.degrees / 2) for scatter in scatters)
    if excess <= 0:
        return Scatter(math.exp(fmean(logs)), math.inf), spread
    half = trigamma_inverse(excess)
    return Scatter(math.exp(fmean(logs) + digamma(half) - math.log(half)), 2 * half), spread


class Usual(Struct, frozen=True):
    """How far repeats of one metric usually are apart, over its points.

    ``apart`` is the standard deviation of the difference of two repeats, or of that of their
    logarithms if ``relative``. ``counts`` are the repeats of each point in each run that were
    looked at; of ``mixed`` points, they are further apart than that explains.
    """

    apart: float
    relative: bool
    counts: Sequence[int]
    mixed: int

    def distance(self, a: float, b: float) -> float:
        """Return how far two means are apart, in usual differences of two repeats."""
        if self.relative:
            return abs(math.log(b / a)) / self.apart
        return abs(b - a) / self.apart


def usual_of(series: Collection[Sequence[float]]) -> Usual | None:
    """Return how far repeats are usually apart; ``series`` are those of each point in each run.

    Without the series that are mixed; as they are, or relative, whichever has fewer of those. None
    for too few series, or many repeats that are equal.
    """
    repeated = [values[:MOST_LOOKED_AT] for values in series if len(values) > 1]
    if len(repeated) < 2 * LEAST_POINTS:
        return None
    apart = _apart(repeated)
    if apart.count(0.0) > MOST_STILL * len(apart):
        return None
    found = [_usual(repeated, relative=False)]
    if min(min(values, default=math.inf) for values in series) > 0:
        logs = [[math.log(value) for value in values] for values in repeated]
        found.append(_usual(logs, relative=True))
    return min(
        (usual for usual in found if usual.apart), key=lambda usual: usual.mixed, default=None
    )


def _usual(series: Sequence[Sequence[float]], *, relative: bool) -> Usual:
    near = series
    while True:
        # The median withstands what is far away.
        unit, before = median(_apart(near)) / MEDIAN_DEVIATION, len(near)
        near = [values for values in near if max(values) - min(values) <= FAR * unit] or near
        if len(near) == before:
            return Usual(unit, relative, [*map(len, series)], len(series) - before)


def _apart(series: Sequence[Sequence[float]]) -> list[float]:
    return [abs(b - a) for values in series for a, b in pairwise(values)]


def disturbed_share(of_metrics: Collection[Usual]) -> float:
    """Return the share of disturbed trials that explains how many series are mixed, at most 0.5.

    A series of n repeats is mixed unless all of them are disturbed, or none. By moments: the
    expected number is the one seen. A single mixed series is an outlier, and no mixture.
    """
    mixed = sum(metric.mixed for metric in of_metrics)
    counts = Counter(count for metric in of_metrics for count in metric.counts)

    def expected(share: float) -> float:
        return math.fsum(
            times * (1 - share**count - (1 - share) ** count) for count, times in counts.items()
        )

    if mixed < 2:
        return 0.0
    low, high = 0.0, 0.5
    for _ in range(50):
        middle = (low + high) / 2
        low, high = (middle, high) if expected(middle) < mixed else (low, middle)
    return high


def wholly_disturbed(of_metrics: Collection[Usual], share: float) -> float:
    """Return the number of series whose trials are all disturbed, as expected with this share."""
    return math.fsum(share**count for metric in of_metrics for count in metric.counts)
