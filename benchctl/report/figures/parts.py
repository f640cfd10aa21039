"""Which trials and values a figure is of, and how its lines are called."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from types import MappingProxyType
from typing import Any

from msgspec import Struct

# More lines than eight colours with two sets of marks distinguish are read by nobody.
MOST_LINES = 16
REPEAT = "repeat"
# Of names up to this many characters, a legend and an axis have room for all.
LONG_NAME = 20


class Part(Struct, frozen=True):
    """The points that have these values of axes, and one repeat of them if it is not 0."""

    where: Mapping[str, str] = MappingProxyType({})
    """By the names of axes, as text."""
    repeat: int = 0

    def holds(self, point: Mapping[str, Any]) -> bool:
        """Return whether a point is of this part."""
        return all(str(point.get(axis)) == text for axis, text in self.where.items())

    @property
    def about(self) -> str:
        """The part in words: ``direction=send, repeat 2``."""
        words = [f"{axis}={text}" for axis, text in self.where.items()]
        return ", ".join([*words, *([f"repeat {self.repeat}"] if self.repeat else [])])

    @property
    def name(self) -> str:
        """The part as a piece of a file's name."""
        words = [*self.where.items(), *([(REPEAT, str(self.repeat))] if self.repeat else [])]
        return "-".join(_in_file(f"{axis}={text}") for axis, text in words)


def _in_file(text: str) -> str:
    """Return a text that any file system takes and no shell interprets."""
    return re.sub(r"[^\w.=+]+", "_", text)[:60]


class Source(Struct, frozen=True):
    """What one line is of: a point, a flow and a direction of it."""

    point: Mapping[str, Any]
    flow: str = ""
    direction: str = ""


def names_of(sources: Iterable[Source], axes: Sequence[str], without: str = "") -> Naming:
    """Return what distinguishes sources along these axes, but for the axis ``without``.

    The flow and its direction are only named where the axes do not tell.
    """
    sources = list(sources)
    shown = [
        axis
        for axis in axes
        if axis != without and len({str(source.point.get(axis)) for source in sources}) > 1
    ]
    keys = {(str(source.point.get(without)), source.flow, source.direction,
             *(str(source.point.get(axis)) for axis in shown)) for source in sources}  # fmt: skip
    for flow, direction in ((False, False), (True, False), (False, True), (True, True)):
        naming = Naming(tuple(shown), flow=flow, direction=direction)
        named_keys = {(str(source.point.get(without)), naming.key(source)) for source in sources}
        if len(named_keys) == len(keys):
            break
    return naming


class Naming(Struct, frozen=True):
    """By what lines are distinguished: axes, the flow, its direction."""

    axes: tuple[str, ...]
    flow: bool = False
    direction: bool = False

    def key(self, source: Source) -> tuple[str, ...]:
        """Return what is the same for all points of a line."""
        words = [str(source.point.get(axis, "-")) for axis in self.axes]
        words += [source.flow] * self.flow + [source.direction] * self.direction
        return tuple(words)

    def name(self, source: Source) -> str:
        """Return the name of a line; empty if there is only one."""
        return ", ".join(word for word in self.key(source) if word)

    @property
    def title(self) -> str:
        """What the names are values of."""
        words = [axis.replace("_", " ") for axis in self.axes]
        return ", ".join([*words, *["flow"] * self.flow, *["direction"] * self.direction])


def left_out(count: int, shown: int, what: str) -> list[str]:
    """Return a note about what a figure does not show, if it does not show all."""
    if count <= shown:
        return []
    return [
        f"{count - shown} of {count} {what} are left out: benchctl plot --only AXIS=VALUE chooses"
    ]


def without_common(names: Sequence[str]) -> tuple[list[str], list[str]]:
    """Return names without what all begin and end with, and a note that says what it is.

    Only of long names, and only whole words are left out: forty labels that are cut to the same
    words tell nothing apart.
    """
    if len({*names}) < 2 or max(map(len, names)) <= LONG_NAME:
        return [*names], []
    before = re.sub(r"[^\W_]*$", "", _beginning([*names]))
    behind = _beginning([name[len(before) :][::-1] for name in names])[::-1]
    behind = re.sub(r"^[^\W_]*", "", behind)
    cut = [name[len(before) : len(name) - len(behind)] for name in names]
    parts = [f'{where} "{part}"' for where, part in (("begin with", before), ("end with", behind))
             if part]  # fmt: skip
    if not parts or not all(cut):
        return [*names], []
    return cut, [f"all names {' and '.join(parts)}"]


def _beginning(texts: Sequence[str]) -> str:
    """Return what all texts begin with: what the first and the last in order do."""
    first, last = min(texts), max(texts)
    same = next(
        (at for at, pair in enumerate(zip(first, last, strict=False)) if len({*pair}) > 1),
        len(first),
    )
    return first[:same]
