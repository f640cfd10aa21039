"""How asyncio waits for children: by a descriptor of each, in every version of Python.

From Python 3.12 on, asyncio does so by itself where the kernel has pidfd_open(2), Linux 5.3. Python
3.11 starts a thread for each child. Without memory for that it stands still: `Thread.start` waits
for a thread that ends before it can say that it lives. Its own watcher by descriptors serves a
single event loop of a process: when two threads plan, the children of one of them never end.
"""

from __future__ import annotations

import asyncio
import os
import sys
from collections.abc import Callable
from functools import partial
from typing import TypeVarTuple

Ts = TypeVarTuple("Ts")


def wait_without_threads() -> None:
    """Let the event loops of this process wait for their children by descriptors, where new."""
    if sys.version_info >= (3, 12) or not hasattr(os, "pidfd_open"):
        return
    if isinstance(asyncio.get_child_watcher(), _Watcher):
        return
    try:
        os.close(os.pidfd_open(os.getpid()))
    except OSError:  # an older kernel, or a container that forbids it
        return
    asyncio.set_child_watcher(_Watcher())


if sys.version_info < (3, 12):  # Later ones have no such class.

    class _Watcher(asyncio.AbstractChildWatcher):
        """Waits for a child in the event loop that has started it, as Python 3.12 does."""

        def add_child_handler(
            self, pid: int, callback: Callable[[int, int, *Ts], object], *args: *Ts
        ) -> None:
            loop = asyncio.get_running_loop()
            child = os.pidfd_open(pid)
            loop.add_reader(child, partial(self._has_ended, loop, child, pid, callback, *args))

        @staticmethod
        def _has_ended(
            loop: asyncio.AbstractEventLoop,
            child: int,
            pid: int,
            callback: Callable[[int, int, *Ts], object],
            *args: *Ts,
        ) -> None:
            loop.remove_reader(child)
            os.close(child)
            try:
                code = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
            except ChildProcessError:  # Somebody else has waited for it.
                code = 255
            callback(pid, code, *args)

        def remove_child_handler(self, pid: int) -> bool:
            return False  # as in Python 3.12: nothing asks for it

        def attach_loop(self, loop: asyncio.AbstractEventLoop | None) -> None:
            pass  # each child has its own

        def is_active(self) -> bool:
            return True

        def close(self) -> None:
            pass

        def __enter__(self) -> _Watcher:
            return self

        def __exit__(self, *exception: object) -> None:
            pass
