"""A run's summary as a grid of one metric: cases down, flows or an axis across, heat by value."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from itertools import product
from typing import Any, NamedTuple

from msgspec import Struct
from msgspec.structs import replace

from benchctl.analysis.runs.summary import SummaryRow
from benchctl.analysis.search.found import FOUND_RATE
from benchctl.metrics import title_of
from benchctl.report.figures.maps import FROM_TO, Mesh, is_mesh
from benchctl.report.lines.spans import HEATS, Span
from benchctl.report.report import Report, without_figures
from benchctl.tui.draw.plot.plot import letter
from benchctl.tui.draw.text.columns import GAP, Column, widths
from benchctl.units import common_scale, format_mean, half_in, number_in, parse_rate

# The steps of heat: a character shows each, besides the colour.
STEPS = "▁▂▃▄▅▆▇"
NOTHING = "-"
INVALID = "!"
"""Marks a figure of a lab that did not keep its promises."""

FLOW = ""
"""The flows of a metric, as an axis beside those of the run."""

FlowWay = tuple[str, str]
"""A flow, and its direction if another was measured at the same point."""


class Arrangement(Struct, frozen=True):
    """How the summary is arranged: indexes of the metric and of the axes, flows among them.

    ``across`` is the axis of the columns; without one there is a single column.
    """

    metric: int = 0
    down: int = 0
    across: int = 0

    def rows(self, summary: SummaryTable) -> Arrangement:
        """Return the arrangement with the next axis first in the rows."""
        down = len(summary.axes) - (self.across < len(summary.axes))
        return replace(self, down=(self.down + 1) % max(1, down))

    def columns(self, summary: SummaryTable) -> Arrangement:
        """Return the arrangement with the next axis across, or none."""
        return replace(self, down=0, across=(self.across + 1) % (len(summary.axes) + 1))


class Grid(Struct, frozen=True):
    """One metric of the arranged summary: name, title, headings of the columns, rows of cells.

    The title says what a cell has, in which unit.
    """

    name: str
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

    def __init__(self, report: Report, flows: Sequence[str] = ()) -> None:
        self._nothing = without_figures(report)
        self._axis_values = dict(report.run.values)
        searched = report.run.settings.search
        self._searched = searched.axis if searched is not None else None
        rows, varying = self._with_ends(report)
        known = [flow.flow.name for trial in report.trials for flow in trial.flows]
        self.flows = list(dict.fromkeys([*flows, *known, *(row.flow for row in rows)]))
        """All flows: the place of one is its letter on every screen."""
        points = Counter((row.metric, row.flow, *_place_of(row.point, varying)) for row in rows)
        both_ways = {(metric, flow) for (metric, flow, *_), count in points.items() if count > 1}
        self._rows: dict[str, dict[tuple[Any, ...], SummaryRow]] = {}
        self._series: dict[str, list[FlowWay]] = {}
        for row in rows:
            both = (row.metric, row.flow) in both_ways
            series = row.flow, row.direction if both else ""
            own = self._series.setdefault(row.metric, [])
            if series not in own:
                own.append(series)
            key = (*_place_of(row.point, varying), series)
            self._rows.setdefault(row.metric, {})[key] = row
        for own in self._series.values():
            own.sort(key=lambda series: self.flows.index(series[0]))
        several = any(len(own) > 1 for own in self._series.values())
        self.axes = [*varying, *[FLOW] * several]
        vocabulary, settings = report.run.vocabulary, report.run.settings
        asked = [metric for reported in settings.reported for metric in reported.metrics]
        asked += [expectation.metric for expectation in settings.expect]
        names = dict.fromkeys([FOUND_RATE, *vocabulary.wanted, *asked])
        self.usual = [
            name for name in names
            if name in self._rows and vocabulary.describe(name).stands_for not in self._rows
        ]  # fmt: skip
        """The metrics that are shown without being asked for, the most wanted first."""
        self.metrics = [*self.usual, *sorted({*self._rows} - {*self.usual})]
        """Every metric that was measured."""

    def _with_ends(self, report: Report) -> tuple[Sequence[SummaryRow], list[str]]:
        """Return the rows and the axes; those of a mesh have hosts for its axis of pairs."""
        axes = list(report.run.varying)
        pairs = next((axis for axis in axes if is_mesh(report.trials, axis)), None)
        rows = [row for row in report.summary if row.flow]
        if pairs is None or {*FROM_TO} & {*axes} or len(rows) < len(report.summary):
            return report.summary, axes
        mesh, place = Mesh(report, pairs), axes.index(pairs)
        ends = [mesh.pair_of(row) for row in rows]
        if not mesh.is_filled(ends):
            return report.summary, axes
        self._axis_values |= dict.fromkeys(FROM_TO, mesh.hosts)
        axes[place : place + 1] = FROM_TO
        named = (dict(zip(FROM_TO, pair, strict=True)) for pair in ends)
        return [
            replace(row, point={**row.point, **own}) for row, own in zip(rows, named, strict=True)
        ], axes

    def first_turn(self) -> Arrangement:
        """Return the first arrangement: flows across if cases go down, else a single axis down.

        Of a mesh, where data go is across.
        """
        if FROM_TO[1] in self.axes:
            return Arrangement(across=self.axes.index(FROM_TO[1]))
        if FLOW in self.axes and len(self.axes) > 1:
            return Arrangement(across=self.axes.index(FLOW))
        return Arrangement(across=1 if len(self.axes) == 1 else 0)

    def turned(self, turn: Arrangement, width: int = 10_000) -> Grid:
        """Return the summary as rows and columns, without what has no room beside the figures."""
        if not self.metrics:
            return Grid(self._nothing, self._nothing, "", (), ())
        metric = self.metrics[turn.metric % len(self.metrics)]
        for beside in (2, 1, 0):
            grid = self._turned(metric, turn, beside)
            taken = sum(column.width for column in grid.columns) + len(GAP) * (
                len(grid.columns) - 1
            )
            if taken <= width:
                break
        return grid

    def _turned(self, metric: str, turn: Arrangement, beside: int) -> Grid:
        """Return one metric: with intervals and expected values (2), these (1), or neither."""
        axes = self.axes
        across = axes[turn.across] if turn.across < len(axes) else None
        down = [axis for axis in axes if axis != across]
        down = down[turn.down :] + down[: turn.down]
        heads = [None] if across is None else self._values(metric, across)
        look = self._look(metric, beside)
        named, cells = [], []
        for names in product(*(self._values(metric, axis) for axis in down)):
            place = dict(zip(down, names, strict=True))
            row = [
                self._cell(metric, place | ({} if across is None else {across: head}), look)
                for head in heads
            ]
            if any(cell is not NO_CELL for cell in row):
                named.append([Span(self._name(*axis_value)) for axis_value in place.items()])
                cells.append(row)
        drawn = zip(*(lined_up(column) for column in zip(*cells, strict=True)), strict=True)
        rows = [[*about, *row] for about, row in zip(named, drawn, strict=True)]
        if across is None:
            texts = [title_of(metric)]
        else:
            axis = f"{across}=" * (across not in ("", FROM_TO[1]))
            texts = [f"{axis}{self._name(across, head)}" for head in heads]
        right = [False] * len(down) + [True] * len(texts)
        words = [axis or "flow" for axis in down]
        columns = widths([*words, *texts], [[cell.text for cell in row] for row in rows], right)
        about = [
            f"{', '.join(words)} ↓" * bool(words),
            f"{across or 'flow'} →" * (across is not None),
        ]
        axes_text = "  ".join(filter(None, about))
        name = self._title(metric, look.unit)
        return Grid(name, name + look.legend, axes_text, columns, rows)

    def _values(self, metric: str, axis: str) -> Sequence[Any]:
        """Return the values of an axis; of a searched one those that a metric was measured at."""
        if axis == FLOW:
            return self._series[metric]
        if axis != self._searched:
            return self._axis_values[axis]
        tried = {row.point.get(axis) for row in self._rows[metric].values()}
        return sorted(tried, key=lambda rate: parse_rate(rate) if rate is not None else math.inf)

    def _name(self, axis: str, value: Any) -> str:
        """Return a value as people know it, a flow with its letter.

        What a whole search found has no rate of its own.
        """
        if axis == FLOW:
            flow, direction = value
            if not flow:
                return "all flows"
            return f"{letter(self.flows.index(flow))} {flow} {direction}".strip()
        return NOTHING if value is None else str(value)

    def _title(self, metric: str, unit: str) -> str:
        own = self._series[metric]
        of_flow = ""
        if len(own) == 1 and own[0][0]:
            of_flow = f" of {self._name(FLOW, own[0])}"
            directions = {row.direction for row in self._rows[metric].values()}
            of_flow += f" ({directions.pop()})" if len(directions) == 1 else ""
        return f"{title_of(metric)}{of_flow}{f', {unit}' * bool(unit)}"

    def _look(self, metric: str, beside: int) -> _Look:
        """Return how the cells of a metric are drawn: one scale of bars, and one unit.

        The scale has 0. So values that differ by a hundredth look alike, and flows can be compared.
        """
        rows = self._rows[metric].values()
        means = [row.spread.mean for row in rows]
        expected = [row.beside["expected"] for row in rows if "expected" in row.beside]
        known = common_scale(metric, [*means, *expected])
        halves, theory = beside > 1, bool(beside and expected)
        factor, unit = known or (0.0, "")
        legend = ": measured"
        if halves and any(row.spread.half is not None for row in rows):
            legend += " ±95 %"
        legend += " / expected" * theory
        legend = legend if legend != ": measured" else ""
        return _Look(min(0.0, *means), max(0.0, *means), factor, unit, halves, theory, legend)

    def _cell(self, metric: str, place: Mapping[str, Any], look: _Look) -> GridCell:
        own = self._series[metric]
        key = [place.get(axis) for axis in self.axes if axis != FLOW]
        series = place.get(FLOW) or own[0]
        row = self._rows[metric].get((*key, series))
        if row is None:
            return NO_CELL
        mean, half = row.spread.mean, row.spread.half if look.halves else None
        span = look.high - look.low
        step = min(HEATS - 1, int((mean - look.low) / span * HEATS)) if span else 0
        shown, _, after = look.mean(metric, mean, half).partition(" ±")
        expected = row.beside.get("expected") if look.theory else None
        return GridCell(
            STEPS[step],
            shown,
            f" ±{after}" if after else "",
            "" if expected is None else look.mean(metric, expected, None),
            "" if row.valid else f" {INVALID}",
            f"heat-{step}" if row.valid else "bad",
        )


class _Look(NamedTuple):
    """How the cells of a metric are drawn: the ends of their bars, and the factor of their unit.

    Without a ``factor`` each has a unit of its own. ``legend`` says what a cell has.
    """

    low: float
    high: float
    factor: float
    unit: str
    halves: bool
    theory: bool
    legend: str

    def mean(self, metric: str, mean: float, half: float | None) -> str:
        """Format a figure, with half its interval if it is known."""
        if not self.factor:
            return format_mean(metric, mean, half)
        number = number_in(metric, mean, self.factor)
        return number if half is None else f"{number} ±{half_in(metric, mean, half, self.factor)}"


def _place_of(point: Mapping[str, Any], axes: Sequence[str]) -> tuple[Any, ...]:
    """Return the values of axes at a point."""
    return tuple(point.get(axis) for axis in axes)


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
