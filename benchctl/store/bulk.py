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

# A batch is decoded in about 10 ms: between two of them, a screen answers keys.
BATCH = 2000


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
        query = (
            "SELECT stream.id, flow.name, backend, role, number, stream.direction,"
            " trial.flows, requested"
            " FROM stream JOIN flow ON flow.id = flow_id JOIN trial ON trial.id = trial_id"
            " WHERE trial_id = ?1"
            " AND attempt = (SELECT max(attempt) FROM flow WHERE trial_id = ?1)"
        )
        with store_errors(self._path):
            rows = self._connection.execute(query, (trial_id,)).fetchall()
        found: dict[int, Stream] = {}
        for stream_id, name, backend, role, number, direction, flows, requested in rows:
            delays = {flow["name"]: flow["delay_s"] for flow in json.loads(flows)}
            asked = json.loads(requested).get("streams")
            streams = asked if isinstance(asked, int) else 1
            found[stream_id] = Stream(
                name, backend, role, number, direction, delays.get(name, 0.0), streams
            )
        return found

    def batches(self, streams: Mapping[int, Stream], after: int) -> Iterator[tuple[int, list[Row]]]:
        """Yield the samples of streams with an id above ``after`` in batches, oldest first.

        Each comes with the id to go on from. Samples within the omitted part are left out.
        """
        bounds = [self._bounds(stream_id) for stream_id in streams]
        first = min((low for low, _ in bounds if low), default=1)
        last = max((high for _, high in bounds if high), default=0)
        after = max(after, first - 1)
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

    def _bounds(self, stream_id: int) -> tuple[int | None, int | None]:
        query = "SELECT min(id), max(id) FROM sample WHERE stream_id = ?"
        with store_errors(self._path):
            low, high = self._connection.execute(query, (stream_id,)).fetchone()
        return low, high
