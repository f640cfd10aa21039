"""The figures of past days: median, 5th and 95th percentile of each series, and their file. Pure.

A file holds the upper half of 32-bit floats, compressed: a value is known to two parts in a
thousand, which a drawing does not show, and takes one byte.
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
_HALF = 0x8000
_COLUMNS = range(len(SHARES))


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
    medians, p5, p95 = found
    for series, own in values.items():
        ordered = sorted(own)
        # Unrolled: a year of 60 hosts has millions of them.
        (a, b, part_50), (c, d, part_5), (e, f, part_95) = _places(len(ordered))
        medians[series] = ordered[a] + (ordered[b] - ordered[a]) * part_50
        p5[series] = ordered[c] + (ordered[d] - ordered[c]) * part_5
        p95[series] = ordered[e] + (ordered[f] - ordered[e]) * part_95
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
        columns = [_unpacked(*stored.planes[2 * at : 2 * at + 2]) for at in _COLUMNS]
    except (msgspec.MsgspecError, zlib.error, ValueError, TypeError):
        return None
    return Day(number, DayFigures(*columns), stored.failed)


def _packed(column: array[float]) -> list[bytes]:
    """Return the second and the first byte of each value, which are alike among themselves."""
    bits = array("H", [(word + _HALF) >> 16 for word in memoryview(column.tobytes()).cast("I")])
    if sys.byteorder == "big":
        bits.byteswap()
    whole = bits.tobytes()
    return [zlib.compress(whole[at::2], 6) for at in range(2)]


def _unpacked(*planes: bytes) -> array[float]:
    second, first = map(zlib.decompress, planes)
    whole = bytearray(4 * len(first))
    whole[2::4], whole[3::4] = second, first
    column = array("f")
    column.frombytes(whole)
    if sys.byteorder == "big":
        column.byteswap()
    return column
