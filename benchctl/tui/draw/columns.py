"""Rows in columns of fixed width, as text: the parts of tables.

A table that is wider than its place scrolls sideways by whole columns. Those that say what a row is
about stay.
"""

from __future__ import annotations

from collections.abc import Sequence

from msgspec import Struct
from msgspec.structs import replace

from benchctl.tui.draw.spans import PLAIN, Span, fit

Cells = Sequence[Span]
"""A cell for every column; the last one of a shorter row goes on over the other columns."""
GAP = "  "
# A text may be shortened to this, so that an error at the right of a table is read.
LEAST_TEXT = 8


class Column(Struct, frozen=True):
    """A heading and a width in characters; figures are right-aligned.

    A ``fixed`` column says what its row is about: it stays while the others scroll. Cells that are
    ``drawn``, such as bars, keep their colours under the cursor.
    """

    head: str
    width: int
    right: bool = False
    fixed: bool = False
    drawn: bool = False


class Sight(Struct, frozen=True):
    """The columns of a table that are visible, each with its place among all of them."""

    columns: Sequence[tuple[int, Column]]
    width: int
    count: int
    """How many columns there are."""
    before: int = 0
    """How many of those that scroll are hidden to the left."""

    @property
    def after(self) -> int:
        """How many are hidden to the right."""
        return self.count - self.before - len(self.columns)

    def row(self, cells: Cells, *, role: str = PLAIN) -> list[Span]:
        """Return a row in its columns; ``role`` replaces those of the cells, except heat."""
        spans: list[Span] = []
        free = self.width
        for place, column in self.columns:
            cell = cells[min(place, len(cells) - 1)]
            keeps = column.drawn or cell.role.startswith("heat")
            own = cell.role if keeps else role or cell.role
            if place >= len(cells) - 1 and len(cells) < self.count:
                return [*spans, Span(fit(cell.text, free), own)]
            text = fit(cell.text, column.width, right=column.right)
            spans += [Span(text, own), Span(GAP, role)]
            free -= column.width + len(GAP)
        return spans


def see(columns: Sequence[Column], width: int, first: int = 0) -> Sight:
    """Return the columns that a width shows, without the ``first`` of those that scroll.

    A column of figures is visible as a whole or not at all. The last column ends the scrolling.
    """
    everything = range(len(columns))
    fixed = [place for place in everything if columns[place].fixed]
    moving = [place for place in everything if not columns[place].fixed]
    taken = _width(columns, fixed)
    needed = (
        column.width if column.right else min(column.width, LEAST_TEXT)
        for column in columns
        if not column.fixed
    )
    if taken + max(needed, default=0) > width:
        fixed, moving, taken = [], [*everything], 0
    most = max(0, len(moving) - 1)
    while most and taken + _width(columns, moving[most - 1 :]) - len(GAP) <= width:
        most -= 1
    first = max(0, min(first, most))
    shown = {place: columns[place] for place in fixed}
    for place in moving[first:]:
        column, left = columns[place], width - taken
        if column.width > left and place != moving[first]:
            if not column.right and left >= LEAST_TEXT:
                shown[place] = replace(column, width=left)
            break
        shown[place] = replace(column, width=max(1, min(column.width, left)))
        taken += column.width + len(GAP)
    return Sight(sorted(shown.items()), width, len(columns), first)


def _width(columns: Sequence[Column], places: Sequence[int]) -> int:
    return sum(columns[place].width + len(GAP) for place in places)


def widths(
    heads: Sequence[str], rows: Sequence[Sequence[str]], right: Sequence[bool]
) -> list[Column]:
    """Return columns that are as wide as their widest text; those without figures are fixed."""
    return [
        Column(head, max(len(head), *(len(row[i]) for row in rows), 1), right[i], not right[i])
        for i, head in enumerate(heads)
    ]
