"""Logarithmic axes: powers of ten, or doublings within few of them; sizes in powers of two."""

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
    unit_at,
)
from benchctl.units import scale_of, unit_of

# A logarithmic axis begins this far below its end if values reach zero.
DEEPEST = 1e-3
# A level line is shown as if it ended this many times higher.
LEAST_RATIO = 1.5
# Doublings from 1 and from 2.5 whose numbers have one or two digits.
_DOUBLINGS = ((1.0, 6), (2.5, 8))
# What powers of ten are worth more than doublings, in shares of the picture.
_POWERS = 0.1
# The minor ticks between powers of ten: the cells of a decade that they need, and their numbers.
_MINOR = ((20, range(2, 10)), (4, (2, 5)))


def logarithmic_axes(
    metric: str, low: float, high: float, cells: int, apart: int
) -> Iterator[RatedAxis]:
    """Yield the closest axes of each division."""
    base = base_of(metric)
    mantissa = unit_at(metric, high)[0] if base == 10 else 1.0
    least = 1.0 if unit_of(metric) == "B" else 0.0  # there are no parts of a byte
    low = max(low if low > 0 else high * DEEPEST, least) / mantissa
    high = max(high / mantissa, low * LEAST_RATIO)
    first = math.floor(math.log(low, base) + EPS)
    needed = max(1, math.ceil(math.log(high, base) - EPS) - first)
    span = math.log(high / low)
    for parts, every, lost in divisions(cells, apart):
        powers = math.ceil(needed / parts)
        values = [power(1, base, first + n * powers) for n in range(parts + 1)]
        between: Sequence[float] = ()
        if powers == 1 and base == 10:
            factors = next((numbers for least, numbers in _MINOR if every >= least), ())
            between = [value * factor * mantissa for value in values[:-1] for factor in factors]
        elif every >= 2 * powers:
            between = [
                v * float(base) ** n * mantissa for v in values[:-1] for n in range(1, powers)
            ]
        fill = span / math.log(values[-1] / values[0])
        axis = _log_axis(metric, [v * mantissa for v in values], every, between)
        yield RatedAxis(fill, lost - _POWERS, axis)
        if base == 10:
            for begin, most in _DOUBLINGS:
                if values := _doublings(begin, most, low, high, parts):
                    axis = _log_axis(metric, [v * mantissa for v in values], every)
                    yield RatedAxis(span / math.log(2**parts), lost, axis)


def _doublings(begin: float, most: int, low: float, high: float, parts: int) -> list[float]:
    """Return the ``parts`` doublings that cover the values; nothing if they cannot."""
    scale = 10.0 ** math.floor(math.log10(low / begin) + EPS)
    first = math.floor(math.log2(low / begin / scale) + EPS)
    values = [float(f"{begin * 2 ** (first + n) * scale:.2g}") for n in range(parts + 1)]
    return values if first + parts <= most and values[-1] >= high * (1 - EPS) else []


def _log_axis(
    metric: str, values: Sequence[float], every: int, between: Sequence[float] = ()
) -> PlotAxis:
    """Return the logarithmic axis of these values; each has its unit if they have several."""
    scales = [scale_of(metric, value) for value in values]
    texts = [f"{value / size:.5g}" for value, (size, _) in zip(values, scales, strict=True)]
    size, unit = scales[0]
    if any(name != unit for _, name in scales):
        _, unit = scale_of(metric, 0.0)
        unit = unit if unit.endswith("/s") else ""  # too long to stand at every tick
        own = [name.removesuffix(unit) for _, name in scales]
        texts = [f"{text} {name}".rstrip() for text, name in zip(texts, own, strict=True)]
    return axis_of(metric, values, texts, every, unit, size, between, log=True)
