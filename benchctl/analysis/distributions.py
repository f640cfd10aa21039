"""Distributions that Python's library lacks: Student's t, the binomial, and gamma's logarithm."""

from __future__ import annotations

import math
from functools import lru_cache

_TINY = 1e-300


def t_two_sided(t: float, degrees: float) -> float:
    """Return the probability that Student's t is at least as far from 0 as ``t``.

    Abramowitz and Stegun, Handbook of Mathematical Functions, 26.7.1 and 26.5.2.
    """
    if math.isinf(t):
        return 0.0
    square = t * t
    if square < 1:  # 1 minus a share near 1 would lose its digits
        return 1 - beta_share(square / (degrees + square), 0.5, degrees / 2)
    return beta_share(degrees / (degrees + square), degrees / 2, 0.5)


@lru_cache(maxsize=4096)
def t_quantile(share: float, degrees: float) -> float:
    """Return the quantile of Student's t for a share above one half, by bisection."""
    low, high = 0.0, 1.0
    tail = 2 * (1 - share)
    while t_two_sided(high, degrees) > tail:
        low, high = high, 2 * high
    for _ in range(60):
        middle = (low + high) / 2
        if t_two_sided(middle, degrees) > tail:
            low = middle
        else:
            high = middle
    return high


def t975(degrees: float) -> float:
    """Return the 97.5 % quantile of Student's t: half a 95 % interval, in standard errors."""
    return t_quantile(0.975, degrees)


def binomial_at_most(count: int, n: int, share: float) -> float:
    """Return the probability of at most ``count`` successes in ``n`` trials."""
    return math.fsum(
        math.comb(n, k) * share**k * (1 - share) ** (n - k) for k in range(min(count, n) + 1)
    )


def beta_share(x: float, a: float, b: float) -> float:
    """Return the regularized incomplete beta function I_x(a, b).

    By the continued fraction of DLMF 8.17.22, evaluated as Lentz did (Applied Optics 15, 1976).
    """
    if x <= 0 or x >= 1:
        return float(x >= 1)
    if x > (a + 1) / (a + b + 2):
        return 1 - beta_share(1 - x, b, a)
    front = math.exp(
        math.lgamma(a + b) - math.lgamma(a) - math.lgamma(b) + a * math.log(x) + b * math.log1p(-x)
    )
    c, d = 1.0, 1 / _away_from_0(1 - (a + b) * x / (a + 1))
    whole = d
    for m in range(1, 1000):
        even = m * (b - m) * x / ((a + 2 * m - 1) * (a + 2 * m))
        odd = -(a + m) * (a + b + m) * x / ((a + 2 * m) * (a + 2 * m + 1))
        for term in (even, odd):
            d = 1 / _away_from_0(1 + term * d)
            c = _away_from_0(1 + term / c)
            whole *= c * d
        if abs(c * d - 1) < 1e-15:
            break
    return front * whole / a


def _away_from_0(value: float) -> float:
    return value if abs(value) > _TINY else _TINY


def digamma(x: float) -> float:
    """Return the derivative of log gamma at x > 0 (Abramowitz and Stegun 6.3.5, 6.3.18)."""
    shift = 0.0
    while x < 10:
        shift -= 1 / x
        x += 1
    y = 1 / (x * x)
    series = y * (1 / 12 - y * (1 / 120 - y * (1 / 252 - y * (1 / 240 - y / 132))))
    return shift + math.log(x) - 1 / (2 * x) - series


def trigamma(x: float) -> float:
    """Return the second derivative of log gamma at x > 0 (Abramowitz and Stegun 6.4.6, 6.4.12)."""
    shift = 0.0
    while x < 10:
        shift += 1 / (x * x)
        x += 1
    y = 1 / (x * x)
    series = y * (1 / 6 - y * (1 / 30 - y * (1 / 42 - y / 30)))
    return shift + 1 / x + y / 2 + series / x


def trigamma_inverse(value: float) -> float:
    """Return x > 0 whose trigamma is ``value`` > 0, by bisection of its logarithm."""
    low, high = -40.0, 40.0  # trigamma falls from 1/x^2 near 0 to 1/x far away
    for _ in range(80):
        middle = (low + high) / 2
        if trigamma(math.exp(middle)) > value:
            low = middle
        else:
            high = middle
    return math.exp(high)
