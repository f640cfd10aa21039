"""Follows one figure over the runs of a profile, and finds where its level changed.

Runs of one profile at equal distances are a series, and its changes are found as those within a
flow (`steps`). Any false change in a whole table has a chance of 5 % at most.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from msgspec import Struct

from benchctl.analysis.runs.compare import Comparison, comparison_key, judge
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


def trends_of(runs: Sequence[Sequence[SummaryRow]], better: str) -> list[Trend]:
    """Return the trend of each figure; ``runs`` are rows of one metric, the oldest run first.

    ``better`` is as in `benchctl.api.Metric`. Figures of a lab that did not keep its promises are
    in no level.
    """
    series: dict[tuple[Any, ...], dict[int, SummaryRow]] = {}
    for place, rows in enumerate(runs):
        for row in rows:
            series.setdefault(comparison_key(row), {})[place] = row
    alarms = min(FALSE_ALARMS, ERROR / max(1, len(series)))
    return [Trend(rows, _changes(rows, better, alarms)) for rows in series.values()]


def _changes(rows: Mapping[int, SummaryRow], better: str, alarms: float) -> list[ChangePoint]:
    valid = [(place, row) for place, row in rows.items() if row.valid]
    found = []
    for step in find_steps([row.spread.mean for _, row in valid], alarms):
        place, row = valid[step.at]
        size = step.after - step.before
        levels = Comparison(
            row.point, row.flow, row.direction, row.metric, (step.before,), (step.after,), size,
            None, None, judge(size, 1 - step.confidence, better),
        )  # fmt: skip
        found.append(ChangePoint(place, levels, step.confidence))
    return found
