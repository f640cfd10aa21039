"""Who measures now: locks that end with the process that holds them.

A file beside the store has a byte for each run, which its runner holds for as long as it lives, and
a byte for the turn: of several runners only the one that has it measures, so that no measurement
disturbs another. The kernel lets go of both however the runner ends (fcntl(2), record locks).

A process that opens the file again and closes it loses what it held: ask `is_alive` from others.
"""

from __future__ import annotations

import fcntl
import os
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO

from benchctl.errors import StoreError
from benchctl.store.database import PRIVATE

# Runs are numbered from 1.
_TURN = 0
# Who asks whether a run is alive holds its lock for an instant, which must not stop the runner.
_TRIES, _TRY_S = 20, 0.01


class Turn:
    """The turn to measure, as the runner of one run sees it."""

    def __init__(self, file: IO[str]) -> None:
        self._file = file

    def take(self) -> bool:
        """Take the turn; False while another runner has it."""
        return _lock(self._file, fcntl.LOCK_EX, _TURN)

    def give_back(self) -> None:
        """Let others measure."""
        fcntl.lockf(self._file, fcntl.LOCK_UN, 1, _TURN)


class Liveness:
    """Tells whether a run's runner is alive."""

    def __init__(self, store: Path) -> None:
        self._path = store.with_name(store.name + "-alive")

    @contextmanager
    def hold(self, run_id: int) -> Iterator[Turn]:
        """Hold the lock of a run; raises StoreError when another runner has it."""
        try:
            file = open(self._path, "a", opener=_open_private)  # noqa: SIM115
        except OSError as error:
            raise StoreError(f"store lock {self._path}: {error.strerror}") from error
        with file:
            for _ in range(_TRIES):
                if _lock(file, fcntl.LOCK_EX, run_id):
                    break
                time.sleep(_TRY_S)
            else:
                raise StoreError("this run is being measured right now", "wait for its end")
            yield Turn(file)

    def is_alive(self, run_id: int) -> bool:
        """Return whether a runner holds this run; a run is taken at its word by who may not ask."""
        try:
            with self._path.open() as file:
                return not _lock(file, fcntl.LOCK_SH, run_id)
        except FileNotFoundError:
            return False
        except PermissionError:
            return True


def _open_private(path: str, flags: int) -> int:
    return os.open(path, flags, PRIVATE)


def _lock(file: IO[str], kind: int, byte: int) -> bool:
    try:
        fcntl.lockf(file, kind | fcntl.LOCK_NB, 1, byte)
    except BlockingIOError:
        return False
    return True
