"""Tables of TOML as pydantic models: a strict base, ports, and errors in one line for users.

pydantic's own paths contain the branches of unions and the long forms of short notations, and its
messages use Python's types. The user wrote TOML.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Annotated, Any, get_args

from pydantic import (
    AfterValidator,
    BaseModel,
    BeforeValidator,
    ConfigDict,
    ValidationError,
    WithJsonSchema,
)

from benchctl.errors import nearest
from benchctl.toml.source import Key
from benchctl.units import quoted, write_like


class TomlTable(BaseModel):
    """Base of every table: unknown keys and values of another type are errors."""

    model_config = ConfigDict(extra="forbid", frozen=True, strict=True)


def _read_ports(value: object) -> object:
    if isinstance(value, int) and not isinstance(value, bool):
        return (value, value)
    if isinstance(value, str) and (match := re.fullmatch(r"([0-9]{1,9})-([0-9]{1,9})", value)):
        return (int(match[1]), int(match[2]))
    raise ValueError('write a port as 5201, a range of ports as "5201-5210"')


def _check_ports(ports: tuple[int, int]) -> tuple[int, int]:
    low, high = ports
    for port in ports:
        if not 1 <= port <= 65535:
            raise ValueError(f"port {port} is not between 1 and 65535")
    if low > high:
        raise ValueError(f"the range {low}-{high} is reversed")
    return ports


Ports = Annotated[
    tuple[int, int],
    BeforeValidator(_read_ports),
    AfterValidator(_check_ports),
    WithJsonSchema(
        {
            "anyOf": [
                {"type": "integer", "minimum": 1, "maximum": 65535},
                {"type": "string", "pattern": "^[0-9]{1,5}-[0-9]{1,5}$", "examples": ["5201-5210"]},
            ]
        }
    ),
]
"""First and last port of a range, both included."""


_WORDS = {
    "missing": "is missing",
    "bool_type": "must be true or false",
    "bool_parsing": "must be true or false",
    "dict_type": "must be a table",
    "model_type": "must be a table",
    "float_type": "must be a number",
    "float_parsing": "must be a number",
    "int_type": "must be a whole number",
    "int_parsing": "must be a whole number",
    "int_from_float": "must be a whole number",
    "list_type": "must be a list, in [ ]",
    "tuple_type": "must be a list, in [ ]",
    "string_type": "must be a string, in quotes",
    "string_too_short": "must not be empty",
    "too_short": "must not be empty",
    "greater_than": "must be more than {gt}",
    "greater_than_equal": "must be at least {ge}",
    "less_than": "must be less than {lt}",
    "less_than_equal": "must be at most {le}",
}


def as_written(data: Mapping[str, Any], path: Sequence[str | int]) -> Key:
    """Return the part of pydantic's path that the user wrote, or left out, in the data."""
    key: list[str | int] = []
    node: Any = data
    for position, part in enumerate(path):
        held = isinstance(node, dict) and part in node
        held = held or (isinstance(node, list) and isinstance(part, int) and part < len(node))
        is_name = not str(part).startswith("[")
        left_out = isinstance(node, dict) and position == len(path) - 1 and is_name
        if held or left_out:
            key.append(part)
        if held:
            node = node[part]
    return tuple(key)


def explain(
    error: ValidationError,
    data: Mapping[str, Any],
    known: Callable[[Key], Iterable[str]],
    unknown: str = "unknown key",
) -> tuple[Key, str, str]:
    """Return key, message and hint of the most useful error.

    ``data`` was validated; ``known`` gives the names that the table at a key may hold, and
    ``unknown`` the message for any other.
    """
    found = error.errors(include_url=False)
    # A misspelt required key is both unknown and missing: report the spelling.
    first = next((fault for fault in found if fault["type"] == "extra_forbidden"), found[0])
    key = as_written(data, first["loc"])
    kind, context = first["type"], first.get("ctx", {})
    # A value of a union is wrong in each of its branches. A default that depends on a wrong value
    # is not an error of its own.
    wrong = [fault for fault in found if fault["type"] != "default_factory_not_called"]
    others = {as_written(data, fault["loc"]) for fault in wrong} - {key}
    more = f"and {len(others)} more error{'s' * (len(others) > 1)}" if others else ""
    if kind == "extra_forbidden":
        names = list(known(first["loc"][:-1]))
        hint = nearest(str(key[-1]), names) or f"known: {', '.join(names)}"
        return key, unknown, hint
    if kind in ("enum", "literal_error"):
        names = [name.strip("'") for name in re.split(", | or ", context["expected"])]
        what = f"{quoted(first['input'])} is not one of {', '.join(names)}"
        return key, what, nearest(str(first["input"]), names) or more
    if kind in _WORDS and context.get("min_length", 1) == 1:
        written = _written(data, key)
        bounds = {name: write_like(written, value) for name, value in context.items()}
        return key, _WORDS[kind].format_map(bounds), more
    message = " ".join(first["msg"].split()).removeprefix("Value error, ")
    return key, message[:1].lower() + message[1:], more


def names_in(model: type[BaseModel], key: Key) -> list[str]:
    """Return the names that the table at a key may hold, in a file that the model describes."""
    for position, part in enumerate(key):
        if part in model.model_fields:
            inner = _model_in(model.model_fields[str(part)].annotation)
            if inner is not None:
                return names_in(inner, key[position + 1 :])
    return [info.alias or name for name, info in model.model_fields.items()]


def _model_in(annotation: Any) -> type[BaseModel] | None:
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        return annotation
    return next((model for arg in get_args(annotation) if (model := _model_in(arg))), None)


def _written(data: Any, key: Key) -> Any:
    """Return the value at a key, as the user wrote it; None if absent."""
    for part in key:
        try:
            data = data[part]
        except (LookupError, TypeError):
            return None
    return data
