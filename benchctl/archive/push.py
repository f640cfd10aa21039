"""Brings runs into an archive, each in one transaction: wholly, or not at all."""

from __future__ import annotations

import tempfile
import uuid
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import closing
from enum import StrEnum
from itertools import islice
from pathlib import Path
from typing import Any

from msgspec.structs import astuple

from benchctl.archive.connection import Archive
from benchctl.archive.pieces import AT_ONCE, COLUMNS, row_of
from benchctl.archive.rows import FigureSubject, identity, moment, month_of, plain, rows_of
from benchctl.errors import UsageError
from benchctl.run.record import Run
from benchctl.run.status import Status
from benchctl.store.captures import captures_of
from benchctl.store.copies.parcel import Parcel
from benchctl.store.read import Reader

# Each COPY ends within a few seconds: time limits are those of one that makes no progress.
_ROWS_AT_ONCE = 50_000

_RUN = (
    "id", "name", "profile", "title", "created_time", "started_time", "finished_time", "status",
    "error", "trials", "tags", "origin", "flows", "samples", "notes", "sha256", "record", "month",
)  # fmt: skip
_FIGURE = {
    "subject": "int4", "run": "uuid", "time": "timestamptz", "trial": "int4", "repeat": "int4",
    "valid": "bool", "value": "float8", "min": "float8", "median": "float8", "p95": "float8",
    "max": "float8",
}  # fmt: skip
_FLOW = {
    "run": "uuid", "time": "timestamptz", "trial": "int4", "repeat": "int4", "point": "jsonb",
    "flow": "text", "backend": "text", "source": "text", "target": "text", "direction": "text",
    "attempts": "int4", "status": "text", "failure": "text", "error": "text",
}  # fmt: skip
_HOST = {
    "run": "uuid", "time": "timestamptz", "trial": "int4", "host": "text",
    **dict.fromkeys(("busy_ratio", "busiest_ratio", "softirq_ratio", "steal_ratio"), "float8"),
    **dict.fromkeys(("rx_errors", "rx_dropped", "tx_errors", "tx_dropped"), "int8"),
    "clock_offset_s": "float8", "clock_error_s": "float8", "unread": "text", "counts": "jsonb",
}  # fmt: skip


class PushOutcome(StrEnum):
    """What became of a run that was pushed."""

    NEW = "new"
    SAME = "there already"
    REPLACED = "replaced"
    OLDER = "older than what is there"


def can_be_pushed(reader: Reader, run: Run) -> bool:
    """Return whether a run has begun, and is not being measured."""
    return run.status is not Status.PLANNED and not reader.is_alive(run)


def push(archive: Archive, reader: Reader, run: Run, *, replace: bool = False) -> PushOutcome:
    """Bring a run into an archive.

    A newer revision replaces what is there of it; with ``replace``, an older one does, too.
    Raises UsageError while it is measured, StoreError, ArchiveError.
    """
    if not can_be_pushed(reader, run):
        raise UsageError(
            f"run {run.name} is in progress, or has not begun", "push it when it ended"
        )
    number = identity(run)
    with (
        tempfile.TemporaryDirectory(prefix="benchctl-") as folder,
        closing(Parcel(reader.path, run.id, Path(folder))) as parcel,
    ):
        sha256, counts = parcel.sha256(), parcel.counts()
        outcome = _outcome(archive, number, sha256, counts, replace=replace)
        if outcome in (PushOutcome.SAME, PushOutcome.OLDER):
            return outcome
        with closing(Reader(parcel.path)) as copy:
            (only,) = copy.runs()
            rows = rows_of(copy, only)
        month, record = month_of(run), parcel.record()
        if archive.rows("SELECT to_regclass(%s)", (f"benchctl_data.piece_{month:%Y_%m}",)) == [
            (None,)
        ]:
            # Committed before the push, which would keep others from it for long.
            archive.rows("SELECT benchctl_data.add_month(%s)", (month,))
        with archive.transaction():
            archive.connection.execute(
                "SELECT pg_advisory_xact_lock(hashtextextended(%s, 0))", (str(number),)
            )
            # Another pusher may have brought it while this one waited.
            outcome = _outcome(archive, number, sha256, counts, replace=replace)
            if outcome in (PushOutcome.SAME, PushOutcome.OLDER):
                return outcome
            archive.connection.execute("DELETE FROM benchctl_data.run WHERE id = %s", (number,))
            _insert_run(archive, (
                number, plain(only.name), plain(only.profile), plain(only.title),
                moment(only.created_time), moment(only.started_time), moment(only.finished_time),
                str(run.status), plain(only.error), only.trials, [*map(plain, only.tags)],
                plain(only.origin), *counts, sha256, record, month,
            ))  # fmt: skip
            subjects = _subjects(archive, {subject for subject, _ in rows.figures})
            _copy(
                archive,
                "figure",
                _FIGURE,
                ((subjects[subject], number, *values) for subject, values in rows.figures),
            )
            _copy(archive, "flow", _FLOW, ((number, *values) for values in rows.flows))
            _copy(archive, "host", _HOST, ((number, *values) for values in rows.hosts))
            piece_rows = (
                row_of(month, number, rows.places[piece.flow_id], piece)
                for piece in parcel.pieces()
            )
            _copy(archive, "piece", COLUMNS, piece_rows, AT_ONCE)
    return outcome


