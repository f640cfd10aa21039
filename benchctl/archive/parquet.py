"""Moves the samples of old months from an archive to Parquet files, and reads them there.

A row is a piece of a series, with its samples as lists; a file is sorted by run.
"""

from __future__ import annotations

import os
import tempfile
import uuid
from array import array
from collections.abc import Iterator
from datetime import date
from pathlib import Path
from typing import Any

from benchctl.archive.connection import Archive
from benchctl.archive.pieces import AT_ONCE, COLUMNS, KEPT, piece_of
from benchctl.errors import ArchiveError, UsageError
from benchctl.report.exports.parquet import check
from benchctl.store.copies.parcel import SeriesPiece, content_sha256, restore

_COLUMNS = [name for name in COLUMNS if name != "month"]


def read_pieces(run: uuid.UUID, file: str, folder: Path | None) -> Iterator[SeriesPiece]:
    """Yield the samples of a run from a file in a folder.

    Raises UsageError if it is not there, MissingError without pyarrow, ArchiveError for another
    file of this name.
    """
    if folder is None or not (folder / file).is_file():
        where = "" if folder is None else f", which is not in {folder}"
        raise UsageError(
            f"the samples of this run were moved to {file}{where}",
            "name the folder of this file with --parquet",
        )
    check()
    import pyarrow as pa
    from pyarrow import parquet

    wanted = str(run)
    try:
        with parquet.ParquetFile(folder / file) as source:
            place = source.schema_arrow.names.index("run")
            for group in range(source.num_row_groups):
                statistics = source.metadata.row_group(group).column(place).statistics
                if statistics is None or statistics.min <= wanted <= statistics.max:
                    rows = source.read_row_group(group, columns=["run", *KEPT]).to_pylist()
                    for row in rows:
                        if row["run"] == wanted:
                            yield piece_of([row[name] for name in KEPT])
    except (OSError, ValueError, KeyError, pa.ArrowException) as error:
        said = " ".join(str(error).split())
        raise ArchiveError(
            f"{folder / file}: {said}", "it is no file of benchctl archive"
        ) from error


def months_before(archive: Archive, before: date) -> list[date]:
    """Return the months that have samples in the archive, the oldest first. Raises ArchiveError."""
    query = (
        "SELECT DISTINCT month FROM benchctl_data.run WHERE month < %s AND file IS NULL"
        " AND samples > 0 ORDER BY month"
    )
    return [month for (month,) in archive.rows(query, (before,))]


def offload(archive: Archive, month: date, folder: Path) -> Path:
    """Move the samples of a month to a new file in a folder, and return it.

    Each run is read back from the file and compared before its samples leave the archive, in one
    transaction. Raises ArchiveError, MissingError without pyarrow, OSError.
    """
    check()
    file = _free_name(folder, month)
    part = file.with_name(f"{file.name}.part")
    table = f"benchctl_data.piece_{month:%Y_%m}"
    may_be_moved = False
    try:
        with archive.transaction():
            # The server has nothing to do while a month is read back.
            archive.connection.execute("SET LOCAL idle_in_transaction_session_timeout = 0")
            _execute(archive, f"LOCK TABLE {table} IN SHARE ROW EXCLUSIVE MODE")
            _write(archive, month, part)
            _compare(archive, month, part)
            part.rename(file)
            _sync(folder)
            archive.connection.execute(
                "UPDATE benchctl_data.run SET file = %s WHERE month = %s AND file IS NULL"
                " AND samples > 0",
                (file.name, month),
            )
            _execute(archive, f"ALTER TABLE benchctl_data.piece DETACH PARTITION {table}")
            _execute(archive, f"DROP TABLE {table}")
            may_be_moved = True
    except BaseException:
        part.unlink(missing_ok=True)
        # A connection that is lost during the commit leaves open whether the server made it.
        if not may_be_moved:
            file.unlink(missing_ok=True)
        raise
    return file


def _sync(folder: Path) -> None:
    """Bring the names in a folder to the disk."""
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def _execute(archive: Archive, statement: str) -> None:
    archive.connection.execute(statement)


def _free_name(folder: Path, month: date) -> Path:
    """Return the name of a new file: runs may come to an old month after it was moved."""
    file, number = folder / f"benchctl-samples-{month:%Y-%m}.parquet", 1
    while file.exists():
        number += 1
        file = folder / f"benchctl-samples-{month:%Y-%m}.{number}.parquet"
    return file


def _schema(pa: Any) -> Any:
    kinds = {
        "uuid": pa.string(), "text": pa.string(), "int4": pa.int32(), "float8": pa.float64(),
        "bool": pa.bool_(), "timestamptz": pa.timestamp("us", tz="UTC"),
    }  # fmt: skip
    fields = {}
    for name in _COLUMNS:
        kind = kinds[COLUMNS[name].removesuffix("[]")]
        fields[name] = pa.list_(kind) if COLUMNS[name].endswith("[]") else kind
    return pa.schema(fields)


def _write(archive: Archive, month: date, path: Path) -> None:
    import pyarrow as pa
    from pyarrow import parquet

    schema = _schema(pa)
    query = (
        f"SELECT run::text, {', '.join(_COLUMNS[1:])} FROM benchctl_data.piece WHERE month = %s"
        " ORDER BY run, series, number"
    )
    with (
        archive.connection.cursor("month", binary=True) as cursor,
        path.open("wb") as sink,
        parquet.ParquetWriter(sink, schema, compression="zstd", store_schema=False) as writer,
    ):
        cursor.execute(query, (month,))
        while rows := cursor.fetchmany(AT_ONCE):
            columns = zip(*rows, strict=True)
            arrays = [
                pa.array([*map(_plain, column)], field.type)
                for column, field in zip(columns, schema, strict=True)
            ]
            writer.write_table(pa.table(arrays, schema=schema))
        writer.close()
        sink.flush()
        os.fsync(sink.fileno())


def _plain(value: Any) -> Any:
    return value.tolist() if isinstance(value, array) else value


def _compare(archive: Archive, month: date, path: Path) -> None:
    """Check that each run of a month is whole in a file. Raises ArchiveError."""
    runs = archive.rows(
        "SELECT id, name, sha256 FROM benchctl_data.run WHERE month = %s AND file IS NULL"
        " AND samples > 0",
        (month,),
    )
    for number, name, sha256 in runs:
        record = archive.rows("SELECT record FROM benchctl_data.run WHERE id = %s", (number,))
        with tempfile.TemporaryDirectory(prefix="benchctl-") as place:
            copy = Path(place) / "run.sqlite"
            restore(bytes(record[0][0]), read_pieces(number, path.name, path.parent), copy)
            if content_sha256(copy) != sha256:
                raise ArchiveError(f"{archive.name}: run {name} is not what was pushed")
