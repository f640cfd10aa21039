"""Linear axes: round steps from the first to the last cell, with labels in one unit."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence

from benchctl.tui.draw.axes.axis import (
    EPS,
    PlotAxis,
    RatedAxis,
    axis_of,
    base_of,
    divisions,
    power,
    steps,
    unit_at,
)
from benchctl.units import scale_of, unit_of

# The width of a label: a sign, five digits and a point.
LABEL_WIDTH = 7
# A smaller part of the largest value would need more digits than a label has.
FINEST = 1e-4
# A level line has this share of its value above and below.
ROOM = 0.05
# The end of an axis of nothing but zeros, by unit.
_FOR_ZEROS = {"ratio": 0.01, "s": 1e-3}
# Above, binary labels would be too long.
_MOST_BINARY = 2.0**50


def linear_axes(
    metric: str, low: float, high: float, cells: int, apart: int
) -> Iterator[RatedAxis]:
    """Yield the closest axis of each division."""
    low, high = _with_room(metric, low, high)
    magnitude = max(abs(low), abs(high))
    base = base_of(metric) if magnitude < _MOST_BINARY else 10
    mantissa = unit_at(metric, magnitude)[0] if base == 10 else 1.0
    low, high, finest = low / mantissa, high / mantissa, magnitude / mantissa * FINEST
    if unit_of(metric) == "B" or (not unit_of(metric) and low == int(low) and high == int(high)):
        finest = max(finest, 1.0)  # there are no parts of a byte, or of a packet
    for parts, every, lost in divisions(cells, apart):
        if parts == 1 and low < 0 < high:
            continue  # zero would be within the only step
        for factor, exponent in steps(max((high - low) / parts, finest), base):
            step = power(factor, base, exponent)
            first = math.ceil(high / step - EPS) - parts
            last = math.floor(low / step + EPS)
            if low >= 0:
                first = max(first, 0)
            if high <= 0:
                last = min(last, -parts)
            if _greatest(metric, low, high) == 1:
                if step > 1:
                    break
                last = min(last, math.floor(1 / step + EPS) - parts)
            if first <= last:
                counts = [((first + last) // 2 + n) * factor for n in range(parts + 1)]
                labelled = _binary_axis if base == 2 else _decimal_axis
                axis = labelled(metric, counts, exponent, mantissa, every)
                yield RatedAxis((high - low) / (parts * step), lost, axis)
                break


def _with_room(metric: str, low: float, high: float) -> tuple[float, float]:
    """Return the ends with some room around a level line."""
    if high > low:
        return low, high
    if low == 0:
        return 0.0, _FOR_ZEROS.get(unit_of(metric), 1.0)
    room = abs(low) * ROOM
    return low - room, min(high + room, _greatest(metric, low, high))


def _greatest(metric: str, low: float, high: float) -> float:
    """Return the greatest value that a metric with these can have, as far as known."""
    return 1.0 if unit_of(metric) == "ratio" and 0 <= low <= high <= 1 else math.inf


def _binary_axis(
    metric: str, counts: Sequence[int], exponent: int, mantissa: float, every: int
) -> PlotAxis:
    """Return the axis of ``counts`` times a power of two, in a unit of at most two steps."""
    values = [power(count, 2, exponent) * mantissa for count in counts]
    size, unit = scale_of(metric, 2 * power(1, 2, exponent))
    digits = max(0, round(math.log2(size)) - exponent)
    return axis_of(metric, values, [f"{v / size:.{digits}f}" for v in values], every, unit, size)


def _decimal_axis(
    metric: str, counts: Sequence[int], exponent: int, mantissa: float, every: int
) -> PlotAxis:
    """Return the axis of ``counts`` times a power of ten, in the unit of its ends."""
    values = [power(count, 10, exponent) * mantissa for count in counts]
    magnitude = max(abs(values[0]), abs(values[-1]))
    _, shift, unit = unit_at(metric, magnitude)
    texts = [_decimal(count, exponent - shift) for count in counts]
    if max(map(len, texts)) > LABEL_WIDTH:
        thousands = 3 * math.floor((math.log10(magnitude / mantissa) - shift) / 3)
        shift, unit = shift + thousands, f"10^{thousands} {unit}".strip()
        texts = [_decimal(count, exponent - shift) for count in counts]
    return axis_of(metric, values, texts, every, unit, mantissa * 10.0**shift)


def _decimal(count: int, exponent: int) -> str:
    return str(count * 10**exponent) if exponent >= 0 else f"{count / 10**-exponent:.{-exponent}f}"
