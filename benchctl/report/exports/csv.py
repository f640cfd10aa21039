"""The summary in SI base units, one line for each metric of each point."""

from __future__ import annotations

import csv
from collections.abc import Iterable, Iterator

from benchctl.report.entries import summary_entry
from benchctl.report.report import StoredRun
from benchctl.visible import visible

NAMES = ("flow", "direction", "metric")
FIGURES = ("n", "mean", "ci95_low", "ci95_high", "median", "min", "max", "unit")


def export(stored: StoredRun) -> Iterator[str]:
    """Yield the summary as CSV."""
    report = stored.report
    axes = list(report.run.values)
    rows = (
        [row.point.get(axis, "") for axis in axes] + [entry[key] for key in (*NAMES, *FIGURES)]
        for row in report.summary
        for entry in (summary_entry(row),)
    )
    yield from csv_lines([[*axes, "flow", "flow_direction", "metric", *FIGURES], *rows])


def csv_lines(rows: Iterable[Iterable[object]]) -> Iterator[str]:
    """Yield rows as lines of CSV (RFC 4180, but with a bare line feed).

    A row is always one line: control characters in texts are escaped.
    """
    writer = csv.writer(_Line(), lineterminator="\n")
    for row in rows:
        yield writer.writerow([visible(cell) if isinstance(cell, str) else cell for cell in row])


class _Line:
    """A file that returns what is written: `writerow` returns the line."""

    def write(self, text: str) -> str:
        return text
