"""Opens the store's file, creates it if it is missing, and converts SQLite's errors to ours.

WAL lets readers read while the runner writes. A killed writer loses at most what it had not
committed.
"""

from __future__ import annotations

import os
import sqlite3
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path

from benchctl.errors import GoneError, NoStoreError, StoreBusyError, StoreDamagedError, StoreError
from benchctl.run.status import Status
from benchctl.store.schema import ADDED, TABLES, VERSION

# Longer than any batch takes to commit, and short enough for a user to wait.
BUSY_TIMEOUT_S = 5.0
_WAL_RETRY_S = 0.01
_LONGEST_TOLD = 200
# How every file of SQLite begins (sqlite.org/fileformat.html, 1.3).
_HEADER = b"SQLite format 3\0"
PRIVATE = 0o600
"""The mode of a store: it holds commands, addresses and the facts of hosts."""


@contextmanager
def store_errors(path: Path) -> Iterator[None]:
    """Convert SQLite's errors about this file to StoreError."""
    try:
        yield
    except sqlite3.ProgrammingError:
        raise  # a bug of ours
    except UnicodeDecodeError as error:  # SQLite quotes the damaged text in its message
        raise damaged(path, "a name or a statement in it is no text") from error
    except sqlite3.DatabaseError as error:
        # The low byte is the kind (sqlite.org/rescode.html); the module's own errors have none.
        code = getattr(error, "sqlite_errorcode", None)
        kind = None if code is None else code & 0xFF
        # SQLite may quote a whole statement of a damaged schema.
        said = " ".join(str(error).split())[:_LONGEST_TOLD]
        text = f"store {path}: {said}"
        if kind in (sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED):
            hint = "another program has locked it; wait, or choose another store with --store"
            raise StoreBusyError(text, hint) from error
        if code == sqlite3.SQLITE_CONSTRAINT_FOREIGNKEY:
            raise run_gone(path) from error
        if kind == sqlite3.SQLITE_NOTADB and not _is_database(path):
            raise _no_store(path) from error
        if kind in (sqlite3.SQLITE_NOTADB, sqlite3.SQLITE_ERROR):
            hint = "the file is damaged or not a store; choose another with --store"
            raise StoreDamagedError(text, hint) from error
        if kind in (sqlite3.SQLITE_CORRUPT, None):
            raise damaged(path, said) from error
        raise StoreError(text, _HINTS.get(kind, "")) from error


_HINTS = {
    sqlite3.SQLITE_FULL: "the disk is full; free some space, or choose another store with --store",
    # SQLite says this, too, where its shared memory file finds no room.
    sqlite3.SQLITE_IOERR: "see whether the disk is full, or choose another store with --store",
    sqlite3.SQLITE_READONLY: "check that the directory exists and is writable",
    sqlite3.SQLITE_CANTOPEN: "check that the directory exists and is writable",
}


def run_gone(path: Path) -> GoneError:
    """Return the error of a run that is not in the store any more."""
    return GoneError(f"store {path}: the run was deleted", "benchctl runs lists those there are")


def file_of(path: Path) -> tuple[int, int]:
    """Return which file a store is. Raises StoreError if there is none."""
    _check_is_there(path)
    found = path.stat()
    return found.st_dev, found.st_ino


def damaged(path: Path, what: str) -> StoreDamagedError:
    """Return the error of a store that contains invalid data."""
    hint = "benchctl store check shows what can be read; benchctl store salvage copies it"
    return StoreDamagedError(f"store {path}: damaged: {what}", hint)


def connect(path: Path, *, write: bool = False) -> sqlite3.Connection:
    """Open the store; with ``write``, create it if it is missing.

    Raises NoStoreError if it is missing or no store, StoreError if it is locked, damaged, or of a
    newer version.
    """
    try:
        is_directory = path.is_dir()
    except OSError as error:  # a directory on the way may not be entered
        raise StoreError(f"store {path}: {error.strerror}") from error
    if is_directory:
        hint = f"name a file in it: --store {path / 'runs.sqlite'}"
        raise NoStoreError(f"store {path}: this is a directory", hint)
    if write:
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise StoreError(f"store {path}: {error.strerror}") from error
        _make(path)
    else:
        _check_is_there(path)
    address = f"{path.absolute().as_uri()}?{'mode=rw' if write else _way_to_read(path)}"
    with store_errors(path):
        connection = sqlite3.connect(
            address, uri=True, timeout=BUSY_TIMEOUT_S, isolation_level=None
        )
        try:
            _prepare(connection, path, write)
        except BaseException:
            connection.close()
            raise
    return connection


def _make(path: Path) -> None:
    """Create an empty file for its owner alone; SQLite gives its mode to the files beside it."""
    try:
        file = os.open(path, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, PRIVATE)
    except OSError:
        return  # it exists, or SQLite will report the error
    os.close(file)


