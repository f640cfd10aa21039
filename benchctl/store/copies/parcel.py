"""One run in the form that an archive keeps: a small record, and its samples as arrays.

The record is a store of this run without its samples.
"""

from __future__ import annotations

import hashlib
import sqlite3
import sys
import zlib
from array import array
from collections.abc import Iterable, Iterator
from contextlib import closing
from itertools import accumulate
from operator import sub
from pathlib import Path
from typing import Any

import msgspec
from msgspec import Struct

from benchctl.errors import StoreDamagedError
from benchctl.run.codec import from_json
from benchctl.store.copies.copy import ROWS, check_tables, copy_run
from benchctl.store.database import connect, damaged, store_errors, transaction
from benchctl.store.schema import ADDED

# A reader of one metric of some seconds takes little more than it needs.
MOST_SAMPLES = 10_000
# A record of more was not written by benchctl: a mesh of 200 hosts has 160 MB.
MOST_RECORD_BYTES = 2 << 30
_LATER = {(table, column) for table, column, _ in ADDED}
_ADDED_TABLES = ("host",)


class SeriesPiece(Struct, frozen=True):
    """Samples of one series in their order, at most `MOST_SAMPLES`, a column each.

    ``series`` is its id in the record, ``number`` counts the pieces of a series from 0. ``steps``
    are the ids of the samples, each less the one before; the first counts from 0. ``omitted`` is
    empty if none is. ``values`` are all of the first of ``metrics``, then of the second, and so on.
    """

    series: int
    number: int
    flow_id: int
    role: str
    stream: int
    direction: str
    metrics: tuple[str, ...]
    steps: array[int]
    starts_s: array[float]
    ends_s: array[float]
    arrived_s: array[float]
    omitted: list[bool]
    values: array[float]


class _Samples:
    """The samples of a run in a store that may have others, by ids that count from 1 in the run.

    They are of one state of the store, and of no later series than ``series``. Methods raise
    StoreError.
    """

    def __init__(self, path: Path, run_id: int, series: int) -> None:
        self._path = path
        self._connection = connect(path)
        self._connection.row_factory = None
        with store_errors(path):
            self._connection.execute("BEGIN")
            (first,) = self._connection.execute(
                f"SELECT min(id) FROM series WHERE {ROWS['series']}", {"run": run_id}
            ).fetchone()
            self._before_series = (first or 1) - 1
            of_run = f"{ROWS['series']} AND id <= :last"
            self._extent = self._connection.execute(
                "SELECT min((SELECT min(id) FROM sample WHERE series_id = series.id)),"
                " max((SELECT max(id) FROM sample WHERE series_id = series.id))"
                f" FROM series WHERE {of_run}",
                {"run": run_id, "last": self._before_series + series},
            ).fetchone()
        self._of_run = f"series_id IN (SELECT id FROM series WHERE {of_run})"
        self._known = {
            "run": run_id, "last": self._before_series + series, "series": self._before_series,
            "sample": (self._extent[0] or 1) - 1,
        }  # fmt: skip

    def close(self) -> None:
        self._connection.close()

    def count(self) -> int:
        """Return how many there are."""
        query = f"SELECT count(*) FROM sample WHERE {self._of_run}"
        with store_errors(self._path):
            found: int = self._connection.execute(query, self._known).fetchone()[0]
        return found

    def all(self) -> Iterator[list[tuple[Any, ...]]]:
        """Yield the rows of `_SAMPLE`, in the order of arrival."""
        first, last = self._extent
        # By id and not by the index of series, as in `benchctl.store.bulk`.
        return self._rows(
            f"SELECT {_SAMPLE} FROM sample NOT INDEXED WHERE id >= :begin AND id <= :end"
            f" AND {self._of_run} ORDER BY id",
            {**self._known, "begin": first or 0, "end": last or 0},
        )

    def of_series(self, series: int) -> Iterator[list[tuple[Any, ...]]]:
        """Yield the rows of one series, at most `MOST_SAMPLES` at once."""
        return self._rows(
            f"SELECT {_SAMPLE} FROM sample WHERE series_id = :series + :number ORDER BY id",
            {**self._known, "number": series},
        )

    def _rows(self, query: str, values: dict[str, int]) -> Iterator[list[tuple[Any, ...]]]:
        with store_errors(self._path):
            cursor = self._connection.execute(query, values)
        while True:
            with store_errors(self._path):
                rows = cursor.fetchmany(MOST_SAMPLES)
            if not rows:
                return
            yield rows


