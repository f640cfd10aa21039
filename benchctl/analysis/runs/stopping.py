"""When to stop repeating: a figure is known well enough, although it was looked at many times.

An interval that is looked at after every repeat has many chances to be too narrow by luck: stopping
at the first 95 % interval that is narrow enough leaves 90 to 92 % of them around the truth. So
early looks ask for more confidence, as O'Brien and Fleming's spending function of Lan and DeMets
(Biometrika 70, 1983) gives it: nearly all at first, 95 % at the last. The interval that is reported
is then the plain one.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from statistics import NormalDist, fmean

from benchctl.analysis.distributions import t_quantile
from benchctl.analysis.statistics import variance

_NORMAL = NormalDist()
ERROR = 0.05


def spent(looked: float) -> float:
    """Return the share of errors that may be made when a share of all repeats is measured."""
    return 2 * _NORMAL.cdf(-_NORMAL.inv_cdf(1 - ERROR / 2) / math.sqrt(looked))


def half_share(values: Sequence[float], most: int) -> float:
    """Return half the interval of the mean, as a share of the mean; infinite with one value.

    At the confidence that stopping after this many of at most ``most`` values asks for.
    """
    n = len(values)
    if n < 2:
        return math.inf
    # Beyond some 12 digits below 1 a quantile is that of the last float.
    tail = max(spent(min(1.0, n / most)), 1e-12)
    half = t_quantile(1 - tail / 2, n - 1) * math.sqrt(variance(values) / n)
    mean = abs(fmean(values))
    return half / mean if mean else math.inf if half else 0.0


def is_known_to(values: Sequence[float], share: float, most: int) -> bool:
    """Return whether half the interval of the mean is within a share of the mean."""
    return half_share(values, most) <= share
