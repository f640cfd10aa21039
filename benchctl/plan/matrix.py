"""The points of the matrix: the product of the axes, less ``exclude``, plus ``include``.

An axis is a name and a list of values. Each value sets one or more targets; a target is a flow's
key or parameter (``streams`` for every flow that takes it, ``main.streams`` for one flow), the
choice of ``flows``, or a setting of the lab (``lab.links.core.loss``). Axes of one ``[[zip]]``
group advance together.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from msgspec import Struct
from msgspec.structs import replace

from benchctl.analysis.search.search import first_rate
from benchctl.errors import UsageError, nearest
from benchctl.profile.load import Document
from benchctl.profile.model import AxisTable, SearchTable
from benchctl.profile.values import as_text
from benchctl.run.planned import Scalar
from benchctl.toml.source import Key
from benchctl.units import quoted, write_rate

Assignment = tuple[str, Any, Key]
"""One assignment: a target, its setting, and the key that wrote it."""


class Value(Struct, frozen=True, eq=False):
    """One value of one axis: its label, what it sets, and where it was written."""

    axis: str
    shown: Scalar
    sets: tuple[Assignment, ...]
    key: Key


Point = tuple[Value, ...]
"""One value of each axis, in the order of the axes."""

_Known = Mapping[str, Mapping[Scalar, Value]]
"""The values of the product, by axis and label."""


class Matrix(Struct, frozen=True):
    """Axes in the order of the profile, as dimensions: a single axis, or a zipped group."""

    axes: tuple[str, ...]
    dimensions: tuple[tuple[Point, ...], ...]
    excluded: tuple[Mapping[str, frozenset[Scalar]], ...]
    included: tuple[Point, ...]

    @property
    def size(self) -> int:
        """Number of points before ``exclude``."""
        return math.prod(map(len, self.dimensions)) + len(self.included)

    def values(self) -> Iterator[Value]:
        """Yield every value of every axis, each at least once."""
        for step in itertools.chain(*self.dimensions, self.included):
            yield from step

    def points(self) -> Iterator[Point]:
        """Yield every point, the last axis changing fastest."""
        points = map(_joined, itertools.product(*self.dimensions))
        yield from itertools.filterfalse(self._is_excluded, points) if self.excluded else points
        yield from self.included

    def __contains__(self, point: Point) -> bool:
        """Return whether a point is in the product, and no rule excludes it."""
        shown = {value.axis: value.shown for value in point}
        return (
            len(shown) == len(self.axes)
            and all(
                any(all(shown[value.axis] == value.shown for value in step) for step in steps)
                for steps in self.dimensions
            )
            and not self._is_excluded(point)
        )

    def _is_excluded(self, point: Point) -> bool:
        shown = {value.axis: value.shown for value in point}
        return any(
            all(shown.get(axis) in values for axis, values in rule.items())
            for rule in self.excluded
        )

    def only(self, texts: Sequence[str]) -> Matrix:
        """Return the part in which axes have some of their values: ``server=paris,tashkent``.

        Raises UsageError.
        """
        wanted: dict[str, set[Scalar]] = {}
        for text in texts:
            axis, values = self._read_only(text)
            wanted[axis] = wanted.get(axis, values) & values

        def fits(step: Point) -> bool:
            return all(v.shown in wanted[v.axis] for v in step if v.axis in wanted)

        return replace(
            self,
            dimensions=tuple(tuple(filter(fits, steps)) for steps in self.dimensions),
            included=tuple(
                point
                for point in self.included
                if fits(point) and wanted.keys() <= {v.axis for v in point}
            ),
        )

    def _read_only(self, text: str) -> tuple[str, set[Scalar]]:
        axis, equals, listed = text.partition("=")
        if not equals:
            raise UsageError(
                f"--only {as_text(text)}: expected AXIS=VALUE", "for example: --only streams=4"
            )
        if axis not in self.axes:
            hint = nearest(axis, self.axes) or f"axes are: {', '.join(self.axes) or 'none'}"
            raise UsageError(f"--only {as_text(text)}: no axis {quoted(axis)}", hint)
        there = {as_text(value.shown): value.shown for value in self.values() if value.axis == axis}
        # A value that contains a comma can only be chosen alone.
        names = [listed] if listed in there else listed.split(",")
        for name in names:
            if name not in there:
                raise UsageError(
                    f"--only {as_text(text)}: axis {quoted(axis)} has no value {quoted(name)}",
                    nearest(name, there) or f"values are: {', '.join(there)}",
                )
        return axis, {there[name] for name in names}


def _joined(steps: Iterable[Point]) -> Point:
    return tuple(itertools.chain.from_iterable(steps))


def build_matrix(document: Document) -> Matrix:
    """Build the matrix of a profile. Raises ProfileError."""
    profile = document.model
    columns = {name: _values(name, axis, ("axes", name)) for name, axis in profile.axes.items()}
    dimensions = [tuple((value,) for value in column) for column in columns.values()]
    for index, group in enumerate(profile.zip):
        for name, axis in group.items():
            key: Key = ("zip", index, name)
            if name in columns:
                raise document.error(key, "this axis is defined twice")
            columns[name] = _values(name, axis, key)
        if len({len(columns[name]) for name in group}) > 1:
            counts = ", ".join(f"{name} has {len(columns[name])}" for name in group)
            raise document.error(
                ("zip", index), f"the axes of a [[zip]] need equally many values: {counts}"
            )
        dimensions.append(tuple(zip(*(columns[name] for name in group), strict=True)))
    known: dict[str, dict[Scalar, Value]] = {}
    for name, column in columns.items():
        known[name] = {}
        for value in column:
            if value.shown in known[name]:
                raise document.error(value.key, f"{quoted(value.shown)} appears twice in this axis")
            known[name][value.shown] = value
    matrix = Matrix(tuple(columns), tuple(dimensions), _excluded(document, known), ())
    matrix = replace(matrix, included=_included(document, known, matrix))
    return matrix if profile.search is None else _searched(document, profile.search, matrix)


def _searched(document: Document, search: SearchTable, matrix: Matrix) -> Matrix:
    """Return a matrix with the searched axis, whose only value is the first rate to try."""
    key: Key = ("search", search.target)
    if search.target in matrix.axes:
        raise document.error(key, "an axis has this name, too", "remove one of the two")
    rate = write_rate(first_rate(*search.range_bps, search.precision))
    value = Value(search.target, rate, ((search.target, rate, key),), key)
    return replace(
        matrix,
        axes=(*matrix.axes, search.target),
        dimensions=(*matrix.dimensions, ((value,),)),
        included=tuple((*point, value) for point in matrix.included),
    )


def _values(name: str, axis: AxisTable, key: Key) -> tuple[Value, ...]:
    values = []
    for index, item in enumerate(axis.items):
        where = (*key, "values", index)
        if isinstance(item, dict):
            rest = {field: setting for field, setting in item.items() if field != "label"}
            values.append(Value(name, item["label"], tuple(_settings(rest, (), where)), where))
        else:
            values.append(_plain(name, axis, item, where))
    return tuple(values)


def _plain(name: str, axis: AxisTable, shown: Scalar, key: Key) -> Value:
    return Value(name, shown, tuple((target, shown, key) for target in axis.sets or [name]), key)


def _settings(table: Mapping[str, Any], path: Key, key: Key) -> Iterator[Assignment]:
    """Yield what a labelled value sets; ``main.window = "1M"`` may be written without quotes."""
    for name, setting in table.items():
        if isinstance(setting, dict):
            yield from _settings(setting, (*path, name), (*key, name))
        else:
            yield ".".join(map(str, (*path, name))), setting, (*key, name)


def _excluded(document: Document, known: _Known) -> tuple[Mapping[str, frozenset[Scalar]], ...]:
    rules = []
    for index, rule in enumerate(document.model.exclude):
        for axis, values in rule.items():
            key: Key = ("exclude", index, axis)
            for position, shown in enumerate(values):
                check_value(document, known, key, shown, position)
        rules.append({axis: frozenset(values) for axis, values in rule.items()})
    return tuple(rules)


def _included(document: Document, known: _Known, matrix: Matrix) -> tuple[Point, ...]:
    profile = document.model
    axes = {name: axis for group in (profile.axes, *profile.zip) for name, axis in group.items()}
    points: list[Point] = []
    seen: set[frozenset[tuple[str, Scalar]]] = set()
    for index, entry in enumerate(profile.include):
        key: Key = ("include", index)
        for axis in entry:
            check_axis(document, known, (*key, axis))
        # An included point may lack an axis, or have a value outside the product.
        point = tuple(
            known[axis].get(entry[axis]) or _plain(axis, axes[axis], entry[axis], (*key, axis))
            for axis in known
            if axis in entry
        )
        shown = frozenset(entry.items())
        if shown in seen or point in matrix:
            raise document.error(key, "this point is already in the matrix")
        seen.add(shown)
        points.append(point)
    return tuple(points)


def check_axis(document: Document, known: _Known, key: Key) -> None:
    """Raise ProfileError unless the last part of the key is the name of an axis."""
    if key[-1] not in known:
        hint = nearest(str(key[-1]), known) or f"axes are: {', '.join(known) or 'none'}"
        raise document.error(key, "no axis has this name", hint)


def check_value(document: Document, known: _Known, key: Key, shown: Scalar, *position: int) -> None:
    """Raise ProfileError unless the axis at the end of the key has this value.

    ``position`` is the value's index in a list. ``--set`` may have replaced the values of the axis.
    """
    check_axis(document, known, key)
    values = known[str(key[-1])]
    if shown not in values and ("axes", key[-1]) not in document.overrides.lines:
        texts = [as_text(value) for value in values]
        hint = nearest(as_text(shown), texts) or f"values are: {', '.join(texts)}"
        raise document.error(
            (*key, *position), f"{quoted(shown)} is not a value of this axis", hint
        )
