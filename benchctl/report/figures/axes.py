"""The axes of a run as those of a figure: numbers with their units where values have them."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

from benchctl.metrics import Fold, Metric, title_of
from benchctl.report.figures.figure import Axis, NamedTick, PictureLine
from benchctl.run.planned import Scalar
from benchctl.units import parse_duration, parse_rate, parse_ratio, parse_size

# Values that span more are read better on a logarithmic axis.
WIDE = 30.0
# With a zero among them there is no such axis: then the values have equal distances.
WIDE_FROM_ZERO = 50.0
# Of two values that are so many times apart, the smaller one is not seen.
UNSEEN = 100.0
# A line of two points has no shape.
LEAST_VALUES = 3
_PARSERS: Sequence[tuple[str, Callable[[object], float]]] = (
    ("value_bps", parse_rate),
    ("value_bytes", parse_size),
    ("value_s", parse_duration),
    ("value_ratio", parse_ratio),
)


def numbers_of(values: Sequence[Scalar]) -> tuple[str, list[float]] | None:
    """Return a metric with the unit of an axis' values, and the values; None if they are words."""
    if values and all(isinstance(v, int | float) and not isinstance(v, bool) for v in values):
        return "", [float(value) for value in values]
    for metric, parse in _PARSERS:
        try:
            found = [parse(value) for value in values]
        except ValueError:
            continue
        if found and all(map(math.isfinite, found)):
            return metric, found
    return None


def is_swept(values: Sequence[Scalar]) -> bool:
    """Return whether an axis has enough numbers for a curve."""
    return len(values) >= LEAST_VALUES and numbers_of(values) is not None


def title_of_axis(name: str) -> str:
    """Return the name of an axis for people."""
    return name.replace("_", " ")


def named_axis(title: str, names: Sequence[str]) -> Axis:
    """Return an axis of words at equal distances."""
    ticks = [NamedTick(place, name) for place, name in enumerate(names)]
    return Axis(title, low=0.0, high=max(1.0, len(names) - 1.0), ticks=ticks, even=True)


def swept_axis(name: str, values: Sequence[Scalar]) -> tuple[Axis, list[float]]:
    """Return the x-axis of an axis' values, and where each of them is.

    Numbers are at their places, logarithmic if they span much; words have equal distances.
    """
    title, names = title_of_axis(name), [str(value) for value in values]
    numbers = numbers_of(values)
    found = numbers[1] if numbers is not None else []
    above = [value for value in found if value > 0]
    from_zero = len(above) < len(found)
    spans = max(above) / min(above) if above else 1.0
    if numbers is None or (from_zero and spans >= WIDE_FROM_ZERO):
        return named_axis(title, names), [float(place) for place in range(len(names))]
    ticks = [NamedTick(value, text) for value, text in sorted(zip(found, names, strict=True))]
    low, high = min(found), max(found)
    log = not from_zero and spans >= WIDE and len(found) >= LEAST_VALUES
    return Axis(title, numbers[0], low, high, ticks, log=log), found


def value_axis(
    metric: Metric,
    lines: Sequence[PictureLine],
    *,
    aggregate: str = "",
    x_is_log: bool = False,
    seen: Sequence[float] = (),
) -> Axis:
    """Return the axis of a metric's values with room for all lines and their intervals.

    Logarithmic if the values span much over a logarithmic x-axis: a power law is a straight line.
    So it is if some of the values that have to be ``seen`` would not be: 48 Mbit/s are nothing on
    an axis for 16 Gbit/s.
    """
    values = [
        value
        for line in lines
        for some in (line.ys, line.lows, line.highs)
        for value in some
        if math.isfinite(value)
    ]
    drawn = [value for value in values if value > 0]
    low, high = min(values, default=0.0), max(values, default=1.0)
    title = title_of(metric.name) + (f", {aggregate}" if aggregate else "")
    means = [y for line in lines for y in line.ys if math.isfinite(y)]
    log = (x_is_log and _span(means) >= WIDE) or _span(seen) >= UNSEEN
    if log:
        low = max(low, min(drawn))
    from_zero = not log and metric.fold in (Fold.RATE, Fold.COUNT) and low >= 0
    return Axis(title, metric.name, low, high, log=log, from_zero=from_zero)


def _span(values: Sequence[float]) -> float:
    """Return the greatest of values over the least; 0 unless all are above 0."""
    known = [value for value in values if math.isfinite(value)]
    return max(known) / min(known) if known and min(known) > 0 else 0.0
