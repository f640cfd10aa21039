"""How asyncio waits for children: by a descriptor of each, in every version of Python.

From Python 3.12 on, asyncio does so by itself where the kernel has pidfd_open(2), Linux 5.3. Python
3.11 starts a thread for each child. Without memory for that it stands still: `Thread.start` waits
for a thread that ends before it can say that it lives.
"""

from __future__ import annotations

import asyncio
import os
import sys


def wait_without_threads() -> None:
    """Let the running event loop wait for its children by descriptors, where that is new."""
    if sys.version_info >= (3, 12) or not hasattr(os, "pidfd_open"):
        return
    known = asyncio.get_child_watcher()
    if isinstance(known, asyncio.PidfdChildWatcher) and known.is_active():
        return  # another one would no longer wait for the children of this one
    try:
        os.close(os.pidfd_open(os.getpid()))
    except OSError:  # an older kernel, or a container that forbids it
        return
    watcher = asyncio.PidfdChildWatcher()
    watcher.attach_loop(asyncio.get_running_loop())
    asyncio.set_child_watcher(watcher)
