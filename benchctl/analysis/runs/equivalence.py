"""Whether a second run is the same as the first within a margin, and whether it is no worse.

No difference seen is no proof that there is none. Here the true difference is taken to be as large
as the margin, or larger, until the repeats exclude it: by one one-sided test for a side, by two for
both (Schuirmann, Journal of Pharmacokinetics and Biopharmaceutics 15, 1987). A margin is a share of
the first run's mean, whose scatter counts, too: so the tests are of b - (1 ± share) a (Sasabuchi,
Journal of the American Statistical Association 83, 1988). They are of one figure alone. That all
figures of a table pass needs no correction (Berger, Technometrics 24, 1982).
"""

from __future__ import annotations

import math
from statistics import fmean

from benchctl.analysis.distributions import t_two_sided
from benchctl.analysis.runs.compare import ERROR, Comparison, welch


def p_not_lower(comparison: Comparison, share: float) -> float | None:
    """Return the chance of such repeats if b was lower than a by this share, or more.

    Of ratios, ``share`` is in percentage points. None if nothing shows how much it scatters.
    """
    return _p_beyond(comparison, share, -1)


def p_not_higher(comparison: Comparison, share: float) -> float | None:
    """Return the chance of such repeats if b was higher than a by this share, or more."""
    return _p_beyond(comparison, share, 1)


def p_same_within(comparison: Comparison, share: float) -> float | None:
    """Return the chance of such repeats if b differed from a by this share, or more."""
    lower, higher = p_not_lower(comparison, share), p_not_higher(comparison, share)
    return None if lower is None or higher is None else max(lower, higher)


def is_no_worse(comparison: Comparison, share: float, better: str) -> bool:
    """Return whether the repeats exclude that b is worse by this share, with 95 % confidence.

    ``better`` is as in `benchctl.api.Metric`; without one, nothing is worse.
    """
    if not better:
        return True
    p = p_not_lower(comparison, share) if better == "higher" else p_not_higher(comparison, share)
    return comparison.valid and p is not None and p <= ERROR


def is_same_within(comparison: Comparison, share: float) -> bool:
    """Return whether the repeats exclude a difference of this share, with 95 % confidence."""
    p = p_same_within(comparison, share)
    return comparison.valid and p is not None and p <= ERROR


def _p_beyond(comparison: Comparison, share: float, side: int) -> float | None:
    if not (comparison.a and comparison.b):
        return None
    mean_a, factor, shift = fmean(comparison.a), 1.0, side * share
    if not comparison.metric.endswith("_ratio"):
        factor, shift = 1 + math.copysign(side * share, side * mean_a), 0.0
    inside = side * (factor * mean_a + shift - fmean(comparison.b))
    if comparison.borrowed is not None:
        squared = comparison.borrowed.variance * (
            factor * factor / len(comparison.a) + 1 / len(comparison.b)
        )
        degrees = comparison.borrowed.degrees
    elif min(len(comparison.a), len(comparison.b)) > 1:
        squared, degrees = welch([factor * value for value in comparison.a], comparison.b)
    else:
        return None
    if squared:
        p = t_two_sided(inside / math.sqrt(squared), degrees) / 2
        p = p if inside > 0 else 1 - p
    else:
        # Figures that never vary may be counts: the exact chance of this order of repeats.
        is_inside = inside > 0 or not comparison.difference
        p = (
            1 / math.comb(len(comparison.a) + len(comparison.b), len(comparison.a))
            if is_inside
            else 1.0
        )
    return min(
        1.0,
        p + comparison.disturbed ** len(comparison.a) + comparison.disturbed ** len(comparison.b),
    )
