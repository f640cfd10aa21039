"""Arrays of numbers as PostgreSQL sends and takes them, a thousand times faster than one by one.

The binary format of an array (src/backend/utils/adt/arrayfuncs.c, array_send): how many dimensions,
whether there are nulls, the type, the size and the first index; then each number with its length.
"""

from __future__ import annotations

import struct
import sys
from array import array
from typing import Any

from psycopg.adapt import AdaptersMap, Dumper, Loader
from psycopg.pq import Format

_HEAD = struct.Struct("!iiIii")
_FLOAT, _INT = 701, 23
_FLOATS, _INTS = 1022, 1007
"""Their types (src/include/catalog/pg_type.dat)."""
_SWAPPED = sys.byteorder == "little"


def _packed(values: array[Any], kind: int) -> bytes:
    """Return numbers of 4 or 8 bytes as an array of a type."""
    if not values:
        return _HEAD.pack(0, 0, kind, 0, 0)[:12]
    words = array("i", values.tobytes())
    each = values.itemsize // words.itemsize
    sent = array("i", bytes(len(values) * (each + 1) * words.itemsize))
    sent[:: each + 1] = array("i", [values.itemsize]) * len(values)
    for place in range(each):  # the first word of a number is its last here
        sent[place + 1 :: each + 1] = words[each - 1 - place if _SWAPPED else place :: each]
    if _SWAPPED:
        sent.byteswap()
    return _HEAD.pack(1, 0, kind, len(values), 1) + sent.tobytes()


def _unpacked(data: bytes, code: str) -> array[Any]:
    """Return the numbers of an array that has no nulls, as arrays in an archive have none."""
    values = array(code)
    sent = array("i", data[_HEAD.size :])
    if _SWAPPED:
        sent.byteswap()
    each = values.itemsize // sent.itemsize
    words = array("i", bytes(len(sent) // (each + 1) * values.itemsize))
    for place in range(each):
        words[each - 1 - place if _SWAPPED else place :: each] = sent[place + 1 :: each + 1]
    values.frombytes(words.tobytes())
    return values


class Floats(Dumper):
    """Takes an ``array("d")``."""

    format = Format.BINARY
    oid = _FLOATS

    def dump(self, obj: Any) -> bytes:
        return _packed(obj, _FLOAT)


class Ints(Dumper):
    """Takes an ``array("i")``."""

    format = Format.BINARY
    oid = _INTS

    def dump(self, obj: Any) -> bytes:
        return _packed(obj, _INT)


class FloatsLoader(Loader):
    """Gives an ``array("d")``."""

    format = Format.BINARY

    def load(self, data: Any) -> array[float]:
        return _unpacked(bytes(data), "d")


class IntsLoader(Loader):
    """Gives an ``array("i")``."""

    format = Format.BINARY

    def load(self, data: Any) -> array[int]:
        return _unpacked(bytes(data), "i")


def numbers_as_arrays(adapters: AdaptersMap) -> None:
    """Let a connection take and give arrays of numbers in this way, in the binary format."""
    for dumper in (Floats, Ints):
        adapters.register_dumper(None, dumper)
    adapters.register_loader(_FLOATS, FloatsLoader)
    adapters.register_loader(_INTS, IntsLoader)
