"""Compares runs with one of them: point by point, with verdicts that hold for the whole table.

The interval of a difference is Welch's for two means of unequal variance (Biometrika 34, 1947), or
Student's with a variance that other points of the metric support (`borrowing`). It holds for its
figure alone. A verdict holds for all figures of its family together (`families`).

Welch's degrees of freedom are estimated, too well for verdicts on unequal numbers of repeats: of 54
equal figures with 3 and 10 repeats, 15 % of tables had one. So p then has the degrees of the run
with fewer repeats, which never exaggerates (Mickey and Brown, Annals of Mathematical Statistics 37,
1966).

Where repeats are a mixture, as on shared machines, all repeats of a figure in one run may be
disturbed: with share^n for n repeats. p includes this chance.
"""

from __future__ import annotations

import math
from bisect import bisect_left
from collections.abc import Iterable, Mapping, Sequence
from enum import StrEnum
from statistics import fmean
from typing import Any, TypeVar

from msgspec import Struct
from msgspec.structs import replace

from benchctl.analysis.distributions import t975, t_quantile, t_two_sided
from benchctl.analysis.runs.borrowing import (
    Scatter,
    Usual,
    borrowed,
    disturbed_share,
    usual_of,
    wholly_disturbed,
)
from benchctl.analysis.runs.families import Correction, holm
from benchctl.analysis.runs.summary import SummaryRow, point_key
from benchctl.analysis.statistics import variance
from benchctl.metrics import OF_TRIALS, Vocabulary

# A verdict is wrong in at most this share of tables without a difference.
ERROR = 0.05
# The chance to find a difference of the size seen, with the repeats that are recommended.
POWER = 0.8
MOST_REPEATS = 1000
# Usual differences of two repeats by which means are apart: of equal figures with two repeats, 5 in
# 100,000 are by chance.
APART = 4 / math.sqrt(2)
# Series of a family that are expected to be disturbed as a whole; with fewer, p leaves it out. Such
# a share is guessed from two or three outliers, and hides more true differences than false ones.
HARDLY = 0.05
# With numbers of repeats that differ by more, a difference of skewed figures is skewed itself, and
# degrees that are borrowed make it look too certain.
ALIKE = 2


_Figure = TypeVar("_Figure", "SummaryRow", "Comparison")


class Verdict(StrEnum):
    """The second run's result, relative to the first."""

    BETTER = "better"
    WORSE = "worse"
    DIFFERENT = "different"
    """A different value of a metric for which neither higher nor lower is better."""
    SAME = "no difference seen"
    APART = "apart"
    """Far apart, but not certain: too few repeats among so many figures."""
    VARYING = "too few repeats"
    """Too few for figures that vary like these: all of one run may be disturbed."""
    FEW = "too little data"

    @property
    def is_certain(self) -> bool:
        """Whether it names a difference."""
        return self in (Verdict.BETTER, Verdict.WORSE, Verdict.DIFFERENT)


