"""Waiting for what another process, a thread or a screen brings about and announces nowhere."""

import asyncio
import time

LOOK_S = 0.005
# Looks that read a store or all of /proc, or start a program, take no more of the time than this.
_LOOKING = 0.2
# Far more than anything takes here: only a defect, or a machine that stands still, is as slow.
DEADLINE_S = 30.0
# The same for a whole command, which imports much, builds a lab, or measures.
COMMAND_S = 300.0


def _looks(told):
    """Yield before each look at a condition; fails in the end with what is there instead.

    What is waited for may come of a command that has only just been started.
    """
    end_s = time.monotonic() + COMMAND_S
    while time.monotonic() < end_s:
        yield
    raise AssertionError(f"waited {COMMAND_S} s in vain; now: {told()}")


def wait_until(condition, told=str):
    """Wait until a condition holds, with a look now and then; returns what it returned."""
    looks = _looks(told)
    begun_s = time.monotonic()
    while not (found := condition()):
        next(looks)
        took_s = time.monotonic() - begun_s
        time.sleep(max(LOOK_S, took_s / _LOOKING - took_s))
        begun_s = time.monotonic()
    return found


async def until(condition, told=str):
    """Let the event loop go on until a condition holds; returns what it returned."""
    looks = _looks(told)
    while not (found := condition()):
        next(looks)
        await asyncio.sleep(LOOK_S)
    return found
