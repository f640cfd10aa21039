"""Starts the runner's process and signals it: nothing else starts, stops or skips."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from contextlib import closing
from pathlib import Path
from typing import IO

from benchctl.engine.signals import SIGNALS
from benchctl.errors import StoreError
from benchctl.run.status import Status
from benchctl.store.locks import Liveness
from benchctl.store.record import Recorder, reopen_run

# Between two looks whether a runner has begun.
LOOK_S = 0.01


class Runner:
    """A runner's process, seen by the one that started it."""

    def __init__(
        self, store: Path, run_id: int, process: subprocess.Popen[bytes], words: IO[bytes]
    ) -> None:
        self._store, self._run_id = store, run_id
        self._process = process
        self._words = words

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
        """End the runner at once, and mark its run as interrupted; its guardian ends the tools."""
        self._process.kill()
        self._process.wait()
        with closing(Recorder(self._store, self._run_id)) as recorder:
            recorder.update_run(status=Status.INTERRUPTED)

    @property
    def exit_code(self) -> int:
        """The runner's exit code, once it has ended."""
        return self._process.wait()

    def error(self) -> Sequence[str]:
        """Return what the runner said on stderr, once it has ended."""
        self._words.seek(0)
        return self._words.read().decode("utf-8", "replace").splitlines()

    def close(self) -> None:
        """Let go of the runner: one that still runs stops."""
        if self._process.stdin is not None:
            self._process.stdin.close()
        self._process.wait()
        self._words.close()


def launch(store: Path, run_id: int) -> Runner:
    """Start the runner of a planned run, or of one that was stopped or died.

    The runner stops when this process ends. Raises StoreError, also when the run is being measured
    already.
    """
    with Liveness(store).launching(run_id) as is_held:
        reopen_run(store, run_id)
        # A file: nobody reads a pipe while the runner runs, and a full one would stop it.
        # Beside the store, which can be written: a machine need not have another such place.
        words = tempfile.TemporaryFile(dir=store.resolve().parent)  # noqa: SIM115 (close does)
        runner = Runner(store, run_id, _start(store, run_id, subprocess.PIPE, words), words)
        # Until then another could take up the same run.
        while not is_held() and not runner.ended(LOOK_S):
            pass
    return runner


def launch_detached(store: Path, run_id: int) -> None:
    """Start a runner as `launch` does, but one that goes on when this process ends."""
    with Liveness(store).launching(run_id):
        # Marked as planned before anyone looks, so that nobody takes it for one that has ended.
        reopen_run(store, run_id)
    process = _start(store, run_id, subprocess.DEVNULL, subprocess.DEVNULL)
    # Popen complains of a child that nobody waits for; what this one has to say is in the store.
    process.returncode = 0


def stop(store: Path, run_id: int) -> bool:
    """Ask whoever measures a run to stop it; False when nobody does.

    Raises StoreError where that is another user.
    """
    return _signal(store, run_id, signal.SIGINT)


def skip_trial(store: Path, run_id: int) -> bool:
    """Ask whoever measures a run to skip the trial under way; as `stop`."""
    return _signal(store, run_id, signal.SIGUSR1)


def _signal(store: Path, run_id: int, number: signal.Signals) -> bool:
    pid = Liveness(store).runner_pid(run_id)
    if pid is None:
        return False
    try:
        os.kill(pid, number)
    except ProcessLookupError:
        return False
    except PermissionError as error:
        raise StoreError("this run belongs to another user: only they can stop it") from error
    return True


def _start(
    store: Path, run_id: int, stdin: int, stderr: int | IO[bytes]
) -> subprocess.Popen[bytes]:
    before = signal.pthread_sigmask(signal.SIG_BLOCK, SIGNALS)
    try:
        return subprocess.Popen(
            [
                sys.executable,
                "-P",
                "-m",
                "benchctl.engine",
                os.fspath(store.resolve()),
                str(run_id),
            ],
            stdin=stdin,
            stdout=subprocess.DEVNULL,
            stderr=stderr,
            # A session of its own: the terminal's Ctrl-C reaches whoever started it, who passes it
            # on.
            start_new_session=True,
        )
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)
