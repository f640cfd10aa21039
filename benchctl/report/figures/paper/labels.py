"""Names on paper: how wide they are, and for which of an axis there is room."""

from __future__ import annotations

import textwrap
from collections.abc import Sequence
from typing import TypeVar

from benchctl.visible import width_of

T = TypeVar("T")
# Slanted names below a figure, and names beside it: if they were closer, they would touch. For more
# names a figure grows, up to so many: of more, some are named.
MOST_NAMES, MOST_ROWS, MOST_GROWN = 30, 20, 120
NAME_INCHES = 0.178
# Names that are slanted less take less height, and only few of them fit side by side.
SLANT, STEEP_SLANT, FEW_NAMES = 35, 60, 20
STEEP_INCHES = 0.4
# Two labels of an axis closer than this share of it would touch, for each character of a label.
LABEL_SHARE = 0.017
NAME_WIDTH = 22
# Of a row of a forest plot, whose small letters are so wide.
ROW_WIDTH, ROW_LETTER_INCHES = 48, 0.055
TITLE_WIDTH, TITLE_LINES = 78, 2
# Beside the names of a legend.
TITLE_BESIDE = 46
NOTE_WIDTH = 105


def short(names: Sequence[str], width: int = NAME_WIDTH) -> list[str]:
    """Return names, of long ones the beginning; if beginnings are the same, also the end."""
    found = [_cut(name, width - 1, width) for name in names]
    if len({*found}) == len({*names}):
        return found
    return [_cut(name, width // 2, width) for name in names]


def _cut(name: str, begin: int, width: int) -> str:
    if len(name) <= width:
        return name
    end = width - 1 - begin
    return f"{name[:begin]}…{name[len(name) - end :]}"


def grown_inches(count: int, most: int) -> float:
    """Return how much a figure grows for its names, of which ``most`` have room in any."""
    return NAME_INCHES * max(0, min(count, MOST_GROWN) - most)


def slant(count: int) -> int:
    """Return by how many degrees so many names below a figure are turned."""
    return SLANT if count <= FEW_NAMES else STEEP_SLANT


def step_of(count: int) -> int:
    """Return the distance of two names of an axis: 1 if all are written."""
    return -(-count // MOST_GROWN) or 1


def wrapped(text: str, width: int, most: int) -> list[str]:
    """Return a text in lines; an ellipsis ends the last if there are more than ``most``."""
    if width_of(text) > len(text):
        width //= 2
    return textwrap.wrap(text, width, max_lines=most, placeholder=" …")
