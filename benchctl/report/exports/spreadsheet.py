"""The summary as CSV in which no spreadsheet finds a formula.

A text that begins as a formula does gets an apostrophe before it, as OWASP recommends against CSV
injection. Numbers stay numbers.
"""

from __future__ import annotations

from collections.abc import Iterator

from benchctl.report.exports.csv import csv_lines, summary_rows
from benchctl.report.report import StoredRun

_BEGINNINGS = ("=", "+", "-", "@")


def export(stored: StoredRun) -> Iterator[str]:
    """Yield the summary as CSV for spreadsheets."""
    rows = summary_rows(stored.report)
    yield from csv_lines([_as_text(cell) for cell in row] for row in rows)


def _as_text(cell: object) -> object:
    is_formula = isinstance(cell, str) and cell.lstrip().startswith(_BEGINNINGS)
    return f"'{cell}" if is_formula else cell
