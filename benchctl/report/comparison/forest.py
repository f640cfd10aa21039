"""The differences of two runs with their intervals, a row each, as in a meta-analysis."""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import compress

from benchctl.analysis.runs.compare import Comparison
from benchctl.errors import UsageError
from benchctl.report.comparison.comparison import places_of, relative, signed, verdict_text
from benchctl.report.figures.axes import named_axis
from benchctl.report.figures.figure import Axis, Difference, Panel, Picture, PictureKind
from benchctl.report.figures.parts import left_out, without_common
from benchctl.run.record import Run
from benchctl.visible import visible

MOST_ROWS = 40
# Beyond, a change has its figure only: one of 400 times would leave the others no room.
FARTHEST_RATIO = 3.0
_METRIC = "change_ratio"


def forest(a: Run, b: Run, comparisons: Sequence[Comparison]) -> Picture:
    """Return the figure of comparisons of two runs, in their order; shares of A's mean.

    Raises UsageError if no difference is a share: A's mean is 0, or only one run has the figure.
    """
    found = [(one, change) for one in comparisons if (change := one.relative) is not None]
    if not found:
        raise UsageError(
            f"{a.name} and {b.name} have no figure in common to draw",
            f"see benchctl compare {a.name} {b.name}",
        )
    shown = found[:MOST_ROWS]
    differences = [_difference(row, one, change) for row, (one, change) in enumerate(shown)]
    values = [end for one in differences for end in (one.value, one.low, one.high)]
    known = [0.0, *(value for value in values if math.isfinite(value))]
    low, high = max(min(known), -FARTHEST_RATIO), min(max(known), FARTHEST_RATIO)
    if low == high:
        low, high = -0.01, 0.01
    names, notes = without_common(_names([one for one, _ in shown]))
    notes += left_out(len(found), len(shown), "differences")
    if absent := len(comparisons) - len(found):
        notes.append(f"figures without a change, which compare shows: {absent}")
    if any(not -FARTHEST_RATIO <= one.value <= FARTHEST_RATIO for one in differences):
        notes.append("a change beyond the axis is at its end; its figure stands beside it")
    about = f"B, {b.name}, against A, {a.name}: change of each mean, with its 95 % interval"
    return Picture(
        PictureKind.FOREST, "forest", visible(b.title or b.profile), visible(about),
        Axis("change", _METRIC, low, high),
        [Panel(named_axis("", [visible(name) for name in names]), differences=differences)],
        notes=[*map(visible, notes)],
    )  # fmt: skip


def _difference(row: int, one: Comparison, change: float) -> Difference:
    assert one.mean_a is not None
    scale = abs(one.mean_a)
    low, high = (math.nan if end is None else end / scale for end in (one.low, one.high))
    shown = relative(one) or (signed(one.metric, one.difference) if change else "0 %")
    word = f"{shown} {verdict_text(one)}"
    return Difference(row, change, low, high, one.verdict.is_certain and one.valid, word)


def _names(comparisons: Sequence[Comparison]) -> list[str]:
    """Return by what each comparison differs from the others; the metric, if by nothing."""
    _, rows = places_of(comparisons)
    differing = [len({row[place] for row in rows}) > 1 for place in range(len(rows[0]))]
    return [" ".join(compress(row, differing)) or row[-1] for row in rows]
