"""Lets the kernel wake a thread on time."""

from __future__ import annotations

import os
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress


def sharpen_timers() -> None:
    """Minimize the timer slack of the calling thread.

    By default Linux adds up to 50 us (prctl(2), PR_SET_TIMERSLACK). If it cannot be reduced, only
    pacing is coarser.
    """
    path = f"/proc/{threading.get_native_id()}/timerslack_ns"
    with suppress(OSError), open(path, "w", encoding="ascii") as slack:
        slack.write("1")


@contextmanager
def woken_first() -> Iterator[None]:
    """Let the kernel run the calling thread as soon as it wakes, for as long as the block lasts.

    On a busy machine any other thread waits for its turn, often longer than an interval. Only
    privileged processes may do this (SCHED_RR, sched(7)); for others nothing changes.
    """
    raised = False
    with suppress(AttributeError, OSError):  # Some systems lack these calls.
        if os.sched_getscheduler(0) == os.SCHED_OTHER:
            least = os.sched_get_priority_min(os.SCHED_RR)
            os.sched_setscheduler(0, os.SCHED_RR, os.sched_param(least))
            raised = True
    try:
        yield
    finally:
        if raised:
            os.sched_setscheduler(0, os.SCHED_OTHER, os.sched_param(0))
