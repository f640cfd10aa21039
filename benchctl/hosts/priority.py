"""Lowers the priority of a program that only observes, but not of what it starts.

Niceness alone is not enough. Where Linux groups processes by session (sched(7), the autogroup
feature) it counts only within a terminal, and a timer that is due on the same core waits until a
part of a screen is drawn. So the program also asks for long slices. In EEVDF, the scheduler since
Linux 6.6, any other task that wakes up runs before one with long slices (PREEMPT_SHORT in
kernel/sched/features.h, since Linux 6.12).

On Linux both belong to a thread, and a child inherits those of the thread that makes it (nice(2), C
library/kernel differences). So one thread keeps the original priority, and starts the others.
"""

from __future__ import annotations

import os
import platform
import struct
import sys
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import ParamSpec, TypeVar

Given = ParamSpec("Given")
Result = TypeVar("Result")

NICENESS = 10
# The longest that the kernel takes (kernel/sched/syscalls.c).
SLICE_NS = 100_000_000
# The number of the system call, which the C library may lack (before glibc 2.41).
_SCHED_SETATTR = {"x86_64": 314, "aarch64": 274, "riscv64": 274}
_FULL = ThreadPoolExecutor(max_workers=1, thread_name_prefix="full priority")


def give_way() -> None:
    """Let every other program run first from now on; does nothing if that would affect children."""
    if sys.platform.startswith("linux"):
        at_full_priority(int)  # Its thread has to start before.
        _ask_for_long_slices(os.nice(NICENESS))


def _ask_for_long_slices(niceness: int) -> None:
    """Ask the kernel; one that does not know slices, or not ours, changes nothing."""
    number = _SCHED_SETATTR.get(platform.machine())
    if number is None:
        return
    import ctypes

    # struct sched_attr, version 0: size, policy, flags, niceness, priority, runtime, deadline,
    # period (sched_setattr(2)).
    form = "=IIQiIQQQ"
    attributes = struct.pack(
        form, struct.calcsize(form), os.SCHED_OTHER, 0, niceness, 0, SLICE_NS, 0, 0
    )
    ctypes.CDLL(None).syscall(number, 0, attributes, 0)


def at_full_priority(
    call: Callable[Given, Result], *args: Given.args, **kwargs: Given.kwargs
) -> Result:
    """Call a function that starts a program; returns what it returns and raises what it raises."""
    return _FULL.submit(call, *args, **kwargs).result()
