"""Copies one run from a store to another."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from pathlib import Path

from benchctl.errors import StoreError
from benchctl.store.database import connect, damaged, store_errors, transaction

_TRIALS = "SELECT id FROM trial WHERE run_id = :run"
_FLOWS = f"SELECT id FROM flow WHERE trial_id IN ({_TRIALS})"
ROWS = {
    "run": "id = :run",
    "host": "run_id = :run",
    "trial": "run_id = :run",
    "flow": f"trial_id IN ({_TRIALS})",
    "series": f"flow_id IN ({_FLOWS})",
    "sample": f"series_id IN (SELECT id FROM series WHERE flow_id IN ({_FLOWS}))",
    "figure": f"flow_id IN ({_FLOWS})",
    "event": f"flow_id IN ({_FLOWS})",
    "note": "run_id = :run",
}
"""The rows of a run in each table, parents before their children."""


class AlreadyThereError(StoreError):
    """The other store has a run of this name, or of the same imported files: that ``run``."""

    def __init__(self, run: str) -> None:
        super().__init__(f"is there already: {run}")
        self.run = run


def copy_run(
    path: Path, run_id: int, copy: Path, *, new_files: bool = False, samples: bool = True
) -> int:
    """Copy a run with all that belongs to it to a store that does not have it.

    Packets stay where they are; what was found in them is copied. Without ``samples`` those stay,
    too.

    All or nothing. Returns its id there. Raises StoreError if either store fails, and
    AlreadyThereError, with ``new_files`` also if another run there was imported from one of its
    files: another program may have brought them since somebody looked.
    """
    with closing(connect(path)) as source, closing(connect(copy, write=True)) as target:
        with store_errors(path):
            source.execute("BEGIN")  # one state of a run that may still go on
            there = {row["name"] for row in source.execute("SELECT name FROM sqlite_master")}
        moved: dict[str, int] = {}
        with store_errors(copy), transaction(target):
            if there_already := _find(source, target, run_id, new_files=new_files):
                raise AlreadyThereError(there_already)
            for table, where in ROWS.items():
                if table not in there:
                    continue  # of an earlier program
                if table == "sample" and not samples:
                    continue
                names = sorted(_columns(source, table) & _columns(target, table))
                with store_errors(path):
                    if "id" in names:
                        moved[table] = _shift(source, target, table, where, run_id)
                    values = ",".join(_moved(name, table, moved) for name in names)
                    rows = source.execute(
                        f"SELECT {values} FROM {table} WHERE {where}", {"run": run_id}
                    )
                target.executemany(
                    f"INSERT INTO {table} ({','.join(names)}) VALUES ({_marks(len(names))})", rows
                )
    return run_id + moved["run"]


def _find(
    source: sqlite3.Connection, target: sqlite3.Connection, run_id: int, *, new_files: bool
) -> str:
    """Return the name of the run in the target that is this one; empty if there is none."""
    queries = [("SELECT name FROM run WHERE id = ?", "SELECT name FROM run WHERE name = ?")]
    if new_files:
        queries.append((
            "SELECT DISTINCT file_sha256 FROM trial WHERE run_id = ? AND file_sha256 != ''",
            "SELECT name FROM run JOIN trial ON run.id = run_id WHERE file_sha256 = ?",
        ))  # fmt: skip
    for own, other in queries:
        for (text,) in source.execute(own, (run_id,)):
            for (name,) in target.execute(other, (text,)):
                return str(name)
    return ""


def check_tables(path: Path) -> None:
    """Check that a store of others holds its rows itself: a view may compute them without end.

    Raises StoreError.
    """
    with closing(connect(path)) as source, store_errors(path):
        rows = source.execute("SELECT name, type, sql FROM sqlite_master").fetchall()
        for row in rows:
            plain = row["type"] == "table" and not str(row["sql"]).startswith("CREATE VIRTUAL")
            if row["name"] in ROWS and not plain:
                raise damaged(path, f"{row['name']} is no table")


def _shift(
    source: sqlite3.Connection, target: sqlite3.Connection, table: str, where: str, run_id: int
) -> int:
    """Return what to add to the ids of a run's rows: they follow those of the target."""
    query = f"SELECT min(id) FROM {table} WHERE {where}"
    (first,) = source.execute(query, {"run": run_id}).fetchone()
    (last,) = target.execute(f"SELECT coalesce(max(id), 0) FROM {table}").fetchone()
    return int(last + 1 - (first or 0))


def _moved(name: str, table: str, moved: dict[str, int]) -> str:
    """Return a column as SQL: an id, or the id of a parent, with its shift."""
    parent = table if name == "id" else name.removesuffix("_id")
    return f"{name} + {moved[parent]}" if parent in moved and name.endswith("id") else name


def _marks(count: int) -> str:
    return ",".join("?" * count)


def _columns(connection: sqlite3.Connection, table: str) -> set[str]:
    return {row["name"] for row in connection.execute(f"PRAGMA table_info({table})")}
