"""The few system calls that Python 3.11 lacks.

Each raises OSError, with the name of the call, if the kernel refuses.
"""

from __future__ import annotations

import ctypes
import os
from typing import Any

_CLONE_NEWNS = 0x00020000
_CLONE_NEWNET = 0x40000000

MS_RDONLY, MS_NOSUID, MS_NODEV, MS_NOEXEC = 1, 2, 4, 8
MS_BIND = 0x1000
_MNT_DETACH = 2

_PR_SET_TIMERSLACK = 29

_libc = ctypes.CDLL(None, use_errno=True)


def _call(name: str, *args: Any) -> None:
    if getattr(_libc, name)(*args) == -1:
        code = ctypes.get_errno()
        raise OSError(code, f"{name}: {os.strerror(code)}")


def new_network() -> int:
    """Move this process into a new network namespace; returns a descriptor of it."""
    _call("unshare", _CLONE_NEWNET)
    return os.open("/proc/self/ns/net", os.O_RDONLY | os.O_CLOEXEC)


def enter_network(descriptor: int) -> None:
    """Move this process into the network namespace of a descriptor."""
    _call("setns", descriptor, _CLONE_NEWNET)


def new_mounts() -> int:
    """Move this process into a copy of its mount namespace; returns a descriptor of it."""
    _call("unshare", _CLONE_NEWNS)
    return os.open("/proc/self/ns/mnt", os.O_RDONLY | os.O_CLOEXEC)


def enter_mounts(descriptor: int) -> None:
    """Move this process into the mount namespace of a descriptor; its directory stays its own."""
    here = os.open(".", os.O_PATH | os.O_CLOEXEC)
    try:
        # It changes to the root directory; see setns(2).
        _call("setns", descriptor, _CLONE_NEWNS)
        os.fchdir(here)
    finally:
        os.close(here)


def mount(source: str, target: str, kind: str = "", flags: int = 0, data: str = "") -> None:
    """Mount a file system, or with MS_BIND a file, at a path (man 2 mount)."""
    texts = (source.encode(), target.encode(), kind.encode())
    _call("mount", *texts, ctypes.c_ulong(flags), data.encode())


def unmount(target: str) -> None:
    """Detach a mount; what is still bound from it stays; see umount2(2)."""
    _call("umount2", target.encode(), _MNT_DETACH)


def set_timer_slack(slack_ns: int) -> None:
    """Let this process's timers fire at most so much late (50 us by default); see prctl(2)."""
    _call("prctl", _PR_SET_TIMERSLACK, ctypes.c_ulong(slack_ns), 0, 0, 0)
