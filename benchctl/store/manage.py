"""Changes to runs by users, during or after the measurement: remarks, tags, deletion."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from pathlib import Path

from benchctl.errors import UsageError
from benchctl.run.record import BASELINE, RunOutline
from benchctl.store.captures import delete_captures
from benchctl.store.database import run_gone, writing
from benchctl.store.locks import Liveness
from benchctl.store.read import tags_in

REMARK = "remark"
_TAGS = "UPDATE run SET tags = ? WHERE id = ?"


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
    _write(path, _TAGS, (json.dumps(list(tags)), run_id))


def set_baseline(path: Path, run: RunOutline) -> None:
    """Make a run the baseline of its profile, instead of any other. Raises StoreError."""
    with writing(path) as connection:
        rows = connection.execute("SELECT id, tags FROM run WHERE profile = ?", (run.profile,))
        for row in rows.fetchall():
            tags = [tag for tag in tags_in(row["tags"]) if tag != BASELINE]
            if row["id"] == run.id:
                tags.append(BASELINE)
            if row["id"] == run.id or BASELINE in tags_in(row["tags"]):
                connection.execute(_TAGS, (json.dumps(tags), row["id"]))


def delete_run(path: Path, run_id: int) -> None:
    """Delete a run and all its measurements, its packets too: nothing brings it back.

    Raises UsageError while it is being measured, StoreError if the store cannot be written.
    """
    name = remove_run(path, run_id)
    if name is not None:
        delete_captures(path, name)


def remove_run(path: Path, run_id: int) -> str | None:
    """Take a run out of the store, and return its name, if it was there; its packets stay.

    Raises UsageError while it is being measured, StoreError if the store cannot be written.
    """
    if Liveness(path).is_alive(run_id):
        raise UsageError("this run is in progress", "stop it first")
    with writing(path) as connection:
        row = connection.execute(
            "DELETE FROM run WHERE id = ? RETURNING name", (run_id,)
        ).fetchone()
    return None if row is None else str(row["name"])


def _write(path: Path, statement: str, values: Sequence[object]) -> None:
    with writing(path) as connection:
        if not connection.execute(statement, values).rowcount:
            raise run_gone(path)
