"""Whether the order of trials matters: figures that rise or fall from the first trial to the last.

The seasonal Kendall test of Hirsch, Slack and Smith (Water Resources Research 18, 1982), with
points as seasons: repeats are compared within their point only, so points may differ as they like.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Container, Iterable, Sequence
from statistics import NormalDist, fmean, median
from typing import Any

from msgspec import Struct

from benchctl.analysis.results import TrialReport
from benchctl.analysis.runs.families import holm
from benchctl.analysis.runs.summary import point_key

SIGNIFICANT = 0.05
# With fewer pairs of repeats, no order is unlikely enough to mean anything.
LEAST_PAIRS = 10

Placed = tuple[int, float]
"""The place of a trial in the order of execution, and a figure."""


class Drift(Struct, frozen=True):
    """The trend of one metric of a flow in one direction over the order of the trials.

    ``change`` is relative, from the first trial to the last. ``p`` is for this figure alone,
    ``p_adjusted`` for all figures of the run together (Holm).
    """

    flow: str
    direction: str
    metric: str
    points: int
    repeats: int
    change: float
    p: float
    p_adjusted: float

    @property
    def is_seen(self) -> bool:
        """Whether the order of trials matters, with 5 % chance of any false alarm in a run."""
        return self.p_adjusted < SIGNIFICANT


def trend(points: Iterable[Sequence[Placed]]) -> tuple[float, float] | None:
    """Return p, two-sided, and the relative change over a whole run; None if too few.

    Each point is its repeats. The change is the median slope of all pairs, relative to the mean of
    their point, times the length of the run.
    """
    score = spread = 0.0
    slopes: list[float] = []
    places: list[int] = []
    for point in points:
        ordered = sorted(point)
        values = [value for _, value in ordered]
        n = len(values)
        mean = abs(fmean(values)) or 1.0
        for later, (at, value) in enumerate(ordered):
            places.append(at)
            for before, earlier in ordered[:later]:
                score += (value > earlier) - (value < earlier)
                slopes.append((value - earlier) / mean / max(at - before, 1))
        ties = sum(t * (t - 1) * (2 * t + 5) for t in Counter(values).values())
        spread += (n * (n - 1) * (2 * n + 5) - ties) / 18
    if len(slopes) < LEAST_PAIRS or not spread:
        return None
    z = max(abs(score) - 1, 0.0) / math.sqrt(spread)  # corrected for continuity
    return 2 * NormalDist().cdf(-z), median(slopes) * (max(places) - min(places))


def drifts_in(trials: Iterable[TrialReport], wanted: Container[str]) -> list[Drift]:
    """Return the drift of the wanted metrics of a run's trials, in the order of their start."""
    trials = list(trials)
    place = _places(trials)
    figures: dict[tuple[str, str, str], dict[Any, list[Placed]]] = {}
    for trial in trials:
        point = point_key(trial.trial.point)
        for flow in trial.flows:
            for (direction, metric), figure in flow.figures.items():
                if flow.flow.status.counts and metric in wanted:
                    of_points = figures.setdefault((flow.flow.name, direction, metric), {})
                    placed = (place[trial.trial.position], figure.value)
                    of_points.setdefault(point, []).append(placed)
    return drifts_of((names, list(points.values())) for names, points in figures.items())


def _places(trials: Sequence[TrialReport]) -> dict[int, int]:
    """Return the place of each trial by its position: those side by side do not start in order."""
    if not any(trial.trial.beside for trial in trials):
        return {trial.trial.position: trial.trial.position for trial in trials}
    began = {trial.trial.position: trial.trial.started_time or math.inf for trial in trials}
    return {position: n for n, position in enumerate(sorted(began, key=lambda p: (began[p], p)))}


def drifts_of(
    figures: Iterable[tuple[tuple[str, str, str], Iterable[Sequence[Placed]]]],
) -> list[Drift]:
    """Return the drift of each flow, direction and metric whose repeats suffice to test it."""
    tested = []
    for names, points in figures:
        repeated = [point for point in points if len(point) > 1]
        found = trend(repeated)
        if found is not None:
            tested.append((names, len(repeated), sum(map(len, repeated)), found))
    adjusted = holm([p for *_, (p, _) in tested])
    return [
        Drift(*names, points, repeats, change, p, whole)
        for (names, points, repeats, (p, change)), whole in zip(tested, adjusted, strict=True)
    ]
