"""What lies beyond the ends of a plot's axis: marks in a row of their own, with values."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from itertools import pairwise
from typing import NamedTuple

from benchctl.report.lines.spans import PLAIN, shorten
from benchctl.tui.draw.plot.field import Cell

# A glyph, a letter and an ellipsis say nothing.
LEAST_WORD = 5


class Beyond(NamedTuple):
    """A value beyond an end: the column of cells it is in, how far it is, and its role.

    ``text`` replaces its number.
    """

    column: int
    far: float
    value: float
    role: str
    text: str = ""


def edge_row(
    found: Iterable[Beyond], number: Callable[[float], str], glyph: str, width: int
) -> list[Cell]:
    """Return a row with a glyph in every column with values, and the farthest of each group.

    Values side by side are a group. Where texts would overlap, the farther value is shown.
    """
    farthest: dict[int, Beyond] = {}
    for beyond in found:
        if beyond.column not in farthest or beyond.far > farthest[beyond.column].far:
            farthest[beyond.column] = beyond
    row = [(PLAIN, " ")] * width
    for column, beyond in farthest.items():
        row[column] = (beyond.role, glyph)
    taken: set[int] = set()
    tops = [max(group, key=lambda beyond: beyond.far) for group in _groups(farthest)]
    for top in sorted(tops, key=lambda top: top.far, reverse=True):
        shown = top.text or number(top.value)
        text = glyph + shown
        begin = min(top.column, width - len(text))
        if top.column > begin:  # the glyph stays above its value
            text = shown + glyph
            begin = top.column - len(text) + 1
        cells = range(begin, begin + len(text))
        if begin >= 0 and not taken & {*range(begin - 1, begin + len(text) + 1)}:
            taken |= {*cells}
            row[begin : begin + len(text)] = [(top.role, character) for character in text]
    return row


def event_row(found: Iterable[Beyond], glyph: str, width: int) -> list[Cell]:
    """Return a row with a glyph for each event, and its words, shortened to what has room.

    Of several in one column, the first is shown. No word hides a glyph; that of the last may stand
    before its own.
    """
    first: dict[int, Beyond] = {}
    for beyond in sorted(found, key=lambda beyond: (beyond.column, beyond.value)):
        first.setdefault(beyond.column, beyond)
    row = [(PLAIN, " ")] * width
    end = 0
    for (column, beyond), after in zip(first.items(), [*[*first][1:], width], strict=True):
        begin, text = column, f"{glyph}{beyond.text}"
        if after == width and column + len(text) > width and column - len(beyond.text) > end:
            begin, text = column - len(beyond.text), f"{beyond.text}{glyph}"
        room = after - begin
        text = shorten(text, room) if room >= LEAST_WORD else text[:1]
        end = begin + len(text)
        row[begin:end] = [(beyond.role, character) for character in text]
    return row


def _groups(farthest: dict[int, Beyond]) -> Sequence[Sequence[Beyond]]:
    """Return the values by groups of columns side by side."""
    columns = sorted(farthest)
    groups = [[farthest[column]] for column in columns[:1]]
    for before, column in pairwise(columns):
        if column > before + 1:
            groups.append([])
        groups[-1].append(farthest[column])
    return groups
