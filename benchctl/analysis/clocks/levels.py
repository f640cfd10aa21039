"""Steps of the least delays of a series, whatever the queues above them and an even drift do.

The least delay of each ten packets is a level with little noise, however the queue varies; a step
is a difference of the levels around it, far above all others of the series. Those that only some of
these levels differ by are no steps, and neither is what an even drift adds.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from statistics import median

from msgspec import Struct

from benchctl.analysis.clocks.floor import DelayAt

# Of ten packets, one rarely waits.
PACKETS_OF_LEVEL = 10
# Medians of five levels on both sides; of fewer than 40, a step is among too many that it disturbs.
AROUND = 5
LEAST_LEVELS, MOST_LEVELS = 40, 240
# In robust standard deviations of the differences; and schedulers are late by as much.
FAR, LEAST_STEP_S = 8.0, 1e-4
# A normal deviation, in median absolute deviations.
_NORMAL = 1.4826


class DelayStep(Struct, frozen=True):
    """A step of the least delay: when, and the levels before and after.

    The levels are those of parts of the time as long as ``level_s``.
    """

    at_s: float
    before_s: float
    after_s: float
    level_s: float

    @property
    def size_s(self) -> float:
        """By how much the delay grew."""
        return self.after_s - self.before_s


def steps_of(points: Sequence[DelayAt]) -> list[DelayStep]:
    """Return the steps of a series of delays, in order of time; none if it is too short."""
    count = min(MOST_LEVELS, len(points) // PACKETS_OF_LEVEL)
    if count < LEAST_LEVELS:
        return []
    times, levels, length_s = levels_of(points, count)
    n = len(levels)
    if n < LEAST_LEVELS:
        return []
    drift = median(levels[at + AROUND] - levels[at] for at in range(n - AROUND))
    before = {at: median(levels[at - AROUND : at]) for at in range(AROUND, n + 1)}
    sizes = {at: before[at + AROUND] - before[at] - drift for at in range(AROUND, n - AROUND + 1)}
    middle = median(sizes.values())
    noise = _NORMAL * median(abs(size - middle) for size in sizes.values())
    least = max(FAR * noise, LEAST_STEP_S)
    found: list[int] = []
    for at in sorted(sizes, key=lambda at: -abs(sizes[at])):
        if abs(sizes[at]) > least and all(abs(at - other) > AROUND for other in found):
            found.append(at)
    ordered, around_s = sorted(points), AROUND * length_s
    steps = []
    for at in sorted(found):
        levels_s = before[at], before[at + AROUND]
        moment_s = _moment(ordered, times[at], around_s, *levels_s)
        steps.append(DelayStep(moment_s, *levels_s, length_s))
    return steps


def _moment(
    ordered: Sequence[DelayAt], near_s: float, around_s: float, before_s: float, after_s: float
) -> float:
    """Return when the first packet after a step was sent.

    A queue only adds: a delay below the middle of both levels is on the side of the lower one.
    """
    middle_s = (before_s + after_s) / 2
    low = [
        place
        for place, (at_s, delay_s) in enumerate(ordered)
        if abs(at_s - near_s) < around_s and delay_s < middle_s
    ]
    if not low:
        return near_s
    first = low[-1] + 1 if after_s > before_s else low[0]
    return ordered[min(first, len(ordered) - 1)][0]


def levels_of(points: Sequence[DelayAt], count: int) -> tuple[list[float], list[float], float]:
    """Return the least delay of each of ``count`` equal parts of the time that has packets.

    The times at which these parts begin come first, their length last.
    """
    begin_s, end_s = min(points)[0], max(points)[0]
    length_s = (end_s - begin_s) / count
    least = [math.inf] * count
    for at_s, delay_s in points:
        part = min(int((at_s - begin_s) / length_s), count - 1) if length_s else 0
        least[part] = min(least[part], delay_s)
    known = [part for part in range(count) if math.isfinite(least[part])]
    return [begin_s + part * length_s for part in known], [least[p] for p in known], length_s