_SAMPLE = "arrived_s, data, end_s, id - :sample, omitted, series_id - :series, start_s"


class Parcel:
    """A run of a store: its copy without samples, at ``path``, and its samples there.

    Methods raise StoreError.
    """

    def __init__(self, store: Path, run_id: int, folder: Path) -> None:
        """Copy a run into an empty folder. Raises StoreError."""
        self.path = folder / "record.sqlite"
        self._store = store
        copy_run(store, run_id, self.path, samples=False)
        with closing(connect(self.path)) as connection, store_errors(self.path):
            self._series = connection.execute(
                "SELECT id, flow_id, role, stream, direction, metrics FROM series ORDER BY id"
            ).fetchall()
            self._flows, self._notes = (
                connection.execute(f"SELECT count(*) FROM {table}").fetchone()[0]
                for table in ("flow", "note")
            )
        # It may be resumed from here on: only what the copy knows belongs to it.
        last = self._series[-1]["id"] if self._series else 0
        self._samples = _Samples(store, run_id, last)

    def close(self) -> None:
        """Close the store."""
        self._samples.close()

    def sha256(self) -> bytes:
        """Return the hash of all rows of the run, the same in each store that has it."""
        return _sha256(self.path, self._samples)

    def counts(self) -> tuple[int, int, int]:
        """Return how many attempts of flows, samples and notes it has: these only become more."""
        return self._flows, self._samples.count(), self._notes

    def pieces(self) -> Iterator[SeriesPiece]:
        """Yield all samples, one series after another."""
        for series in self._series:
            before = 0
            for number, rows in enumerate(self._samples.of_series(series["id"])):
                try:
                    yield _piece(series, number, before, rows)
                except (TypeError, ValueError) as error:
                    raise damaged(self._store, "samples of a flow") from error
                before = rows[-1][_ID]

    def record(self) -> bytes:
        """Return the run without its samples, as a compressed store."""
        return zlib.compress(self.path.read_bytes())


_ID = 3


def _piece(row: sqlite3.Row, number: int, before: int, rows: list[tuple[Any, ...]]) -> SeriesPiece:
    """Return a piece of rows. Raises ValueError, TypeError for invalid data."""
    arrived_s, data, ends_s, ids, omitted, _, starts_s = zip(*rows, strict=True)
    metrics = from_json(row["metrics"], tuple[str, ...])
    values = array("d")
    values.frombytes(_native(b"".join(data)))
    if len(values) != len(rows) * len(metrics):
        raise ValueError("a sample has too few values, or too many")
    by_metric = array("d")
    for place in range(len(metrics)):
        by_metric.extend(values[place :: len(metrics)])
    return SeriesPiece(
        row["id"], number, row["flow_id"], row["role"], row["stream"], row["direction"], metrics,
        array("i", map(sub, ids, (before, *ids))),
        array("d", starts_s), array("d", ends_s), array("d", arrived_s),
        [*map(bool, omitted)] if any(omitted) else [], by_metric,
    )  # fmt: skip


def _native(data: bytes) -> bytes:
    """Return packed floats in this machine's order of bytes, or back."""
    if sys.byteorder == "little":
        return data
    swapped = array("d", data)
    swapped.byteswap()
    return swapped.tobytes()


