"""What a value in the store looks like, so that a damaged byte gets no further than its reader.

A shape is a type, None, a tuple of shapes of which one fits, a list with the shape of every item,
or a dict: of the keys that must be there, of those that may (``"key?"``), or, under `str`, of every
value. ``float`` is any finite number.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

Shape = Any

_SCALAR = (str, float, bool)
_POINT = {str: _SCALAR}
_TIMES_S = (-6e10, 2.5e11)
"""The years 70 to 9892: what the clock of a machine may say, and a calendar can show."""

FLOWS: Shape = [
    {"name": str, "backend": str, "source": str, "to": str, "interface": (str, None),
     "direction": str, "delay_s": float, "parameters": dict}
]  # fmt: skip
"""The flows of a trial, as planned."""
STATUSES = ("planned", "running", "ok", "failed", "interrupted", "timed_out", "skipped")

SHAPES: Mapping[tuple[str, str], Shape] = {
    ("Run", "settings"): {
        "values": {str: [_SCALAR]},
        "expect": [{"metric": str, "where?": _POINT}],
        "order": str,
        "attempts?": int,
        "backoff_s?": float,
        "pause_s?": float,
        "network?": dict,
        "lab?": (dict, None),
        "headlines?": {str: str},
        "reported?": [
            {"flow": (str, None), "direction": (str, None), "where": _POINT,
             "metrics": {str: float}}
        ],
    },
    ("Run", "facts"): dict,
    ("Run", "tags"): [str],
    ("Trial", "point"): _POINT,
    ("Trial", "flows"): FLOWS,
    ("Trial", "lab"): dict,
    ("Trial", "links"): [{"kept": bool}],
    ("Flow", "client"): [str],
    ("Flow", "server"): [str],
    ("Flow", "requested"): dict,
    ("Flow", "effective"): dict,
    ("Flow", "expected"): {str: dict},
}  # fmt: skip
"""Of the columns that hold JSON, by dataclass and field."""


def of_field(kind: str, name: str, annotation: str) -> Shape:
    """Return the shape of a field of a dataclass."""
    if (kind, name) in SHAPES:
        return SHAPES[kind, name]
    parts = annotation.split(" | ")
    types = {"int": int, "float": float, "str": str, "None": None}
    return tuple(types[part] for part in parts)


def fits(value: object, shape: Shape) -> bool:
    """Return whether a value has a shape."""
    if shape is float:
        return isinstance(value, int | float) and math.isfinite(value)
    if isinstance(shape, type):
        return isinstance(value, shape)
    if isinstance(shape, tuple):
        return any(fits(value, one) for one in shape)
    if isinstance(shape, list):
        return isinstance(value, list) and all(fits(one, shape[0]) for one in value)
    if isinstance(shape, dict):
        return isinstance(value, dict) and all(_has(value, key, shape[key]) for key in shape)
    return value is shape


def _has(value: Mapping[str, object], key: Any, shape: Shape) -> bool:
    if key is str:
        return all(fits(one, shape) for one in value.values())
    name = key.removesuffix("?")
    return fits(value[name], shape) if name in value else key != name


def is_possible(name: str, value: object) -> bool:
    """Return whether the value of a field, whose shape fits, can have been written."""
    if name == "status":
        return value in STATUSES
    if name.endswith("_time") and isinstance(value, int | float):
        return _TIMES_S[0] < value < _TIMES_S[1]
    return True
