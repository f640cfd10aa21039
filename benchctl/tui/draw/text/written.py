"""A table of a screen as a file or for the clipboard: its texts, as they are shown."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence

from benchctl.report.exports.csv import csv_lines
from benchctl.report.pivot import Pivot
from benchctl.report.text.markdown import table_lines
from benchctl.visible import visible


def as_csv(table: Pivot) -> str:
    """Return a table as CSV with a line of headings."""
    return "".join(csv_lines((table.heads, *table.rows)))


def as_json(table: Pivot) -> str:
    """Return a table as a JSON array with an object for each row."""
    rows = [dict(zip(table.heads, row, strict=True)) for row in table.rows]
    return json.dumps(rows, ensure_ascii=False, indent=2) + "\n"


def as_markdown(table: Pivot) -> str:
    """Return a table in GitHub's markdown."""
    return "\n".join(table_lines(table)) + "\n"


FORMS: Mapping[str, Callable[[Pivot], str]] = {".csv": as_csv, ".json": as_json, ".md": as_markdown}
"""How a file is written, by the end of its name."""


def as_row(cells: Sequence[str]) -> str:
    """Return cells with tabs between them, as spreadsheets paste them."""
    return "\t".join(map(visible, cells))


def as_rows(table: Pivot) -> str:
    """Return a table with its headings as lines of cells."""
    return "\n".join(map(as_row, (table.heads, *table.rows)))
