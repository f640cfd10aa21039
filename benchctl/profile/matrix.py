"""The points of the matrix: the product of the axes, less ``exclude``, plus ``include``.

An axis is a name and a list of values. Each value sets one or more targets; a target is a flow's
key or parameter (``streams`` for every flow that takes it, ``main.streams`` for one flow), or a
setting of the lab (``lab.links.core.loss``). Axes of one ``[[zip]]`` group advance together.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from benchctl.profile.load import Document, nearest
from benchctl.profile.model import Axis, Scalar
from benchctl.profile.source import Key


@dataclass(frozen=True, slots=True, eq=False)
class Value:
    """One value of one axis: how it is shown, what it sets, and where it was written."""

    axis: str
    shown: Scalar
    sets: tuple[tuple[str, Any], ...]
    key: Key


Point = tuple[Value, ...]
"""One value of each axis, in the order of the axes."""


@dataclass(frozen=True, slots=True)
class Matrix:
    """Axes in the order written, as dimensions: a plain axis, or a zipped group."""

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
        for dimension in (*self.dimensions, self.included):
            for point in dimension:
                yield from point

    def points(self) -> Iterator[Point]:
        """Yield every point, the last axis changing fastest."""
        for steps in itertools.product(*self.dimensions):
            point = tuple(itertools.chain.from_iterable(steps))
            if not self._is_excluded(point):
                yield point
        yield from self.included

    def _is_excluded(self, point: Point) -> bool:
        if not self.excluded:
            return False
        shown = {value.axis: value.shown for value in point}
        return any(
            all(shown.get(axis) in values for axis, values in rule.items())
            for rule in self.excluded
        )


def build_matrix(document: Document) -> Matrix:
    """Build the matrix of a profile. Raises ProfileError."""
    profile = document.model
    dimensions: list[tuple[Point, ...]] = []
    names: list[str] = []
    for name, axis in profile.axes.items():
        key: Key = ("axes", name)
        sets = axis.sets if isinstance(axis, Axis) else name
        raw = axis.values if isinstance(axis, Axis) else axis
        dimensions.append(tuple((value,) for value in _values(document, name, sets, raw, key)))
        names.append(name)
    for index, group in enumerate(profile.zip):
        columns = []
        for name, raw in group.items():
            key = ("zip", index, name)
            if name in names:
                raise document.error(key, "this axis is there already")
            names.append(name)
            columns.append(_values(document, name, name, raw, key))
        lengths = {len(column) for column in columns}
        if len(lengths) != 1:
            counts = ", ".join(f"{len(column)} of {column[0].axis}" for column in columns)
            raise document.error(("zip", index), f"axes of different length: {counts}")
        dimensions.append(tuple(zip(*columns, strict=True)))
    known = {
        value.axis: {v.shown: v for step in dimension for v in step if v.axis == value.axis}
        for dimension in dimensions
        for value in dimension[0]
    }
    return Matrix(
        tuple(names), tuple(dimensions), _excluded(document, known), _included(document, known)
    )


def _values(
    document: Document, name: str, sets: str | list[str], raw: list[Any], key: Key
) -> tuple[Value, ...]:
    targets = [sets] if isinstance(sets, str) else sets
    values = []
    seen: set[Scalar] = set()
    for index, item in enumerate(raw):
        where = (*key, index)
        if isinstance(item, dict):
            item = dict(item)
            label = item.pop("label", None)
            if not isinstance(label, str | int | float):
                raise document.error(where, 'a value that is a table needs a "label"')
            value = Value(name, label, tuple(item.items()), where)
        else:
            value = Value(name, item, tuple((target, item) for target in targets), where)
        if value.shown in seen:
            raise document.error(where, f"{value.shown!r} is in this axis twice")
        seen.add(value.shown)
        values.append(value)
    return tuple(values)


def _lookup(
    document: Document, known: Mapping[str, Mapping[Scalar, Value]], key: Key, shown: Scalar
) -> Value:
    axis = str(key[-1])
    if axis not in known:
        hint = nearest(axis, known) or f"axes are: {', '.join(known) or 'none'}"
        raise document.error(key, "no axis of this name", hint)
    if shown not in known[axis]:
        values = ", ".join(str(value) for value in known[axis])
        raise document.error(key, f"{shown!r} is not a value of this axis", f"values are: {values}")
    return known[axis][shown]


def _excluded(
    document: Document, known: Mapping[str, Mapping[Scalar, Value]]
) -> tuple[Mapping[str, frozenset[Scalar]], ...]:
    rules = []
    for index, rule in enumerate(document.model.exclude):
        wanted = {}
        for axis, raw in rule.items():
            key: Key = ("exclude", index, axis)
            shown = raw if isinstance(raw, list) else [raw]
            wanted[axis] = frozenset(_lookup(document, known, key, one).shown for one in shown)
        rules.append(wanted)
    return tuple(rules)


def _included(document: Document, known: Mapping[str, Mapping[Scalar, Value]]) -> tuple[Point, ...]:
    points = []
    for index, entry in enumerate(document.model.include):
        point: list[Value] = []
        for axis, shown in entry.items():
            key: Key = ("include", index, axis)
            if axis in known and shown not in known[axis]:
                # An included point may have a value that the product does not have.
                long_form = document.model.axes.get(axis)
                sets = long_form.sets if isinstance(long_form, Axis) else axis
                point += _values(document, axis, sets, [shown], key)
            else:
                point.append(_lookup(document, known, key, shown))
        points.append(tuple(point))
    return tuple(points)
