"""Brings runs of an archive back into stores."""

from __future__ import annotations

import tempfile
import uuid
from collections.abc import Iterable, Iterator, Sequence
from contextlib import closing, contextmanager
from datetime import datetime
from pathlib import Path

from msgspec import Struct

from benchctl.archive.connection import Archive
from benchctl.archive.parquet import read_pieces
from benchctl.archive.pieces import AT_ONCE, KEPT, piece_of
from benchctl.errors import ArchiveError, StoreDamagedError, StoreError, UsageError
from benchctl.run.record import RunOutline
from benchctl.run.status import Status
from benchctl.store.copies.copy import AlreadyThereError, copy_run
from benchctl.store.copies.parcel import Parcel, SeriesPiece, content_sha256, restore
from benchctl.store.read import Reader, unique


class ArchivedRun(Struct, frozen=True):
    """A run in an archive, as a list shows it."""

    id: uuid.UUID
    name: str
    profile: str
    created_time: datetime
    status: Status
    trials: int
    tags: tuple[str, ...]

    def outline(self, run_id: int = 0) -> RunOutline:
        """Return what a list of runs shows, by an id of the caller's."""
        return RunOutline(
            run_id, self.name, self.profile, self.created_time.timestamp(), self.status,
            self.trials, self.tags,
        )  # fmt: skip


def archived_runs(archive: Archive) -> list[ArchivedRun]:
    """Return the runs of an archive, the newest first. Raises ArchiveError."""
    query = (
        "SELECT id, name, profile, created_time, status, trials, tags"
        " FROM benchctl_data.run ORDER BY created_time DESC, id"
    )
    return [
        ArchivedRun(row[0], row[1], row[2], row[3], _status(row[4]), row[5], (*row[6],))
        for row in archive.rows(query)
    ]


def _status(text: str) -> Status:
    """Return the status of a run: nobody measures one in an archive."""
    return Status.DIED if text == Status.RUNNING else Status(text)


def find(runs: Sequence[ArchivedRun], text: str) -> ArchivedRun:
    """Return the run that is named by its name, its id, a tag, a unique part of one, or last.

    Raises UsageError.
    """
    if text == "last" and runs:
        return runs[0]
    tagged = [run for run in runs if text in run.tags]
    if not any(text in run.name for run in runs) and len(tagged) == 1:
        return tagged[0]
    if not any(text in run.name for run in runs) and tagged:
        some = ", ".join(run.name for run in tagged[:5])
        raise UsageError(f'the tag "{text}" is that of {len(tagged)} runs', f"such as {some}")
    named = {str(run.id): run for run in runs}
    if text in named:
        return named[text]
    name = unique(
        text, dict.fromkeys(run.name for run in runs), "run", "see benchctl runs --archive"
    )
    found = [run for run in runs if run.name == name]
    if len(found) > 1:
        ids = ", ".join(str(run.id) for run in found)
        raise UsageError(f"{len(found)} runs are named {name}", f"name one by its id: {ids}")
    return found[0]


def pull(archive: Archive, run: ArchivedRun, store: Path, folder: Path | None = None) -> bool:
    """Copy a run into a store. Returns False if the store has this revision already.

    ``folder`` has the Parquet files of old months. Nothing is copied unless it is what was pushed,
    to the last sample. Raises StoreError, ArchiveError, UsageError without such a file.
    """
    with tempfile.TemporaryDirectory(prefix="benchctl-") as place:
        path = Path(place) / "run.sqlite"
        with archive.errors(), archive.connection.transaction():
            # One revision, if a newer one comes meanwhile.
            archive.connection.execute("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ READ ONLY")
            record, sha256, file = _record(archive, run)
            pieces = _pieces(archive, run) if file is None else read_pieces(run.id, file, folder)
            _restore(archive, run, record, pieces, path)
        if content_sha256(path) != sha256:
            raise _changed(archive, run)
        try:
            copy_run(path, 1, store)
        except AlreadyThereError:
            if _is_same(store, run.name, sha256):
                return False
            raise StoreError(
                f"store {store} has another revision of run {run.name}",
                "delete that one first, or choose another store with --store",
            ) from None
    return True


def _is_same(store: Path, name: str, sha256: bytes) -> bool:
    """Return whether a store has a run with this content."""
    with (
        closing(Reader(store)) as reader,
        tempfile.TemporaryDirectory(prefix="benchctl-") as place,
        closing(Parcel(store, reader.names()[name], Path(place))) as parcel,
    ):
        return parcel.sha256() == sha256


def _record(archive: Archive, run: ArchivedRun) -> tuple[bytes, bytes, str | None]:
    """Return the record of a run, the hash of its content, and the file of its samples."""
    found = archive.rows(
        "SELECT record, sha256, file FROM benchctl_data.run WHERE id = %s", (run.id,)
    )
    if not found:
        raise ArchiveError(f"{archive.name}: run {run.name} was deleted there")
    return found[0][0], found[0][1], found[0][2]


def _restore(
    archive: Archive, run: ArchivedRun, record: bytes, pieces: Iterable[SeriesPiece], path: Path
) -> None:
    try:
        restore(record, pieces, path)
        with closing(Reader(path)) as reader:  # which takes no name that leads out of a folder
            (only,) = reader.runs()
    except StoreDamagedError as error:
        raise _changed(archive, run) from error
    if only.name != run.name:
        raise _changed(archive, run)


def _changed(archive: Archive, run: ArchivedRun) -> ArchiveError:
    return ArchiveError(
        f"{archive.name}: run {run.name} is not what was pushed",
        "it was changed or damaged there; push it again from a store that has it",
    )


def _pieces(archive: Archive, run: ArchivedRun) -> Iterator[SeriesPiece]:
    """Yield the samples of a run, `AT_ONCE` pieces in memory."""
    query = (
        f"SELECT {', '.join(KEPT)} FROM benchctl_data.piece WHERE run = %(run)s AND"
        " month = (SELECT month FROM benchctl_data.run WHERE id = %(run)s) ORDER BY series, number"
    )
    with archive.connection.cursor("pieces", binary=True) as cursor:
        cursor.itersize = AT_ONCE
        cursor.execute(query, {"run": run.id})
        for row in cursor:
            yield piece_of(row)


@contextmanager
def as_store(archive: Archive, runs: Sequence[ArchivedRun]) -> Iterator[Path]:
    """Keep some runs in a store, without their samples, as long as the block lasts.

    Raises ArchiveError, StoreError.
    """
    with tempfile.TemporaryDirectory(prefix="benchctl-") as place:
        folder = Path(place)
        store = folder / "runs.sqlite"
        # The oldest first: "last" is the run that was stored last.
        for number, run in enumerate(reversed(runs)):
            path = folder / f"{number}.sqlite"
            _restore(archive, run, _record(archive, run)[0], (), path)
            try:
                copy_run(path, 1, store)
            except AlreadyThereError:
                raise ArchiveError(f"{archive.name}: two runs are named {run.name}") from None
            path.unlink()
        yield store
