"""A program that only looks on gives way to what is measured; what it starts does not.

Niceness alone is not enough: where Linux groups processes by session (sched(7), the autogroup
feature) it counts only within a terminal, and a timer that is due on the same core waits until a
part of a screen is drawn. So the program asks for long slices, too. In EEVDF, the scheduler since
Linux 6.6, who asks for long slices is never in a hurry, and any other that wakes up goes before it
(PREEMPT_SHORT in kernel/sched/features.h, since Linux 6.12).

On Linux both are a thread's own, and a child has those of the thread that makes it (nice(2), C
library/kernel differences). So one thread stays as the program began, and starts the others.
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
# Its number, where the C library may have no function for it (before glibc 2.41).
_SCHED_SETATTR = {"x86_64": 314, "aarch64": 274, "riscv64": 274}
_FULL = ThreadPoolExecutor(max_workers=1, thread_name_prefix="full priority")


def give_way() -> None:
    """Let every other program go first from now on; nothing where that cannot be for us alone."""
    if sys.platform.startswith("linux"):
        at_full_priority(int)  # Its thread has to begin before.
        _ask_for_long_slices(os.nice(NICENESS))


def _ask_for_long_slices(niceness: int) -> None:
    """Ask the kernel; one that knows no slices, or none of ours, leaves all as it is."""
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
    """Call something that starts a program, and return what it returns or raise what it raises."""
    return _FULL.submit(call, *args, **kwargs).result()
