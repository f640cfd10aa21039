"""Puts the trials of an imported run in order, when all of its files are read."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any, NamedTuple

from benchctl.run.codec import to_json
from benchctl.run.planned import Scalar, Settings
from benchctl.run.status import Status
from benchctl.store.database import writing
from benchctl.store.record import free_name


class TrialPlace(NamedTuple):
    """The place of a trial, by its id, in its run."""

    trial_id: int
    position: int
    repeat: int
    point: Mapping[str, Scalar]


def arrange(
    path: Path,
    run_id: int,
    places: Iterable[TrialPlace],
    settings: Settings,
    facts: Mapping[str, Any],
    span: tuple[float, float],
) -> str:
    """Write what is known of a run at its end, and of its trials' places; returns its name.

    ``span`` is when its first trial began and its last ended. Raises StoreError.
    """
    begin, end = span
    with writing(path) as connection:
        name = free_name(connection, begin)
        # Each position is unique at every moment.
        connection.execute("UPDATE trial SET position = -1 - position WHERE run_id = ?", (run_id,))
        connection.executemany(
            "UPDATE trial SET position = ?, repeat = ?, point = ? WHERE id = ?",
            [
                (place.position, place.repeat, to_json(place.point), place.trial_id)
                for place in places
            ],
        )
        failed = connection.execute(
            "SELECT count(*) FROM trial WHERE run_id = ? AND status != ?", (run_id, Status.OK)
        ).fetchone()[0]
        connection.execute(
            "UPDATE run SET name = ?, created_time = ?, started_time = ?, finished_time = ?,"
            " settings = ?, facts = ?, status = ? WHERE id = ?",
            (name, begin, begin, end, to_json(settings), to_json(facts),
             Status.FAILED if failed else Status.OK, run_id),
        )  # fmt: skip
    return name
