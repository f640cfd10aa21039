"""Rows in columns of fixed width, as text: the parts of tables.

A table that is wider than its place scrolls sideways by whole columns. Those that say what a row is
about stay.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import takewhile

from msgspec import Struct
from msgspec.structs import replace

from benchctl.report.lines.spans import PLAIN, Span, crop, fit, shorten
from benchctl.visible import width_of

Cells = Sequence[Span]
"""A cell for every column, or up to one of words."""
GAP = "  "
CHOSEN = "chosen"
"""The role of the row under the cursor while the keys go elsewhere."""
# A text may be shortened to this, so that an error at the right of a table is read.
LEAST_TEXT = 8


class FreeText(Span):
    """The last cell of a row that has no figures: it goes on over their columns."""


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


class VisibleColumns(Struct, frozen=True):
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

    @property
    def hidden(self) -> str:
        """How many columns are hidden to either side; empty if none is."""
        before, after = f" ← {self.before}", f" {self.after} →"
        return before * bool(self.before) + after * bool(self.after)

    @property
    def free(self) -> int:
        """How many characters right of all headings are blank, if the last begins its column."""
        if not self.columns:
            return self.width
        last = self.columns[-1][1]
        return self.width - _width([column for _, column in self.columns[:-1]]) - len(last.head)

    def place_at(self, x: int) -> int | None:
        """Return which of all columns is at a character; None beside them."""
        for place, column in self.columns:
            x -= column.width + len(GAP)
            if x < 0:
                return place
        return None

    def head(self) -> list[Span]:
        """Return the headings, and how many columns are hidden."""
        spans = [
            Span(
                fit(shorten(column.head, column.width), column.width, right=column.right) + GAP,
                "label",
            )
            for _, column in self.columns
        ]
        if not self.hidden:
            return spans
        if self.columns and self.columns[-1][1].right:
            _, last = self.columns[-1]
            most = (
                self.width - len(self.hidden) - _width([column for _, column in self.columns[:-1]])
            )
            spans[-1] = Span(fit(last.head.rjust(min(last.width, most)), last.width), "label")
        return [*crop(spans, self.width - len(self.hidden)), Span(self.hidden, "warn")]

    def row(self, cells: Cells, *, role: str = PLAIN) -> list[Span]:
        """Return a row in its columns; ``role`` replaces those of the cells, except heat.

        `CHOSEN` replaces none: the colours of flows and states stay.
        """
        spans: list[Span] = []
        free = self.width
        for place, column in self.columns:
            cell = cells[min(place, len(cells) - 1)]
            keeps = column.drawn or cell.role.startswith("heat")
            keeps = keeps or (role == CHOSEN and bool(cell.role))
            own = cell.role if keeps else role or cell.role
            if isinstance(cell, FreeText):
                return [*spans, Span(fit(cell.text, free), own)]
            text = fit(cell.text, column.width, right=column.right)
            blank = len(text) - len(text.rstrip()) if column.drawn else 0
            spans += [Span(text[: len(text) - blank], own), Span(" " * blank + GAP, role)]
            free -= column.width + len(GAP)
        return spans


def see(columns: Sequence[Column], width: int, first: int = 0) -> VisibleColumns:
    """Return the columns that a width shows, without the ``first`` of those that scroll.

    A column of figures is visible as a whole or not at all, and so is its heading. The last column
    ends the scrolling.
    """
    if first == 0 and _fixed_stay(columns, width):
        columns = _narrowed(columns, width)
    sight = _seen(columns, width, first)
    if sight.free < len(sight.hidden):
        narrower = _seen(columns, width - len(sight.hidden), first)
        if _fixed(narrower.columns) == _fixed(sight.columns) != [*narrower.columns]:
            return replace(narrower, width=width)
    return sight


def _fixed(columns: Sequence[tuple[int, Column]]) -> list[tuple[int, Column]]:
    return [(place, column) for place, column in columns if column.fixed]


def _narrowed(columns: Sequence[Column], width: int) -> Sequence[Column]:
    """Return the columns with the texts before the figures shortened, if two figures fit then.

    The whole texts are there when it scrolls.
    """
    about = [*takewhile(lambda column: column.fixed, columns)]
    figures = [column for column in columns if not column.fixed][:2]
    others = [column for column in columns[len(about) :] if column.fixed]
    over = _width([*about, *figures, *others]) - len(GAP) - width
    texts = [n for n, column in enumerate(about) if not column.right and column.width > LEAST_TEXT]
    if over > sum(about[n].width - LEAST_TEXT for n in texts):
        return columns
    if not all(column.right for column in figures):
        return columns
    for _ in range(over):
        widest = max(texts, key=lambda n: about[n].width)
        about[widest] = replace(about[widest], width=about[widest].width - 1)
    return [*about, *columns[len(about) :]]


def _fixed_stay(columns: Sequence[Column], width: int) -> bool:
    """Return whether the fixed columns leave room for any one of the others."""
    needed = (
        column.width if column.right else min(column.width, LEAST_TEXT)
        for column in columns
        if not column.fixed
    )
    return _width(column for column in columns if column.fixed) + max(needed, default=0) <= width


def _seen(columns: Sequence[Column], width: int, first: int) -> VisibleColumns:
    everything = range(len(columns))
    fixed = [place for place in everything if columns[place].fixed]
    moving = [place for place in everything if not columns[place].fixed]
    if not _fixed_stay(columns, width):
        fixed, moving = [], [*everything]
    taken = _width([columns[place] for place in fixed])
    most = max(0, len(moving) - 1)
    while most and taken + _width([columns[n] for n in moving[most - 1 :]]) - len(GAP) <= width:
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
    return VisibleColumns(sorted(shown.items()), width, len(columns), first)


def _width(columns: Iterable[Column]) -> int:
    return sum(column.width + len(GAP) for column in columns)


def widths(
    heads: Sequence[str], rows: Sequence[Sequence[str]], right: Sequence[bool]
) -> list[Column]:
    """Return columns that are as wide as their widest text; those without figures are fixed."""
    return [
        Column(
            head,
            max(width_of(head), *(width_of(row[i]) for row in rows), 1),
            right[i],
            not right[i],
        )
        for i, head in enumerate(heads)
    ]