def _outcome(
    archive: Archive, number: uuid.UUID, sha256: bytes, counts: Sequence[int], *, replace: bool
) -> PushOutcome:
    there = archive.rows(
        "SELECT sha256, flows, samples, notes FROM benchctl_data.run WHERE id = %s", (number,)
    )
    if not there:
        return PushOutcome.NEW
    known, *before = there[0]
    if known == sha256:
        return PushOutcome.SAME
    behind = any(now < then for now, then in zip(counts, before, strict=True))
    return PushOutcome.OLDER if behind and not replace else PushOutcome.REPLACED


def _insert_run(archive: Archive, values: Sequence[Any]) -> None:
    marks = ", ".join(["%s"] * len(_RUN))
    statement = f"INSERT INTO benchctl_data.run ({', '.join(_RUN)}) VALUES ({marks})"
    archive.connection.execute(statement, values)


def _subjects(archive: Archive, subjects: set[FigureSubject]) -> dict[FigureSubject, int]:
    """Return the numbers of subjects; new ones are added."""
    keys = {subject.key: subject for subject in subjects}
    query = "SELECT key, id FROM benchctl_data.subject WHERE key = ANY(%s)"
    known = dict(archive.rows(query, ([*keys],)))
    # In one order, so that two pushers never wait for each other.
    new = sorted(keys.keys() - known.keys())
    with archive.connection.cursor() as cursor:
        cursor.executemany(
            "INSERT INTO benchctl_data.subject (key, profile, flow, backend, source, target,"
            " direction, point, metric) VALUES (%s, %s, %s, %s, %s, %s, %s, %s, %s)"
            " ON CONFLICT (key) DO NOTHING",
            [(key, *astuple(keys[key])) for key in new],
        )
    if new:
        known.update(archive.rows(query, (new,)))
    return {subject: known[key] for key, subject in keys.items()}


def _copy(
    archive: Archive,
    table: str,
    columns: Mapping[str, str],
    rows: Iterable[Sequence[Any]],
    at_once: int = _ROWS_AT_ONCE,
) -> None:
    statement = f"COPY benchctl_data.{table} ({', '.join(columns)}) FROM STDIN (FORMAT BINARY)"
    from psycopg.types.json import Jsonb

    is_json = [kind == "jsonb" for kind in columns.values()]
    rows = iter(rows)
    while batch := [*islice(rows, at_once)]:
        with (
            archive.connection.cursor() as cursor,
            cursor.copy(statement) as copy,
        ):
            copy.set_types([*columns.values()])
            for row in batch:
                # They are JSON already.
                copy.write_row(
                    [
                        Jsonb(value, str) if json else value
                        for value, json in zip(row, is_json, strict=True)
                    ]
                )


def missing(archive: Archive, reader: Reader, runs: Iterable[Run]) -> Iterator[Run]:
    """Yield the runs that an archive lacks, or has with another end or other tags."""
    found = {identity(run): run for run in runs}
    query = (
        "SELECT id, status, extract(epoch FROM finished_time)::float8, tags"
        " FROM benchctl_data.run WHERE id = ANY(%s)"
    )
    there = {number: columns for number, *columns in archive.rows(query, ([*found],))}
    for number, run in found.items():
        end = moment(run.finished_time)
        columns = [
            str(run.status),
            None if end is None else end.timestamp(),
            [*map(plain, run.tags)],
        ]
        if there.get(number) != columns and can_be_pushed(reader, run):
            yield run


def packets_left(store: Path, run: Run) -> str:
    """Return in a line that a run's packets are not archived; empty if it has none."""
    folder = captures_of(store, run.name)
    return f"its packets stay in {folder}: they are not archived" if folder.is_dir() else ""
