"""Reads what is readable of a damaged store: counts it, and copies it to a new store.

Tables are read by id, skipping what is unreadable. A row counts as readable if its values are
valid; a flipped bit inside a number or a text is not detected.
"""

from __future__ import annotations

import sqlite3
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from contextlib import closing
from pathlib import Path
from typing import Any

from msgspec import Struct, field

from benchctl.errors import StoreDamagedError, StoreError, UsageError
from benchctl.run.codec import convert, from_json, from_row
from benchctl.run.record import FlowEvent, Note, RecordedFlow, Run, Trial
from benchctl.store.database import connect, store_errors, transaction
from benchctl.store.read import decode_figure, decode_sample

# A page holds some dozens of rows. After this many unreadable ids in a row, the steps double, so
# that a whole lost table takes no time.
_ONE_BY_ONE = 2000
_LAST_ID = 2**62
_PROBLEMS = 20


def _check_series(row: sqlite3.Row) -> None:
    try:
        from_json(row["metrics"], tuple[str, ...])
        convert((row["stream"], row["role"], row["direction"]), tuple[int, str, str])
    except ValueError:
        raise ValueError(f"series {row['id']}") from None


def _check_figure(row: sqlite3.Row) -> None:
    _, figure = decode_figure(row)
    if abs(figure.value) > 1e100:  # its square overflows, and so would every statistic
        raise ValueError(f"flow {row['flow_id']}: {figure.value}")


class _Table(Struct, frozen=True):
    """A table: the column and the table of its parent, and how a row is checked."""

    name: str
    parent: tuple[str, str] | None
    check: Callable[[sqlite3.Row], object]


_TABLES = (
    _Table("run", None, lambda row: from_row(row, Run)),
    _Table("host", ("run_id", "run"), lambda row: from_json(row["facts"], dict[str, Any])),
    _Table("trial", ("run_id", "run"), lambda row: from_row(row, Trial)),
    _Table("flow", ("trial_id", "trial"), lambda row: from_row(row, RecordedFlow)),
    _Table("series", ("flow_id", "flow"), _check_series),
    _Table("sample", ("series_id", "series"), decode_sample),
    _Table("figure", ("flow_id", "flow"), _check_figure),
    _Table("event", ("flow_id", "flow"), lambda row: from_row(row, FlowEvent)),
    _Table("note", ("run_id", "run"), lambda row: from_row(row, Note)),
)
_LATER = ("event", "host")
"""Tables that stores of earlier programs lack."""
_PARENTS = {table.parent[1] for table in _TABLES if table.parent is not None}
_SAMPLES = (
    "SELECT sample.*, flow_id, role, stream, direction, metrics"
    " FROM sample JOIN series ON series.id = series_id"
)


class Findings(Struct):
    """The readable content of a store, by table, and the errors in the rest."""

    readable: Counter[str] = field(default_factory=Counter)
    problems: list[str] = []

    def text(self) -> str:
        """Write how much is readable: ``3 runs, 12 trials, 24 flows, 960 samples``."""
        tables = ("run", "trial", "flow", "sample")
        return ", ".join(
            f"{self.readable[name]:,} {name}{'' if self.readable[name] == 1 else 's'}"
            for name in tables
        )


def check(path: Path) -> Findings:
    """Read a whole store. Raises StoreError if nothing of it can be opened."""
    with closing(connect(path)) as connection:
        return _walk(connection, lambda *_: None)


def salvage(path: Path, copy: Path) -> Findings:
    """Copy the readable rows to a new store. Raises StoreError, UsageError if the file exists."""
    if copy.exists():
        raise UsageError(f"{copy} already exists", "choose a new file name")
    with closing(connect(path)) as connection, closing(connect(copy, write=True)) as target:
        columns = {
            table.name: {row["name"] for row in target.execute(f"PRAGMA table_info({table.name})")}
            for table in _TABLES
        }

        def write(table: str, row: sqlite3.Row) -> None:
            values = {name: row[name] for name in row.keys() if name in columns[table]}  # noqa: SIM118
            marks = ",".join("?" * len(values))
            target.execute(
                f"INSERT INTO {table} ({','.join(values)}) VALUES ({marks})", tuple(values.values())
            )

        with store_errors(copy), transaction(target):
            return _walk(connection, write)


