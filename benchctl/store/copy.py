"""Copies one run to a store of its own."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from pathlib import Path

from benchctl.store.database import connect, store_errors, transaction

_TRIALS = "SELECT id FROM trial WHERE run_id = ?"
_FLOWS = f"SELECT id FROM flow WHERE trial_id IN ({_TRIALS})"
_ROWS = {
    "run": "id = ?",
    "trial": "run_id = ?",
    "flow": f"trial_id IN ({_TRIALS})",
    "series": f"flow_id IN ({_FLOWS})",
    "sample": f"series_id IN (SELECT id FROM series WHERE flow_id IN ({_FLOWS}))",
    "figure": f"flow_id IN ({_FLOWS})",
    "event": f"flow_id IN ({_FLOWS})",
    "note": "run_id = ?",
}
"""The rows of a run in each table, parents before their children."""


def copy_run(path: Path, run_id: int, copy: Path) -> None:
    """Copy a run with all that belongs to it to a store that does not have it.

    Raises StoreError if either store fails.
    """
    with closing(connect(path)) as source, closing(connect(copy, write=True)) as target:
        with store_errors(path):
            source.execute("BEGIN")  # one state of a run that may still go on
            there = {row["name"] for row in source.execute("SELECT name FROM sqlite_master")}
        with store_errors(copy), transaction(target):
            for table, where in _ROWS.items():
                if table not in there:
                    continue  # of an earlier program
                names = ",".join(_columns(source, table) & _columns(target, table))
                with store_errors(path):
                    rows = source.execute(f"SELECT {names} FROM {table} WHERE {where}", (run_id,))
                marks = ",".join("?" * len(rows.description))
                target.executemany(f"INSERT INTO {table} ({names}) VALUES ({marks})", rows)


def _columns(connection: sqlite3.Connection, table: str) -> set[str]:
    return {row["name"] for row in connection.execute(f"PRAGMA table_info({table})")}
