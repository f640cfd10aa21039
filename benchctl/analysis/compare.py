"""Whether two runs differ: the same point of both, their difference, and how sure that is.

The interval is Welch's for two means of unequal variance (Biometrika 34, 1947). Runs of a few
repeats say little: where one has a single repeat, no interval exists and the verdict says so.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from benchctl.analysis.statistics import t975
from benchctl.analysis.summary import Measured
from benchctl.metrics import Vocabulary


class Verdict(StrEnum):
    """What the second run is, beside the first."""

    BETTER = "better"
    WORSE = "worse"
    DIFFERENT = "different"
    """Another value, of a metric of which neither more nor less is better."""
    SAME = "no difference seen"
    FEW = "too little data"


@dataclass(frozen=True, slots=True)
class Comparison:
    """One metric of one flow at one point, in two runs; in SI base units.

    ``a`` and ``b`` are the repeats, empty where a run has none. ``difference`` is the mean of b
    less that of a; ``low`` and ``high`` bound it with 95 % confidence, None where the repeats are
    too few to tell.
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

    @property
    def mean_a(self) -> float | None:
        """The mean of the first run's repeats."""
        return _mean(self.a)

    @property
    def mean_b(self) -> float | None:
        """The mean of the second run's repeats."""
        return _mean(self.b)

    @property
    def relative(self) -> float | None:
        """The difference as a share of the first run's mean; None where that is 0."""
        if self.difference is None or not self.mean_a:
            return None
        return self.difference / abs(self.mean_a)


def compare(
    a: Iterable[Measured],
    b: Iterable[Measured],
    vocabulary: Vocabulary = Vocabulary(),  # noqa: B008
) -> list[Comparison]:
    """Compare what two runs measured, point by point, in the order of their first appearance."""
    in_a, in_b = _repeats(a), _repeats(b)
    comparisons = []
    for key, (one, _) in {**in_b, **in_a}.items():
        _, flow, direction, metric = key
        values_a, values_b = (run[key][1] if key in run else [] for run in (in_a, in_b))
        difference = low = high = None
        if values_a and values_b:
            difference = math.fsum(values_b) / len(values_b) - math.fsum(values_a) / len(values_a)
            low, high = welch_interval(values_a, values_b) or (None, None)
        verdict = judge(difference, low, high, vocabulary.describe(metric).better)
        comparisons.append(
            Comparison(
                one.point, flow, direction, metric, values_a, values_b, difference, low, high,
                verdict,
            )
        )  # fmt: skip
    order = {key: place for place, key in enumerate({**in_a, **in_b})}
    comparisons.sort(key=lambda c: order[_point(c.point), c.flow, c.direction, c.metric])
    return comparisons


_Key = tuple[tuple[tuple[str, Any], ...], str, str, str]


def _repeats(measured: Iterable[Measured]) -> dict[_Key, tuple[Measured, list[float]]]:
    found: dict[_Key, tuple[Measured, list[float]]] = {}
    for one in measured:
        for (direction, metric), figure in one.figures.items():
            key = (_point(one.point), one.flow, direction, metric)
            found.setdefault(key, (one, []))[1].append(figure.value)
    return found


def _point(point: Mapping[str, Any]) -> tuple[tuple[str, Any], ...]:
    return tuple(sorted(point.items()))


def welch_interval(a: Sequence[float], b: Sequence[float]) -> tuple[float, float] | None:
    """Return the 95 % interval of mean(b) - mean(a); None with fewer than two values in either.

    The degrees of freedom (Welch and Satterthwaite) are rounded down, to the wider interval.
    """
    if min(len(a), len(b)) < 2:
        return None
    parts = [_variance(values) / len(values) for values in (a, b)]
    squared = sum(parts)
    difference = math.fsum(b) / len(b) - math.fsum(a) / len(a)
    if squared == 0:
        return difference, difference
    spread = sum(part**2 / (len(v) - 1) for part, v in zip(parts, (a, b), strict=True))
    # Between the smaller n - 1 and n_a + n_b - 2; rounding must not push it below 1.
    degrees = max(1, math.floor(squared**2 / spread * (1 + 1e-12)))
    half = t975(degrees) * math.sqrt(squared)
    return difference - half, difference + half


def _variance(values: Sequence[float]) -> float:
    mean = math.fsum(values) / len(values)
    return math.fsum((value - mean) ** 2 for value in values) / (len(values) - 1)


def _mean(values: Sequence[float]) -> float | None:
    return math.fsum(values) / len(values) if values else None


def judge(difference: float | None, low: float | None, high: float | None, better: str) -> Verdict:
    """Put a difference and its interval into a word; ``better`` is as in `benchctl.api.Metric`."""
    if difference is None or low is None or high is None:
        return Verdict.FEW
    if low <= 0 <= high:
        return Verdict.SAME
    if not better:
        return Verdict.DIFFERENT
    return Verdict.BETTER if (difference > 0) == (better == "higher") else Verdict.WORSE
