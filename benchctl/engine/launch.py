"""Starts the runner's process, and talks to it by signals."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path


class Runner:
    """A runner's process, seen by the one that started it."""

    def __init__(self, process: subprocess.Popen[str]) -> None:
        self._process = process

    def ended(self, timeout_s: float = 0.0) -> bool:
        """Return whether the runner has ended, after waiting for it at most ``timeout_s``."""
        try:
            self._process.wait(timeout_s)
        except subprocess.TimeoutExpired:
            return False
        return True

    def interrupt(self) -> None:
        """Ask the runner to end its tools, keep what was measured, and stop."""
        self._process.send_signal(signal.SIGINT)

    def kill(self) -> None:
        """End the runner at once; its guardian ends the tools."""
        self._process.kill()
        self._process.wait()

    @property
    def exit_code(self) -> int:
        """The runner's exit code, once it has ended."""
        return self._process.wait()

    def error(self) -> Sequence[str]:
        """Return what the runner said on stderr, once it has ended."""
        assert self._process.stderr is not None
        return self._process.stderr.read().splitlines()


def launch(store: Path, run_id: int) -> Runner:
    """Start the runner of a planned run; it stops when this process ends."""
    return Runner(_start(store, run_id, subprocess.PIPE, subprocess.PIPE))


def launch_detached(store: Path, run_id: int) -> None:
    """Start a runner that goes on when this process ends."""
    _start(store, run_id, subprocess.DEVNULL, subprocess.DEVNULL)


def _start(store: Path, run_id: int, stdin: int, stderr: int) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-m", "benchctl.engine", os.fspath(store), str(run_id)],
        stdin=stdin,
        stdout=subprocess.DEVNULL,
        stderr=stderr,
        text=True,
        # A session of its own: the terminal's Ctrl-C reaches whoever started it, who passes it on.
        start_new_session=True,
    )