class Comparison(Struct, frozen=True):
    """One metric of one flow at one point, in two runs; in SI base units.

    ``a`` and ``b`` are the repeats, empty if a run has none. ``difference`` is the mean of b minus
    that of a; ``low`` and ``high`` bound it with 95 % confidence, None with too few repeats. ``p``
    is the chance of such a difference without a true one, for this figure alone; ``adjusted`` for a
    family of as many figures as ``family``. ``borrows`` is whether other points support the
    variance, ``borrowed`` what it is then. ``effect`` is the difference in standard deviations of a
    repeat; ``repeats_needed`` are those in either run that would show it, if these did not.
    ``disturbed`` is the share of trials that are far from the others of their figure, over the
    family. ``same_within`` is the share of A that a difference was shown to be less than, if that
    was a question. ``valid`` is whether the labs of both runs kept their promises.
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
    p: float | None = None
    adjusted: float | None = None
    family: int = 0
    borrows: bool = False
    effect: float | None = None
    repeats_needed: int | None = None
    disturbed: float = 0.0
    borrowed: Scatter | None = None
    same_within: float | None = None

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
    a: Iterable[SummaryRow],
    b: Iterable[SummaryRow],
    vocabulary: Vocabulary,
    correction: Correction = holm,
) -> list[Comparison]:
    """Compare the summaries of two runs, row by row: those of a, then those only in b."""
    return compare_all(a, [b], vocabulary, correction)[0]


def compare_all(
    a: Iterable[SummaryRow],
    others: Iterable[Iterable[SummaryRow]],
    vocabulary: Vocabulary,
    correction: Correction = holm,
) -> list[list[Comparison]]:
    """Compare the summary of a run with those of others, each row by row as `compare` does.

    Figures of tables are one family over all runs, all other figures another: so a verdict does not
    depend on whether the others are shown.
    """
    in_a = {comparison_key(row): row for row in a}
    compared = []
    for rows in others:
        in_b = {comparison_key(row): row for row in rows}
        pairs = [_Pair(in_a.get(key), in_b.get(key)) for key in {**in_a, **in_b}]
        _borrow(pairs)
        compared.append(pairs)
    shown = [{comparison_key(row) for row in of_tables([pair.row for pair in pairs], vocabulary)}
             for pairs in compared]  # fmt: skip
    tested = [
        (comparison_key(pair.row) in keys, pair)
        for pairs, keys in zip(compared, shown, strict=True)
        for pair in pairs
        if pair.p is not None
    ]
    for family in (
        [pair for is_shown, pair in tested if is_shown is wanted] for wanted in (True, False)
    ):
        plain = correction([pair.p for pair in family if pair.p is not None])
        usual = {id(pair.usual): pair.usual for pair in family if pair.usual is not None}
        share = disturbed_share(usual.values())
        if wholly_disturbed(usual.values(), share) < HARDLY:
            share = 0.0
        for pair in family:
            pair.disturb(share)
        corrected = correction([pair.p for pair in family if pair.p is not None])
        for pair, without, adjusted in zip(family, plain, corrected, strict=True):
            pair.family, pair.undisturbed, pair.adjusted = len(family), without, adjusted
    return [[pair.compared(vocabulary) for pair in pairs] for pairs in compared]


def of_tables(figures: Sequence[_Figure], vocabulary: Vocabulary) -> list[_Figure]:
    """Return the figures that tables show: of wanted metrics, and of those that stand in for one.

    A rate sent says nothing beside the rate that arrived, unless it is what its tool measures.
    """
    wanted, headlines = {*OF_TRIALS, *vocabulary.wanted}, {*vocabulary.headlines.values()}
    measured = {comparison_key(figure) for figure in figures}

    def is_said(figure: _Figure) -> bool:
        replaced = vocabulary.describe(figure.metric).stands_for
        *about, _ = comparison_key(figure)
        return bool(replaced) and figure.metric not in headlines and (*about, replaced) in measured

    return [figure for figure in figures if figure.metric in wanted and not is_said(figure)]


class _Pair:
    """The repeats of one figure in two runs; what they show is added step by step."""

    def __init__(self, a: SummaryRow | None, b: SummaryRow | None) -> None:
        known = [row for row in (a, b) if row is not None]
        self.row, self.valid = known[0], all(row.valid for row in known)
        self.a: Sequence[float] = a.values if a else ()
        self.b: Sequence[float] = b.values if b else ()
        self.difference = fmean(self.b) - fmean(self.a) if a and b else None
        self.low: float | None = None
        self.high: float | None = None
        self.p: float | None = None
        self.adjusted: float | None = None
        self.undisturbed: float | None = None
        """As adjusted, if no trial was disturbed."""
        self.family = 0
        self.borrows = False
        self.usual: Usual | None = None
        self.disturbed = 0.0
        self.scatter = self._own()
        if self.scatter is not None and self.difference is not None:
            self._test()

    def _own(self) -> Scatter | None:
        """Return the variance of a repeat, pooled over both runs; None without repeats."""
        degrees = max(0, len(self.a) - 1) + max(0, len(self.b) - 1)
        if not (self.a and self.b and degrees):
            return None
        squares = math.fsum(variance(v) * (len(v) - 1) for v in (self.a, self.b) if len(v) > 1)
        return Scatter(squares / degrees, degrees)

    def _test(self) -> None:
        """Test the difference with what the two runs show of this figure alone."""
        found = welch_interval(self.a, self.b)
        if found is None:
            return
        assert self.difference is not None
        self.low, self.high = found
        parts, degrees = welch(self.a, self.b)
        if len(self.a) != len(self.b):
            degrees = min(len(self.a), len(self.b)) - 1
        if parts:
            self.p = t_two_sided(self.difference / math.sqrt(parts), degrees)
        elif self.difference:
            # Figures that never vary may be counts: the exact chance of this order of repeats.
            self.p = 2 / math.comb(len(self.a) + len(self.b), len(self.a))
        else:
            self.p = 1.0

    def borrow(self, scatter: Scatter) -> None:
        """Test the difference with a variance that other points support."""
        assert self.difference is not None
        error = math.sqrt(scatter.variance * (1 / len(self.a) + 1 / len(self.b)))
        half = t975(scatter.degrees) * error
        self.low, self.high = self.difference - half, self.difference + half
        self.p = t_two_sided(self.difference / error, scatter.degrees)
        self.scatter, self.borrows = scatter, True

    def disturb(self, share: float) -> None:
        """Add the chance that all repeats of one of the runs are disturbed."""
        assert self.p is not None
        self.disturbed = share
        self.p = min(1.0, self.p + share ** len(self.a) + share ** len(self.b))

    def _judge(self, better: str) -> Verdict:
        """Return the verdict; without one, whether the runs are apart all the same."""
        verdict = judge(self.difference, self.adjusted, better)
        if verdict is not Verdict.SAME:
            return verdict
        assert self.undisturbed is not None
        if self.undisturbed <= ERROR:
            return Verdict.VARYING
        return Verdict.APART if self._is_apart() else verdict

    def _is_apart(self) -> bool:
        """Return whether the interval excludes none, by far more than such figures usually vary."""
        if self.low is None or self.high is None or self.low <= 0 <= self.high:
            return False
        return self.usual is None or self.usual.distance(fmean(self.a), fmean(self.b)) >= APART

    def compared(self, vocabulary: Vocabulary) -> Comparison:
        """Return the comparison, when all of its family are corrected."""
        row = self.row
        comparison = Comparison(
            row.point, row.flow, row.direction, row.metric, self.a, self.b, self.difference,
            self.low, self.high, self._judge(vocabulary.describe(row.metric).better),
            self.valid, self.p, self.adjusted, self.family, self.borrows, disturbed=self.disturbed,
            borrowed=self.scatter if self.borrows else None,
        )  # fmt: skip
        if self.scatter is None or not self.scatter.variance or self.difference is None:
            return comparison
        effect = self.difference / math.sqrt(self.scatter.variance)
        needed = None
        if not comparison.verdict.is_certain:
            needed = repeats_needed(effect, max(1, self.family), self.disturbed)
        # Hedges corrects the bias of few degrees (Journal of Educational Statistics 6, 1981).
        fair = 1 - 3 / (4 * self.scatter.degrees - 1)
        return replace(comparison, effect=effect * fair, repeats_needed=needed)


def _borrow(pairs: Sequence[_Pair]) -> None:
    """Let the points of each metric of a flow share what they show of its variance."""
    groups: dict[tuple[str, str, str], list[_Pair]] = {}
    for pair in pairs:
        if pair.scatter is not None:
            key = (pair.row.flow, pair.row.direction, pair.row.metric)
            groups.setdefault(key, []).append(pair)
    for group in groups.values():
        usual = usual_of([values for pair in group for values in (pair.a, pair.b)])
        for pair in group:
            pair.usual = usual
        levels = [fmean([*pair.a, *pair.b]) for pair in group]
        shared = borrowed([pair.scatter for pair in group if pair.scatter is not None], levels)
        for pair, scatter in zip(group, shared, strict=bool(shared)):
            if max(len(pair.a), len(pair.b)) <= ALIKE * min(len(pair.a), len(pair.b)):
                pair.borrow(scatter)


def repeats_needed(effect: float, family: int, disturbed: float = 0.0) -> int | None:
    """Return how many repeats would show a difference of this many standard deviations.

    In either run, with a chance of 80 %, and after correction for a family, where this share of
    trials is disturbed; None for more than 1000. By the t quantiles of both errors (Cohen,
    Statistical Power Analysis, 2.4).
    """

    def suffices(n: int) -> bool:
        degrees = 2 * n - 2
        level = 1 - (ERROR / family / 2 - disturbed**n)
        if level >= 1:
            return False
        quantiles = t_quantile(level, degrees) + t_quantile(POWER, degrees)
        return abs(effect) * math.sqrt(n / 2) >= quantiles

    if not effect or not suffices(MOST_REPEATS):
        return None
    return bisect_left(range(MOST_REPEATS), True, lo=2, key=suffices)


def comparison_key(row: SummaryRow | Comparison) -> tuple[Any, ...]:
    """Return what identifies a figure in several runs."""
    return point_key(row.point), row.flow, row.direction, row.metric


def welch_interval(
    a: Sequence[float], b: Sequence[float], level: float = 0.975
) -> tuple[float, float] | None:
    """Return the 95 % interval of mean(b) - mean(a); None with fewer than two values in either.

    With another ``level``, each end of it has this confidence.
    """
    if min(len(a), len(b)) < 2:
        return None
    difference = fmean(b) - fmean(a)
    squared, degrees = welch(a, b)
    half = t_quantile(level, degrees) * math.sqrt(squared)
    return difference - half, difference + half


def welch(a: Sequence[float], b: Sequence[float]) -> tuple[float, int]:
    """Return the squared standard error of a difference of means, and its degrees of freedom.

    The degrees (Welch and Satterthwaite) are rounded down, to the wider interval.
    """
    parts = [variance(values) / len(values) for values in (a, b)]
    squared = sum(parts)
    if squared == 0:
        return 0.0, 1
    spread = sum(part**2 / (len(v) - 1) for part, v in zip(parts, (a, b), strict=True))
    # Between the smaller n - 1 and n_a + n_b - 2; rounding must not push it below 1.
    return squared, max(1, math.floor(squared**2 / spread * (1 + 1e-12)))


def judge(difference: float | None, adjusted: float | None, better: str) -> Verdict:
    """Return the verdict on a difference by its corrected p-value.

    ``better`` is as in `benchctl.api.Metric`.
    """
    if difference is None or adjusted is None:
        return Verdict.FEW
    if adjusted > ERROR:
        return Verdict.SAME
    if not better:
        return Verdict.DIFFERENT
    return Verdict.BETTER if (difference > 0) == (better == "higher") else Verdict.WORSE