def _way_to_read(path: Path) -> str:
    """Return how SQLite opens a store to read it (sqlite.org/uri.html, sqlite.org/wal.html).

    WAL writes an index beside the store even for a reader. If this user may not write, the index of
    the current writer is used, and a store without a writer needs none. Raises StoreError if the
    index is missing but the log exists, as after a copy: the log would be ignored.
    """
    if os.access(path, os.W_OK) and os.access(path.parent, os.W_OK):
        return "mode=rw"
    log, index = (path.with_name(path.name + ending) for ending in ("-wal", "-shm"))
    if index.exists():
        return "mode=ro"
    if log.exists() and log.stat().st_size:
        raise StoreError(
            f"store {path}: was not closed, and {log.name} holds the latest data",
            "copy both files to a directory that you can write, and read the copy",
        )
    return "mode=ro&immutable=1"


def _check_is_there(path: Path) -> None:
    try:
        path.stat()
    except FileNotFoundError:
        raise NoStoreError(
            f"store {path}: there are no runs yet", "run a profile, or choose a store with --store"
        ) from None
    except OSError as error:
        raise StoreError(f"store {path}: {error.strerror}") from error


def _is_database(path: Path) -> bool:
    with path.open("rb") as file:
        return file.read(len(_HEADER)) == _HEADER


def _prepare(connection: sqlite3.Connection, path: Path, write: bool) -> None:
    connection.row_factory = sqlite3.Row
    connection.execute("PRAGMA foreign_keys = ON")
    if write:
        # The lock is taken only if something is missing: another program may hold it long.
        if _version(connection, path) == 0 or _missing(connection):
            with transaction(connection):
                if _version(connection, path) == 0:  # nobody has made it meanwhile
                    if connection.execute("SELECT 1 FROM sqlite_master").fetchone():
                        raise _no_store(path)
                    connection.execute(f"PRAGMA user_version = {VERSION}")
                for statement in _missing(connection):
                    connection.execute(statement)
        _use_wal(connection)
        for table in ("run", "trial", "flow"):
            connection.execute(_STATES.format(table=table))
    elif _version(connection, path) == 0:
        raise _no_store(path)
    # NORMAL: a commit survives the death of the process; only a power cut may undo the last.
    connection.execute("PRAGMA synchronous = NORMAL")


_ALLOWED = (f"'{a} {b}'" for a in Status for b in Status if a is b or a.may_become(b))
_STATES = f"""
CREATE TEMP TRIGGER states_of_{{table}} BEFORE UPDATE OF status ON main.{{table}}
WHEN OLD.status || ' ' || NEW.status NOT IN ({", ".join(_ALLOWED)})
BEGIN SELECT RAISE(ABORT, 'a state of a {{table}} that may not follow'); END
"""
"""Of this connection: no state in the store becomes one that `benchctl.run.status` forbids."""


def _version(connection: sqlite3.Connection, path: Path) -> int:
    version: int = connection.execute("PRAGMA user_version").fetchone()[0]
    if version > VERSION:
        raise StoreError(
            f"store {path}: written by a newer benchctl (format {version}, here {VERSION})",
            "update benchctl, or choose another store with --store",
        )
    return version


def _missing(connection: sqlite3.Connection) -> list[str]:
    """Return the statements that create what a store lacks: everything of a new one."""
    there = {row["name"] for row in connection.execute("SELECT name FROM sqlite_master")}
    statements = []
    for table, column, kind in ADDED:
        columns = {row["name"] for row in connection.execute(f"PRAGMA table_info({table})")}
        if table in there and column not in columns:
            statements.append(f"ALTER TABLE {table} ADD COLUMN {column} {kind}")
    # After the columns, of which there may be indexes.
    made = [
        statement for statement in TABLES.strip().split(";\n") if statement.split()[2] not in there
    ]
    return statements + made


def _use_wal(connection: sqlite3.Connection) -> None:
    """Choose WAL, which the file then keeps; only the first call changes anything."""
    deadline = time.monotonic() + BUSY_TIMEOUT_S
    while True:
        try:
            connection.execute("PRAGMA journal_mode = WAL")
        except sqlite3.OperationalError:
            # SQLite does not wait for this lock: another process is opening the file.
            if time.monotonic() > deadline:
                raise
            time.sleep(_WAL_RETRY_S)
        else:
            return


def _no_store(path: Path) -> NoStoreError:
    return NoStoreError(f"store {path}: not a store of benchctl", "name another with --store")


@contextmanager
def transaction(connection: sqlite3.Connection) -> Iterator[None]:
    """Run a block as one transaction that takes the write lock at once."""
    connection.execute("BEGIN IMMEDIATE")
    try:
        yield
        connection.execute("COMMIT")
    except BaseException:
        # After some errors, such as a full disk, SQLite has rolled back by itself.
        if connection.in_transaction:
            connection.execute("ROLLBACK")
        raise


@contextmanager
def writing(path: Path) -> Iterator[sqlite3.Connection]:
    """Open the store for one transaction; raises StoreError."""
    with (
        store_errors(path),
        closing(connect(path, write=True)) as connection,
        transaction(connection),
    ):
        yield connection
