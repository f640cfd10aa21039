"""The summary as a table in GitHub's markdown."""

from __future__ import annotations

from collections.abc import Iterator

from benchctl.report.pivot import pivot
from benchctl.report.report import StoredRun
from benchctl.report.text.delays import delay_table
from benchctl.report.text.markdown import escaped, table_lines
from benchctl.report.text.remarks import remarks
from benchctl.report.text.searches import search_table


def export(stored: StoredRun) -> Iterator[str]:
    """Yield the summary under a heading, and the failures as a list."""
    report = stored.report
    shown, run = pivot(report), report.run
    head = f"# {escaped(run.title or run.profile)}\n\nRun {run.name}, {run.status}.\n"
    found = search_table(report)
    lines = [head, *([*table_lines(found), ""] if found else ()), *table_lines(shown)]
    if (delays := delay_table(report)) is not None:
        lines += ["", *table_lines(delays)]
    yield "\n".join([*lines, *map(_item, remarks(report))]) + "\n"


def _item(line: str) -> str:
    """Return a remark as an item of a list; an indented one belongs to the one before it."""
    text = line.lstrip()
    return f"{line.removesuffix(text)}- {escaped(text)}" if text else ""
