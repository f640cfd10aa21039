"""Runs an event loop to its end, and ends tasks that nobody waits for any more."""

from __future__ import annotations

import asyncio
import signal
import threading
from collections.abc import Coroutine
from typing import Any, TypeVar

T = TypeVar("T")

_interrupts = 0


def interrupts() -> int:
    """Return how often the user has interrupted what runs by `run_to_end`."""
    return _interrupts


def run_to_end(main: Coroutine[Any, Any, T]) -> T:
    """Run a coroutine as `asyncio.run` does; an interrupt cancels it.

    `asyncio.run` itself breaks off at the second one, and leaves tasks and processes behind. Here
    further ones are counted, for what would wait for others. When
    all has ended, SIGINT's handler is called: it raises KeyboardInterrupt.
    """
    global _interrupts
    before = signal.getsignal(signal.SIGINT)
    if threading.current_thread() is not threading.main_thread() or not callable(before):
        return asyncio.run(main)
    _interrupts = 0
    task: asyncio.Task[T] | None = None

    def interrupt(*_: object) -> None:
        global _interrupts
        if task is not None and not _interrupts and not task.done():
            task.get_loop().call_soon_threadsafe(task.cancel)
        _interrupts += 1

    async def cancellable() -> T:
        nonlocal task
        task = asyncio.current_task()
        if _interrupts and task is not None:
            task.cancel()
        return await main

    signal.signal(signal.SIGINT, interrupt)
    try:
        return asyncio.run(cancellable())
    finally:
        signal.signal(signal.SIGINT, before)
        if _interrupts:
            before(signal.SIGINT, None)


async def cancel(*tasks: asyncio.Future[Any]) -> None:
    """Cancel tasks, and wait until they have ended.

    Whatever they raise is dropped. asyncio would print the exceptions of tasks that are only
    cancelled, as those that nobody retrieved.
    """
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)
