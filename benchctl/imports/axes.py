"""What differs between measurements becomes axes, and what does not, repeats."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from benchctl.run.planned import Scalar
from benchctl.units import parse_duration, parse_rate, parse_size

DEFAULT = "default"
"""The value of a setting that a measurement left to its tool."""
UNKNOWN = "unknown"
"""The value of a setting that a measurement does not report."""


@dataclass(frozen=True, slots=True)
class TrialSettings:
    """A measurement: when it began (Unix time), and its settings.

    A setting that is None is not reported. One that is missing was left to the tool, or is not
    reported either, if the measurement ``is_bare``: it ended before it reported any.
    """

    started_time: float
    settings: Mapping[str, Scalar | None]
    is_bare: bool = False


@dataclass(frozen=True, slots=True)
class Ordered:
    """The place of a measurement: its index among those given, its point and its repeat."""

    index: int
    point: Mapping[str, Scalar]
    repeat: int


def order(
    measured: Sequence[TrialSettings],
) -> tuple[Mapping[str, tuple[Scalar, ...]], list[Ordered]]:
    """Return the axes with their values, and the measurements in the order of their time."""
    names = dict.fromkeys(name for settings in measured for name in settings.settings)
    found = {name: {_value(settings, name) for settings in measured} for name in names}
    axes = {
        name: tuple(sorted(values, key=_rank))
        for name, values in found.items()
        if len(values - {UNKNOWN}) > 1
    }
    repeats: dict[tuple[Scalar, ...], int] = {}
    ordered = []
    for index in sorted(range(len(measured)), key=lambda i: measured[i].started_time):
        point = {axis: _value(measured[index], axis) for axis in axes}
        place = (*point.values(),)
        repeats[place] = repeats.get(place, 0) + 1
        ordered.append(Ordered(index, point, repeats[place]))
    return axes, ordered


def _value(settings: TrialSettings, name: str) -> Scalar:
    value = settings.settings.get(name, UNKNOWN if settings.is_bare else DEFAULT)
    return UNKNOWN if value is None else value


_QUANTITIES: tuple[Callable[[object], float], ...] = (parse_size, parse_rate, parse_duration)


def _rank(value: Scalar) -> tuple[int, float, str]:
    """Return the sort key of a value: numbers and quantities by size, then words."""
    if not isinstance(value, str):
        return 0, value, ""
    if value in (DEFAULT, UNKNOWN):
        return 2, 0.0, value
    for parse in _QUANTITIES:
        try:
            return 0, parse(value), value
        except ValueError:
            continue
    return 1, 0.0, value
