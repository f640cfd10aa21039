"""Which values a plot shows: all of them, or without the few that would make the others a strip.

What is left out is marked at the edge of the plot.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

from benchctl.tui.draw.axes.axis import PlotAxis
from benchctl.tui.draw.axes.strip import Strip

Bounds = tuple[float, float]
"""The least and the greatest value to show."""

# This share of a line's columns at either end does not count if the others lie together: by their
# means, and by how far they spread around them.
FEW, FEW_SPREADS = 0.05, 0.25
# So much higher must an axis for all values be, or it shows all.
GAIN = 2.0
# Beyond what counts, an axis shows this share of it, for the noise.
NOISE = 0.25
# An axis starts at zero if its minimum is below this share of the maximum: 20.1 to 20.9 ms seen
# from zero would be a flat line.
NEAR_ZERO = 0.5
# Part of the height that a pan moves by.
PAN = 0.25
# A smaller part of its values cannot be labelled.
FINEST = 1e-3


def bounds_of(
    strips: Sequence[Strip], *, from_zero: bool, robust: bool, beside: Sequence[float] = ()
) -> Bounds:
    """Return the bounds of a plot of these lines.

    ``beside`` are other values to show. With ``robust``, a few columns of each line may be out of
    bounds, in whole or in part, but only if an axis for all of them would be twice as high.
    """
    strips = [strip for strip in strips if strip.places]
    low = min((min(strip.lows) for strip in strips), default=0.0)
    high = max((max(strip.highs) for strip in strips), default=0.0 if beside else 1.0)
    if robust and strips:
        low, high = _trimmed(strips, low, high, [*beside, *([0.0] if from_zero else [])])
    low, high = min([low, *beside]), max([high, *beside])
    if from_zero or 0 <= low < high * NEAR_ZERO:
        low, high = min(low, 0.0), max(high, 0.0)
    return low, high


def _trimmed(strips: Sequence[Strip], low: float, high: float, beside: Sequence[float]) -> Bounds:
    """Return the bounds without what is far from where the lines mostly are."""
    ends = list(beside)
    for strip in strips:
        means = sorted(strip.means)
        few = int(len(means) * FEW)
        ends += (means[few], means[-1 - few])
        few = int(len(means) * FEW_SPREADS)
        ends += (sorted(strip.lows)[few], sorted(strip.highs)[-1 - few])
    bottom, top = min(ends), max(ends)
    height = top - bottom
    if height > 0 and high - top > (GAIN - 1) * height:
        high = top + NOISE * height
    if height > 0 and bottom - low > (GAIN - 1) * height:
        low = max(bottom - NOISE * height, 0.0 if low >= 0 else -math.inf)
    return low, high


def spikes_of(strip: Strip) -> Strip:
    """Return a line with the range of its few columns that reach far beyond the others.

    The whole ranges of several lines would hide the lines.
    """
    few = int(len(strip.places) * FEW)
    if not few:
        return strip._replace(lows=strip.means, highs=strip.means)
    low, high = sorted(strip.lows)[few], sorted(strip.highs)[-1 - few]
    low, high = low - (high - low), high + (high - low)
    return strip._replace(
        lows=[x if x < low else m for x, m in zip(strip.lows, strip.means, strict=True)],
        highs=[x if x > high else m for x, m in zip(strip.highs, strip.means, strict=True)],
    )


def zoomed(axis: PlotAxis, bounds: Bounds | None, steps: int) -> Bounds:
    """Return the bounds with half the height around the same middle, ``steps`` times."""
    low, high = _linear(axis, bounds)
    middle, half = (low + high) / 2, (high - low) / 2 / 2.0**steps
    if half < FINEST * max(abs(low), abs(high)):
        return _values(axis, low, high)
    return _values(axis, middle - half, middle + half)


def panned(axis: PlotAxis, bounds: Bounds | None, steps: int) -> Bounds:
    """Return the bounds a quarter of the height further up, ``steps`` times."""
    low, high = _linear(axis, bounds)
    distance = (high - low) * PAN * steps
    return _values(axis, low + distance, high + distance)


def _linear(axis: PlotAxis, bounds: Bounds | None) -> Bounds:
    """Return bounds as distances on the axis: the logarithms of those of a logarithmic one."""
    low, high = bounds or (axis.low, axis.high)
    if axis.log:
        low = low if low > 0 else axis.low
        return math.log(low), math.log(max(high, low * (1 + FINEST)))
    return low, high


def _values(axis: PlotAxis, low: float, high: float) -> Bounds:
    return (math.exp(low), math.exp(high)) if axis.log else (low, high)
