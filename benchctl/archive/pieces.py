"""Samples as the rows of arrays that an archive and its Parquet files have."""

from __future__ import annotations

import uuid
from array import array
from collections.abc import Sequence
from datetime import date
from typing import Any

from benchctl.archive.rows import plain
from benchctl.store.copies.parcel import SeriesPiece

COLUMNS = {
    "month": "date", "run": "uuid", "series": "int4", "number": "int4",
    "began_time": "timestamptz", "trial": "int4", "flow": "text", "attempt": "int4",
    "source": "text", "target": "text", "role": "text", "stream": "int4", "direction": "text",
    "metrics": "text[]", "samples": "int4", "steps": "int4[]", "starts_s": "float8[]",
    "ends_s": "float8[]", "arrived_s": "float8[]", "omitted": "bool[]", "values": "float8[]",
}  # fmt: skip
"""The columns and their types; `benchctl.archive.schema` says what they mean."""

KEPT = (
    "series", "number", "role", "stream", "direction", "metrics", "steps", "starts_s", "ends_s",
    "arrived_s", "omitted", "values",
)  # fmt: skip
"""The columns of a `SeriesPiece`; the record has the rest."""

AT_ONCE = 20
"""Rows in memory, or in one statement."""


def row_of(
    month: date, run: uuid.UUID, place: Sequence[Any], piece: SeriesPiece
) -> tuple[Any, ...]:
    """Return the row of some samples; ``place`` is of `benchctl.archive.rows.RunRows`."""
    return (
        month, run, piece.series, piece.number, *place, plain(piece.role), piece.stream,
        plain(piece.direction), [*map(plain, piece.metrics)], len(piece.steps), piece.steps,
        piece.starts_s, piece.ends_s, piece.arrived_s, piece.omitted, piece.values,
    )  # fmt: skip


def piece_of(row: Sequence[Any]) -> SeriesPiece:
    """Return the samples of a row of `KEPT`."""
    series, number, role, stream, direction, metrics, steps, *times_s, omitted, values = row
    starts_s, ends_s, arrived_s = (array("d", times) for times in times_s)
    return SeriesPiece(
        series, number, 0, role, stream, direction, (*metrics,), array("i", steps),
        starts_s, ends_s, arrived_s, [*omitted], array("d", values),
    )  # fmt: skip
