"""Names on paper: how wide they are, and for which of an axis there is room."""

from __future__ import annotations

import textwrap
from collections.abc import Sequence
from typing import TypeVar

from benchctl.visible import width_of

T = TypeVar("T")
# Slanted names below a figure, and names beside it: if they were closer, they would touch.
MOST_NAMES, MOST_ROWS = 30, 20
# Two labels of an axis closer than this share of it would touch, for each character of a label.
LABEL_SHARE = 0.017
NAME_WIDTH = 22
TITLE_WIDTH, TITLE_LINES = 78, 2
# Beside the names of a legend.
TITLE_BESIDE = 46
NOTE_WIDTH = 105


def short(text: str) -> str:
    """Return a name, or its beginning if it is long."""
    return text if len(text) <= NAME_WIDTH else text[: NAME_WIDTH - 1] + "…"


def spread_out(ones: Sequence[T], most: int = MOST_NAMES) -> Sequence[T]:
    """Return all of some names or values, or at most so many at equal distances."""
    return ones[:: -(-len(ones) // most) or 1]


def wrapped(text: str, width: int, most: int) -> list[str]:
    """Return a text in lines; an ellipsis ends the last if there are more than ``most``."""
    if width_of(text) > len(text):
        width //= 2
    return textwrap.wrap(text, width, max_lines=most, placeholder=" …")
