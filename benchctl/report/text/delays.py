"""The delays of probes in detail: how they are spread, as measured and without the clocks' offset.

The summary has their mean. Each figure here is the mean over the repeats, too.
"""

from __future__ import annotations

from typing import Any

from benchctl.analysis.runs.summary import SummaryRow, point_key
from benchctl.report.pivot import Pivot
from benchctl.report.report import Report
from benchctl.units import format_value

SPREAD = ("min", "median", "p95", "max")
REMOVED = "owd_offset_removed_s"
# Shown only if a packet was.
_COUNTS = {"packets_duplicated": "duplicates", "packets_reordered": "reordered"}

_Key = tuple[Any, ...]


def delay_table(report: Report) -> Pivot | None:
    """Return how one-way delays are spread, a row for each direction; None without any."""
    columns: dict[str, dict[_Key, str]] = {}
    rows: dict[_Key, SummaryRow] = {}

    def add(head: str, metric: str, aggregate: str = "") -> None:
        for row in report.rows_of(metric, aggregate):
            key = (point_key(row.point), row.flow, row.direction)
            if metric == "owd_s":
                rows.setdefault(key, row)
            columns.setdefault(head, {})[key] = format_value(metric, row.spread.mean)

    for aggregate in SPREAD:
        add(aggregate, "owd_s", aggregate)
    for aggregate in SPREAD:
        add(f"{aggregate} less offset", REMOVED, aggregate)
    add("hops", "hops")
    for metric, head in _COUNTS.items():
        if any(row.spread.max for row in report.rows_of(metric)):
            add(head, metric)
    if not rows:
        return None
    varying = report.run.varying
    flows = len({row.flow for row in rows.values()}) > 1
    heads = [*varying, *["flow"] * flows, "one-way delay"]
    lines = [
        (
            *(str(row.point.get(axis, "-")) for axis in varying), *[row.flow] * flows,
            row.direction, *(cells.get(key, "-") for cells in columns.values()),
        )
        for key, row in rows.items()
    ]  # fmt: skip
    numeric = [False] * len(heads) + [True] * len(columns)
    return Pivot((*heads, *columns), tuple(numeric), tuple(lines))
