"""Axes: which values a line of cells covers, and its ticks.

Every axis of a picture is made here. Ticks are whole cells apart, and the first and the last cell
have one, so an axis may leave some of the cells it is offered unused. Steps are 1, 2 or 5 times a
power of ten, and powers of two where the units' prefixes are.
"""

from __future__ import annotations

from msgspec.structs import replace

from benchctl.tui.draw.axes.axis import PlotAxis
from benchctl.tui.draw.axes.linear import linear_axes
from benchctl.tui.draw.axes.logarithmic import logarithmic_axes

# Cells between two ticks of a vertical axis, at least.
APART = 2
# However well its ticks are spaced, an axis is filled by at least this share of what is possible.
HALF = 0.5


def axis_for(
    metric: str, low: float, high: float, cells: int, *, apart: int = APART, from_zero: bool,
    log: bool = False,
) -> PlotAxis:  # fmt: skip
    """Return the axis of at most ``cells`` cells for values between ``low`` and ``high``.

    ``apart`` is the minimum distance of its ticks. ``from_zero`` is right for rates and counts,
    whose parts mislead. With a value below zero, or none above, a logarithmic axis is linear.
    """
    if cells < 3:
        axis = axis_for(metric, low, high, 3, from_zero=from_zero, log=log)
        ends = (axis.ticks[-1], axis.ticks[0])[:cells]
        ticks = [tick._replace(cell=cells - 1 - n) for n, tick in enumerate(ends)]
        return replace(axis, cells=cells, ticks=ticks)
    if log and high > 0 and low >= 0:
        found = list(logarithmic_axes(metric, low, high, cells, apart))
    else:
        if from_zero:
            low, high = min(low, 0.0), max(high, 0.0)
        found = list(linear_axes(metric, low, high, cells, apart))
    enough = HALF * max(axis.fill for axis in found)
    return max((axis for axis in found if axis.fill >= enough), key=lambda c: c.fill - c.lost).axis
