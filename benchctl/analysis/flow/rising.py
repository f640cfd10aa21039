"""Delay that rises through a flow: the path is offered more than it carries, and a queue fills.

While a queue fills, its delay grows by the excess: offered 1 % too much, it is 10 ms longer after
each second. So the slope of the delay is the relative excess, seen before any packet is lost. The
trend is tested as pathload does (Jain and Dovrolis, IEEE/ACM Transactions on Networking 11, 2003,
section IV): on the medians of about sqrt(n) groups, the share of rises from one to the next, and
the whole rise compared with all movement; both with the thresholds given there.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from itertools import pairwise
from statistics import median

from benchctl.analysis.flow.figures import FlowFold, MetricSeries
from benchctl.metrics import PROBES
from benchctl.run.record import FlowEvent, Happening

# Less than five groups rise by chance too often: 1 of 24 orders of four do.
LEAST_GROUPS = 5
_RISES, _WHOLE = 0.66, 0.55


def delay_trend_events(fold: FlowFold) -> Iterator[FlowEvent]:
    """Yield an event for each delay that rises through the whole flow."""
    for (direction, metric), series in fold.measured().items():
        if metric in PROBES and (rise := _rise(series)):
            at_s, until_s, before, after = rise
            yield FlowEvent(direction, metric, Happening.RISING_DELAY, at_s, until_s, before, after)


def excess_of(event: FlowEvent) -> float:
    """Return the relative excess of load that a rising delay shows."""
    lasted_s = (event.until_s or event.at_s) - event.at_s
    return (event.level_after - event.level_before) / lasted_s if lasted_s > 0 else 0.0


def _rise(series: MetricSeries) -> tuple[float, float, float, float] | None:
    """Return from when to when a delay rises, and from what to what."""
    probes = sorted(zip(series.starts_s, series.values, strict=True))
    size = math.isqrt(len(probes))
    if size < LEAST_GROUPS:
        return None
    groups = [probes[at : at + size] for at in range(0, len(probes) - size + 1, size)]
    times = [median(at_s for at_s, _ in group) for group in groups]
    levels = [median(value for _, value in group) for group in groups]
    steps = [after - before for before, after in pairwise(levels)]
    moved = math.fsum(map(abs, steps))
    rises = sum(step > 0 for step in steps) / len(steps)
    if not moved or rises < _RISES or (levels[-1] - levels[0]) / moved < _WHOLE:
        return None
    return times[0], times[-1], levels[0], levels[-1]
