"""Durations, rates, sizes and ratios as people write them, and as they are shown to people.

Parsing refuses what the field reads in two ways, and says so:

- a duration needs its unit: ``10s``, ``250ms``, ``20us``, ``5min``, ``1h`` (``m`` could be minutes
  or milli);
- a rate is in bits per second with SI multiples: ``100Mbit``, ``1.5Gbit/s``, or ``unlimited``
  (``Mbps`` is megabytes per second to tc and megabits to most others; a bare ``M`` says nothing);
- a size is in bytes: ``1448B``, ``64kB`` and ``1MB`` are SI, ``64KiB`` and ``1MiB`` binary, and the
  bare letters ``256K``, ``4M``, ``1G`` are binary as in iperf3's ``-w``, ``-l`` and ``-n``;
- a ratio is in per cent: ``2%``.

Inside benchctl every quantity is a float in seconds, bits per second, bytes or a plain ratio.
"""

from __future__ import annotations

import math
import re

UNLIMITED = math.inf

_NUMBER = r"(\d+(?:\.\d*)?|\.\d+)"
_QUANTITY = re.compile(rf"\s*{_NUMBER}\s*([A-Za-zµ%/]*)\s*\Z")

_SECONDS = {"ns": 1e-9, "us": 1e-6, "µs": 1e-6, "ms": 1e-3, "s": 1.0, "min": 60.0, "h": 3600.0}
_BITS = {"bit": 1.0, "kbit": 1e3, "Kbit": 1e3, "Mbit": 1e6, "Gbit": 1e9, "Tbit": 1e12}
_BYTES = {
    "B": 1, "kB": 1e3, "MB": 1e6, "GB": 1e9,
    "K": 2**10, "M": 2**20, "G": 2**30,
    "KiB": 2**10, "MiB": 2**20, "GiB": 2**30,
}  # fmt: skip


def _split(text: object, what: str, example: str) -> tuple[float, str]:
    if isinstance(text, str) and (match := _QUANTITY.match(text)):
        return float(match[1]), match[2]
    if isinstance(text, int | float) and not isinstance(text, bool):
        raise ValueError(f"{text} has no unit; write {what} as in {example}")
    raise ValueError(f"{text!r} is not {what}; write it as in {example}")


def parse_duration(text: object) -> float:
    """Read a duration such as ``"250ms"``; returns seconds. Raises ValueError."""
    value, unit = _split(text, "a duration", '"10s" or "250ms"')
    if unit == "m":
        raise ValueError(f'"{text}" could be minutes or milliseconds; write "min" or "ms"')
    if unit not in _SECONDS:
        raise ValueError(_unknown(text, unit, "duration", _SECONDS))
    return _finite(value * _SECONDS[unit], text)


def parse_rate(text: object) -> float:
    """Read a rate such as ``"100Mbit"``; returns bits per second, or infinity for "unlimited"."""
    if text == "unlimited":
        return UNLIMITED
    value, unit = _split(text, "a rate", '"100Mbit" or "unlimited"')
    unit = unit.removesuffix("/s")
    if unit not in _BITS:
        if unit.lower().endswith("bps") or unit.endswith("B"):
            raise ValueError(f'"{text}" could be bits or bytes per second; write "Mbit", "Gbit", …')
        raise ValueError(_unknown(text, unit, "rate", _BITS))
    return _finite(value * _BITS[unit], text)


def parse_size(text: object) -> float:
    """Read a size such as ``"256K"``; returns whole bytes as a float. Raises ValueError."""
    value, unit = _split(text, "a size", '"256K", "64kB" or "1448B"')
    if unit == "KB":
        raise ValueError(f'"{text}" could be 1000 or 1024 bytes each; write "kB" or "KiB"')
    if unit not in _BYTES:
        raise ValueError(_unknown(text, unit, "size", _BYTES))
    return float(round(_finite(value * _BYTES[unit], text)))


def parse_ratio(text: object) -> float:
    """Read a ratio such as ``"2%"``; returns it as a fraction of one, from 0 to 1."""
    value, unit = _split(text, "a ratio", '"2%"')
    if unit != "%":
        raise ValueError(f'"{text}" is not a ratio; write it in per cent, as in "2%"')
    if value > 100:
        raise ValueError(f'"{text}" is more than "100%"')
    return value / 100


def _unknown(text: object, unit: str, what: str, known: dict[str, float]) -> str:
    if not unit:
        return f'"{text}" has no unit; a {what} is in {", ".join(known)}'
    return f'"{text}": unknown unit "{unit}"; a {what} is in {", ".join(known)}'


def _finite(value: float, text: object) -> float:
    if not math.isfinite(value):
        raise ValueError(f'"{text}" is too large')
    return value


def _scaled(value: float, steps: tuple[tuple[float, str], ...]) -> str:
    """Three significant digits in the largest step that leaves one digit before the point."""
    magnitude = abs(value)
    for index, (factor, unit) in enumerate(steps):
        # 999.6 would be shown as 1000: let the next larger unit have it.
        if magnitude >= factor * 0.9995 or index == len(steps) - 1:
            scaled = value / factor
            digits = max(0, 2 - math.floor(math.log10(abs(scaled)))) if scaled else 0
            return f"{scaled:.{min(digits, 3)}f} {unit}"
    raise AssertionError("unreachable: the last step always matches")


_RATE_STEPS = (
    (1e12, "Tbit/s"), (1e9, "Gbit/s"), (1e6, "Mbit/s"), (1e3, "kbit/s"), (1.0, "bit/s"),
)  # fmt: skip
_TIME_STEPS = ((1.0, "s"), (1e-3, "ms"), (1e-6, "us"), (1e-9, "ns"))
_SIZE_STEPS = ((2.0**30, "GiB"), (2.0**20, "MiB"), (2.0**10, "KiB"), (1.0, "B"))


def format_rate(value_bps: float) -> str:
    """Show a rate to a person: ``94.1 Mbit/s``."""
    return "unlimited" if math.isinf(value_bps) else _scaled(value_bps, _RATE_STEPS)


def format_duration(value_s: float) -> str:
    """Show a duration to a person: ``20.4 ms``; from two minutes on ``5 min 20 s``."""
    if abs(value_s) < 120:
        return _scaled(value_s, _TIME_STEPS) if value_s else "0 s"
    minutes, seconds = divmod(round(value_s), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours} h {minutes:02d} min" if hours else f"{minutes} min {seconds:02d} s"


def format_size(value_bytes: float) -> str:
    """Show a size to a person: ``256 KiB``."""
    return _scaled(value_bytes, _SIZE_STEPS)


def format_ratio(value: float) -> str:
    """Show a ratio to a person: ``2.5 %``."""
    return f"{value * 100:.3g} %"


_FORMATS = (("_bps", format_rate), ("_s", format_duration), ("_bytes", format_size),
            ("_ratio", format_ratio))  # fmt: skip


def format_value(name: str, value: float) -> str:
    """Show the value of a metric or parameter by the unit that its name ends with."""
    for suffix, formatter in _FORMATS:
        if name.endswith(suffix):
            return formatter(value)
    return f"{value:.5g}" if isinstance(value, float) and not value.is_integer() else f"{value:.0f}"


def unit_of(name: str) -> str:
    """Return the SI unit that a name ends with: ``bit/s``, ``s``, ``B``, or ``""`` for a count."""
    units = {"_bps": "bit/s", "_s": "s", "_bytes": "B", "_ratio": "ratio"}
    return next((unit for suffix, unit in units.items() if name.endswith(suffix)), "")
