"""Waiting for what another process, a thread or a screen brings about and announces nowhere."""

import asyncio
import time

LOOK_S = 0.005
# Far more than anything takes here: only a defect, or a machine that stands still, is as slow.
DEADLINE_S = 30.0
# The same for a whole command, which imports much, builds a lab, or measures.
COMMAND_S = 300.0


def _looks(told, deadline_s=DEADLINE_S):
    """Yield before each look at a condition; fails at the deadline with what is there instead."""
    end_s = time.monotonic() + deadline_s
    while time.monotonic() < end_s:
        yield
    raise AssertionError(f"waited {deadline_s} s in vain; now: {told()}")


def wait_until(condition, told=str, deadline_s=DEADLINE_S):
    """Wait until a condition holds; returns what it returned."""
    looks = _looks(told, deadline_s)
    while not (found := condition()):
        next(looks)
        time.sleep(LOOK_S)
    return found


async def until(condition, told=str):
    """Let the event loop go on until a condition holds; returns what it returned."""
    looks = _looks(told)
    while not (found := condition()):
        next(looks)
        await asyncio.sleep(LOOK_S)
    return found
