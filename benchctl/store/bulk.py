"""Much at once, for those who draw: trials in outline, samples in batches.

`read` gives every row its own object with all its columns, which is right for a table and too much
for a plot of half a million samples.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from benchctl.store.database import connect, store_errors

Row = tuple[int, float, float, Mapping[str, float]]
"""Id of the stream, start and end of the interval (seconds from the flow's start), metrics."""

# A batch is decoded and drawn in about 30 ms: between two of them, a screen answers keys.
BATCH = 4000

_LAST_ATTEMPT = (
    "WHERE trial_id = ?1 AND attempt = (SELECT max(attempt) FROM flow WHERE trial_id = ?1)"
)


@dataclass(frozen=True, slots=True)
class Stream:
    """One stream of one flow, as one end told it.

    ``delay_s`` is when its flow was to start, after its trial; ``streams`` is how many the flow
    was asked to have.
    """

    flow: str
    backend: str
    role: str
    number: int
    direction: str
    delay_s: float
    streams: int


@dataclass(frozen=True, slots=True)
class Outline:
    """A trial, as far as a list of trials shows it."""

    id: int
    position: int
    repeat: int
    point: str
    """JSON: axis -> value."""
    duration_s: float


class Bulk:
    """Reads one store in bulk. Every method raises StoreError when it cannot."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._connection = connect(path)

    def close(self) -> None:
        """Close the store."""
        self._connection.close()

    def outlines(self, run_id: int) -> list[Outline]:
        """Return all trials of a run, in order of execution."""
        query = (
            "SELECT id, position, repeat, point, duration_s FROM trial"
            " WHERE run_id = ? ORDER BY position"
        )
        with store_errors(self._path):
            return [Outline(*row) for row in self._connection.execute(query, (run_id,))]

    def streams(self, trial_id: int) -> dict[int, Stream]:
        """Return the streams of a trial's last attempt, by id."""
        with store_errors(self._path):
            flows = self._connection.execute(
                f"SELECT id, name, backend, requested FROM flow {_LAST_ATTEMPT}", (trial_id,)
            ).fetchall()
            planned = self._connection.execute(
                "SELECT flows FROM trial WHERE id = ?", (trial_id,)
            ).fetchone()
            delays = {flow["name"]: flow["delay_s"] for flow in json.loads(planned[0])}
            found: dict[int, Stream] = {}
            for flow_id, name, backend, requested in flows:
                asked = json.loads(requested).get("streams")
                for stream_id, role, number, direction in self._connection.execute(
                    "SELECT id, role, number, direction FROM stream WHERE flow_id = ?", (flow_id,)
                ):
                    found[stream_id] = Stream(
                        name, backend, role, number, direction, delays.get(name, 0.0),
                        asked if isinstance(asked, int) else 1,
                    )  # fmt: skip
        return found

    def extent(self, trial_id: int) -> tuple[int, int]:
        """Return the ids before the first and of the last sample of a trial's last attempt."""
        query = (
            "SELECT min((SELECT min(id) FROM sample WHERE stream_id = stream.id)),"
            " max((SELECT max(id) FROM sample WHERE stream_id = stream.id))"
            f" FROM stream WHERE flow_id IN (SELECT id FROM flow {_LAST_ATTEMPT})"
        )
        with store_errors(self._path):
            first, last = self._connection.execute(query, (trial_id,)).fetchone()
        return (first - 1, last) if last else (0, 0)

    def batches(
        self, streams: Mapping[int, Stream], after: int, last: int
    ) -> Iterator[tuple[int, list[Row]]]:
        """Yield the samples with ids above ``after``, up to ``last``, in batches, oldest first.

        Each comes with the id to go on from. Samples of the omitted part, and of other streams
        than those given, are left out.
        """
        # By id and not by stream: SQLite would sort all of them first.
        query = (
            "SELECT id, stream_id, start_s, end_s, omitted, metrics FROM sample"
            " WHERE id > ? AND id <= ? ORDER BY id LIMIT ?"
        )
        while after < last:
            with store_errors(self._path):
                rows = self._connection.execute(query, (after, last, BATCH)).fetchall()
            after = rows[-1][0] if len(rows) == BATCH else last
            # One call for the whole batch: a decoder costs more to start than to run.
            decoded: list[Any] = json.loads(f"[{','.join(row[5] for row in rows)}]")
            yield (
                after,
                [
                    (row[1], row[2], row[3], metrics)
                    for row, metrics in zip(rows, decoded, strict=True)
                    if row[1] in streams and not row[4]
                ],
            )
