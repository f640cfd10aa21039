"""Kills what a process has started when that process is gone. Runs as a process of its own.

The runner, or an agent, writes ``+PGID`` when it starts a process group and ``-PGID`` when that has
ended. When the pipe closes, because the writer ended in any way, the remaining groups are killed. A
parent-death signal alone is not enough: the kernel clears it for programs with file capabilities,
such as ping on many systems (prctl(2), PR_SET_PDEATHSIG), and only Linux has one.

``+/PATH`` and ``-/PATH`` name a folder of the runner's, which is removed in the same way.

A part of the agent's text: Python 3.9, and as little else as possible.
"""

from __future__ import annotations

import os
import signal
from collections.abc import Iterable


def guard(pipe: int) -> None:
    """Read a pipe to its end, then end what is left; signals to end are not for it."""
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, signal.SIG_IGN)
    with open(pipe, "rb") as lines:
        end_left(lines)


def end_left(lines: Iterable[bytes]) -> None:
    """Read lines to the end, then kill every group that is left, and remove the folders."""
    left: set[bytes] = set()
    for line in lines:
        (left.add if line[:1] == b"+" else left.discard)(line[1:].rstrip(b"\n"))
    for group in left:
        if group.isdigit():
            try:
                os.killpg(int(group), signal.SIGKILL)
            except (ProcessLookupError, PermissionError):  # it has ended; macOS reports EPERM then
                continue
    for folder in left:
        if folder.startswith(b"/"):
            import shutil  # which few runs need

            shutil.rmtree(folder, ignore_errors=True)
