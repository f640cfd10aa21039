"""Lowers the priority of a program that only observes, but not of what it starts.

Niceness alone is not enough. Where Linux groups processes by session (sched(7), the autogroup
feature) it counts only within a terminal, and a timer that is due on the same core waits until a
part of a screen is drawn. So the program also asks for long slices.

On Linux both belong to a thread, and a child inherits those of the thread that makes it (nice(2), C
library/kernel differences). So one thread keeps the original priority, and starts the others.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import ParamSpec, TypeVar

from benchctl.hosts.local.slices import LONGEST_NS, ask_for_slices

Given = ParamSpec("Given")
Result = TypeVar("Result")

NICENESS = 10
_FULL = ThreadPoolExecutor(max_workers=1, thread_name_prefix="full priority")


def give_way() -> None:
    """Let every other program run first from now on; does nothing if that would affect children."""
    if sys.platform.startswith("linux"):
        at_full_priority(int)  # Its thread has to start before.
        ask_for_slices(LONGEST_NS, os.nice(NICENESS))


def at_full_priority(
    call: Callable[Given, Result], *args: Given.args, **kwargs: Given.kwargs
) -> Result:
    """Call a function that starts a program; returns what it returns and raises what it raises."""
    return _FULL.submit(call, *args, **kwargs).result()
