"""Converts the monotonic clock to the time of day."""

from __future__ import annotations

import time

from .schedule import SECOND_NS

_READINGS = 5


def unix_time_s(at_ns: int) -> float:
    """Return a time of the monotonic clock as Unix time.

    A thread may be interrupted between its readings of the two clocks. So they are read several
    times, and the readings closest together count.
    """
    readings = [
        (time.monotonic_ns(), time.time_ns(), time.monotonic_ns()) for _ in range(_READINGS)
    ]
    before_ns, wall_ns, after_ns = min(readings, key=lambda each: each[2] - each[0])
    return (wall_ns - (before_ns + after_ns) // 2 + at_ns) / SECOND_NS
