"""The differences of two runs with their intervals, a row each, as in a meta-analysis."""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import compress
from statistics import median

from benchctl.analysis.runs.compare import Comparison
from benchctl.errors import UsageError
from benchctl.report.comparison.comparison import (
    NOTHING,
    places_of,
    relative,
    signed,
    verdict_text,
)
from benchctl.report.figures.axes import named_axis
from benchctl.report.figures.figure import Axis, Difference, Panel, Picture, PictureKind
from benchctl.report.figures.parts import left_out, without_common
from benchctl.run.record import Run
from benchctl.visible import visible

MOST_ROWS = 40
# An axis for a change of 400 times, or an interval as wide, would leave the others no room: it ends
# at so many times the usual end of an interval, but after every change that is certain, and here.
FAR, FARTHEST_RATIO = 4.0, 3.0
_METRIC = "change_ratio"
# Without any change, so that there is an axis.
_LEAST = 0.01


def forest(
    a: Run, b: Run, comparisons: Sequence[Comparison], most_rows: int = MOST_ROWS
) -> Picture:
    """Return the figure of the first comparisons of two runs, in their order; shares of A's mean.

    Raises UsageError if no difference is a share: A's mean is 0, or only one run has the figure.
    """
    found = [
        (comparison, change)
        for comparison in comparisons
        if (change := comparison.relative) is not None
    ]
    if not found:
        raise UsageError(
            f"{a.name} and {b.name} have no figure in common to draw",
            f"see benchctl compare {a.name} {b.name}",
        )
    shown = found[:most_rows]
    differences = [
        _difference(row, comparison, change) for row, (comparison, change) in enumerate(shown)
    ]
    ends = [
        end
        for difference in differences
        for end in (difference.value, difference.low, difference.high)
    ]
    known = [0.0, *(end for end in ends if math.isfinite(end))]
    most = _most(differences)
    low, high = max(min(known), -most), min(max(known), most)
    if low == high:
        low, high = -_LEAST, _LEAST
    names, notes = without_common(_names([comparison for comparison, _ in shown]))
    notes += left_out(len(found), len(shown), "differences")
    if absent := len(comparisons) - len(found):
        notes.append(f"figures without a change, which compare shows: {absent}")
    if any(not low <= difference.value <= high for difference in differences):
        notes.append("a change beyond the axis is drawn at its end; its figure stands beside it")
    if low > min(known) or high < max(known):
        notes.append("some intervals go on beyond the axis")
    about = f"B, {b.name}, against A, {a.name}: change of each mean, with its 95 % interval"
    return Picture(
        PictureKind.FOREST, "forest", visible(b.title or b.profile), visible(about),
        Axis("change", _METRIC, low, high),
        [Panel(named_axis("", [visible(name) for name in names]), differences=differences)],
        notes=[*map(visible, notes)],
    )  # fmt: skip


def _most(differences: Sequence[Difference]) -> float:
    """Return the greatest change that the axis shows, either way."""
    farthest = [
        max(
            abs(end)
            for end in (difference.value, difference.low, difference.high)
            if math.isfinite(end)
        )
        for difference in differences
    ]
    certain = [abs(difference.value) for difference in differences if difference.certain]
    return min(FARTHEST_RATIO, max([FAR * median(farthest), *certain]))


def _difference(row: int, comparison: Comparison, change: float) -> Difference:
    assert comparison.mean_a is not None
    scale = abs(comparison.mean_a)
    low, high = (
        math.nan if end is None else end / scale for end in (comparison.low, comparison.high)
    )
    shown = relative(comparison) or (
        signed(comparison.metric, comparison.difference) if change else "0 %"
    )
    word = f"{shown} {verdict_text(comparison)}"
    return Difference(
        row, change, low, high, comparison.verdict.is_certain and comparison.valid, word
    )


def _names(comparisons: Sequence[Comparison]) -> list[str]:
    """Return by what each comparison differs from the others; the metric, if by nothing."""
    _, rows = places_of(comparisons)
    differing = [len({row[place] for row in rows}) > 1 for place in range(len(rows[0]))]
    differing_words = (
        [word for word in compress(row, differing) if word != NOTHING] for row in rows
    )
    return [" ".join(words) or row[-1] for words, row in zip(differing_words, rows, strict=True)]
