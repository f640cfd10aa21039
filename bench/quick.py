"""``benchctl quick local``: time from the return key to the first figure on a terminal."""

from __future__ import annotations

import os
import pty
import re
import select
import signal
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import table

RUNS = 5
FIGURE = re.compile(rb"\d [mu]s|\d [kMGT]?bit/s")
LIMIT_S = 30.0


def main() -> None:
    table.head(f"quick (medians of {RUNS})")
    with tempfile.TemporaryDirectory() as folder:
        times_s = [_first_figure_s(Path(folder)) for _ in range(RUNS)]
    table.row("benchctl quick local, first figure", statistics.median(times_s), 1, "s")


def _first_figure_s(folder: Path) -> float:
    ours, theirs = pty.openpty()
    start = time.perf_counter()
    process = subprocess.Popen(
        [sys.executable, "-m", "benchctl", "quick", "local", "--store", str(folder / "q.sqlite")],
        stdin=theirs, stdout=subprocess.DEVNULL, stderr=theirs,
        env={**os.environ, "TERM": "xterm", "COLUMNS": "200"},
    )  # fmt: skip
    os.close(theirs)
    shown = b""
    try:
        # What the progress promises of the future, such as "12 s left", is no figure.
        while not FIGURE.search(shown):
            if not select.select([ours], [], [], LIMIT_S)[0]:
                raise TimeoutError(shown.decode())
            shown += os.read(ours, 65536)
        return time.perf_counter() - start
    finally:
        process.send_signal(signal.SIGINT)
        while process.poll() is None:  # it draws until it ends, and must not wait for a reader
            if select.select([ours], [], [], 0.1)[0]:
                try:
                    os.read(ours, 65536)
                except OSError:  # the other end is closed
                    break
        process.wait()
        os.close(ours)
