"""The summary as a table in GitHub's markdown."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from benchctl.report.pivot import Pivot, pivot
from benchctl.report.remarks import remarks
from benchctl.report.report import StoredRun
from benchctl.report.searches import search_table
from benchctl.visible import visible


def export(stored: StoredRun) -> Iterator[str]:
    """Yield the summary under a heading, and the failures as a list."""
    report = stored.report
    shown, run = pivot(report), report.run
    head = f"# {visible(run.title or run.profile)}\n\nRun {run.name}, {run.status}.\n"
    found = search_table(report)
    lines = [head, *([*_table(found), ""] if found else ()), *_table(shown)]
    yield "\n".join([*lines, *(f"- {one}" if one else "" for one in remarks(report))]) + "\n"


def _table(shown: Pivot) -> Iterator[str]:
    rule = ["---:" if right else "---" for right in shown.numeric]
    yield from map(_line, (shown.heads, rule, *shown.rows))


def _line(cells: Sequence[str]) -> str:
    return f"| {' | '.join(visible(cell).replace('|', '&#124;') for cell in cells)} |"
