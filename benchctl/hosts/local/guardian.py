"""Kills the runner's tools when the runner is gone. Runs as a separate process.

The runner writes ``+PGID`` when it starts a process group and ``-PGID`` when that has ended. When
the pipe closes, because the runner ended in any way, the guardian kills the remaining groups. A
parent-death signal alone is not enough: the kernel clears it for programs with file capabilities,
such as ping on many systems (prctl(2), PR_SET_PDEATHSIG), and only Linux has one.

``+/PATH`` and ``-/PATH`` name a folder of the runner's, which is removed in the same way.

Started as a plain script, so it imports nothing of benchctl and little else.
"""

import os
import signal
import sys


def guard(lines: "object") -> None:
    """Read lines until the end, then kill every remaining group, and remove the folders."""
    left: set[bytes] = set()
    for line in lines:  # type: ignore[attr-defined]
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


if __name__ == "__main__":
    for name in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(name, signal.SIG_IGN)
    guard(sys.stdin.buffer)
