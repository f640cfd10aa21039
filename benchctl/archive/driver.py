"""psycopg as archives use it: arrays of numbers at once, and an end to waiting.

The binary format of an array is in array_send (src/backend/utils/adt/arrayfuncs.c). It begins with
the number of dimensions, whether there are nulls, the type, the size and the first index. Each
number follows its length.
"""

from __future__ import annotations

import logging
import struct
import sys
import time
from array import array
from collections.abc import Generator
from typing import Any, TypeVar

from psycopg import Connection, OperationalError
from psycopg.adapt import Dumper, Loader
from psycopg.pq import Format

# What it logs of a connection that is given up is in our error, too.
logging.getLogger("psycopg").addHandler(logging.NullHandler())

T = TypeVar("T")
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


class PatientConnection(Connection[Any]):
    """A connection that takes and gives ``array`` in binary, and ends if the server is silent.

    The time limits of the server end a statement that it works on. Nobody ends one of a server that
    hangs.
    """

    patience_s = float("inf")

    def use_arrays(self) -> None:
        """Take and give arrays of numbers at once."""
        for dumper in (Floats, Ints):
            self.adapters.register_dumper(None, dumper)
        self.adapters.register_loader(_FLOATS, FloatsLoader)
        self.adapters.register_loader(_INTS, IntsLoader)

    def wait(self, gen: Generator[Any, Any, T], *args: Any, **options: Any) -> T:
        """Run a step of the protocol. Raises OperationalError after ``patience_s`` of silence."""
        try:
            return super().wait(_limited(gen, self.patience_s), *args, **options)
        except (SilentError, KeyboardInterrupt):  # a statement may be under way
            self.pgconn.finish()
            raise


class SilentError(OperationalError):
    """The server does not answer."""


def _limited(gen: Generator[Any, Any, T], limit_s: float) -> Generator[Any, Any, T]:
    """Run what psycopg waits for, which is resumed with 0 many times a second without an answer."""
    since_s = time.monotonic()
    try:
        wanted = next(gen)
        while True:
            ready = yield wanted
            if ready:
                since_s = time.monotonic()
            elif time.monotonic() - since_s > limit_s:
                raise SilentError(f"no answer for {limit_s:g} s")
            wanted = gen.send(ready)
    except StopIteration as end:
        found: T = end.value
        return found
