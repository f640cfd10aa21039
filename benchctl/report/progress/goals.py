"""What a run is to show, and how far it is: known figures, rates to find, expectations."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from enum import StrEnum
from typing import TYPE_CHECKING, Any

from msgspec import Struct

from benchctl.analysis.runs.summary import SummaryRow, point_key
from benchctl.report.pivot import figure_name
from benchctl.report.report import Report, is_settled
from benchctl.run.record import Run
from benchctl.units import format_rate, format_ratio

if TYPE_CHECKING:  # imported only for runs that have them
    from benchctl.analysis.runs.outcomes import Outcome

# Twice the mean; the first looks at few repeats have intervals of millions of percent.
WIDE = 2.0


class GoalState(StrEnum):
    """How far a goal is."""

    MET = "met"
    NOT_MET = "not met"
    UNDECIDED = "undecided"
    KNOWN = "known"
    NOT_KNOWN = "not known"
    REPEATING = "repeating"
    FOUND = "found"
    NOT_FOUND = "not found"
    SEARCHING = "searching"


class Goal(Struct, frozen=True):
    """One thing that a run is to show.

    ``trials`` is how many there were, and how many there may be; ``figures`` are what it has, and
    what is wanted. ``fails`` is whether it makes a run end with code 1.
    """

    state: GoalState
    what: str
    trials: str
    figures: str
    point: Mapping[str, Any]
    fails: bool = False


HEADS = ("state", "goal", "trials", "now and wanted")


def goals_of(report: Report) -> list[Goal]:
    """Return the goals of a run with their state after the trials that have ended."""
    return [*_repeats(report), *_searches(report), *_expectations(report)]


def _direction(row: SummaryRow | Outcome, others: Iterable[SummaryRow | Outcome]) -> str:
    """Return the direction of a figure whose flow has another one in it, too."""
    directions = {
        other.direction
        for other in others
        if (other.flow, point_key(other.point)) == (row.flow, point_key(row.point))
    }
    return f" ({row.direction})" if len(directions - {""}) > 1 and row.direction else ""


def has_goals(run: Run) -> bool:
    """Return whether a run has goals."""
    settings = run.settings
    return bool(settings.until or settings.search or settings.expect)


def bounds_of_trials(run: Run, planned: Iterable[tuple[str, int]]) -> tuple[int, int] | None:
    """Return how many trials a run begins with and may have; None if their number was planned.

    ``planned`` are the points of its trials, in any one form and without a searched rate, and their
    repeats.
    """
    if run.settings.search is not None:
        searches = len(set(planned))
        return searches, searches * run.settings.search.most
    if run.settings.until is not None:
        points, until = len({point for point, _ in planned}), run.settings.until
        return points * until.least, points * until.most
    return None


def tally_of(goals: Sequence[Goal]) -> str:
    """Return how many goals are in each state: ``3 met, 1 not met``."""
    counts = Counter(goal.state for goal in goals)
    return ", ".join(f"{counts[state]} {state}" for state in GoalState if counts[state])


def _ended(report: Report) -> Counter[Any]:
    """Return how many trials of each point have ended."""
    return Counter(point_key(trial.trial.point) for trial in report.trials)


def _repeats(report: Report) -> Iterator[Goal]:
    until = report.run.settings.until
    if until is None:
        return
    from benchctl.analysis.runs.stopping import half_share

    ended = _ended(report)
    rows = report.rows_of(until.metric)
    for row in rows:
        count = ended[point_key(row.point)]
        half = half_share(row.values, until.most)
        over = report.run.status.has_ended or count >= until.most
        state = GoalState.NOT_KNOWN if over else GoalState.REPEATING
        if is_settled(report.run, row):
            state = GoalState.KNOWN
        figures = f"{_now(half)}, ±{format_ratio(until.share)} wanted"
        trials = f"{count} of at most {until.most}"
        what = f"{figure_name(row)}{_direction(row, rows)}"
        yield Goal(state, what, trials, figures, row.point)


def _searches(report: Report) -> Iterator[Goal]:
    search = report.run.settings.search
    if search is None or not report.found:
        return
    from benchctl.analysis.search.search import SearchOutcome
    from benchctl.report.text.searches import rate_text, search_name

    for found_search in report.found:
        finding = found_search.finding
        state = GoalState.FOUND if finding.confirmed else GoalState.SEARCHING
        over = report.run.status.has_ended or finding.tries >= search.most
        if over and not finding.confirmed:
            state = GoalState.NOT_FOUND
        low, high = finding.passing_bps, finding.failing_bps
        if finding.outcome in (SearchOutcome.AT_LEAST, SearchOutcome.BELOW):
            figures = rate_text(search, found_search)
        else:
            ends = low or search.low_bps, high or search.high_bps
            figures = (
                f"between {format_rate(ends[0])}{' (not tried)' * (low is None)}"
                f" and {format_rate(ends[1])}{' (not tried)' * (high is None)},"
                f" {_apart(ends[1] / ends[0])}, {format_ratio(search.precision)} wanted"
            )
        if finding.why:
            figures += f"; fails by {finding.why}"
        trials = f"{finding.tries} of at most {search.most}"
        yield Goal(state, search_name(search, found_search), trials, figures, found_search.point)


def _now(half: float) -> str:
    """Return half an interval now; of few repeats, which say nothing, no figure."""
    if math.isinf(half):
        return "one value has no interval"
    return f"±{format_ratio(half)} now" if half < WIDE else f"over ±{format_ratio(WIDE)} now"


def _apart(ratio: float) -> str:
    return f"{format_ratio(ratio - 1)} apart" if ratio < 2 else f"{ratio:.3g} times"


def _expectations(report: Report) -> Iterator[Goal]:
    ended = _ended(report)
    for outcome in report.outcomes:
        count = ended[point_key(outcome.point)]
        trials = f"{count:,}" if count else "-"
        alike = [other for other in report.outcomes if other.figure == outcome.figure]
        what = f"{outcome.text}{_direction(outcome, alike)}"
        yield Goal(
            GoalState(outcome.answer), what, trials, outcome.why, outcome.point, outcome.fails()
        )
