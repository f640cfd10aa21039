"""Converts the types of a run to and from JSON, by their annotations.

Invalid data is rejected with its place: ``settings.expect[0].metric``. Unknown keys are ignored,
since a later version may have written them. Fields with a default may be missing, since an earlier
version may have written the data.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterator
from contextlib import suppress
from functools import cache
from inspect import get_annotations
from typing import Any, TypeVar

import msgspec

from benchctl.run.status import Status

T = TypeVar("T")

_COLUMNS = ("str", "int", "float", "int | None", "float | None", "Status", "Happening", "RunName")
"""The types that a column of SQLite holds directly, as fields write them."""
_TIMES_S = (-6e10, 2.5e11)
"""The years 70 to 9892: what a machine's clock may report and a calendar can show."""


def to_json(value: object) -> str:
    """Write a value. Raises ValueError for a number that JSON does not have."""
    return json.dumps(msgspec.to_builtins(value), allow_nan=False)


def from_json(text: object, kind: type[T]) -> T:
    """Read what `to_json` wrote. Raises ValueError."""
    return convert(_parse(text), kind)


def from_row(row: Any, kind: type[T]) -> T:
    """Read a row of the store, which has a column for each field of ``kind``. Raises ValueError."""
    values: dict[str, Any] = dict(row)
    try:
        for name in _of_json(kind):  # type: ignore[arg-type]
            if name in values:
                values[name] = _parse(values[name])
        for name in _limited(kind):  # type: ignore[arg-type]
            if name in values and not _is_possible(name, values[name]):
                raise ValueError(name)
        return convert(values, kind)
    except ValueError as error:
        what = kind.__name__.removeprefix("Recorded").removesuffix("Outline").lower()
        raise ValueError(f"{what} {values.get('id')}: {error}") from None


def convert(value: object, kind: type[T]) -> T:
    """Return data that was read as JSON, or from columns, as a type. Raises ValueError."""
    try:
        return msgspec.convert(value, kind)
    except msgspec.ValidationError as error:
        what, _, place = str(error).rpartition(" - at `$.")
        raise ValueError(place.removesuffix("`") if what else str(error)) from None


@cache
def _of_json(kind: type) -> tuple[str, ...]:
    """Return the fields whose columns hold JSON: those that no column of SQLite can hold."""
    return tuple(name for name, hint in _annotations(kind) if hint not in _COLUMNS)


@cache
def _limited(kind: type) -> tuple[str, ...]:
    """Return the fields whose columns can hold values that no run has."""
    limited = ("float", "float | None", "Status")
    return tuple(name for name, hint in _annotations(kind) if hint in limited)


def _annotations(kind: type) -> Iterator[tuple[str, str]]:
    """Yield each field and its type as written: to evaluate those of a run takes milliseconds."""
    for base in reversed(kind.__mro__):
        yield from get_annotations(base).items()


def _is_possible(name: str, value: object) -> bool:
    if name == "status":
        return value != Status.DIED
    if not isinstance(value, float):
        return True
    if name.endswith("_time"):
        return _TIMES_S[0] < value < _TIMES_S[1]
    return math.isfinite(value)


def _parse(text: object) -> object:
    """Return the data of a JSON text; None, which no field accepts, if it is not JSON."""
    if not isinstance(text, str):
        return None
    for decode in (msgspec.json.decode, _DECODER.decode):  # the second takes what the first cannot
        with suppress(ValueError, RecursionError, msgspec.MsgspecError):
            return decode(text)
    return None


def _finite(text: str) -> float:
    if math.isinf(number := float(text)):
        raise ValueError(text)
    return number


def _constant(name: str) -> str:
    """Version 0.1.0 wrote an unlimited rate so; NaN was never written."""
    if name != "Infinity":
        raise ValueError(name)
    return "unlimited"


_DECODER = json.JSONDecoder(parse_float=_finite, parse_constant=_constant)
