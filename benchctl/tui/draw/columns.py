"""Rows in columns of fixed width, as text: the parts of tables."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from benchctl.tui.draw.spans import PLAIN, Span, fit

Cells = Sequence[Span]
"""A cell for every column."""
GAP = "  "


@dataclass(frozen=True, slots=True)
class Column:
    """A heading and a width in characters; numbers are right-aligned."""

    head: str
    width: int
    right: bool = False


def lay_out(columns: Sequence[Column], cells: Cells, *, role: str = PLAIN) -> list[Span]:
    """Return one row in its columns; ``role`` replaces those of the cells, except heat."""
    spans: list[Span] = []
    for column, cell in zip(columns, cells, strict=True):
        text = fit(cell.text, column.width, right=column.right)
        own = cell.role.startswith("heat")
        spans += [Span(text, cell.role if own else role or cell.role), Span(GAP, role)]
    return spans


def widths(
    heads: Sequence[str], rows: Sequence[Sequence[str]], right: Sequence[bool]
) -> list[Column]:
    """Return columns that are as wide as their widest text."""
    return [
        Column(head, max(len(head), *(len(row[i]) for row in rows), 1), right[i])
        for i, head in enumerate(heads)
    ]
