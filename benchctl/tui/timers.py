"""A call after a while that is made however busy the machine is.

Textual's own ``set_timer`` makes no call at all if its time passes between two readings of the
clock (`textual.timer.Timer._run`, version 8.2): with a few milliseconds, a busy machine is enough.
A repeated timer leaves such a turn out, and takes the next.
"""

from __future__ import annotations

from collections.abc import Callable
from inspect import isawaitable

from textual.message_pump import MessagePump
from textual.timer import Timer


def once(pump: MessagePump, delay_s: float, call: Callable[[], object]) -> Timer:
    """Call after a time, or after a multiple of it if the clock jumps over it."""

    async def take_turn() -> None:
        try:
            answer = call()
            if isawaitable(answer):
                await answer
        finally:
            timer.stop()  # which also cancels what the call still awaits

    timer = pump.set_interval(delay_s, take_turn)
    return timer
