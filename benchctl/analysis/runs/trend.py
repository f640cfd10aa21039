"""Follows one figure over the runs of a profile, and finds where its level changed.

Runs of one profile at equal distances are a series, and its changes are found as those within a
flow (`steps`), without the cycle of a day and single outliers (`regular`). Any false change in a
whole table has a chance of 5 % at most.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import pairwise
from statistics import median
from typing import Any, NamedTuple

from msgspec import Struct

from benchctl.analysis.runs.compare import Comparison, comparison_key, judge
from benchctl.analysis.runs.regular import regular
from benchctl.analysis.runs.summary import SummaryRow
from benchctl.analysis.steps import FALSE_ALARMS, find_steps

ERROR = 0.05


class ChangePoint(Struct, frozen=True):
    """A change of level: the place of the first run after it, both levels, and the confidence.

    Of ``levels``, A is the level before, B that after, each the median of its runs' means.
    """

    run: int
    levels: Comparison
    confidence: float


class Trend(Struct, frozen=True):
    """One figure of one flow at one point: its rows by the places of their runs, and changes."""

    rows: Mapping[int, SummaryRow]
    changes: Sequence[ChangePoint]

    @property
    def first(self) -> SummaryRow:
        """The figure in the first run that has it."""
        return next(iter(self.rows.values()))


def trends_of(
    times: Sequence[float],
    runs: Sequence[Sequence[SummaryRow]],
    better: str,
    *,
    error: float | None = ERROR,
) -> list[Trend]:
    """Return the trend of each figure; ``runs`` are rows of one metric, the oldest run first.

    ``times`` are those of the runs (Unix). ``better`` is as in `benchctl.api.Metric`. Figures of a
    lab that did not keep its promises are in no level. ``error`` is the chance of any false change
    in the table; without it, each figure has its own.
    """
    series: dict[tuple[Any, ...], dict[int, SummaryRow]] = {}
    for place, rows in enumerate(runs):
        for row in rows:
            series.setdefault(comparison_key(row), {})[place] = row
    alarms = FALSE_ALARMS
    if error is not None:
        alarms = min(alarms, error / max(1, len(series)))
    return [Trend(rows, _changes(times, rows, better, alarms)) for rows in series.values()]


def _changes(
    times: Sequence[float], rows: Mapping[int, SummaryRow], better: str, alarms: float
) -> list[ChangePoint]:
    valid = [(place, row) for place, row in rows.items() if row.valid]
    means = [row.spread.mean for _, row in valid]
    found = []
    for at, before, after, confidence in level_changes(
        [times[place] for place, _ in valid], means, alarms
    ):
        place, row = valid[at]
        size = after - before
        levels = Comparison(
            row.point, row.flow, row.direction, row.metric, (before,), (after,), size,
            None, None, judge(size, 1 - confidence, better),
        )  # fmt: skip
        found.append(ChangePoint(place, levels, confidence))
    return found


class LevelChange(NamedTuple):
    """The place of the first value after a change, the medians before and after, the confidence."""

    at: int
    before: float
    after: float
    confidence: float


def level_changes(
    times: Sequence[float], means: Sequence[float], alarms: float = FALSE_ALARMS
) -> list[LevelChange]:
    """Return where the level of a figure changes; ``times`` are those of the runs (Unix)."""
    steps = find_steps(regular(times, means), alarms)
    bounds = [0, *(step.at for step in steps), len(means)]
    medians = [median(means[begin:end]) for begin, end in pairwise(bounds)] if steps else []
    return [
        LevelChange(step.at, before, after, step.confidence)
        for step, (before, after) in zip(steps, pairwise(medians), strict=True)
    ]
