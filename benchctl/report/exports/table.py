"""The summary as an aligned table for a terminal, followed by the failures."""

from __future__ import annotations

from collections.abc import Iterator

from benchctl.report.pivot import align, pivot
from benchctl.report.report import Report, StoredRun, without_figures
from benchctl.report.text.delays import delay_table
from benchctl.report.text.remarks import remarks
from benchctl.report.text.searches import search_table


def export(stored: StoredRun) -> Iterator[str]:
    """Yield the summary as a table of text."""
    yield text_of(stored.report)


def text_of(report: Report) -> str:
    """Return the table of a report, and the remarks below it."""
    found = search_table(report)
    head = f"{align(found.heads, found.rows, found.numeric)}\n" if found is not None else ""
    shown = pivot(report)
    text = f"{without_figures(report)}\n"
    if shown.rows:
        text = align(shown.heads, shown.rows, shown.numeric)
    if (delays := delay_table(report)) is not None:
        text += f"\n{align(delays.heads, delays.rows, delays.numeric)}"
    return head + "\n".join([text.removesuffix("\n"), *remarks(report)]) + "\n"
