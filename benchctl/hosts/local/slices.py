"""Asks the scheduler for short or long slices of time, which every user may.

In EEVDF, the scheduler since Linux 6.6, a task that wakes up runs before one whose slices are
longer (PREEMPT_SHORT in kernel/sched/features.h, since Linux 6.12). Each keeps its share of time.
"""

from __future__ import annotations

import os
import platform
import struct

# The shortest and the longest that the kernel takes (kernel/sched/syscalls.c).
SHORTEST_NS, LONGEST_NS = 100_000, 100_000_000
# The number of the system call, which the C library may lack (before glibc 2.41).
_SCHED_SETATTR = {"x86_64": 314, "aarch64": 274, "riscv64": 274}


def ask_for_slices(length_ns: int, niceness: int = 0) -> None:
    """Ask for this thread. A kernel without slices, or an unknown machine, changes nothing."""
    number = _SCHED_SETATTR.get(platform.machine())
    if number is None:
        return
    import ctypes

    # struct sched_attr, version 0: size, policy, flags, niceness, priority, runtime, deadline,
    # period (sched_setattr(2)).
    form = "=IIQiIQQQ"
    attributes = struct.pack(
        form, struct.calcsize(form), os.SCHED_OTHER, 0, niceness, 0, length_ns, 0, 0
    )
    ctypes.CDLL(None).syscall(number, 0, attributes, 0)
