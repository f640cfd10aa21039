"""Copies the runs of another store, such as the file of ``export --format sqlite``."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import closing
from pathlib import Path

from benchctl.errors import StoreError
from benchctl.imports.files import name_of
from benchctl.imports.result import ImportedRun, Left
from benchctl.run.status import FAILURES
from benchctl.store.copies.copy import AlreadyThereError, check_tables, copy_run
from benchctl.store.copies.salvage import check
from benchctl.store.manage import read_tags, set_tags
from benchctl.store.read import Reader

STORE = "store"
"""The kind of such a file."""


def import_store(
    path: Path, into: Path, tags: Sequence[str], *, dry: bool
) -> Iterator[ImportedRun | Left]:
    """Copy every run that a store does not have yet, the oldest first.

    They keep their names, times and tags; ``tags`` are added. Nothing is copied of a store that is
    damaged. Raises StoreError if the other one fails.
    """
    try:
        check_tables(path)
        problems = check(path).problems
    except StoreError as error:
        problems = [error.message]
    if problems:
        yield Left(name_of(path), f"cannot be read as a store: {problems[0]}")
        return
    there: set[str] = set()
    if into.exists():
        with closing(Reader(into)) as reader:
            there = {*reader.names()}
    with closing(Reader(path)) as reader:
        for run in reversed(reader.runs()):
            named = f"{name_of(path)} {run.name}"
            if run.name in there:
                yield Left(named, "is there already", is_fault=False)
            elif reader.is_alive(run):
                yield Left(named, "is being measured")
            else:
                if not dry:
                    try:
                        run_id = copy_run(path, run.id, into)
                    except AlreadyThereError:  # by another import
                        yield Left(named, "is there already", is_fault=False)
                        continue
                    if tags:
                        set_tags(into, run_id, read_tags([*run.tags, *tags]))
                failed = sum(trial.status in FAILURES for trial in reader.trials(run.id))
                axes = {axis: run.values[axis] for axis in run.varying}
                yield ImportedRun(run.name, run.profile, STORE, run.trials, failed, axes)
