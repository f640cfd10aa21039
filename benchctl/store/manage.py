"""Changes to runs by users, during or after the measurement: remarks, tags, deletion."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from pathlib import Path

from benchctl.errors import UsageError
from benchctl.store.database import writing
from benchctl.store.locks import Liveness

REMARK = "remark"


def add_remark(path: Path, run_id: int, text: str, now: float) -> None:
    """Add a user's remark to a run. Raises StoreError."""
    _write(
        path,
        "INSERT INTO note (run_id, time, level, text) VALUES (?,?,?,?)",
        (run_id, now, REMARK, text),
    )


def read_tags(texts: Iterable[str]) -> tuple[str, ...]:
    """Return the tags in texts, each of which separates several by commas; each tag once."""
    parts = (part.strip() for text in texts for part in text.split(","))
    return tuple(dict.fromkeys(filter(None, parts)))


def set_tags(path: Path, run_id: int, tags: Sequence[str]) -> None:
    """Replace the tags of a run. Raises StoreError."""
    _write(path, "UPDATE run SET tags = ? WHERE id = ?", (json.dumps(list(tags)), run_id))


def delete_run(path: Path, run_id: int) -> None:
    """Delete a run and all its measurements.

    Raises UsageError while it is being measured, StoreError if the store cannot be written.
    """
    if Liveness(path).is_alive(run_id):
        raise UsageError("this run is in progress", "stop it first")
    _write(path, "DELETE FROM run WHERE id = ?", (run_id,))


def _write(path: Path, statement: str, values: Sequence[object]) -> None:
    with writing(path) as connection:
        connection.execute(statement, values)
