"""How good the newest figures are: against expectations, the baseline, or what is usual. Pure."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from enum import StrEnum
from typing import NamedTuple

from msgspec import Struct

from benchctl.analysis.runs.outcomes import Answer, Outcome
from benchctl.analysis.statistics import quantile
from benchctl.run.planned import Severity
from benchctl.units import format_ratio, format_value

NEAR, FAR = 0.1, 0.2
"""Shares of a reference: a figure nearer is like it, one further away is far from it.

Paths that are busier by day vary by the first; the second is a drop that people act on.
"""
LEAST_USUAL = 4
"""Earlier figures that show what is usual: those of a day, at a run each six hours."""
USUAL = "its usual level"
"""The name of the median of the newest days; what lies between their 5th and 95th percentile is
alike: single trials are disturbed."""


class FigureState(StrEnum):
    """How a figure of a pair is; its value is the mark that shows it without colours."""

    FAILED = "✕"
    UNMET = "▼"
    WARNED = "▽"
    UNDECIDED = "?"
    DIFFERENT = "◆"
    BETTER = "△"
    MUCH_BETTER = "▲"
    FINE = "•"
    OLD = "…"
    NONE = ""

    @property
    def word(self) -> str:
        """The class of its colour."""
        return self.name.lower().replace("_", "-")


MEANINGS: Mapping[FigureState, str] = {
    FigureState.FAILED: "the newest trial failed",
    FigureState.UNMET: f"an expectation is not met, or worse by {format_ratio(FAR)} or more",
    FigureState.WARNED: f"a warning, or worse by {format_ratio(NEAR)} or more",
    FigureState.UNDECIDED: "the repeats leave open whether an expectation is met",
    FigureState.DIFFERENT: f"other by {format_ratio(NEAR)} or more, where neither way is better",
    FigureState.BETTER: f"better by {format_ratio(NEAR)} or more",
    FigureState.MUCH_BETTER: f"better by {format_ratio(FAR)} or more",
    FigureState.FINE: "as it should be",
    FigureState.OLD: "not in the newest run",
}
"""In words, the worst first."""
WORST_FIRST: Mapping[FigureState, int] = {state: place for place, state in enumerate(FigureState)}


class Judged(Struct, frozen=True):
    """The newest figure of a series, its state, and against what: ``why`` is in words."""

    state: FigureState
    value: float | None
    time: float | None
    why: str = ""


class Reference(NamedTuple):
    """What a figure is held against, in words: its value, and the range in which all is alike."""

    name: str
    value: float
    low: float
    high: float


def against(
    metric: str, better: str, value: float, reference: Reference
) -> tuple[FigureState, str]:
    """Return how a figure is beside a reference, and in words.

    ``better`` is as in `benchctl.api.Metric`.
    """
    known = f"{reference.name} ({format_value(metric, reference.value)})"
    apart = value - reference.value
    # No share of nothing: any of it is a difference, and nobody knows how large.
    share = apart / abs(reference.value) if reference.value else math.copysign(NEAR, apart)
    if abs(share) < NEAR or reference.low <= value <= reference.high:
        return FigureState.FINE, f"like {known}"
    size = f"{format_ratio(abs(share))} " if reference.value else ""
    words = f"{size}{'above' if apart > 0 else 'below'} {known}"
    if not better:
        return FigureState.DIFFERENT, words
    if (apart > 0) == (better == "higher"):
        return (FigureState.MUCH_BETTER if abs(share) >= FAR else FigureState.BETTER), words
    return (FigureState.UNMET if abs(share) >= FAR else FigureState.WARNED), words


def expected(outcomes: Iterable[Outcome]) -> tuple[FigureState, str] | None:
    """Return how expectations of one figure are met: the worst of them; None without any."""
    found = [
        (_state_of(outcome), f"{outcome.answer}: {outcome.text}, {outcome.why}")
        for outcome in outcomes
    ]
    return min(found, key=lambda judgement: WORST_FIRST[judgement[0]], default=None)


def _state_of(outcome: Outcome) -> FigureState:
    match outcome.answer:
        case Answer.MET:
            return FigureState.FINE
        case Answer.UNDECIDED:
            return FigureState.UNDECIDED
    return FigureState.WARNED if outcome.severity is Severity.WARNING else FigureState.UNMET


def usual(values: Sequence[float]) -> Reference | None:
    """Return what earlier figures of a series usually are; None of too few."""
    if len(values) < LEAST_USUAL:
        return None
    ordered = sorted(values)
    low, middle, high = (quantile(ordered, share) for share in (0.05, 0.5, 0.95))
    return Reference(USUAL, middle, low, high)
