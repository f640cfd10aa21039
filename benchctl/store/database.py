"""Opens the store's file, and turns SQLite's errors into ours.

WAL lets readers read while the runner writes, and a killed writer loses at most what it had not
yet committed.
"""

from __future__ import annotations

import fcntl
import os
import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import platformdirs

from benchctl.errors import StoreError
from benchctl.store.schema import TABLES, VERSION

STORE_VARIABLE = "BENCHCTL_STORE"
# Longer than any batch takes to commit; shorter than a person's patience.
BUSY_TIMEOUT_S = 5.0


def default_path() -> Path:
    """Return where the store lies: ``BENCHCTL_STORE``, or the user's data directory."""
    named = os.environ.get(STORE_VARIABLE)
    return Path(named) if named else platformdirs.user_data_path("benchctl") / "runs.sqlite"


@contextmanager
def store_errors(path: Path) -> Iterator[None]:
    """Turn SQLite's errors about this file into StoreError."""
    try:
        yield
    except sqlite3.DatabaseError as error:
        text = str(error)
        if "locked" in text:
            hint = "another program holds it; wait, or name another store with --store"
        elif "full" in text:
            hint = "the disk is full; free some room, or name another store with --store"
        elif "not a database" in text or "malformed" in text:
            hint = "the file is damaged or no store; name another with --store"
        elif "readonly" in text or "unable to open" in text:
            hint = "check that the directory is there and yours to write"
        else:
            hint = ""
        raise StoreError(f"store {path}: {text}", hint) from error


def connect(path: Path, *, write: bool = False) -> sqlite3.Connection:
    """Open the store; with ``write``, make it where it is missing.

    Raises StoreError when it is missing, locked, damaged, or of a newer version.
    """
    if write:
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise StoreError(f"store {path}: {error.strerror}") from error
    elif not path.exists():
        raise StoreError(
            f"store {path}: nothing was measured yet", "run a profile, or name a store with --store"
        )
    with store_errors(path):
        connection = sqlite3.connect(path, timeout=BUSY_TIMEOUT_S, isolation_level=None)
        connection.row_factory = sqlite3.Row
        connection.execute("PRAGMA foreign_keys = ON")
        version = connection.execute("PRAGMA user_version").fetchone()[0]
        if version > VERSION:
            raise StoreError(
                f"store {path}: written by a newer benchctl (format {version}, here {VERSION})",
                "update benchctl, or name another store with --store",
            )
        if version == 0 and write:
            _create(connection)
        elif version == 0:
            raise StoreError(f"store {path}: not a store of benchctl", "name another with --store")
        # NORMAL: a commit survives the death of the process; only a power cut may undo the last.
        connection.execute("PRAGMA synchronous = NORMAL")
    return connection


def _create(connection: sqlite3.Connection) -> None:
    connection.execute("PRAGMA journal_mode = WAL")
    with transaction(connection):
        # Two first runs at the same moment: the second finds the tables there.
        if connection.execute("PRAGMA user_version").fetchone()[0] == 0:
            for statement in TABLES.split(";\n"):
                connection.execute(statement)
            connection.execute(f"PRAGMA user_version = {VERSION}")


@contextmanager
def transaction(connection: sqlite3.Connection) -> Iterator[None]:
    """Run a block as one transaction that takes the write lock at once."""
    connection.execute("BEGIN IMMEDIATE")
    try:
        yield
    except BaseException:
        connection.execute("ROLLBACK")
        raise
    connection.execute("COMMIT")


class Liveness:
    """Tells whether a run's runner is alive, by locks that end with the process.

    The runner of run N holds byte N of a lock file beside the store. The kernel lets go of it
    however the runner dies (fcntl(2), record locks).
    """

    def __init__(self, store: Path) -> None:
        self._path = store.with_name(store.name + "-alive")

    @contextmanager
    def hold(self, run_id: int) -> Iterator[None]:
        """Hold the lock of a run; raises StoreError when another runner has it."""
        with self._path.open("a") as file:
            try:
                fcntl.lockf(file, fcntl.LOCK_EX | fcntl.LOCK_NB, 1, run_id)
            except BlockingIOError:
                raise StoreError("this run is being measured right now") from None
            yield

    def is_alive(self, run_id: int) -> bool:
        """Return whether a runner holds this run. Never true in the runner's own process."""
        try:
            with self._path.open("r+") as file:
                fcntl.lockf(file, fcntl.LOCK_EX | fcntl.LOCK_NB, 1, run_id)
        except FileNotFoundError:
            return False
        except BlockingIOError:
            return True
        return False
