"""Starts and signals the runner's process: nothing else starts, stops or skips."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import closing, contextmanager, suppress
from functools import partial
from pathlib import Path
from typing import IO

from benchctl.engine.prepare.trust import distrust_run, untrusted
from benchctl.engine.runner.signals import SIGNALS
from benchctl.errors import StoreError, UsageError
from benchctl.run.planned import Host
from benchctl.run.record import Run
from benchctl.run.status import FAILURES
from benchctl.store.locks import Liveness, alone_at_start, other_stores
from benchctl.store.read import Reader
from benchctl.store.record import interrupt_run, reopen_run

# Interval between two checks of whether a runner has begun.
LOOK_S = 0.01
# A traceback has less.
_WORDS_BYTES = 1 << 14


class RunnerProcess:
    """A runner's process, for the process that started it."""

    def __init__(
        self, store: Path, run_id: int, process: subprocess.Popen[bytes], words: IO[bytes]
    ) -> None:
        self._store, self._run_id = store, run_id
        self._process = process
        self._words = words

    def ended(self, timeout_s: float = 0.0) -> bool:
        """Wait at most ``timeout_s`` for the runner; returns whether it has ended."""
        try:
            self._process.wait(timeout_s)
        except subprocess.TimeoutExpired:
            return False
        return True

    def interrupt(self) -> None:
        """Ask the runner to stop its tools, keep the measurements, and end."""
        self._process.send_signal(signal.SIGINT)

    def kill(self) -> None:
        """Kill the runner, and mark its run as interrupted; its guardian ends the tools."""
        self._process.kill()
        self._process.wait()
        interrupt_run(self._store, self._run_id)

    @property
    def exit_code(self) -> int:
        """The runner's exit code, once it has ended."""
        return self._process.wait()

    def error(self) -> Sequence[str]:
        """Return the runner's stderr, once it has ended."""
        self._words.seek(0)
        return self._words.read().rstrip(b"\0").decode("utf-8", "replace").splitlines()

    def close(self) -> None:
        """Close the connection to the runner: if it still runs, it stops."""
        if self._process.stdin is not None:
            self._process.stdin.close()
        self._process.wait()
        self._words.close()


def left_to_resume(reader: Reader, run: Run, *, trust: bool, failed: bool = False) -> int:
    """Return how many trials a stopped or dead run has left; with ``failed``, and how many failed.

    Raises UsageError if there are none or if it is in progress, LabError if its lab cannot be built
    here, and ProfileError without ``trust`` if others may control its services.
    """
    if reader.is_alive(run):
        raise UsageError(f"run {run.name} is in progress", "wait until it ends")
    if run.origin:
        raise UsageError(
            f"run {run.name} was imported", "it has no profile by which it could be measured again"
        )
    if run.person:
        raise UsageError(
            f"run {run.name} was measured by a fleet", "submit its profile again, with --fleet"
        )
    statuses = [trial.status for trial in reader.trials(run.id)]
    left = sum(status.is_open or (failed and status in FAILURES) for status in statuses)
    if not left:
        again = not failed and any(status in FAILURES for status in statuses)
        hint = "--failed measures its failed trials again" if again else "see benchctl show"
        raise UsageError(f"run {run.name} has nothing left to measure", hint)
    if run.settings.lab is not None:
        from benchctl.lab import capability  # which few need

        if lab_fault := capability.fault():
            raise lab_fault
    if not trust and (why := distrust_run(run.settings, reader.path)):
        raise untrusted(reader.path, why)
    return left


@contextmanager
def free_host(store: Path, hosts: Iterable[Host] = ()) -> Iterator[None]:
    """Keep other runs that would be alone from starting until the block ends.

    Raises UsageError as `check_free`, and if another run has one of the hosts.
    """
    from benchctl.engine.runner.host_locks import check_free_hosts  # which few need

    with alone_at_start():
        check_free(store)
        check_free_hosts(hosts)
        yield


def check_free(store: Path) -> None:
    """Raise UsageError if a run is being measured on this machine, as far as this can be seen."""
    if store.exists():
        with closing(Reader(store)) as reader:
            if run := reader.measured_now():
                raise UsageError(f"run {run.name} is being measured", _WAIT)
    if others := other_stores(store):
        raise UsageError(f"a run of store {others[0]} is being measured", _WAIT)


_WAIT = "wait until it ends; without --no-wait, runs of one store wait for each other"


