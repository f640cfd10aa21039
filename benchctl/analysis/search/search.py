"""Searching for the highest rate at which a condition holds: what is known, and the next rate.

The passing edge is the highest rate that passed below the lowest that failed, as in MLRsearch
(draft-ietf-bmwg-mlrsearch, relevant bounds): a failure counts for every rate above it, until a rate
well above it passes. Then the failures were not the rate's: more load never loses less. RFC 2544,
section 26.1, asks for the fastest rate without loss; here a condition takes the place of "without
loss". A rate that is tried again is what most of its tries show. Both edges are tried until enough
of them agree, and a rate well above the failing edge is tried once more, so that bursts of loss do
not end a search too low: the loss verification of ETSI GS NFV-TST 009, clause 12.3, which repeats
every failure, and which is needed only where the search ends.

What an overloaded path still carries estimates its capacity (MLRsearch begins with the forwarding
rate at the maximum load). So the tries after a failure are just below and above it. Whenever an
estimate could cost more tries than are left for bisection, by ratio, the try moves towards the
middle.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from enum import StrEnum

from msgspec import Struct
from msgspec.structs import replace

from benchctl.run.planned import Search

# Of the tries that bisection needs; rounding rates makes a half slightly more than a half.
_HALVES = 0.9
# In precisions: what fails further up, fails on a path that carries more than the edge as well.
_NEAR = 3
# Of bursts in a fifth of all tries, seven failures in a row are one in 80,000.
_OF_BURSTS = 3


class Try(Struct, frozen=True):
    """One trial of a search at ``rate_bps``.

    ``passed`` is None if it measured nothing. ``carried_bps`` is the part of the rate that arrived,
    None if unknown. ``why`` says why it failed. ``doubtful`` if the reason may be the machine: the
    rate was not sent, or a lab did not keep its promises.
    """

    rate_bps: float
    passed: bool | None
    carried_bps: float | None = None
    why: str = ""
    doubtful: bool = False


class SearchOutcome(StrEnum):
    """What a search knows."""

    FOUND = "found"
    """A rate that passes and one that fails are as close as asked for."""
    AT_LEAST = "at_least"
    """The highest rate of the range passes."""
    BELOW = "below"
    """The lowest rate of the range fails."""
    OPEN = "open"
    """The tries so far do not decide."""


class SearchFinding(Struct, frozen=True):
    """What the tries of one search show.

    ``passing_bps`` is the highest rate that passes, ``failing_bps`` the lowest that fails, and
    ``why`` says how it failed. ``confirmed`` is whether enough tries agree at both.
    """

    outcome: SearchOutcome
    passing_bps: float | None
    failing_bps: float | None
    confirmed: bool
    tries: int
    why: str


def bisections(low_bps: float, high_bps: float, precision: float) -> int:
    """Return how many tries bisection takes, by ratio, before both edges are confirmed."""
    steps = math.log(high_bps / low_bps) / math.log1p(precision)
    return max(1, math.ceil(math.log2(steps / _HALVES)))


def most_needed(search: Search) -> int:
    """Return how many tries a search takes at most if no rate both passes and fails."""
    return bisections(search.low_bps, search.high_bps, search.precision) + _to_confirm(search)


def first_rate(low_bps: float, high_bps: float, precision: float) -> float:
    """Return the first rate to try: the middle of the range, by ratio."""
    return _rounded(math.sqrt(low_bps * high_bps), precision)


def finding(search: Search, tries: Sequence[Try]) -> SearchFinding:
    """Return what the tries of one search show."""
    return _State(search, tries).finding()


def next_rate(search: Search, tries: Sequence[Try]) -> float | None:
    """Return the rate to try next; None at the end of the search."""
    return _State(search, tries).next_rate()


def _to_confirm(search: Search) -> int:
    """Return the tries to keep for both edges, a rate above, and an end that was not tried."""
    return 2 * search.confirm


def _rounded(rate_bps: float, precision: float) -> float:
    """Return a rate that people can read, off by at most a twentieth of the precision."""
    digits = math.ceil(-math.log10(precision / 10)) + 1
    return float(f"{rate_bps:.{digits - 1}e}")


_Votes = dict[float, tuple[int, int]]
"""How many tries passed and how many failed, by rate."""


def _trusted(tries: Sequence[Try]) -> Iterator[Try]:
    """Yield the tries; a doubtful one counts only as a second at a rate without any other."""
    sure = {
        attempt.rate_bps for attempt in tries if attempt.passed is not None and not attempt.doubtful
    }
    doubted: set[float] = set()
    for attempt in tries:
        ignored = attempt.doubtful and (attempt.rate_bps in sure or attempt.rate_bps not in doubted)
        if attempt.doubtful:
            doubted.add(attempt.rate_bps)
        yield replace(attempt, passed=None) if ignored else attempt


def _votes(tries: Iterable[Try]) -> _Votes:
    votes: _Votes = {}
    for attempt in tries:
        if attempt.passed is not None:
            passes, fails = votes.get(attempt.rate_bps, (0, 0))
            votes[attempt.rate_bps] = (passes + attempt.passed, fails + (not attempt.passed))
    return votes


class _State:
    """The tries of one search, by rate."""

    def __init__(self, search: Search, tries: Sequence[Try]) -> None:
        self._search, self._given, self._tries = search, tries, list(_trusted(tries))
        self._votes = _votes(self._tries)
        self._best = max((r for r, (p, f) in self._votes.items() if p > f), default=0.0)
        fails = (r for r, (p, f) in self._votes.items() if f > p and not self._is_overruled(r))
        self.failing = min(fails, default=None)
        below = math.inf if self.failing is None else self.failing
        passing = (r for r, (p, f) in self._votes.items() if p > f and r < below)
        self.passing = max(passing, default=None)

    def finding(self) -> SearchFinding:
        search, passing, failing = self._search, self.passing, self.failing
        outcome = SearchOutcome.OPEN
        if passing == search.high_bps:
            outcome = SearchOutcome.AT_LEAST
        elif failing == search.low_bps:
            outcome = SearchOutcome.BELOW
        elif passing is not None and failing is not None and self._is_close(passing, failing):
            outcome = SearchOutcome.FOUND
        sure = [attempt for attempt in self._tries if not attempt.doubtful]
        confirmed = outcome is not SearchOutcome.OPEN and self._unconfirmed(sure) is None
        whys = [
            attempt.why
            for attempt in self._tries
            if attempt.rate_bps == failing and attempt.passed is False
        ]
        if outcome is SearchOutcome.OPEN and self._is_hopeless():
            whys = [self._tries[-1].why]
        why = whys[-1] if whys else ""
        return SearchFinding(outcome, passing, failing, confirmed, len(self._tries), why)

    def next_rate(self) -> float | None:
        search, tries = self._search, self._tries
        if len(tries) >= search.most or self._is_hopeless():
            return None
        if not tries:
            return first_rate(search.low_bps, search.high_bps, search.precision)
        if tries[-1].passed is None:
            return tries[-1].rate_bps
        for rate, (passes, fails) in self._votes.items():
            if passes == fails and not self._is_overruled(rate):
                return rate
        if self.finding().outcome is not SearchOutcome.OPEN:
            return self._unconfirmed(tries)
        return self._disputing() or self._between()

    def _is_hopeless(self) -> bool:
        """Return whether the last two tries measured nothing: a third would not, either."""
        return len(self._given) > 1 and all(tried.passed is None for tried in self._given[-2:])

    def _is_close(self, low: float, high: float) -> bool:
        return high <= low * (1 + self._search.precision) * (1 + 1e-9)

    def _unconfirmed(self, tries: Sequence[Try]) -> float | None:
        """Return a rate at which too few tries agree: an edge, or well above the failing one."""
        votes = _votes(tries)
        edges = ((self.passing, 0), (self.failing, 1))
        for rate, side in edges:
            if rate is not None and votes.get(rate, (0, 0))[side] < self._search.confirm:
                return rate
        if self.failing is None:
            return None
        near = self._near(votes, self.failing)
        failed = sum(fails - passes for passes, fails in near.values())
        enough = self._search.confirm * (_OF_BURSTS if self._may_be_bursts() else 1)
        above = self._well_above(self.failing)
        return None if failed > enough and max(near) >= above else above

    def _disputing(self) -> float | None:
        """Return a rate well above an edge that may be bursts, if none was tried."""
        if self.failing is None or not self._may_be_bursts():
            return None
        above = self._well_above(self.failing)
        return None if max(self._near(self._votes, self.failing)) >= above else above

    def _near(self, votes: _Votes, edge_bps: float) -> _Votes:
        """Return the votes at an edge and as little above it as bears on it."""
        reach = 1 + _NEAR * self._search.precision
        return {
            rate: counts for rate, counts in votes.items() if edge_bps <= rate <= edge_bps * reach
        }

    def _may_be_bursts(self) -> bool:
        """Return whether the failing edge carried less than a lower rate: no overload does."""
        failing = self.failing or 0.0
        carried = [attempt for attempt in self._tries if attempt.carried_bps is not None]
        at_edge = [
            tried.carried_bps or 0.0
            for tried in carried
            if tried.rate_bps == failing and tried.passed is False
        ]
        below = [
            tried.carried_bps or 0.0
            for tried in carried
            if tried.rate_bps < failing and tried.passed
        ]
        least = max(below, default=0.0) * (1 - self._search.precision / 4)
        return bool(at_edge) and max(at_edge) < least

    def _is_overruled(self, rate_bps: float) -> bool:
        """Return whether a rate well above passes."""
        return self._best >= self._well_above(rate_bps) > rate_bps

    def _well_above(self, rate_bps: float) -> float:
        """Return the rate that must fail as well if failures at a rate are the rate's.

        A precision above, and a tenth for rounding: an edge within it is not far off.
        """
        precision = self._search.precision
        return min(_rounded(rate_bps * (1 + 1.1 * precision), precision), self._search.high_bps)

    def _between(self) -> float:
        """Return a rate between the edges, or an end of the range that was not tried."""
        search = self._search
        low = search.low_bps if self.passing is None else self.passing
        high = search.high_bps if self.failing is None else self.failing
        if self._is_close(low, high):
            return high if self.failing is None else low
        middle = math.sqrt(low * high)
        wish = self._wish(low, high, middle)
        # Whichever side is left, bisection must finish within the tries that remain, if it can.
        left = search.most - len(self._tries) - _to_confirm(search) - 1
        reach = math.log1p(search.precision) * _HALVES * 2.0 ** min(max(0, left), 60)
        width = math.log(high / low)
        if reach < width <= 2 * reach:
            wish = min(max(wish, high / math.exp(reach)), low * math.exp(reach))
        elif 2 * reach < width <= 2 * reach / _HALVES:  # by rounding
            wish = middle
        if wish in ((search.high_bps,) if self.failing is None else (search.low_bps,)):
            return wish
        # Nearer than a quarter of the precision to an edge, nothing is learnt.
        margin = 1 + search.precision / 4
        inside = low * margin <= wish <= high / margin
        return _rounded(wish if inside else middle, search.precision)

    def _wish(self, low: float, high: float, middle: float) -> float:
        """Return the most promising rate, if no estimate were ever wrong."""
        precision = self._search.precision
        if self.failing is None:
            return self._search.high_bps
        carried = [
            attempt.carried_bps
            for attempt in self._tries
            if attempt.rate_bps == self.failing and attempt.carried_bps and attempt.passed is False
        ]
        # A path that carries nearly all of what fails is not what the condition is about.
        if not carried or carried[-1] * (1 + precision) > self.failing:
            return middle
        below = max(carried[-1] / (1 + 0.45 * precision), self._search.low_bps)
        near = below / (1 + precision / 4)
        if self.passing is None or low < near:
            return below
        # A queue lets more pass than the path carries: double the step above what passes.
        above = sum(p > f and near <= rate < high for rate, (p, f) in self._votes.items())
        return min(low * math.pow(1 + 0.95 * precision, math.pow(2, above - 1)), middle)
