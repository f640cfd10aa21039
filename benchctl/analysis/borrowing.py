"""Borrows the variance of a figure from the same metric at other points of the profile.

Two repeats say little about how much a figure scatters; fifty points with two repeats each say how
much such figures scatter. The variances of the points are taken as draws from one distribution, a
scaled inverse chi-square, and each is moved towards its middle: the more, the more alike all are
(Smyth, Statistical Applications in Genetics and Molecular Biology 3, 2004, sections 3 and 6). If
they differ by more than few repeats explain, nothing is borrowed.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from statistics import fmean

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


class Scatter(Struct, frozen=True):
    """A variance, and the degrees of freedom that it is known with."""

    variance: float
    degrees: float


def borrowed(own: Sequence[Scatter], levels: Sequence[float]) -> list[Scatter]:
    """Return the variances of a metric's points after borrowing; ``levels`` are their means.

    The variances, or those relative to the squared level, are moved, whichever are more alike.
    Empty if there are too few points, or many that never vary.
    """
    told = [place for place, one in enumerate(own) if one.variance > 0 and one.degrees > 0]
    if len(told) < LEAST_POINTS or len(own) - len(told) > MOST_STILL * len(own):
        return []
    scales = [[1.0] * len(own)]
    if min(levels) > 0:
        scales.append([level * level for level in levels])
    fits = [
        (_fit([Scatter(own[at].variance / scale[at], own[at].degrees) for at in told]), scale)
        for scale in scales
    ]
    (prior, _), scale = min(fits, key=lambda fit: fit[0][1])
    most = math.fsum(one.degrees for one in own)
    return [
        Scatter(_between(one, prior, unit), min(one.degrees + prior.degrees, most))
        for one, unit in zip(own, scale, strict=True)
    ]


def _between(one: Scatter, prior: Scatter, unit: float) -> float:
    if math.isinf(prior.degrees):
        return prior.variance * unit
    whole = one.degrees + prior.degrees
    return (one.degrees * one.variance + prior.degrees * prior.variance * unit) / whole


def _fit(scatters: Sequence[Scatter]) -> tuple[Scatter, float]:
    """Return the distribution that variances were drawn from, and the spread of their logarithms.

    By moments of the logarithm (Smyth, section 6.2); infinite degrees if all may be equal.
    """
    logs = [
        math.log(one.variance) - digamma(one.degrees / 2) + math.log(one.degrees / 2)
        for one in scatters
    ]
    spread = variance(logs)
    # Of few variances, the spread may come out too small, and they pass for more alike than they
    # are: verdicts would be too bold. So standard errors are added.
    error = spread * math.sqrt(2 / (len(scatters) - 1))
    excess = spread + CAUTION * error - fmean(trigamma(one.degrees / 2) for one in scatters)
    if excess <= 0:
        return Scatter(math.exp(fmean(logs)), math.inf), spread
    half = trigamma_inverse(excess)
    return Scatter(math.exp(fmean(logs) + digamma(half) - math.log(half)), 2 * half), spread
