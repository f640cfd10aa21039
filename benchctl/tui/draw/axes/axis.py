"""The value axis of a plot, and what its makers share: round steps, units, ways to divide cells."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from msgspec import Struct
from msgspec.structs import replace

from benchctl.units import format_value, scale_of

# What a tick misses because of the limited precision of floats.
EPS = 1e-9
# Beyond this number of steps, each is worth less by this share of the picture.
_ENOUGH, _MANY = 10, 0.02
# Distances between ticks that read best, in the least ones. Other distances, and two ticks only,
# are worth as much less, in shares of the picture.
_USUAL, _UNUSUAL, _BARE = 1.5, 0.25, 0.1


class Tick(NamedTuple):
    """A value of an axis, the cell whose middle it is at, and its text; "" for a minor tick."""

    cell: int
    value: float
    text: str = ""


class PlotAxis(Struct, frozen=True):
    """The values from ``low``, the middle of the first cell, to ``high``, that of the last.

    It covers ``cells``, at most those that were offered. ``unit`` is common to all labels, and has
    the size ``factor``; on a logarithmic axis each label may have a unit of its own.
    """

    metric: str
    low: float
    high: float
    cells: int
    ticks: Sequence[Tick]
    unit: str
    factor: float = 1.0
    log: bool = False

    def place(self, value: float) -> float:
        """Return the position of a value: 0 at the low end, 1 at the high end, or beyond them.

        On a logarithmic axis, zero and below are at the low end.
        """
        return self.places([value])[0]

    def places(self, values: Sequence[float]) -> Sequence[float]:
        """Return the positions of values."""
        if not self.log:
            low, span = self.low, self.high - self.low
            return [(value - low) / span for value in values]
        low, span = math.log(self.low), math.log(self.high / self.low)
        return [(math.log(value) - low) / span if value > 0 else 0.0 for value in values]

    @property
    def limits(self) -> tuple[float, float]:
        """The values at the outer edges of the first and the last cell: others are not in sight."""
        half = 0.5 / max(1, self.cells - 1)
        if self.log:
            factor = (self.high / self.low) ** half
            return (self.low / factor, self.high * factor)
        room = (self.high - self.low) * half
        return (self.low - room, self.high + room)

    def shows(self, value: float) -> bool:
        """Return whether a value is in sight."""
        low, high = self.limits
        return low <= value <= high

    @property
    def labelled(self) -> Sequence[Tick]:
        """The ticks with a label."""
        return [tick for tick in self.ticks if tick.text]

    def number(self, value: float) -> str:
        """Format any value shortly, without the unit of the axis."""
        if self.log:
            return format_value(self.metric, value)
        scaled = value / self.factor
        return f"{scaled:.0f}" if abs(scaled) >= 100 else f"{scaled:.3g}"


class RatedAxis(NamedTuple):
    """An axis, the share of it that the values fill, and what its division is worth less."""

    fill: float
    lost: float
    axis: PlotAxis


def divisions(cells: int, apart: int) -> Iterator[tuple[int, int, float]]:
    """Yield the ways to divide cells: parts, cells of each, and what is lost, from 0 on."""
    for parts in range(1, max(2, (cells - 1) // apart) + 1):
        every = (cells - 1) // parts
        unused = 1 - (every * parts + 1) / cells + _MANY * max(0, parts - _ENOUGH)
        unusual = _UNUSUAL * abs(math.log2(every / (_USUAL * apart)))
        yield parts, every, unused + unusual + (_BARE if parts == 1 else 0.0)


def power(count: int, base: int, exponent: int) -> float:
    """Return ``count * base ** exponent``, correctly rounded."""
    return float(count * base**exponent) if exponent >= 0 else count / base**-exponent


def steps(least: float, base: int) -> Iterator[tuple[int, int]]:
    """Yield the round steps from ``least`` on, each as a factor and a power of the base."""
    exponent = math.floor(math.log(least, base)) - 1
    while True:
        for factor in (1, 2, 5) if base == 10 else (1,):
            if power(factor, base, exponent) >= least * (1 - EPS):
                yield factor, exponent
        exponent += 1


def base_of(metric: str) -> int:
    """Return the base of the prefixes that a metric is shown with."""
    size, _ = scale_of(metric, 1e12)
    return 2 if size > 1 and math.log2(size).is_integer() else 10


def unit_at(metric: str, magnitude: float) -> tuple[float, int, str]:
    """Return the unit for a magnitude: its size as ``mantissa`` * 10^``shift``, and its name.

    All units of a metric with decimal prefixes have the same ``mantissa``: 8 for rates in bytes.
    """
    size, unit = scale_of(metric, magnitude)
    shift = math.floor(math.log10(size) + EPS)
    return size / 10.0**shift, shift, unit


def axis_of(
    metric: str, values: Sequence[float], texts: Sequence[str], every: int, unit: str, size: float,
    between: Sequence[float] = (), *, log: bool = False,
) -> PlotAxis:  # fmt: skip
    """Return the axis of ticks that are ``every`` cells apart, and minor ones ``between`` them."""
    cells = every * (len(values) - 1) + 1
    axis = PlotAxis(metric, values[0], values[-1], cells, (), unit, size, log=log)
    minor = [Tick(round(axis.place(value) * (cells - 1)), value) for value in between]
    major = [
        Tick(n * every, value, text)
        for n, (value, text) in enumerate(zip(values, texts, strict=True))
    ]
    return replace(axis, ticks=sorted([*major, *minor]))
