"""The time axis that all plots share."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple

from benchctl.tui.draw.axes.axis import EPS, Tick, power, steps
from benchctl.units import format_duration

# Cells between two ticks, at least: a time is at most eight characters wide.
APART = 12
# If ticks leave more than this share of the cells unused, there are fewer of them.
ENOUGH = 0.95
# Round times between a second and twenty minutes; above, hours are counted as seconds are below.
_TIMES_S = (1, 2, 5, 10, 20, 60, 120, 300, 600, 1200)
_HOUR_S = 3600


class TimeAxis(NamedTuple):
    """The time from the first to the end of the last of ``cells``, and its ticks.

    A tick is at the cell that begins with its time; one at the very end is after the last cell.
    """

    cells: int
    end_s: float
    ticks: Sequence[Tick]


def time_axis(from_s: float, to_s: float, cells: int) -> TimeAxis:
    """Return the time axis of at most ``cells`` cells.

    Ticks are whole cells apart, so it may need fewer cells, and the last one may cover a time after
    ``to_s``.
    """
    span_s = to_s - from_s
    step_s = round_time(span_s / max(1, cells / APART))
    every, used = _divided(span_s, cells, step_s)
    if used < ENOUGH * cells:
        step_s = round_time(step_s * (1 + EPS))
        every, used = _divided(span_s, cells, step_s)
    cell_s = step_s / every
    first, last = math.ceil(from_s / step_s - EPS), math.floor(to_s / step_s + EPS)
    begin = math.floor((first * step_s - from_s) / cell_s + EPS)
    times_s = [number * step_s for number in range(first, last + 1)]
    ticks = [Tick(begin + n * every, t, time_label(t, step_s)) for n, t in enumerate(times_s)]
    return TimeAxis(used, from_s + used * cell_s, ticks)


def _divided(span_s: float, cells: int, step_s: float) -> tuple[int, int]:
    """Return how many cells a step takes, and how many the whole time takes then."""
    every = max(1, math.floor(cells * step_s / span_s + EPS))
    return every, min(cells, math.ceil(span_s / step_s * every - EPS))


def round_time(least_s: float) -> float:
    """Return the round time from ``least_s`` on: 1, 2 or 5 of its unit, or ten or twenty."""
    if least_s > _TIMES_S[-1]:
        return _HOUR_S * _round(least_s / _HOUR_S)
    if least_s <= _TIMES_S[0]:
        return _round(least_s)
    return next(step_s for step_s in _TIMES_S if step_s >= least_s)


def _round(least: float) -> float:
    """Return the first of 1, 2 and 5 times a power of ten from ``least`` on."""
    factor, exponent = next(steps(least, 10))
    return power(factor, 10, exponent)


def time_label(time_s: float, step_s: float) -> str:
    """Format a time on the shared axis: ``12 s``, ``1:30``, ``2:05:00``."""
    if step_s < 1:
        return format_duration(time_s) if time_s < 1 else f"{time_s:.4g} s"
    if time_s < 120:
        return f"{time_s:.4g} s"
    minutes, seconds = divmod(round(time_s), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02d}:{seconds:02d}" if hours else f"{minutes}:{seconds:02d}"


def moment(time_s: float) -> str:
    """Format a moment to the millisecond: ``12.025 s``, from two minutes on ``2:05.3``."""
    ms = round(time_s * 1000)
    part = f".{ms % 1000:03d}".rstrip("0").rstrip(".")
    if ms < 120_000:
        return f"{ms // 1000}{part} s"
    minutes, seconds = divmod(ms // 1000, 60)
    hours, minutes = divmod(minutes, 60)
    whole = f"{hours}:{minutes:02d}:{seconds:02d}" if hours else f"{minutes}:{seconds:02d}"
    return f"{whole}{part}"
