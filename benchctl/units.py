"""Parses and formats durations, rates, sizes and ratios.

Ambiguous units are rejected:

- a duration needs its unit: ``10s``, ``250ms``, ``20us``, ``5min``, ``1h``, ``2d`` (``m`` could be
  minutes or milli);
- a rate is in bits per second with SI multiples: ``100Mbit``, ``1.5Gbit/s``, or ``unlimited``
  (``Mbps`` is megabytes per second to tc and megabits to most others; a bare ``M`` has no unit);
- a size is in bytes: ``1448B``, ``64kB`` and ``1MB`` are SI, ``64KiB`` and ``1MiB`` binary, and the
  bare letters ``256K``, ``4M``, ``1G`` are binary as in iperf3's ``-w``, ``-l`` and ``-n``;
- a ratio is in per cent: ``2%``;
- a responsiveness is in round trips per minute: ``500RPM``.

Inside benchctl every quantity is a float in seconds, bits per second, bytes, round trips per minute
or a plain ratio.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Callable, Collection, Mapping, Sequence
from decimal import Decimal
from functools import cache, lru_cache, partial
from time import localtime, strftime
from typing import Any, NamedTuple

UNLIMITED = math.inf

_QUANTITY = re.compile(r"([0-9]*\.?[0-9]+) ?([^\s0-9.]*)")

# Units as (power of ten, factor). The power goes into the text of the number, so that "2.3Gbit" is
# 2300000000 and not the product of two rounded floats, which is a hair less.
_UNITS: dict[str, dict[str, tuple[int, int]]] = {
    "duration": {
        "ns": (-9, 1), "us": (-6, 1), "ms": (-3, 1), "s": (0, 1), "min": (0, 60), "h": (0, 3600),
        "d": (0, 86400),
    },
    "rate": {"bit": (0, 1), "kbit": (3, 1), "Mbit": (6, 1), "Gbit": (9, 1), "Tbit": (12, 1)},
    "size": {
        "B": (0, 1), "kB": (3, 1), "MB": (6, 1), "GB": (9, 1), "TB": (12, 1),
        "K": (0, 2**10), "M": (0, 2**20), "G": (0, 2**30),
        "KiB": (0, 2**10), "MiB": (0, 2**20), "GiB": (0, 2**30), "TiB": (0, 2**40),
    },
    "ratio": {"%": (-2, 1)},
    "responsiveness": {"RPM": (0, 1)},
}  # fmt: skip
_SPELLINGS = {"µs": "us", "μs": "us", "Kbit": "kbit"}
_EXAMPLES = {
    "duration": '"10s" or "250ms"',
    "rate": '"100Mbit" or "unlimited"',
    "size": '"256K", "64kB" or "1448B"',
    "ratio": '"2%"',
    "responsiveness": '"500RPM"',
}


def parse_duration(text: object) -> float:
    """Parse a duration such as ``"250ms"``; returns seconds. Raises ValueError."""
    if isinstance(text, str):
        return _duration(text)
    raise _not_text(text, "duration")


def parse_rate(text: object) -> float:
    """Parse a rate such as ``"100Mbit"``; returns bits per second, infinity for "unlimited".

    Raises ValueError.
    """
    if isinstance(text, str):
        return _rate(text)
    raise _not_text(text, "rate")


def parse_size(text: object) -> float:
    """Parse a size such as ``"256K"``; returns bytes, rounded to whole ones. Raises ValueError."""
    if isinstance(text, str):
        return _size(text)
    raise _not_text(text, "size")


def parse_ratio(text: object) -> float:
    """Parse a ratio such as ``"2%"``; returns a fraction of one, 0 to 1. Raises ValueError."""
    if isinstance(text, str):
        return _ratio(text)
    raise _not_text(text, "ratio")


def parse_responsiveness(text: object) -> float:
    """Parse a responsiveness such as ``"500RPM"``; returns round trips per minute.

    Raises ValueError.
    """
    if isinstance(text, str):
        return _responsiveness(text)
    raise _not_text(text, "responsiveness")


_Steps = tuple[tuple[float, str], ...]


class _Quantity(NamedTuple):
    """The unit that a name may end with: its SI unit, its parser, its display units.

    Display units are the largest first, each with its factor.
    """

    unit: str
    parse: Callable[[object], float]
    steps: _Steps


_QUANTITIES = {
    "_bps": _Quantity("bit/s", parse_rate, (
        (1e12, "Tbit/s"), (1e9, "Gbit/s"), (1e6, "Mbit/s"), (1e3, "kbit/s"), (1.0, "bit/s"),
    )),
    "_s": _Quantity("s", parse_duration, ((1.0, "s"), (1e-3, "ms"), (1e-6, "us"), (1e-9, "ns"))),
    "_bytes": _Quantity("B", parse_size, (
        (2.0**40, "TiB"), (2.0**30, "GiB"), (2.0**20, "MiB"), (2.0**10, "KiB"), (1.0, "B"),
    )),
    "_ratio": _Quantity("ratio", parse_ratio, ((0.01, "%"),)),
    "_rpm": _Quantity("round trips/min", parse_responsiveness, ((1.0, "RPM"),)),
}  # fmt: skip
_COUNT = ((1.0, ""),)


def _steps(unit: str, factor: float, base: int, prefixes: Sequence[str]) -> _Steps:
    """Return a unit with each prefix, the largest first; ``factor`` is that without any."""
    scaled = [(factor * base**power, prefix + unit) for power, prefix in enumerate(prefixes, 1)]
    return (*reversed(scaled), (factor, unit))


_SI, _IEC = (1000, ("k", "M", "G", "T")), (1024, ("Ki", "Mi", "Gi", "Ti"))
_BITS, _BYTES = ("bit/s", 1.0), ("B/s", 8.0)
_DISPLAY = {"bits", "bytes", "si", "iec"}
_shown: dict[str, _Steps] = {}
"""The display units that people asked for, by suffix; see `display_in`."""


def parse_display(text: str) -> Mapping[str, _Steps]:
    """Parse the choice of display units: ``"bytes"``, ``"iec"`` or ``"bytes,iec"``.

    ``bits`` or ``bytes`` is the unit of rates; ``si`` or ``iec`` are prefixes, powers of 1000 or
    1024, of rates and sizes. Without a choice, rates have SI prefixes and sizes IEC ones. Raises
    ValueError.
    """
    words = text.split(",")
    for word in words:
        if word not in _DISPLAY:
            raise ValueError(f"{quoted(word)} is none of bits, bytes, si and iec")
    if {"bits", "bytes"} <= {*words} or {"si", "iec"} <= {*words}:
        raise ValueError(f"{quoted(text)} contradicts itself")
    rates = _IEC if "iec" in words else _SI
    sizes = _SI if "si" in words else _IEC
    return {
        "_bps": _steps(*(_BYTES if "bytes" in words else _BITS), *rates),
        "_bytes": _steps("B", 1.0, *sizes),
    }


def display_in(text: str) -> None:
    """Format rates and sizes for people in these units from now on, as `parse_display` does.

    For the whole process, as a locale is: only the command line calls it. Raises ValueError.
    """
    _shown.update(parse_display(text))


@cache
def _suffix(name: str) -> str:
    """Return the unit that a name ends with, as in ``rtt_s``; empty for a count."""
    return next((suffix for suffix in _QUANTITIES if name.endswith(suffix)), "")


@cache
def _kind(name: str) -> str:
    """Return the suffix of names with the unit of this one: a count of bytes is a size, too."""
    return "_bytes" if name.startswith("bytes_") else _suffix(name)


def unit_of(name: str) -> str:
    """Return the SI unit of a name: ``bit/s``, ``s``, ``B``, or ``""`` for a count."""
    kind = _kind(name)
    return _QUANTITIES[kind].unit if kind else ""


def without_unit(name: str) -> str:
    """Return a name without its unit: ``rtt`` for ``rtt_s``."""
    return name.removesuffix(_suffix(name))


def parse_value(name: str, value: object) -> float:
    """Parse a value by the unit that its name ends with, as in ``rtt_s``; a plain number if none.

    Only times may be negative, as delays between two clocks are. Raises ValueError.
    """
    suffix = _suffix(name)
    if suffix == "_s" and isinstance(value, str) and value.startswith("-"):
        return -_QUANTITIES[suffix].parse(value[1:])
    if suffix:
        return _QUANTITIES[suffix].parse(value)
    if isinstance(value, bool) or not isinstance(value, int | float) or not math.isfinite(value):
        raise ValueError(f"{quoted(value)} is not a number")
    return float(value)


def write_like(text: object, value: Any) -> Any:
    """Format a bound exactly, in the unit of another text: 0.1 beside "5ms" is "100 ms".

    Without a unit if the text has none; unchanged if the bound is not a number.
    """
    if not isinstance(value, int | float):
        return value
    for quantity in _QUANTITIES.values():
        try:
            quantity.parse(text)
        except ValueError:
            continue
        for factor, unit in quantity.steps:
            number = f"{value / factor:.12g}"
            if number.isdecimal() and (value or factor == 1):
                return f"{number} {unit}"
    return f"{value:.12g}"


def quoted(value: object) -> str:
    """Format a value as in TOML, in one line: ``"paris"``, ``true``, ``4``."""
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, str):
        text = json.dumps(value, ensure_ascii=False)
        return "".join(c if c.isprintable() else json.dumps(c)[1:-1] for c in text)
    return str(value)


def _not_text(value: object, what: str) -> ValueError:
    if isinstance(value, int | float) and not isinstance(value, bool):
        return ValueError(f"{value} has no unit; write a {what} as in {_EXAMPLES[what]}")
    return ValueError(f"{quoted(value)} is not a {what}; write it as in {_EXAMPLES[what]}")


def _read(what: str, text: str) -> float:
    if what == "rate" and text == "unlimited":
        return UNLIMITED
    match = _QUANTITY.fullmatch(text)
    if match is None:
        raise ValueError(f"{quoted(text)} is not a {what}; write it as in {_EXAMPLES[what]}")
    number, unit = match.groups()
    if what == "rate":
        unit = unit.removesuffix("/s")
    if doubt := _doubt(what, unit):
        raise ValueError(f"{quoted(text)} {doubt}")
    units = _UNITS[what]
    standard = _SPELLINGS.get(unit, unit)
    if standard not in units:
        wrong = f"unknown unit {quoted(unit)}" if unit else "no unit"
        raise ValueError(f"{quoted(text)}: {wrong}; a {what} is in {', '.join(units)}")
    power, factor = units[standard]
    value = float(f"{number}e{power}") * factor
    if not math.isfinite(value):
        raise ValueError(f"{quoted(text)} is too large")
    if what == "ratio" and value > 1:
        raise ValueError(f'{quoted(text)} is more than "100%"')
    return float(round(value)) if what == "size" else value


# Cached, since a matrix repeats the same few quantities at every point.
_duration, _rate, _size, _ratio, _responsiveness = (
    lru_cache(maxsize=1024)(partial(_read, what))
    for what in ("duration", "rate", "size", "ratio", "responsiveness")
)


def _doubt(what: str, unit: str) -> str:
    """Return the other meanings of a unit, or an empty text."""
    if what == "duration" and unit == "m":
        return 'could be minutes or milliseconds; write "min" or "ms"'
    if what == "rate" and (unit.lower().endswith("bps") or unit.endswith("B")):
        return 'could be bits or bytes per second; write "Mbit", "Gbit", …'
    if what == "size" and unit == "KB":
        return 'could be 1000 or 1024 bytes each; write "kB" or "KiB"'
    return ""


def scale_of(name: str, value: float) -> tuple[float, str]:
    """Return the factor and the unit that suit a value best: ``(1e6, "Mbit/s")``.

    For a scale, or figures that share one unit, by the unit that the name ends with. The unit is
    the largest that leaves a digit before the point, to three significant digits.
    """
    kind = _kind(name)
    steps = (_shown.get(kind) or _QUANTITIES[kind].steps) if kind else _COUNT
    if not value:
        return next((step for step in steps if step[0] == 1.0), steps[-1])
    return next((s for s in steps if abs(float(f"{value / s[0]:.3g}")) >= 1), steps[-1])


def _number(name: str, scaled: float) -> str:
    """Format a value in the unit of its scale: three significant digits, a count in full."""
    if name.endswith("_jain"):
        return f"{scaled:.{_index_digits(scaled)}f}"
    if _kind(name) in ("_bps", "_s", "_bytes"):
        rounded = abs(float(f"{scaled:.3g}"))
        return f"{scaled:.{min(3, max(0, 2 - math.floor(math.log10(rounded)))) if rounded else 0}f}"
    most = 1000 if name.endswith("_ratio") else 100
    whole = abs(scaled) >= most or (most == 100 and float(scaled).is_integer())
    return f"{scaled:.0f}" if whole else f"{scaled:.3g}"


def _index_digits(value: float) -> int:
    """Return the decimals that tell an index from 1 and from 0, at least four."""
    near = min((abs(part) for part in (value, 1 - value) if abs(part) > 1e-12), default=1.0)
    return max(4, -math.floor(math.log10(near)))


_MINUTES_S = 119.5
"""From here on durations are written in minutes."""


def format_value(name: str, value: float) -> str:
    """Format a value by the unit that its name ends with; from two minutes on ``5 min 20 s``."""
    if math.isinf(value):
        return "unlimited"
    if name.endswith("_s") and abs(value) >= _MINUTES_S:
        minutes, seconds = divmod(round(abs(value)), 60)
        hours, minutes = divmod(minutes, 60)
        text = f"{hours} h {minutes:02d} min" if hours else f"{minutes} min {seconds:02d} s"
        return f"-{text}" if value < 0 else text
    factor, unit = scale_of(name, value)
    return f"{_number(name, value / factor)} {unit}".rstrip()


def format_mean(name: str, mean: float, half: float | None) -> str:
    """Format a mean with half the width of its interval, in one unit: ``94.1 Mbit/s ±0.31``.

    The mean alone if ``half`` is None.
    """
    if half is None:
        return format_value(name, mean)
    factor, unit = scale_of(name, mean or half)
    number = f"{_number(name, mean / factor)} {unit}".rstrip()
    return f"{number} ±{half_in(name, mean, half, factor)}"


def common_scale(name: str, values: Collection[float]) -> tuple[float, str] | None:
    """Return the factor and the unit in which all values keep their three digits; None if none."""
    greatest = max(map(abs, values), default=0.0)
    factor, unit = scale_of(name, greatest)
    least = min((abs(value) for value in values if value), default=greatest)
    fine = _kind(name) not in ("_bps", "_s", "_bytes") or least >= 0.1 * factor or not least
    minutes = name.endswith("_s") and greatest >= _MINUTES_S
    return (factor, unit) if fine and not minutes and math.isfinite(greatest) else None


def number_in(name: str, value: float, factor: float) -> str:
    """Format a value without its unit, which has this factor."""
    return _number(name, value / factor)


def half_in(name: str, mean: float, half: float, factor: float) -> str:
    """Format half the width of an interval without its unit, which has this factor."""
    scaled = half / factor
    most = _index_digits(mean) if name.endswith("_jain") else 3
    digits = max(0, min(most, 1 - math.floor(math.log10(scaled)))) if scaled else 0
    width = f"{scaled:.{digits}f}"
    if scaled and not float(width):  # It is small, and not none.
        width = f"<{10**-digits:.{digits}f}"
    return width


def format_range(name: str, low: float, high: float, *, signed: bool = False) -> str:
    """Format two ends in one unit, with as many digits each: ``12.1 … 13.0 Mbit/s``."""
    factor, unit = scale_of(name, max(abs(low), abs(high)))
    ends = (low / factor, high / factor)
    written = [len(_number(name, end).partition(".")[2]) for end in ends]

    def text(end: float, own: int) -> str:
        rounded = abs(float(f"{end:.3g}"))
        three = 2 - math.floor(math.log10(rounded)) if rounded else 0
        sign = "+" if signed and end > 0 else ""
        return f"{sign}{end:.{max(own, min(max(written), three))}f}"

    return f"{' … '.join(map(text, ends, written))} {unit}".rstrip()


_MAGNITUDE = re.compile(
    r"(?:at least |below )?([+-]?[0-9][0-9,]*(?:\.[0-9]+)?(?:e[+-]?[0-9]+)?) ?([^\s0-9]*)(?: ±.*)?"
)
_CLOCK = re.compile(r"(-?)([0-9]+) (h|min) ([0-9]+) (min|s)")


def magnitude(text: str) -> float | None:
    """Return the value of a text, in SI base units, to sort by; None if it is no quantity.

    Of a text that `format_value` or `format_mean` wrote, in any display unit, or a profile.
    """
    if text == "unlimited":
        return UNLIMITED
    if match := _CLOCK.fullmatch(text):
        sign, *parts = match.groups()
        units = _UNITS["duration"]
        value = sum(
            float(number) * units[unit][1]
            for number, unit in zip(parts[::2], parts[1::2], strict=True)
        )
        return -value if sign else value
    match = _MAGNITUDE.fullmatch(text)
    factor = _factors().get(match[2]) if match else None
    return None if match is None or factor is None else float(match[1].replace(",", "")) * factor


@cache
def _factors() -> Mapping[str, float]:
    """Return every unit of a text with its factor; no unit is 1."""
    shown = [parse_display(text) for text in ("bits,si", "bits,iec", "bytes,si", "bytes,iec")]
    steps = [step for kinds in shown for kind in kinds.values() for step in kind]
    steps += [step for quantity in _QUANTITIES.values() for step in quantity.steps]
    written = {
        unit: factor * 10.0**power
        for units in _UNITS.values()
        for unit, (power, factor) in units.items()
    }
    return {**written, **{unit: factor for factor, unit in steps}, "": 1.0, "pp": 0.01}


UNKNOWN = "-"
"""What stands for a figure that is not known."""


def format_rate(value_bps: float | None) -> str:
    """Format a rate: ``94.1 Mbit/s``."""
    return UNKNOWN if value_bps is None else format_value("_bps", value_bps)


def write_rate(value_bps: float) -> str:
    """Write a rate exactly, as profiles do: ``29.15Mbit``."""
    if math.isinf(value_bps):
        return "unlimited"
    units = reversed(_UNITS["rate"].items())
    power, unit = next((p, unit) for unit, (p, _) in units if value_bps >= 10**p or not p)
    return f"{Decimal(repr(value_bps)).scaleb(-power).normalize():f}{unit}"


def write_duration(value_s: float) -> str:
    """Write a duration as profiles do, in the largest unit that it fills: ``250ms``.

    To 12 digits.
    """
    factor, unit = next((s for s in _QUANTITIES["_s"].steps if value_s >= s[0]), (1.0, "s"))
    return f"{Decimal(f'{value_s / factor:.12g}'):f}{unit}"


def write_size(value_bytes: float) -> str:
    """Write a size as profiles and iperf3 do: ``256K``, and ``1448B`` if it is no binary multiple.

    Whole bytes.
    """
    whole = round(value_bytes)
    multiples = ((unit, 2**power) for unit, power in (("G", 30), ("M", 20), ("K", 10)))
    unit, factor = next(
        (multiple for multiple in multiples if whole and not whole % multiple[1]), ("B", 1)
    )
    return f"{whole // factor}{unit}"


def format_duration(value_s: float | None) -> str:
    """Format a duration: ``20.4 ms``; from two minutes on ``5 min 20 s``."""
    return UNKNOWN if value_s is None else format_value("_s", value_s)


def format_size(value_bytes: float | None) -> str:
    """Format a size: ``256 KiB``."""
    return UNKNOWN if value_bytes is None else format_value("_bytes", value_bytes)


def format_time(time: float) -> str:
    """Format a Unix time for people, in local time: ``2026-11-21 00:45``."""
    at = localtime(time)
    # Not strftime(), which looks up the time zone's file at each call.
    return f"{at[0]:04}-{at[1]:02}-{at[2]:02} {at[3]:02}:{at[4]:02}"


def timestamp(time: float) -> str:
    """Write a Unix time in ISO 8601, local with its offset, to the millisecond."""
    second, rest = divmod(round(time * 1000), 1000)
    offset = strftime("%z", localtime(second))
    return f"{strftime('%Y-%m-%dT%H:%M:%S', localtime(second))}.{rest:03d}{offset[:3]}:{offset[3:]}"


def format_ago(span_s: float) -> str:
    """Format for how long something has been past, in one unit: ``5 min ago``, ``3 d ago``."""
    units = (("d", 86_400), ("h", 3600), ("min", 60), ("s", 1))
    unit, unit_s = next((unit for unit in units if span_s >= unit[1]), units[-1])
    return f"{max(0.0, span_s) // unit_s:.0f} {unit} ago"


def format_count(count: int, noun: str) -> str:
    """Format a number of things: ``1 trial``, ``1,200 trials``."""
    return f"{count:,} {noun}{'s' * (count != 1)}"


def format_ratio(value: float) -> str:
    """Format a ratio: ``2.5 %``."""
    return format_value("_ratio", value)
