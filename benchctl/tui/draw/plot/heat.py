"""A run's summary as a grid: one axis across, the others down, one metric, heat by value."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from itertools import product
from typing import Any, NamedTuple

from msgspec import Struct
from msgspec.structs import replace

from benchctl.analysis.runs.summary import SummaryRow
from benchctl.analysis.search.found import FOUND_RATE
from benchctl.metrics import title_of
from benchctl.report.pivot import with_interval
from benchctl.report.report import Report, without_figures
from benchctl.tui.draw.text.columns import Column, widths
from benchctl.tui.draw.text.spans import HEATS, Span
from benchctl.units import format_value, parse_rate

# The steps of heat: a character shows each, besides the colour.
STEPS = "▁▂▃▄▅▆▇"
NOTHING = "-"
INVALID = "!"
"""Marks a figure of a lab that did not keep its promises."""

Measurand = tuple[str, str, str]
"""Flow, direction and metric."""


class Arrangement(Struct, frozen=True):
    """How the summary is arranged: indexes of the line and of the varying axes.

    ``across`` is the axis of the columns; without one there is a single column.
    """

    line: int = 0
    down: int = 0
    across: int = 0

    def metric(self, summary: SummaryTable, steps: int = 1) -> Arrangement:
        """Return the arrangement with the next metric."""
        return replace(self, line=(self.line + steps) % max(1, len(summary.lines)))

    def rows(self, summary: SummaryTable) -> Arrangement:
        """Return the arrangement with the next axis first in the rows."""
        down = len(summary.axes) - (self.across < len(summary.axes))
        return replace(self, down=(self.down + 1) % max(1, down))

    def columns(self, summary: SummaryTable) -> Arrangement:
        """Return the arrangement with the next axis across, or none."""
        return replace(self, down=0, across=(self.across + 1) % (len(summary.axes) + 1))


class Grid(Struct, frozen=True):
    """One metric of the arranged summary: title, headings of the columns, and rows of cells."""

    about: str
    axes: str
    columns: Sequence[Column]
    rows: Sequence[Sequence[Span]]


class GridCell(NamedTuple):
    """One figure of a grid, in parts that are below each other; those it lacks are empty."""

    bar: str
    mean: str
    half: str = ""
    expected: str = ""
    mark: str = ""
    role: str = "dim"


NO_CELL = GridCell(" ", NOTHING)


class SummaryTable:
    """A run's report, ready to be arranged."""

    def __init__(self, report: Report) -> None:
        self.axes = list(report.run.varying)
        self._nothing = without_figures(report)
        self._axis_values = report.run.values
        searched = report.run.settings.search
        self._searched = searched.axis if searched is not None else None
        self._rows: dict[Measurand, dict[tuple[Any, ...], SummaryRow]] = {}
        for row in report.summary:
            line = (row.flow, row.direction, row.metric)
            self._rows.setdefault(line, {})[self._point(row.point)] = row
        names = (FOUND_RATE, *report.run.vocabulary.wanted)
        wanted = {name: place for place, name in enumerate(names)}
        self.lines = sorted(
            self._rows, key=lambda line: (wanted.get(line[2], len(wanted)), line[2])
        )
        """Every flow, direction and metric that was measured, the most wanted first.

        The flows of a metric are in the order of the run.
        """

    def _point(self, point: Mapping[str, Any]) -> tuple[Any, ...]:
        return tuple(point.get(axis) for axis in self.axes)

    def first_turn(self) -> Arrangement:
        """Return the first arrangement: a single axis goes down, where there is room."""
        return Arrangement(across=1 if len(self.axes) == 1 else 0)

    def turned(self, turn: Arrangement) -> Grid:
        """Return the summary as rows and columns."""
        if not self.lines:
            return Grid(self._nothing, "", (), ())
        line = self.lines[turn.line % len(self.lines)]
        across = self.axes[turn.across] if turn.across < len(self.axes) else None
        down = [axis for axis in self.axes if axis != across]
        down = down[turn.down :] + down[: turn.down]
        heads = list(self._values(line, across)) if across else [title_of(line[2])]
        coldest, hottest = self._range(line)
        named, cells = [], []
        for names in product(*(self._values(line, axis) for axis in down)):
            point = dict(zip(down, names, strict=True))
            row = [
                self._cell(line, point | ({across: head} if across else {}), coldest, hottest)
                for head in heads
            ]
            if any(cell is not NO_CELL for cell in row):
                named.append([Span(_name(name)) for name in names])
                cells.append(row)
        drawn = zip(*(lined_up(column) for column in zip(*cells, strict=True)), strict=True)
        rows = [[*about, *row] for about, row in zip(named, drawn, strict=True)]
        texts = [f"{across}={_name(head)}" if across else str(head) for head in heads]
        right = [False] * len(down) + [True] * len(texts)
        columns = widths([*down, *texts], [[cell.text for cell in row] for row in rows], right)
        axes = f"rows {', '.join(down) or '-'}   columns {across or '-'}"
        return Grid(self._about(line), axes, columns, rows)

    def _values(self, line: Measurand, axis: str) -> Sequence[Any]:
        """Return the values of an axis; of a searched one those that a metric was measured at."""
        if axis != self._searched:
            return self._axis_values[axis]
        tried = {row.point.get(axis) for row in self._rows[line].values()}
        return sorted(tried, key=lambda rate: parse_rate(rate) if rate is not None else math.inf)

    def _about(self, line: Measurand) -> str:
        flow, direction, metric = line
        expected = any("expected" in row.beside for row in self._rows[line].values())
        beside = " / expected" if expected else ""
        of_flow = f" of {flow} ({direction})" if flow else ""
        return f"{title_of(metric)}{of_flow}{beside}"

    def _range(self, line: Measurand) -> tuple[float, float]:
        """Return the ends of the scale that all lines of a metric share; it has 0.

        So values that differ by a hundredth look alike, and flows can be compared.
        """
        means = [
            row.spread.mean
            for other, rows in self._rows.items()
            if other[2] == line[2]
            for row in rows.values()
        ]
        return min(0.0, *means), max(0.0, *means)

    def _cell(
        self, line: Measurand, point: Mapping[str, Any], coldest: float, hottest: float
    ) -> GridCell:
        row = self._rows[line].get(self._point(point))
        if row is None:
            return NO_CELL
        span = hottest - coldest
        step = min(HEATS - 1, int((row.spread.mean - coldest) / span * HEATS)) if span else 0
        mean, _, half = with_interval(row).partition(" ±")
        expected = row.beside.get("expected")
        return GridCell(
            STEPS[step],
            mean,
            f" ±{half}" if half else "",
            "" if expected is None else format_value(row.metric, expected),
            "" if row.valid else f" {INVALID}",
            f"heat-{step}" if row.valid else "bad",
        )


def lined_up(cells: Sequence[GridCell]) -> list[Span]:
    """Return the cells of a column as texts of one width."""
    means, halves, expected, marks = (
        max(len(cell[part]) for cell in cells) for part in range(1, len(GridCell._fields) - 1)
    )

    def beside(cell: GridCell) -> str:
        if not expected:
            return ""
        return f"{' / ' if cell.expected else '   '}{cell.expected:>{expected}}"

    return [
        Span(
            f"{cell.bar} {cell.mean:>{means}}{cell.half:<{halves}}{beside(cell)}"
            f"{cell.mark:<{marks}}",
            cell.role,
        )
        for cell in cells
    ]


def _name(value: Any) -> str:
    """Return a value as people know it; what a whole search found has no rate of its own."""
    return NOTHING if value is None else str(value)
