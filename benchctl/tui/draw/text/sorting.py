"""The order of rows by the texts of a column: figures by their value, other texts as people sort.

A table of the screens has texts only, scaled to the units that people read; so ``1.2 Gbit/s`` comes
after ``940 Mbit/s``. Rows whose texts are alike stay in the order in which they were.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import lru_cache

from benchctl.units import magnitude

# Before a figure a bar of heat or a glyph, after it what it is compared with, or a mark.
_BESIDE = re.compile(r"^[^\w\s.+-]+ | +(?:/ .*|!|ago)$|, \d+$")
# Of a range, the lower end, which has its unit after the upper one.
_RANGE = re.compile(r"([-+\d.e]+) … [-+\d.e]+( \S+)?")
NOTHING = ("", "-", "?")

SortKey = tuple[int, float, tuple[tuple[int, int, str], ...]]


def value_of(text: str) -> float | None:
    """Return the figure that a cell shows, in base units; None for other texts."""
    return magnitude(_RANGE.sub(r"\1\2", _BESIDE.sub("", text.strip())))


@lru_cache(maxsize=100_000)
def sort_key(text: str) -> SortKey:
    """Return what sorts cells: figures by value, then texts with their numbers by value."""
    value = value_of(text)
    if value is not None:
        return 0, value, ()
    parts = (part for part in re.split(r"(\d+)", text.casefold()) if part)
    return 1, 0.0, tuple((0, int(p), "") if p.isdecimal() else (1, 0, p) for p in parts)


def in_order(texts: Sequence[str], *, backwards: bool) -> list[int]:
    """Return the places of texts, sorted; those that say nothing come last either way."""
    said = [place for place, text in enumerate(texts) if text.strip() not in NOTHING]
    said.sort(key=lambda place: sort_key(texts[place]), reverse=backwards)
    return [*said, *(place for place, text in enumerate(texts) if text.strip() in NOTHING)]
