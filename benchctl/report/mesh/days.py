"""The figures of past days: median, 5th and 95th percentile of each series, and their file. Pure.

A file holds a day as 32-bit floats whose last 12 bits are 0: five parts in 100,000 are no matter
for a drawing, and such bytes take less than half of the room.
"""

from __future__ import annotations

import math
import sys
import zlib
from array import array
from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import NamedTuple

import msgspec
from msgspec import Struct

SHARES = (0.5, 0.05, 0.95)
_UNKNOWN = math.nan
_HALF, _KEPT = 0x800, 0xFFFFF000


class DayFigures(NamedTuple):
    """Figures of one day, a value for each series by its number; NaN if it has none."""

    medians: array[float]
    p5: array[float]
    p95: array[float]


class Day(Struct, frozen=True):
    """A day, in days since 1970 (UTC).

    ``failed`` are the numbers of failed trials by the numbers of their flows.
    """

    number: int
    figures: DayFigures
    failed: Mapping[int, int]


@lru_cache(maxsize=1024)
def _places(count: int) -> tuple[tuple[int, int, float], ...]:
    """Return between which of sorted values each share lies, and how far from the first."""
    places = []
    for share in SHARES:
        position = (count - 1) * share
        below = math.floor(position)
        places.append((below, min(below + 1, count - 1), position - below))
    return tuple(places)


def figures_of(values: Mapping[int, Sequence[float]], count: int) -> DayFigures:
    """Return the figures of a day for ``count`` series from the values that some of them have.

    Percentiles by linear interpolation (Hyndman and Fan, type 7), as `quantile`.
    """
    found = DayFigures(*(array("f", [_UNKNOWN]) * count for _ in SHARES))
    for series, own in values.items():
        ordered = sorted(own)
        for column, (below, above, part) in zip(found, _places(len(ordered)), strict=True):
            low = ordered[below]
            column[series] = low + (ordered[above] - low) * part
    return found


class _Stored(Struct, array_like=True):
    """A day as a file: ``made_of`` says of which runs and with which numbers of series."""

    made_of: str
    planes: list[bytes]
    failed: dict[int, int]


def write_day(day: Day, made_of: str) -> bytes:
    """Return a day as a file."""
    planes = [plane for column in day.figures for plane in _packed(column)]
    return msgspec.msgpack.encode(_Stored(made_of, planes, {**day.failed}))


def read_day(number: int, file: bytes, made_of: str) -> Day | None:
    """Return the day of a file; None if it is damaged or of anything else."""
    try:
        stored = msgspec.msgpack.decode(file, type=_Stored)
        if stored.made_of != made_of:
            return None
        columns = [_unpacked(stored.planes[at : at + 4]) for at in (0, 4, 8)]
    except (msgspec.MsgspecError, zlib.error, ValueError):
        return None
    return Day(number, DayFigures(*columns), stored.failed)


def _packed(column: array[float]) -> list[bytes]:
    bits = array("I", [(one + _HALF) & _KEPT for one in memoryview(column.tobytes()).cast("I")])
    if sys.byteorder == "big":
        bits.byteswap()
    whole = bits.tobytes()
    return [zlib.compress(whole[at::4], 6) for at in range(4)]


def _unpacked(planes: Sequence[bytes]) -> array[float]:
    own = [zlib.decompress(plane) for plane in planes]
    whole = bytearray(4 * len(own[0]))
    for at in range(4):
        whole[at::4] = own[at]
    column = array("f")
    column.frombytes(whole)
    if sys.byteorder == "big":
        column.byteswap()
    return column
