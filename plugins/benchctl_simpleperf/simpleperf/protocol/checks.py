"""Checks of data from the peer: each takes a value and returns it, or raises Problem."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from typing import Any, Callable

from benchctl_standalone.errors import Problem

Check = Callable[[Any], Any]


def _bad(value: Any, wanted: str) -> Problem:
    return Problem("peer", f"{str(value)[:40]!r} is not {wanted}")


def integer(low: int, high: int) -> Check:
    """Whole numbers of a range, both ends included."""

    def check(value: Any) -> int:
        if isinstance(value, bool) or not isinstance(value, int) or not low <= value <= high:
            raise _bad(value, f"a whole number from {low} to {high}")
        return value

    return check


def number(low: float = -1e18, high: float = 1e18) -> Check:
    """Finite numbers of a range, both ends included."""

    def check(value: Any) -> float:
        if isinstance(value, bool) or not isinstance(value, (int, float)):
            raise _bad(value, "a number")
        if not low <= value <= high or not math.isfinite(value):
            raise _bad(value, f"a number from {low:g} to {high:g}")
        return value

    return check


def text(limit: int, pattern: str = "") -> Check:
    """Strings of a length, of printable characters, matching an optional pattern."""

    def check(value: Any) -> str:
        if not isinstance(value, str) or len(value) > limit or not value.isprintable():
            raise _bad(value, f"a text of at most {limit} characters")
        if pattern and not re.fullmatch(pattern, value):
            raise _bad(value, f"of the form {pattern}")
        return value

    return check


def choice(*values: str) -> Check:
    """One of a set of words."""

    def check(value: Any) -> str:
        if value not in values:
            raise _bad(value, "one of " + ", ".join(values))
        return str(value)

    return check


def flag(value: Any) -> bool:
    """True or false."""
    if not isinstance(value, bool):
        raise _bad(value, "true or false")
    return value


def scalar(value: Any) -> Any:
    """A number, a short text, true, false or null."""
    if value is None or isinstance(value, bool):
        return value
    return text(200)(value) if isinstance(value, str) else number()(value)


def optional(check: Check) -> Check:
    """Null, or a value that another check accepts."""
    return lambda value: None if value is None else check(value)


class Later:
    """A member that older peers leave out: null then, or a value that a check accepts."""

    def __init__(self, check: Check) -> None:
        self._check = optional(check)

    def __call__(self, value: Any) -> Any:
        return self._check(value)


def list_of(check: Check, limit: int) -> Check:
    """Lists of a maximum length."""

    def check_list(value: Any) -> list[Any]:
        if not isinstance(value, list) or len(value) > limit:
            raise _bad(value, f"a list of at most {limit}")
        return [check(item) for item in value]

    return check_list


def mapping_of(key: Check, check: Check, limit: int) -> Check:
    """Objects with a maximum number of members; keys and values are checked."""

    def check_mapping(value: Any) -> dict[str, Any]:
        if not isinstance(value, dict) or len(value) > limit:
            raise _bad(value, f"an object of at most {limit} members")
        return {key(name): check(item) for name, item in value.items()}

    return check_mapping


def object_of(fields: Mapping[str, Check]) -> Check:
    """Objects with given members; others are dropped, so that versions can differ."""

    def check(value: Any) -> dict[str, Any]:
        if not isinstance(value, dict):
            raise _bad(value, "an object")
        return check_fields(value, fields)

    return check


def check_fields(value: Mapping[str, Any], fields: Mapping[str, Check]) -> dict[str, Any]:
    """Check the members of an object; raises Problem that names the member."""
    checked = {}
    for name, check in fields.items():
        if name not in value and not isinstance(check, Later):
            raise Problem("peer", f"{name} is missing")
        try:
            checked[name] = check(value.get(name))
        except Problem as problem:
            raise Problem("peer", f"{name}: {problem.message}") from None
    return checked


def figures(value: Any) -> dict[str, Any]:
    """Metrics by name: numbers, or distributions of numbers."""
    amount = number()
    distribution = mapping_of(text(16), amount, 8)
    either: Check = lambda item: distribution(item) if isinstance(item, dict) else amount(item)  # noqa: E731
    checked: dict[str, Any] = mapping_of(text(40), either, 64)(value)
    return checked
