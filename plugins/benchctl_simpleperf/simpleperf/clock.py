"""The time of day of a moment on the monotonic clock."""

from __future__ import annotations

import time

from .schedule import SECOND_NS

_READINGS = 5


def unix_time_s(at_ns: int) -> float:
    """Return when a moment of the monotonic clock was, in Unix time.

    A thread may be kept waiting between its readings of the two clocks. So they are read several
    times, and those count that were made within the shortest time.
    """
    readings = [
        (time.monotonic_ns(), time.time_ns(), time.monotonic_ns()) for _ in range(_READINGS)
    ]
    before_ns, wall_ns, after_ns = min(readings, key=lambda each: each[2] - each[0])
    return (wall_ns - (before_ns + after_ns) // 2 + at_ns) / SECOND_NS
