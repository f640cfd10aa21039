"""Shared by the tables of every TOML file: a strict base, and ports."""

from __future__ import annotations

import re
from typing import Annotated

from pydantic import AfterValidator, BaseModel, BeforeValidator, ConfigDict, WithJsonSchema


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
