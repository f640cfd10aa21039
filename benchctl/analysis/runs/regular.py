"""Takes out of a series of runs what is no change of level: the cycle of a day, and outliers.

Networks are busier by day, and a shared machine slows single trials. Both hide a change of level,
or look like one. `steps` gets the rest.
"""

from __future__ import annotations

from bisect import bisect_left, insort
from collections import Counter
from collections.abc import Iterator, Sequence
from functools import lru_cache
from itertools import groupby
from operator import itemgetter, sub, truediv
from statistics import median

DAY_S, HOUR_S = 86_400.0, 3600.0
# Runs of one hour of the day: with fewer, its median is guessed.
LEAST_DAYS = 7
# Runs on either side that show a level. A change has fewer on its side until it is found.
NEAR = 14
# Standard deviations of a value that is an outlier. A fifth less than the level is further away in
# most series, and such values count only if several follow each other.
FAR = 2.5
# Consecutive outliers on one side that are a new level. With 5 % of trials disturbed, in one of
# 160,000 places so many are disturbed in a row.
LEAST_LEVEL = 4
# If they are as far away as outliers of this series usually are, all of them may be such.
LEAST_USUAL = 6
LEAST_OUTLIERS = 3
# The median of the absolute value of a standard normal.
MEDIAN_DEVIATION = 0.6745


def regular(times: Sequence[float], values: Sequence[float]) -> list[float]:
    """Return the values of runs at times (Unix, ascending), without daily cycle and outliers."""
    return without_outliers(without_daily_cycle(times, values))


def without_daily_cycle(times: Sequence[float], values: Sequence[float]) -> list[float]:
    """Return values relative to what is usual at their hour of the day (UTC).

    By the median of each hour's ratio to the median of the day around it, or of the difference if
    a value is not positive. An hour with fewer than seven runs, as after a change of the clock, is
    taken for the nearest that has them. Unchanged if fewer than two hours have them.
    """
    days, hours, nearest = _calendar(tuple(times))
    if not nearest:
        return [*values]
    around = [median(values[day]) for day in days]
    relative = min(values) > 0
    apart = [*map(truediv if relative else sub, values, around)]
    of_hours: dict[int, list[float]] = {hour: [] for hour in hours}
    for deviation, hour in zip(apart, hours, strict=True):
        of_hours[hour].append(deviation)
    usual = {hour: median(of_hours[hour]) for hour in {*nearest}}
    return [*map(truediv if relative else sub, values, map(usual.__getitem__, nearest))]


# All figures of a table have the same times, and a mesh has thousands.
@lru_cache(maxsize=16)
def _calendar(times: tuple[float, ...]) -> tuple[list[slice], list[int], list[int]]:
    """Return the day around each time, its hour of the day, and the nearest with enough runs.

    Of the last, nothing if fewer than two hours have them.
    """
    hours = [round(time % DAY_S / HOUR_S) % 24 for time in times]
    known = [hour for hour, count in Counter(hours).items() if count >= LEAST_DAYS]
    if len(known) < 2:
        return [], hours, []
    days = [
        slice(bisect_left(times, time - DAY_S / 2), bisect_left(times, time + DAY_S / 2))
        for time in times
    ]
    nearest = [
        min(known, key=lambda other: min((other - hour) % 24, (hour - other) % 24))
        for hour in hours
    ]
    return days, hours, nearest


def without_outliers(values: Sequence[float]) -> list[float]:
    """Return values of which those far from the level around them are put on it.

    Where at least `LEAST_LEVEL` such values follow each other on one side, they are a level of
    their own; `LEAST_USUAL` where they are as far away as single ones usually are. Unchanged if
    half of the values are equal to the level around them.
    """
    levels = [*_levels(values)]
    apart = [*map(sub, values, levels)]
    limit = FAR / MEDIAN_DEVIATION * median(map(abs, apart)) if apart else 0.0
    if not limit:
        return [*values]
    sides = [(deviation > limit) - (deviation < -limit) for deviation in apart]
    calm = [*values]
    groups = [
        (side, [at for at, _ in group])
        for side, group in groupby(enumerate(sides), key=itemgetter(1))
        if side
    ]
    usual = {side: _usual_apart(side, groups, apart) for side in (-1, 1)}
    for side, places in groups:
        level = None
        size = median(apart[at] for at in places)
        far = usual[side]
        is_usual = far is not None and abs(size - far) <= limit
        if len(places) >= (LEAST_USUAL if is_usual else LEAST_LEVEL):
            level = median(values[at] for at in places)
        for at in places:
            if level is None:
                calm[at] = levels[at]
            elif abs(values[at] - level) > limit:
                calm[at] = level
    return calm


def single_outliers(values: Sequence[float]) -> Iterator[float]:
    """Yield how far outliers that are no level are from the level, as a share of it."""
    if len(values) < 2 or min(values) <= 0:
        return
    level = median(values)
    apart = [value / level - 1 for value in values]
    limit = FAR / MEDIAN_DEVIATION * median(map(abs, apart))
    for is_far, group in groupby(apart, key=lambda deviation: abs(deviation) > limit):
        far = [*group]
        if is_far and limit and len(far) < LEAST_LEVEL:
            yield from far


def _levels(values: Sequence[float]) -> Iterator[float]:
    """Yield the median of the values near each one; between two levels, that of its own side."""
    near = sorted(values[:NEAR])
    for at, value in enumerate(values):
        if at + NEAR < len(values):
            insort(near, values[at + NEAR])
        if at > NEAR:
            del near[bisect_left(near, values[at - NEAR - 1])]
        middle = len(near) // 2
        if len(near) % 2:
            yield near[middle]
        else:  # half of them may be on another level
            yield min(near[middle - 1], near[middle], key=lambda neighbour: abs(neighbour - value))


def _usual_apart(
    wanted: int, groups: Sequence[tuple[int, Sequence[int]]], apart: Sequence[float]
) -> float | None:
    """Return how far from the level outliers on one side usually are; None of few of them."""
    single = [
        apart[at]
        for side, places in groups
        if side == wanted and len(places) < LEAST_LEVEL
        for at in places
    ]
    return median(single) if len(single) >= LEAST_OUTLIERS else None
