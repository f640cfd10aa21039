"""The parameters of a backend: its model, and the quantities that a profile writes with a unit."""

from __future__ import annotations

from typing import Annotated, Any, TypeVar

from pydantic import BaseModel, BeforeValidator, ConfigDict, WithJsonSchema

from benchctl.units import parse_duration, parse_rate, parse_ratio, parse_size


def _quantity(parse: Any, example: str, pattern: str) -> tuple[Any, Any]:
    schema = {"type": "string", "pattern": pattern, "examples": [example]}
    return BeforeValidator(parse), WithJsonSchema(schema)


_N = r"^[0-9]*\.?[0-9]+ ?"
Duration = Annotated[float, *_quantity(parse_duration, "10s", rf"{_N}(ns|[uµμ]s|ms|s|min|h|d)$")]
"""Seconds; written ``"10s"``, ``"250ms"``, ``"5min"``."""
Rate = Annotated[float, *_quantity(parse_rate, "100Mbit", rf"{_N}[kKMGT]?bit(/s)?$|^unlimited$")]
"""Bits per second; written ``"100Mbit"``, or ``"unlimited"`` for infinity."""
Size = Annotated[float, *_quantity(parse_size, "256K", rf"{_N}([kMGT]?B|[KMG](iB)?|TiB)$")]
"""Whole bytes; written ``"1448B"``, ``"64kB"`` (SI), ``"256K"`` or ``"256KiB"`` (binary)."""
Ratio = Annotated[float, *_quantity(parse_ratio, "2%", rf"{_N}%$")]
"""A fraction of one; written ``"2%"``."""

# RFC 2474 (cs), 2597 (af), 3246 (ef), 5865 (va), 8622 (le).
_DSCP = {
    **{f"cs{n}": 8 * n for n in range(8)},
    **{f"af{c}{drop}": 8 * c + 2 * drop for c in range(1, 5) for drop in range(1, 4)},
    "ef": 46,
    "va": 44,
    "le": 1,
}


def _read_dscp(value: object) -> int:
    if isinstance(value, str) and value.lower() in _DSCP:
        return _DSCP[value.lower()]
    if isinstance(value, int) and not isinstance(value, bool) and 0 <= value <= 63:
        return value
    raise ValueError(f"{value!r} is not a DSCP: 0 to 63, or one of {', '.join(_DSCP)}")


_DSCP_SCHEMA = {"anyOf": [{"type": "integer", "minimum": 0, "maximum": 63}, {"enum": [*_DSCP]}]}
Dscp = Annotated[int, BeforeValidator(_read_dscp), WithJsonSchema(_DSCP_SCHEMA)]
"""A differentiated services codepoint, 0 to 63; written as a number or as ``"ef"``, ``"af41"``."""


class Parameters(BaseModel):
    """Base of a backend's parameters: frozen; an unknown name or another type is an error.

    TOML has types, so ``"4"`` is not a number; use `typing.Literal` for a choice of words. Every
    field needs a description, and a quantity one of the types above. If two backends
    have the same parameter, they use the same name, so that one axis sweeps both:
    ``duration``, ``interval``, ``omit``, ``streams``, ``window``, ``rate``, ``bytes``, ``count``,
    ``length``, ``protocol``, ``congestion_control``, ``mss``, ``dscp``, ``no_delay``,
    ``ip_version``.
    """

    model_config = ConfigDict(extra="forbid", frozen=True, strict=True)


P = TypeVar("P", bound=Parameters)
