"""Where deleted runs stay for 30 days, each with its packets in a folder beside the store."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from contextlib import closing, contextmanager, suppress
from pathlib import Path
from typing import NamedTuple

from benchctl.errors import BenchctlError, StoreError
from benchctl.store.captures import PRIVATE_FOLDER, captures_of
from benchctl.store.copies.copy import AlreadyThereError, copy_run
from benchctl.store.database import connect, run_gone, store_errors
from benchctl.store.manage import remove_run
from benchctl.store.read import unique

# Who misses a run does so in the month after.
KEPT_DAYS = 30
KEPT_S = KEPT_DAYS * 86_400.0
_RUN, _PACKETS, _UNFINISHED = "run.sqlite", "packets", ".part"


class DeletedRun(NamedTuple):
    """A run in the trash: its name, and when it was deleted (Unix time)."""

    name: str
    deleted_time: float


def trash_run(store: Path, run_id: int, now: float) -> None:
    """Move a run with its packets to the trash, and empty the trash of what is too old.

    It is deleted when its copy is whole. Raises UsageError while it is measured, StoreError if the
    trash or the store cannot be written: the run is where it was.
    """
    for run in deleted_runs(store):
        if now - run.deleted_time > KEPT_S:
            _remove(store, run.name)
    name = _name_of(store, run_id)
    folder, part = _folder(store, name), _folder(store, name + _UNFINISHED)
    try:
        with _trash_errors(folder):
            shutil.rmtree(part, ignore_errors=True)
            part.parent.mkdir(mode=PRIVATE_FOLDER, exist_ok=True)
            part.mkdir(mode=PRIVATE_FOLDER)
            copy_run(store, run_id, part / _RUN)
            os.utime(part / _RUN, (now, now))
            shutil.rmtree(folder, ignore_errors=True)
            part.rename(folder)
    except StoreError as error:
        error.hint = "free some space; benchctl runs delete --for-good needs less"
        _remove(store, part.name)
        raise
    try:
        remove_run(store, run_id)
    except BenchctlError:
        _remove(store, name)
        raise
    _move(captures_of(store, name), folder / _PACKETS)


def deleted_runs(store: Path) -> list[DeletedRun]:
    """Return the runs in the trash of a store, the one deleted last first."""
    found = [
        DeletedRun(file.parent.name, file.stat().st_mtime)
        for file in _folder(store, "").glob(f"*/{_RUN}")
        if file.parent.suffix != _UNFINISHED
    ]
    return sorted(found, key=lambda run: run.deleted_time, reverse=True)


def undelete_run(store: Path, text: str) -> str:
    """Bring a run back with its packets, by its name or a unique part; returns its name.

    Raises UsageError if the trash has no such run, StoreError if either store fails: then the run
    stays in the trash.
    """
    names = [run.name for run in deleted_runs(store)]
    name = unique(text, names, "deleted run", "benchctl runs undelete lists those there are")
    folder = _folder(store, name)
    with closing(connect(folder / _RUN)) as connection, store_errors(folder / _RUN):
        (run_id,) = connection.execute("SELECT id FROM run").fetchone()
    with suppress(AlreadyThereError):  # it was brought back before, and the program died then
        copy_run(folder / _RUN, run_id, store)
    _move(folder / _PACKETS, captures_of(store, name))
    _remove(store, name)
    return name


def _move(packets: Path, to: Path) -> None:
    """Move packets, if there are any."""
    with _trash_errors(to):
        if packets.is_dir():
            to.parent.mkdir(mode=PRIVATE_FOLDER, exist_ok=True)
            packets.rename(to)
            _remove_empty(packets.parent)


def _folder(store: Path, name: str) -> Path:
    return store.with_name(f"{store.name}.trash") / name


def _name_of(store: Path, run_id: int) -> str:
    with store_errors(store), closing(connect(store)) as connection:
        row = connection.execute("SELECT name FROM run WHERE id = ?", (run_id,)).fetchone()
    if row is None:
        raise run_gone(store)
    return str(row["name"])


def _remove(store: Path, name: str) -> None:
    shutil.rmtree(_folder(store, name), ignore_errors=True)
    _remove_empty(_folder(store, ""))


def _remove_empty(folder: Path) -> None:
    with suppress(OSError):
        folder.rmdir()


@contextmanager
def _trash_errors(folder: Path) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        raise StoreError(f"trash {folder}: {error.strerror}") from error
