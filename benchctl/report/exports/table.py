"""The summary as an aligned table for a terminal, followed by the failures."""

from __future__ import annotations

from collections.abc import Iterator

from benchctl.report.pivot import align, pivot
from benchctl.report.remarks import remarks
from benchctl.report.report import StoredRun
from benchctl.report.searches import search_table


def export(stored: StoredRun) -> Iterator[str]:
    """Yield the summary as a table of text."""
    report = stored.report
    if (found := search_table(report)) is not None:
        yield align(found.heads, found.rows, found.numeric) + "\n"
    shown = pivot(report)
    text = align(shown.heads, shown.rows, shown.numeric) if shown.rows else "nothing was measured\n"
    yield "\n".join([text.removesuffix("\n"), *remarks(report)]) + "\n"
