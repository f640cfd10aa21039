"""How a command ends: its exit code, and what is said of a failure."""

from __future__ import annotations

import os
import sys
from typing import Callable

from .errors import Problem
from .waker import Interrupted

INTERRUPTED = 130


def exit_code(act: Callable[[], int], failed: Callable[[Problem], None]) -> int:
    """Run a command and return its exit code; ``failed`` reports the problem that ended it."""
    try:
        return act()
    except Problem as problem:
        failed(problem)
        return 1
    except Interrupted:
        return INTERRUPTED
    except BrokenPipeError:
        # The reader is gone; without this Python would print an error when it flushes at its exit.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 1
