"""Kills the runner's tools when the runner is gone. Runs as a separate process.

The runner writes ``+PGID`` when it starts a process group and ``-PGID`` when that has ended. When
the pipe closes, because the runner ended in any way, the guardian kills the remaining groups. A
parent-death signal alone is not enough: the kernel clears it for programs with file capabilities,
such as ping on many systems (prctl(2), PR_SET_PDEATHSIG), and only Linux has one.

Started as a plain script, so it imports nothing of benchctl and little else.
"""

import os
import signal
import sys


def guard(lines: "object") -> None:
    """Read lines until the end, then kill every remaining group."""
    groups: set[int] = set()
    for line in lines:  # type: ignore[attr-defined]
        number = int(line[1:])
        if line[:1] == b"+":
            groups.add(number)
        else:
            groups.discard(number)
    for group in groups:
        try:
            os.killpg(group, signal.SIGKILL)
        except ProcessLookupError:
            continue


if __name__ == "__main__":
    for name in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(name, signal.SIG_IGN)
    guard(sys.stdin.buffer)