def launch(
    store: Path, run_id: int, *, failed: bool = False, no_wait: bool = False
) -> RunnerProcess:
    """Start the runner of a planned, stopped or dead run; with ``failed``, also for failed trials.

    With ``no_wait``, the run fails if another one has its hosts. The runner stops when this process
    ends. Raises StoreError, also if the run is being measured
    already.
    """
    with _starting(store, run_id, failed=failed) as is_held:

        def start(stdin: int, stderr: int | IO[bytes]) -> subprocess.Popen[bytes]:
            return _start(store, run_id, stdin, stderr, no_wait)

        return _launch(store, run_id, start, is_held)


def launch_follower(store: Path, run_id: int, argv: Sequence[str]) -> RunnerProcess:
    """Start what stands for the runner of a run that is measured elsewhere, with the same signals.

    ``store`` is the copy in which it holds the run. Raises StoreError, also if another one does.
    """
    with Liveness(store).launching(run_id) as is_held:
        return _launch(store, run_id, partial(_spawn, argv), is_held)


def _launch(
    store: Path,
    run_id: int,
    start: Callable[[int, IO[bytes]], subprocess.Popen[bytes]],
    is_held: Callable[[], bool],
) -> RunnerProcess:
    """Start a process that holds a run, and wait until it does."""
    # A file, since nobody reads a pipe while the runner runs, and a full pipe would block it.
    # It lies beside the store, which is known to be writable.
    words = tempfile.TemporaryFile(dir=store.resolve().parent)  # noqa: SIM115 (close does)
    # Room for what it says when the disk is full.
    words.write(bytes(_WORDS_BYTES))
    words.seek(0)
    try:
        process = start(subprocess.PIPE, words)
    except BaseException:
        words.close()
        raise
    runner = RunnerProcess(store, run_id, process, words)
    # Until then another process could start the same run.
    while not is_held() and not runner.ended(LOOK_S):
        pass
    return runner


def launch_detached(
    store: Path, run_id: int, *, failed: bool = False, wait: bool = False, no_wait: bool = False
) -> None:
    """Start a runner as `launch` does, but let it continue when this process ends.

    With ``wait``, return once the runner holds its run. Raises StoreError if it ends before.
    """
    with _starting(store, run_id, failed=failed) as is_held:
        process = _start(store, run_id, subprocess.DEVNULL, subprocess.DEVNULL, no_wait)
        while wait and process.poll() is None and not is_held():
            time.sleep(LOOK_S)
        if wait and process.returncode not in (None, 0):
            what = f"the runner ended with code {process.returncode}"
            raise StoreError(what, "see benchctl show")
    # Popen warns of a child that nobody waits for; the result of this one is in the store.
    process.returncode = 0


@contextmanager
def _starting(store: Path, run_id: int, *, failed: bool) -> Iterator[Callable[[], bool]]:
    """Reopen a run and hold the lock to start its runner, as `Liveness.launching`.

    If the runner cannot be started, the run is interrupted. Raises StoreError.
    """
    with Liveness(store).launching(run_id) as is_held:
        # Mark the run as planned before anyone reads it, so that it is not taken for an ended one.
        reopen_run(store, run_id, failed=failed)
        try:
            yield is_held
        except BaseException:
            if not is_held():
                with suppress(StoreError):  # the disk may be full, too
                    interrupt_run(store, run_id)
            raise


def stop(store: Path, run_id: int) -> bool:
    """Ask the runner of a run to stop it; False if there is none.

    Raises StoreError if it belongs to another user.
    """
    return _signal(store, run_id, signal.SIGINT)


def skip_trial(store: Path, run_id: int) -> bool:
    """Ask the runner of a run to skip the current trial; returns and raises as `stop`."""
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
    store: Path, run_id: int, stdin: int, stderr: int | IO[bytes], no_wait: bool
) -> subprocess.Popen[bytes]:
    wait = ["--no-wait"] * no_wait
    argv = ["benchctl.engine", os.fspath(store.resolve()), str(run_id), *wait]
    return _spawn(argv, stdin, stderr)


def _spawn(argv: Sequence[str], stdin: int, stderr: int | IO[bytes]) -> subprocess.Popen[bytes]:
    """Start a module of ours with its arguments."""
    before = signal.pthread_sigmask(signal.SIG_BLOCK, SIGNALS)
    try:
        return subprocess.Popen(
            [sys.executable, "-P", "-m", *argv],
            stdin=stdin,
            stdout=subprocess.DEVNULL,
            stderr=stderr,
            # A session of its own: the terminal's Ctrl-C reaches only the parent, which forwards
            # it.
            start_new_session=True,
        )
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)
