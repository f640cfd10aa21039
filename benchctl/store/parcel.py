"""One run as it is kept outside a store: a record of a few kilobytes, and its samples as arrays.

The record is a store with the run and all that belongs to it, but its samples.
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
from benchctl.store.copy import ROWS, check_tables, copy_run
from benchctl.store.database import connect, damaged, store_errors, transaction
from benchctl.store.schema import ADDED

# A reader of one metric of some seconds takes little more than it needs.
MOST_SAMPLES = 10_000
# A record of more was not written by benchctl: a mesh of 200 hosts has 160 MB.
MOST_RECORD_BYTES = 2 << 30
_LATER = {(table, column) for table, column, _ in ADDED}


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


class Parcel:
    """A copy of a run in a store of its own, ``path``. Methods raise StoreError."""

    def __init__(self, store: Path, run_id: int, folder: Path) -> None:
        """Copy a run into an empty folder. Raises StoreError."""
        self.path = folder / "run.sqlite"
        self._folder = folder
        copy_run(store, run_id, self.path)

    def sha256(self) -> bytes:
        """Return the hash of all rows of the run, the same in each store that has it."""
        return content_sha256(self.path)

    def counts(self) -> tuple[int, int, int]:
        """Return how many attempts of flows, samples and notes it has: these only become more."""
        with closing(connect(self.path)) as connection, store_errors(self.path):
            told = [
                connection.execute(f"SELECT count(*) FROM {table}").fetchone()[0]
                for table in ("flow", "sample", "note")
            ]
        return told[0], told[1], told[2]

    def pieces(self) -> Iterator[SeriesPiece]:
        """Yield all samples, one series after another."""
        with closing(connect(self.path)) as connection:
            with store_errors(self.path):
                series = connection.execute(
                    "SELECT id, flow_id, role, stream, direction, metrics FROM series ORDER BY id"
                ).fetchall()
            for row in series:
                yield from self._pieces_of(connection, row)

    def _pieces_of(self, connection: sqlite3.Connection, row: sqlite3.Row) -> Iterator[SeriesPiece]:
        query = (
            "SELECT id, start_s, end_s, arrived_s, omitted, data FROM sample"
            " WHERE series_id = ? ORDER BY id"
        )
        cursor = connection.cursor()
        cursor.row_factory = None
        with store_errors(self.path):
            cursor.execute(query, (row["id"],))
        number, before = 0, 0
        while True:
            with store_errors(self.path):
                rows = cursor.fetchmany(MOST_SAMPLES)
            if not rows:
                return
            try:
                yield _piece(row, number, before, rows)
            except (TypeError, ValueError) as error:
                raise damaged(self.path, f"samples of series {row['id']}") from error
            number, before = number + 1, rows[-1][0]

    def record(self) -> bytes:
        """Return the run without its samples, as a compressed store."""
        path = self._folder / "record.sqlite"
        with closing(connect(self.path)) as connection, store_errors(self.path):
            (run_id,) = connection.execute("SELECT id FROM run").fetchone()
        copy_run(self.path, run_id, path, samples=False)
        return zlib.compress(path.read_bytes())


def _piece(row: sqlite3.Row, number: int, before: int, rows: list[tuple[Any, ...]]) -> SeriesPiece:
    """Return a piece of rows. Raises ValueError, TypeError for invalid data."""
    ids, starts_s, ends_s, arrived_s, omitted, data = zip(*rows, strict=True)
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
    """Write a run to a store of its own, which is not there yet. Raises StoreError."""
    _unpack(record, path)
    check_tables(path)
    with (
        closing(connect(path, write=True)) as connection,
        store_errors(path),
        transaction(connection),
    ):
        ends: dict[int, int] = {}
        for one in pieces:
            ids = [*accumulate(one.steps, initial=ends.get(one.series, 0))][1:]
            ends[one.series] = ids[-1]
            connection.executemany(_INSERT, zip(*_columns(one, ids), strict=True))


_INSERT = (
    "INSERT INTO sample (id, series_id, start_s, end_s, arrived_s, omitted, data)"
    " VALUES (?,?,?,?,?,?,?)"
)


def _columns(one: SeriesPiece, ids: list[int]) -> Iterator[Iterable[object]]:
    count, width = len(ids), len(one.metrics)
    values = array("d", bytes(8 * count * width))
    for place in range(width):
        values[place::width] = one.values[place * count : (place + 1) * count]
    packed = _native(values.tobytes())
    yield ids
    yield [one.series] * count
    yield from (one.starts_s, one.ends_s, one.arrived_s)
    yield map(int, one.omitted) if one.omitted else [0] * count
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
    """Return the hash of all rows of a store that one run was copied to. Raises StoreError.

    A column that was added later counts only if it is not its default: the hash is the same for
    every version of benchctl.
    """
    found = hashlib.sha256()
    encode = msgspec.msgpack.Encoder().encode
    with closing(connect(path)) as connection, store_errors(path):
        for table in ROWS:
            columns = {
                row["name"]: row["dflt_value"]
                for row in connection.execute(
                    "SELECT name, dflt_value FROM pragma_table_info(?) ORDER BY name", (table,)
                )
            }
            later = {
                column: connection.execute(f"SELECT {columns[column] or 'NULL'}").fetchone()[0]
                for column in columns
                if (table, column) in _LATER
            }
            first = ", ".join(one for one in columns if one not in later)
            key = "flow_id, direction, metric" if table == "figure" else "id"
            rest = ", ".join(["0", *later])
            cursor = connection.cursor()
            cursor.row_factory = None
            cursor.execute(f"SELECT {first}, {rest} FROM {table} ORDER BY {key}")
            found.update(encode(table))
            width = len(columns) - len(later)
            while rows := cursor.fetchmany(MOST_SAMPLES):
                if not later:
                    found.update(b"".join(map(encode, rows)))
                    continue
                for row in rows:
                    told = zip(later.items(), row[width + 1 :], strict=True)
                    other = {name: value for (name, usual), value in told if value != usual}
                    found.update(encode((row[:width], other)))
    return found.digest()