def restore(record: bytes, pieces: Iterable[SeriesPiece], path: Path) -> None:
    """Write a run to a store of its own, which is not there yet.

    Raises StoreError, and StoreDamagedError for what no parcel has.
    """
    _unpack(record, path)
    check_tables(path)
    with (
        closing(connect(path, write=True)) as connection,
        store_errors(path),
        transaction(connection),
    ):
        if len(connection.execute("SELECT id FROM run").fetchall()) != 1:
            raise damaged(path, "a record has one run")
        ends: dict[int, int] = {}
        for piece in pieces:
            ids = [*accumulate(piece.steps, initial=ends.get(piece.series, 0))][1:]
            ends[piece.series] = ids[-1] if ids else 0
            try:
                connection.executemany(_INSERT, zip(*_columns(piece, ids), strict=True))
            except (ValueError, sqlite3.IntegrityError) as error:
                raise damaged(path, f"samples of series {piece.series}") from error


_INSERT = (
    "INSERT INTO sample (id, series_id, start_s, end_s, arrived_s, omitted, data)"
    " VALUES (?,?,?,?,?,?,?)"
)


def _columns(piece: SeriesPiece, ids: list[int]) -> Iterator[Iterable[object]]:
    count, width = len(ids), len(piece.metrics)
    values = array("d", bytes(8 * count * width))
    for place in range(width):
        values[place::width] = piece.values[place * count : (place + 1) * count]
    packed = _native(values.tobytes())
    yield ids
    yield [piece.series] * count
    yield from (piece.starts_s, piece.ends_s, piece.arrived_s)
    yield map(int, piece.omitted) if piece.omitted else [0] * count
    yield [packed[at : at + 8 * width] for at in range(0, 8 * width * count, 8 * width)]


def _unpack(record: bytes, path: Path) -> None:
    opened = zlib.decompressobj()
    try:
        content = opened.decompress(record, MOST_RECORD_BYTES)
    except zlib.error as error:
        raise StoreDamagedError(f"a record of a run: {error}") from error
    if not opened.eof:
        raise StoreDamagedError("a record of a run: it is cut off, or too large")
    path.write_bytes(content)


def content_sha256(path: Path) -> bytes:
    """Return the hash of all rows of a store that has one run. Raises StoreError."""
    with closing(connect(path)) as connection, store_errors(path):
        run_id, last = connection.execute(
            "SELECT id, (SELECT max(id) FROM series) FROM run"
        ).fetchone()
    with closing(_Samples(path, run_id, last or 0)) as samples:
        return _sha256(path, samples)


def _sha256(path: Path, samples: _Samples) -> bytes:
    """Return the hash of all rows of a run, whose samples may be elsewhere. Raises StoreError.

    A column that was added later counts only if it is not its default, and a table only if it has
    rows: the hash is the same for every version of benchctl.
    """
    found = hashlib.sha256()
    encode = msgspec.msgpack.Encoder().encode
    with closing(connect(path)) as connection, store_errors(path):
        there = {row["name"] for row in connection.execute("SELECT name FROM sqlite_master")}
        for table in ROWS:
            if table in _ADDED_TABLES and (
                table not in there or not connection.execute(f"SELECT 1 FROM {table}").fetchone()
            ):
                continue
            found.update(encode(table))
            if table == "sample":
                for batch in samples.all():
                    found.update(b"".join(map(encode, batch)))
                continue
            key = "flow_id, direction, metric" if table == "figure" else "id"
            usual = dict(
                connection.execute("SELECT name, dflt_value FROM pragma_table_info(?)", (table,))
            )
            later = {
                column: connection.execute(f"SELECT {usual[column] or 'NULL'}").fetchone()[0]
                for of_table, column in sorted(_LATER)
                if of_table == table
            }
            first = sorted(usual.keys() - later)
            for row in connection.execute(f"SELECT * FROM {table} ORDER BY {key}"):
                other = {name: row[name] for name in later if row[name] != later[name]}
                found.update(encode(([row[name] for name in first], other)))
    return found.digest()
