"""The summary as an aligned table for a terminal, followed by the failures and the answer."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from benchctl.report.answer import read_answer
from benchctl.report.pivot import align, pivot
from benchctl.report.report import Report, StoredRun, without_figures
from benchctl.report.text.delays import delay_table
from benchctl.report.text.remarks import remarks
from benchctl.report.text.searches import search_table
from benchctl.visible import visible


def export(stored: StoredRun) -> Iterator[str]:
    """Yield the summary as a table of text, and what came out in words."""
    report = stored.report
    yield text_of(report)
    if report.trials:
        yield "\n"
        yield from (f"{visible(line)}\n" for line in read_answer(stored.reader, report))


def text_of(report: Report, statistics: Sequence[str] = ()) -> str:
    """Return the table of a report as `pivot` does, and the remarks below it."""
    found = search_table(report)
    head = f"{align(found.heads, found.rows, found.numeric)}\n" if found is not None else ""
    shown = pivot(report, statistics)
    text = f"{without_figures(report)}\n"
    if shown.rows:
        text = align(shown.heads, shown.rows, shown.numeric)
    if (delays := delay_table(report)) is not None:
        text += f"\n{align(delays.heads, delays.rows, delays.numeric)}"
    return head + "\n".join([text.removesuffix("\n"), *remarks(report)]) + "\n"
