"""The screens give way to what is measured; what they start does not.

On Linux niceness is a thread's own, and a child has that of the thread that makes it (nice(2), C
library/kernel differences). So one thread stays as the program began, and starts the others.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import ParamSpec, TypeVar

Given = ParamSpec("Given")
Result = TypeVar("Result")

# Drawing takes a few milliseconds at a time: enough to make another program's timer late.
NICENESS = 10
_FULL = ThreadPoolExecutor(max_workers=1, thread_name_prefix="full priority")


def give_way() -> None:
    """Let every other program go first from now on; nothing where that cannot be for us alone."""
    if sys.platform.startswith("linux"):
        at_full_priority(int)  # Its thread has to begin before.
        os.nice(NICENESS)


def at_full_priority(
    call: Callable[Given, Result], *args: Given.args, **kwargs: Given.kwargs
) -> Result:
    """Call something that starts a program, and return what it returns or raise what it raises."""
    return _FULL.submit(call, *args, **kwargs).result()
