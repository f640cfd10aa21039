"""Arranges the summary of a report in rows and columns of text, for table and markdown.

A row is a point, a flow and a direction. Columns are the axes with several values, flow and
direction if there are several, the main metrics and those that the profile names, and the
requested, expected and reported values if known. Everything else is in the JSON.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any

from msgspec import Struct

from benchctl.analysis.results import MISSED
from benchctl.analysis.runs.summary import SummaryRow, at_point, point_key
from benchctl.metrics import title_of
from benchctl.report.report import Report
from benchctl.run.record import Run
from benchctl.units import format_mean, format_value, without_unit
from benchctl.visible import padded, visible, width_of

if TYPE_CHECKING:
    from benchctl.analysis.runs.compare import Comparison

# The values beside a figure, in this order.
BESIDE = ("asked", "expected", "reported")

CANNOT_BE = " !"
"""Marks a figure that breaks a law; a remark below the table says which."""

_Group = dict[str, SummaryRow]
"""The figures of one flow and direction at one point, by metric."""


class Pivot(Struct, frozen=True):
    """A table of text: the headings of its columns, and its rows.

    ``numeric`` says which columns are right-aligned.
    """

    heads: tuple[str, ...]
    numeric: tuple[bool, ...]
    rows: tuple[tuple[str, ...], ...]


def pivot(report: Report, statistics: Sequence[str] = ()) -> Pivot:
    """Return the summary table of a report.

    Metrics with a distribution also have a column for the mean of each of these ``statistics`` of
    the repeats, such as ``p95``.
    """
    groups: dict[tuple[Any, ...], _Group] = {}
    broken: set[tuple[Any, ...]] = set()
    for figure in (*report.summary, *report.broken):
        if figure.flow:  # else of a whole trial
            groups.setdefault(_key(figure), {}).setdefault(figure.metric, figure)
    for figure in report.broken:
        broken.add((*_key(figure), figure.metric))
    metrics = _shown(report.run, list(groups.values()))
    varying = report.run.varying
    firsts = [next(iter(group.values())) for group in groups.values()]
    flows = len({first.flow for first in firsts}) > 1
    # A direction is redundant if there is only one, or if an axis shows it already.
    directions = len({first.direction for first in firsts}) > 1 and any(
        first.direction != first.point.get("direction") for first in firsts
    )
    # With an axis of that name, a trial of both directions has a row for each.
    direction_head = "measured" if "direction" in varying else "direction"
    heads = [*varying, *["flow"] * flows, *[direction_head] * directions, "n"]
    texts = len(heads) - 1
    extra = {
        (name, statistic): {_key(row): row for row in report.rows_of(name, statistic)}
        for name in metrics
        for statistic in statistics
    }
    columns = {
        name: [statistic for statistic in statistics if extra[name, statistic]] for name in metrics
    }  # fmt: skip
    for name, kinds in metrics.items():
        heads += [
            without_unit(name),
            *(f"{without_unit(name)}.{statistic}" for statistic in columns[name]),
        ]
        heads += kinds
    rows = []
    for first, (key, group) in zip(firsts, groups.items(), strict=True):
        row = [str(first.point.get(axis, "-")) for axis in varying]
        row += [first.flow] * flows + [first.direction] * directions
        row.append(str(max(figure.spread.n for figure in group.values())))
        for name, kinds in metrics.items():
            beside = group[name].beside if name in group else {}
            mark = CANNOT_BE if (*key, name) in broken else ""
            row.append(with_interval(group[name]) + mark if name in group else "-")
            for statistic in columns[name]:
                found = extra[name, statistic].get(key)
                row.append(with_interval(found) if found else "-")
            row += [format_value(name, beside[kind]) if kind in beside else "-" for kind in kinds]
        rows.append(tuple(row))
    return Pivot(tuple(heads), tuple(place >= texts for place in range(len(heads))), tuple(rows))


def _key(row: SummaryRow) -> tuple[Any, ...]:
    return point_key(row.point), row.flow, row.direction


def _shown(run: Run, groups: Sequence[_Group]) -> dict[str, list[str]]:
    """Return the metrics that are shown, in order, each with the values beside it."""
    vocabulary = run.vocabulary
    named = [expectation.metric for expectation in run.settings.expect if expectation.metric]
    named += [metric for reported in run.settings.reported for metric in reported.metrics]
    missed = any(_missed(figure) for group in groups for figure in group.values())
    headlines = vocabulary.headlines.values()
    shown = {}
    for name in dict.fromkeys([*vocabulary.wanted, *named]):
        kinds = {kind for group in groups if name in group for kind in group[name].beside}
        replaced = vocabulary.describe(name).stands_for
        needed = name in headlines or not replaced or missed or "reported" in kinds
        if any(name in group and (needed or replaced not in group) for group in groups):
            shown[name] = [kind for kind in BESIDE if kind in kinds and (missed or kind != "asked")]
    return shown


def _missed(figure: SummaryRow) -> bool:
    """Return whether a sender's rate differs from the requested one."""
    asked = figure.beside.get("asked")
    return asked is not None and abs(figure.spread.mean / asked - 1) > MISSED


def with_interval(row: SummaryRow) -> str:
    """Format the mean of a figure with half its 95 % interval."""
    return format_mean(row.metric, row.spread.mean, row.spread.half)


def figure_name(row: SummaryRow | Comparison) -> str:
    """Name a figure: ``throughput of main at streams=4``."""
    return f"{title_of(row.metric)}{f' of {row.flow}' if row.flow else ''}{at_point(row.point)}"


def align(heads: Sequence[str], rows: Iterable[Sequence[str]], numeric: Sequence[bool] = ()) -> str:
    """Return rows as lines with columns as wide as needed; numeric ones are right-aligned."""
    heads = [*map(visible, heads)]
    rows = [[*map(visible, row)] for row in rows]
    widths = [max(map(width_of, column)) for column in zip(heads, *rows, strict=True)]
    right = numeric or [False] * len(heads)

    def line(cells: Sequence[str]) -> str:
        cells_of = (
            padded(cell, width, right=is_right)
            for cell, width, is_right in zip(cells, widths, right, strict=True)
        )
        return "  ".join(cells_of).rstrip()

    lines = [line(heads), "  ".join("─" * width for width in widths), *map(line, rows)]
    return "\n".join(lines) + "\n"
