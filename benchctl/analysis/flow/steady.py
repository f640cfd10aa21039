"""Finds where a flow's rate is steady, so that slow start and plateaus need no guess.

MSER-5 cuts the beginning that makes the mean of the rest least certain: White, Simulation 69
(1997); White, Cobb and Spratt, Winter Simulation Conference 2000, for means of five samples.
Franklin and White (Winter Simulation Conference 2008) show why a cut in the second half says that
no steady state was reached.
"""

from __future__ import annotations

from collections.abc import Sequence
from statistics import fmean

from benchctl.analysis.flow.figures import FlowFold
from benchctl.analysis.flow.regular import rates_of
from benchctl.run.record import Figure, Figures

BATCH = 5
# Fewer means have no half in which a cut could be told from chance; short series get fewer samples
# in each of them.
LEAST_BATCHES = 10
LEAST_SAMPLES = 20
# A few means that happen to be alike say nothing.
LEAST_LEFT = 5


def steady_figures(fold: FlowFold) -> Figures:
    """Return the steady part of each direction of a flow: its rate, and where it begins.

    Nothing for a direction that reached no steady state, or has fewer than 20 intervals.
    """
    measured = fold.measured()
    figures = {}
    for direction, metric, rate in rates_of(fold):
        cut = steady_from(rate.values)
        if cut is not None:
            from_s, end_s = rate.time_s(cut), rate.time_s(len(rate.values))
            value = measured[direction, metric].rate_within(from_s, end_s)
            figures[direction, f"steady_{metric}"] = Figure(value, "samples")
            figures[direction, "steady_from_s"] = Figure(from_s, "samples")
    return figures


def steady_from(values: Sequence[float]) -> int | None:
    """Return the index of the first steady sample; None if there is no steady state."""
    if len(values) < LEAST_SAMPLES:
        return None
    batch = min(BATCH, len(values) // LEAST_BATCHES)
    count = len(values) // batch
    # The rest that fills no batch is left out at the beginning, of which least is kept.
    first = len(values) - count * batch
    middle = fmean(values)
    means = [fmean(values[at : at + batch]) - middle for at in range(first, len(values), batch)]
    errors = []
    total = squares = 0.0
    for left, mean in enumerate(reversed(means), start=1):
        total += mean
        squares += mean * mean
        errors.append(max(squares - total * total / left, 0.0) / (left * left))
    errors = errors[::-1][: count - LEAST_LEFT + 1]
    # Rounding must not choose between cuts that are equally good.
    least = min(errors) + 1e-12 * errors[0]
    cut = next(at for at, error in enumerate(errors) if error <= least)
    if cut > count / 2:
        return None
    return first + cut * batch if cut else 0
