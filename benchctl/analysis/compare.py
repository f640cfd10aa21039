"""Compares two runs: the same point of both, their difference, and its uncertainty.

The interval is Welch's for two means of unequal variance (Biometrika 34, 1947). With a single
repeat in either run there is no interval, and the verdict says so.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from statistics import fmean
from typing import Any

from benchctl.analysis.distributions import t975
from benchctl.analysis.statistics import variance
from benchctl.analysis.summary import SummaryRow, point_key
from benchctl.metrics import Vocabulary


class Verdict(StrEnum):
    """The second run's result, relative to the first."""

    BETTER = "better"
    WORSE = "worse"
    DIFFERENT = "different"
    """A different value of a metric for which neither higher nor lower is better."""
    SAME = "no difference seen"
    FEW = "too little data"


@dataclass(frozen=True, slots=True)
class Comparison:
    """One metric of one flow at one point, in two runs; in SI base units.

    ``a`` and ``b`` are the repeats, empty if a run has none. ``difference`` is the mean of b minus
    that of a; ``low`` and ``high`` bound it with 95 % confidence, None with too few repeats.
    ``valid`` is whether the labs of both runs kept their promises.
    """

    point: Mapping[str, Any]
    flow: str
    direction: str
    metric: str
    a: Sequence[float]
    b: Sequence[float]
    difference: float | None
    low: float | None
    high: float | None
    verdict: Verdict
    valid: bool = True

    @property
    def mean_a(self) -> float | None:
        """The mean of the first run's repeats."""
        return fmean(self.a) if self.a else None

    @property
    def mean_b(self) -> float | None:
        """The mean of the second run's repeats."""
        return fmean(self.b) if self.b else None

    @property
    def relative(self) -> float | None:
        """The difference as a share of the first run's mean; None if that is 0."""
        if self.difference is None or not self.mean_a:
            return None
        return self.difference / abs(self.mean_a)


def compare(
    a: Iterable[SummaryRow], b: Iterable[SummaryRow], vocabulary: Vocabulary
) -> list[Comparison]:
    """Compare the summaries of two runs, row by row: those of a, then those only in b."""
    in_a, in_b = ({_key(row): row for row in rows} for rows in (a, b))
    comparisons = []
    for key, row in {**in_b, **in_a}.items():
        values_a, values_b = (run[key].values if key in run else () for run in (in_a, in_b))
        difference = low = high = None
        if values_a and values_b:
            difference = fmean(values_b) - fmean(values_a)
            low, high = welch_interval(values_a, values_b) or (None, None)
        verdict = judge(difference, low, high, vocabulary.describe(row.metric).better)
        comparisons.append(
            Comparison(
                row.point, row.flow, row.direction, row.metric, values_a, values_b, difference,
                low, high, verdict, all(run[key].valid for run in (in_a, in_b) if key in run),
            )
        )  # fmt: skip
    order = {key: place for place, key in enumerate({**in_a, **in_b})}
    return sorted(comparisons, key=lambda one: order[_key(one)])


def _key(row: SummaryRow | Comparison) -> tuple[Any, ...]:
    return point_key(row.point), row.flow, row.direction, row.metric


def welch_interval(a: Sequence[float], b: Sequence[float]) -> tuple[float, float] | None:
    """Return the 95 % interval of mean(b) - mean(a); None with fewer than two values in either.

    The degrees of freedom (Welch and Satterthwaite) are rounded down, to the wider interval.
    """
    if min(len(a), len(b)) < 2:
        return None
    parts = [variance(values) / len(values) for values in (a, b)]
    squared = sum(parts)
    difference = fmean(b) - fmean(a)
    if squared == 0:
        return difference, difference
    spread = sum(part**2 / (len(v) - 1) for part, v in zip(parts, (a, b), strict=True))
    # Between the smaller n - 1 and n_a + n_b - 2; rounding must not push it below 1.
    degrees = max(1, math.floor(squared**2 / spread * (1 + 1e-12)))
    half = t975(degrees) * math.sqrt(squared)
    return difference - half, difference + half


def judge(difference: float | None, low: float | None, high: float | None, better: str) -> Verdict:
    """Return the verdict on a difference; ``better`` is as in `benchctl.api.Metric`."""
    if difference is None or low is None or high is None:
        return Verdict.FEW
    if low <= 0 <= high:
        return Verdict.SAME
    if not better:
        return Verdict.DIFFERENT
    return Verdict.BETTER if (difference > 0) == (better == "higher") else Verdict.WORSE
