"""The line below all delays of a series: what is constant, or grows evenly, without any queue.

The line is the solution of the linear programme of Moon, Skelly and Towsley (INFOCOM 1999): of all
lines that no delay is below, the one with the least sum of distances to them. That one is highest
at the mean of the times, so it holds the edge of the lower convex hull there (Zhang, Liu and Xia,
INFOCOM 2002), which is found in the time of a sort.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from statistics import fmean

from msgspec import Struct

DelayAt = tuple[float, float]
"""A time and a delay."""


class FloorLine(Struct, frozen=True):
    """A line: its value at time 0, and what it gains in each second."""

    start: float
    slope: float

    def at(self, time_s: float) -> float:
        """Return its value at a time."""
        return self.start + self.slope * time_s


def lower_bound_line(points: Sequence[DelayAt]) -> FloorLine:
    """Return the line below points of two or more times, in any order."""
    hull: list[DelayAt] = []
    for point in sorted(points):
        if hull and point[0] == hull[-1][0]:
            continue  # not below the one that is there
        while len(hull) > 1 and not _bends_up(hull[-2], hull[-1], point):
            hull.pop()
        hull.append(point)
    middle_s = fmean(at_s for at_s, _ in points)
    # Rounding may put the mean beyond the last time.
    (t0, d0), (t1, d1) = next(
        (edge for edge in pairwise(hull) if edge[1][0] >= middle_s), (hull[-2], hull[-1])
    )
    slope = (d1 - d0) / (t1 - t0)
    return FloorLine(d0 - slope * t0, slope)


def _bends_up(first: DelayAt, middle: DelayAt, last: DelayAt) -> bool:
    across = (middle[0] - first[0]) * (last[1] - first[1])
    return across > (last[0] - first[0]) * (middle[1] - first[1])
