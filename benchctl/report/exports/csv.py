"""The summary in SI base units, one line for each metric of each point."""

from __future__ import annotations

import csv
from collections.abc import Iterable, Iterator

from benchctl.report.exports.entries import summary_entry
from benchctl.report.report import Report, StoredRun
from benchctl.report.text.lawful import broken_counts, place_of
from benchctl.units import unit_of
from benchctl.visible import visible

NAMES = ("flow", "direction", "metric")
FIGURES = ("n", "mean", "ci95_low", "ci95_high", "median", "min", "max", "unit")


def export(stored: StoredRun) -> Iterator[str]:
    """Yield the summary as CSV."""
    yield from csv_lines(summary_rows(stored.report))


def summary_rows(report: Report) -> Iterator[list[object]]:
    """Yield the heads and the rows of the summary."""
    broken = broken_counts(report)
    axes = list(report.run.values)
    yield [*axes, "flow", "flow_direction", "metric", *FIGURES, "broken"]
    for row in report.summary:
        entry = summary_entry(row)
        yield [
            *(row.point.get(axis, "") for axis in axes),
            *(entry[key] for key in (*NAMES, *FIGURES)),
            broken.get(place_of(row), 0),
        ]
    yield from _nowhere(report, axes)


def _nowhere(report: Report, axes: Iterable[str]) -> Iterator[list[object]]:
    """Yield a row without a value for each figure that cannot be in any repeat."""
    counted = {place_of(row) for row in report.summary}
    for row in report.broken:
        if place_of(row) not in counted:
            blank = dict.fromkeys(FIGURES, "") | {"n": 0, "unit": unit_of(row.metric)}
            where = [row.point.get(axis, "") for axis in axes]
            yield [*where, row.flow, row.direction, row.metric, *blank.values(), row.spread.n]


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