def diagnose(path: Path) -> StoreError | None:
    """Return the error of a damaged store, with how much is readable; None if it is intact."""
    try:
        found = check(path)
    except StoreError as error:
        return error
    if not found.problems:
        return None
    text = f"{found.text()}; benchctl store salvage FILE copies it to a new store"
    return StoreDamagedError(
        f"store {path}: damaged: {found.problems[0]}", f"what could be read: {text}"
    )


def _walk(connection: sqlite3.Connection, take: Callable[[str, sqlite3.Row], None]) -> Findings:
    """Pass every readable row, and its parent, to ``take``; parents first."""
    found = Findings()
    kept: dict[str, set[int]] = {}
    axes: dict[int, Mapping[str, Any]] = {}
    there = {row["name"] for row in connection.execute("SELECT name FROM sqlite_master")}
    for table in _TABLES:
        kept[table.name] = set()
        if table.name in _LATER and table.name not in there:
            continue
        for row in _rows(connection, table, kept, found):
            try:
                table.check(row)
                if table.name == "run":
                    axes[row["id"]] = _axes(from_row(row, Run))
                if table.name == "trial":
                    _check_point(from_row(row, Trial), axes.get(row["run_id"], {}))
                if table.parent is not None and row[table.parent[0]] not in kept[table.parent[1]]:
                    raise ValueError(f"{table.name} {_id(row)}: its {table.parent[1]} is lost")
                take(table.name, row)
            except (ValueError, IndexError, KeyError, sqlite3.IntegrityError) as error:
                _note(found, str(error))
                continue
            found.readable[table.name] += 1
            if table.name in _PARENTS:
                kept[table.name].add(row["id"])
    for problem in _integrity(connection):
        _note(found, problem)
    return found


def _axes(run: Run) -> Mapping[str, Any]:
    """Return the values of each axis; None for the searched one, which has more with each try."""
    searched = run.settings.search.axis if run.settings.search else ""
    return {axis: None if axis == searched else values for axis, values in run.values.items()}


def _check_point(trial: Trial, axes: Mapping[str, Any]) -> None:
    for axis, value in trial.point.items():
        known = axes.get(axis, ())
        if axes and known is not None and value not in known:
            raise ValueError(f"trial {trial.id}: point")


def _id(row: sqlite3.Row) -> object:
    return row["id"] if "id" in row.keys() else row["flow_id"]  # noqa: SIM118


def _note(found: Findings, problem: str) -> None:
    if len(found.problems) < _PROBLEMS:
        found.problems.append(problem)


def _rows(
    connection: sqlite3.Connection, table: _Table, kept: Mapping[str, set[int]], found: Findings
) -> Iterator[sqlite3.Row]:
    if table.name == "figure":  # without ids
        for flow in sorted(kept["flow"]):
            try:
                yield from connection.execute("SELECT * FROM figure WHERE flow_id = ?", (flow,))
            except (sqlite3.DatabaseError, UnicodeDecodeError) as error:
                _note(found, f"figures of flow {flow}: {error}")
        return
    select = _SAMPLES if table.name == "sample" else f"SELECT * FROM {table.name}"
    query = f"{select} WHERE {table.name}.id > ? ORDER BY {table.name}.id"
    after, failed = 0, 0
    while after < _LAST_ID:
        try:
            for row in connection.execute(query, (after,)):
                after, failed = row["id"], 0
                yield row
        except (sqlite3.DatabaseError, UnicodeDecodeError) as error:
            if not failed:
                _note(found, f"{table.name} after {after}: {error}")
            failed += 1
            after += 1 if failed < _ONE_BY_ONE else 2 ** min(failed - _ONE_BY_ONE, 62)
        else:
            return


def _integrity(connection: sqlite3.Connection) -> Iterator[str]:
    try:
        for (text,) in connection.execute(f"PRAGMA integrity_check({_PROBLEMS})"):
            if text != "ok":
                yield from str(text).splitlines()
    except (sqlite3.DatabaseError, UnicodeDecodeError) as error:
        yield str(error)
