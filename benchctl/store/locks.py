"""Locks that show who is measuring; they end with the process that holds them.

A file beside the store has a byte for each run, which its runner locks for as long as it lives, and
a byte for the turn: of several runners only the one that holds it measures, so that no measurement
disturbs another. The kernel releases both however the runner ends (fcntl(2), record locks).

These locks are a process's, so that others can tell which process it is. One that opens the file
again and closes it loses them: call `is_alive` from other processes. The locks of a process that
measures several runs are those of its open files instead (``together``): each ends alone.
"""

from __future__ import annotations

import fcntl
import os
import struct
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO

from benchctl.errors import StoreError, UsageError
from benchctl.store.database import PRIVATE

# Runs are numbered from 1.
_TURN = 0
# Beyond the bytes of all runs: the lock of a run whose runner is being started.
_LAUNCH = 2**40
# A check of whether a run is alive holds its lock for an instant, which must not stop the runner;
# on a busy machine the process that checks may have to wait in it.
_TRIES, _TRY_S = 20, 0.01
# The start of a runner takes a second, or several on a busy machine.
_MOST_TRIES = 3000
# struct flock, here and on macOS and FreeBSD: (l_type, l_whence, l_start, l_len, l_pid) and
# (l_start, l_len, l_pid, l_type, l_whence); fcntl(2).
_LINUX = sys.platform == "linux"
_FLOCK = struct.Struct("hhqqi" if _LINUX else "qqihhi")


@contextmanager
def alone_at_start() -> Iterator[None]:
    """Keep other processes of this machine out of this block. Raises UsageError if one stays in it.

    Whoever may start a run only if there is no other looks and starts in one step.
    """
    host = os.open("/", os.O_RDONLY)  # every user of this system may lock it, whichever the store
    try:
        for _ in range(_MOST_TRIES):
            with suppress(BlockingIOError):
                fcntl.flock(host, fcntl.LOCK_EX | fcntl.LOCK_NB)
                break
            time.sleep(_TRY_S)
        else:
            raise UsageError("another run is being started", "try again")
        yield
    finally:
        os.close(host)


class Turn:
    """The turn to measure, as the runner of one run sees it."""

    def __init__(self, file: IO[str], command: int) -> None:
        """``command`` takes locks, see `_lock`."""
        self._file, self._command = file, command

    def take(self) -> bool:
        """Take the turn; False while another runner has it."""
        return _lock(self._file, fcntl.LOCK_EX, _TURN, self._command)

    def give_back(self) -> None:
        """Release the turn."""
        _lock(self._file, fcntl.LOCK_UN, _TURN, self._command)


class Liveness:
    """Tells whether a run's runner is alive."""

    def __init__(self, store: Path, *, together: bool = False) -> None:
        """With ``together``, this process may hold several runs, and ask for them.

        No signal then stops one of them: `runner_pid` is None. Raises StoreError if the system has
        no such locks; Linux has.
        """
        self._path = store.with_name(store.name + "-alive")
        self._command = fcntl.F_SETLK
        if together:
            if not hasattr(fcntl, "F_OFD_SETLK"):
                raise StoreError("this system has no locks of open files", "use Linux")
            self._command = fcntl.F_OFD_SETLK

    @contextmanager
    def hold(self, run_id: int) -> Iterator[Turn]:
        """Hold the lock of a run; raises StoreError if another runner has it."""
        with self._open() as file:
            _insist(file, run_id, self._command)
            yield Turn(file, self._command)

    @contextmanager
    def launching(self, run_id: int) -> Iterator[Callable[[], bool]]:
        """Hold the lock to start the runner of a run. Raises StoreError.

        Yields a function that returns whether the runner holds its run by now.
        """
        with self._open() as file:
            _insist(file, _LAUNCH + run_id)
            _insist(file, run_id)
            _lock(file, fcntl.LOCK_UN, run_id)

            def is_held() -> bool:
                if not _lock(file, fcntl.LOCK_SH, run_id):
                    return True
                _lock(file, fcntl.LOCK_UN, run_id)
                return False

            yield is_held

    def _open(self) -> IO[str]:
        try:
            return open(self._path, "a+", opener=_open_private)
        except OSError as error:
            raise StoreError(f"store lock {self._path}: {error.strerror}") from error

    def is_alive(self, run_id: int) -> bool:
        """Return whether a runner holds this run; True if this user may not ask."""
        try:
            with self._path.open() as file:
                return not _lock(file, fcntl.LOCK_SH, run_id)
        except FileNotFoundError:
            return False
        except PermissionError:
            return True

    def runner_pid(self, run_id: int) -> int | None:
        """Return the process that holds this run; None if none is visible.

        The kernel gives the answer: the store's may be outdated or forged. Raises StoreError if
        only the store's owner may ask.
        """
        try:
            with self._path.open() as file:
                pid = _holder(file, run_id)
        except FileNotFoundError:
            return None
        except OSError as error:
            raise StoreError(f"store lock {self._path}: {error.strerror}") from error
        # 0: of another PID namespace; -1: no process, but an open file (F_OFD_SETLK).
        return pid if pid > 0 else None


def other_stores(own: Path) -> list[str]:
    """Return the stores that other runners of this machine write to, as far as /proc shows them.

    Runs of one store take turns; runs of two stores are not coordinated.
    """
    found = set()
    for file in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            words = file.read_bytes().split(b"\0")
        except OSError:  # it has ended, or is hidden
            continue
        if b"benchctl.engine" in words[1:-2]:
            found.add(os.fsdecode(words[words.index(b"benchctl.engine") + 1]))
    return sorted(found - {os.fspath(own.resolve())})


def _holder(file: IO[str], byte: int) -> int:
    """Return the process that has an exclusive lock on a byte; 0 if there is none."""
    lock = _FLOCK.unpack(fcntl.fcntl(file, fcntl.F_GETLK, _flock(fcntl.F_RDLCK, byte)))
    kind, pid = (lock[0], lock[4]) if _LINUX else (lock[3], lock[2])
    return 0 if kind == fcntl.F_UNLCK else int(pid)


def _insist(file: IO[str], byte: int, command: int = fcntl.F_SETLK) -> None:
    """Lock a byte, unless another runner has it; who only checks is waited for."""
    for tries in range(_MOST_TRIES):
        if _lock(file, fcntl.LOCK_EX, byte, command):
            return
        if tries >= _TRIES and _holder(file, byte):
            break
        time.sleep(_TRY_S)
    raise StoreError("this run is in progress", "wait until it ends")


def _open_private(path: str, flags: int) -> int:
    return os.open(path, flags, PRIVATE)


def _lock(file: IO[str], kind: int, byte: int, command: int = fcntl.F_SETLK) -> bool:
    """Lock or unlock a byte; False if another has it.

    ``kind`` is one of `fcntl.lockf`. The lock is the process's, or with ``F_OFD_SETLK`` the file's.
    """
    try:
        fcntl.fcntl(file, command, _flock(_KINDS[kind], byte))
    except (BlockingIOError, PermissionError):  # EAGAIN or EACCES, as the system likes
        return False
    return True


_KINDS = {
    fcntl.LOCK_EX: fcntl.F_WRLCK,
    fcntl.LOCK_SH: fcntl.F_RDLCK,
    fcntl.LOCK_UN: fcntl.F_UNLCK,
}


def _flock(kind: int, byte: int) -> bytes:
    """Return a struct flock of one byte."""
    whence = os.SEEK_SET
    return _FLOCK.pack(*((kind, whence, byte, 1, 0) if _LINUX else (byte, 1, 0, kind, whence, 0)))
