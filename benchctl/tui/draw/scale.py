"""The axes of a plot: their range and their ticks."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

from benchctl.units import format_duration, scale_of

# Steps between ticks that are easy to read.
_STEPS = (1, 2, 2.5, 5, 10)
# The maximum number of steps of an axis, so that its round ends waste little of it.
MOST_STEPS = 5


@dataclass(frozen=True, slots=True)
class PlotAxis:
    """The values from ``low`` to ``high``, linear or logarithmic.

    ``unit`` is the size of the display unit: a scale in KiB has round KiB.
    """

    low: float
    high: float
    log: bool = False
    unit: float = 1.0

    def place(self, value: float) -> float:
        """Return the position of a value: 0 at the low end, 1 at the high end.

        On a logarithmic axis, zero and below are at the low end.
        """
        if not self.log:
            return (value - self.low) / (self.high - self.low)
        return math.log(max(value, self.low) / self.low) / math.log(self.high / self.low)


def axis_for(
    metric: str, low: float, high: float, *, from_zero: bool, log: bool = False
) -> PlotAxis:
    """Return the axis for values between ``low`` and ``high``; round ends make it stable.

    ``from_zero`` is right for rates and counts, whose parts mislead. A logarithmic axis spans whole
    decades; without a value above zero, the axis is linear.
    """
    if log and high > 0:
        floor = low if low > 0 else high / 1e3
        bottom, top = math.floor(math.log10(floor)), math.ceil(math.log10(high))
        return PlotAxis(10.0**bottom, 10.0 ** max(top, bottom + 1), log=True)
    if from_zero:
        low, high = min(low, 0.0), max(high, 0.0)
    if high <= low:
        pad = abs(high) / 2 or 1.0
        low, high = (low if from_zero and low == 0 else low - pad), high + pad
    unit, _ = scale_of(metric, max(abs(low), abs(high)))
    step = _step((high - low) / MOST_STEPS / unit) * unit
    return PlotAxis(math.floor(low / step) * step, math.ceil(high / step) * step, unit=unit)


def _step(least: float) -> float:
    power = 10.0 ** math.floor(math.log10(least))
    return next(step * power for step in _STEPS if step * power >= least * (1 - 1e-9))


def ticks(axis: PlotAxis, most: int) -> list[float]:
    """Return round values along an axis, at most ``most``, with its ends if they fit."""
    if axis.log:
        bottom, top = round(math.log10(axis.low)), round(math.log10(axis.high))
        every = max(1, math.ceil((top - bottom + 1) / max(1, most)))
        return [10.0**power for power in range(bottom, top + 1, every)]
    step = _step((axis.high - axis.low) / max(1, most - 1) / axis.unit) * axis.unit
    first = math.ceil(axis.low / step - 1e-9)
    last = math.floor(axis.high / step + 1e-9)
    return [index * step for index in range(first, last + 1)]


def labels(metric: str, axis: PlotAxis, values: Sequence[float]) -> tuple[list[str], str]:
    """Return the ticks as short numbers, and their common unit."""
    factor, unit = scale_of(metric, axis.low if axis.log else max(abs(axis.low), abs(axis.high)))
    factor = factor if axis.log else axis.unit
    scaled = [value / factor for value in values]
    steps = [abs(b - a) for a, b in pairwise(scaled) if b != a]
    if axis.log or not steps:
        return [f"{value:g}" for value in scaled], unit
    digits = max(0, -math.floor(math.log10(min(steps)) + 1e-9))
    if any(abs(value * 10**digits - round(value * 10**digits)) > 1e-6 for value in scaled):
        digits += 1  # a step of 2.5
    return [f"{value:.{digits}f}" for value in scaled], unit


def time_label(time_s: float, step_s: float) -> str:
    """Format a time on the shared axis: ``12 s``, ``1:30``, ``2:05:00``."""
    if step_s < 1:
        return format_duration(time_s) if time_s < 1 else f"{time_s:.4g} s"
    if time_s < 120:
        return f"{time_s:.4g} s"
    minutes, seconds = divmod(round(time_s), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02d}:{seconds:02d}" if hours else f"{minutes}:{seconds:02d}"
