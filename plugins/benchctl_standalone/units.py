"""Parses and formats sizes, rates and times of the command line.

Sizes follow the original simpleperf if they have a unit (B, KB, MB: 1 KB = 1000 B) and iperf3 for a
bare letter (K, M, G: powers of 1024). Rates are bits per second with powers of 1000.
"""

from __future__ import annotations

import math

BYTE_UNITS = {"B": 1, "KB": 10**3, "MB": 10**6, "GB": 10**9}
_SIZE_UNITS: dict[str, int] = {
    "": 1,
    **BYTE_UNITS,
    "kB": 10**3,
    **{letter: 1 << 10 * power for power, letter in enumerate("KMG", 1)},
    **{letter + "iB": 1 << 10 * power for power, letter in enumerate("KMG", 1)},
}
_RATE_UNITS: dict[str, int] = {"": 1, "k": 10**3, "K": 10**3, "M": 10**6, "G": 10**9}
_TIME_UNITS = {"": 1.0, "s": 1.0, "ms": 1e-3, "us": 1e-6, "min": 60.0}


def _split(text: str, what: str) -> tuple[float, str]:
    number = text.rstrip("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ/")
    try:
        value = float(number)
    except ValueError:
        raise ValueError(f"{text!r} is not {what}") from None
    if not math.isfinite(value) or value < 0:
        raise ValueError(f"{text!r} is not {what}")
    return value, text[len(number) :]


def parse_size(text: str) -> int:
    """Parse ``10MB``, ``256K`` or ``1448``; returns bytes. Raises ValueError."""
    value, unit = _split(text, "a size such as 10MB or 256K")
    if unit not in _SIZE_UNITS:
        raise ValueError(f"{text!r}: unknown unit {unit!r}; sizes are in B, KB, MB, GB or K, M, G")
    return round(value * _SIZE_UNITS[unit])


def parse_rate(text: str) -> float:
    """Parse ``100M``, ``1.5Gbit/s``, or ``unlimited`` or ``0`` for infinity; returns bit/s.

    Raises ValueError.
    """
    if text in ("unlimited", "0"):
        return math.inf
    value, unit = _split(text, "a rate such as 100M")
    for ending in ("/s", "bit"):
        if unit.endswith(ending):
            unit = unit[: -len(ending)]
    if unit not in _RATE_UNITS:
        raise ValueError(f"{text!r}: unknown unit {unit!r}; rates are in kbit, Mbit or Gbit")
    return value * _RATE_UNITS[unit]


def parse_seconds(text: str) -> float:
    """Parse ``10``, ``250ms`` or ``5min``; returns seconds. Raises ValueError."""
    value, unit = _split(text, "a time such as 10 or 250ms")
    if unit not in _TIME_UNITS:
        raise ValueError(f"{text!r}: unknown unit {unit!r}; times are in s, ms, us or min")
    return value * _TIME_UNITS[unit]


def scaled(value: float, unit: str) -> str:
    """Format a value with three significant digits and an SI prefix: ``94.1 Mbit/s``."""
    for factor, prefix in ((1e12, "T"), (1e9, "G"), (1e6, "M"), (1e3, "k")):
        if abs(value) >= factor * 0.9995:
            number = value / factor
            digits = 0 if number >= 99.95 else 1 if number >= 9.995 else 2
            return f"{number:.{digits}f} {prefix}{unit}"
    return f"{value:.0f} {unit}"
