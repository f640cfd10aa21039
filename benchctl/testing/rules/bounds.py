"""Bounds in CPU time and memory, which other programs on the machine do not disturb."""

from __future__ import annotations

import gc
import signal
import sys
import threading
import tracemalloc
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from types import BuiltinFunctionType, CodeType, FrameType, FunctionType, ModuleType
from typing import NoReturn

_OF_THE_PROGRAM = (type, ModuleType, FunctionType, BuiltinFunctionType, CodeType)


class TakesTooLongError(BaseException):
    """Not an Exception: what runs too long may catch all of those."""


@contextmanager
def cpu_at_most(limit_s: float) -> Iterator[None]:
    """Raise TakesTooLongError if this takes longer, in CPU time of this process.

    A pattern that backtracks is interrupted, too. Other threads than the first get no limit.
    """
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = signal.signal(signal.SIGVTALRM, _give_up)
    signal.setitimer(signal.ITIMER_VIRTUAL, limit_s)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_VIRTUAL, 0)
        signal.signal(signal.SIGVTALRM, before)


def _give_up(_number: int, _frame: FrameType | None) -> NoReturn:
    raise TakesTooLongError


def held_bytes(thing: object) -> int:
    """Return the bytes of memory that an object and all that it refers to take.

    Classes, functions and modules are not counted, nor what is shared with them.
    """
    found: dict[int, object] = {}
    waiting: list[object] = [thing]
    while waiting:
        item = waiting.pop()
        if id(item) not in found and not isinstance(item, _OF_THE_PROGRAM):
            found[id(item)] = item
            waiting += gc.get_referents(item)
    return sum(map(sys.getsizeof, found.values()))


def peak_bytes(action: Callable[[], object]) -> int:
    """Return the most memory that an action takes at once, whatever it raises."""
    tracemalloc.start()
    try:
        with suppress(Exception):
            action()
        return tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
