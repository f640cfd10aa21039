"""Figures of means over repeats: sweeps, bars and heat maps, from the rows of a run's summary."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any

from msgspec.structs import replace

from benchctl.analysis.results import NOT_VALID_HERE
from benchctl.analysis.runs.summary import SummaryRow, point_key
from benchctl.report.figures.axes import named_axis, swept_axis, title_of_axis, value_axis
from benchctl.report.figures.figure import (
    Axis,
    LineRole,
    Panel,
    Picture,
    PictureKind,
    PictureLine,
)
from benchctl.report.figures.parts import Naming, Source, left_out, names_of
from benchctl.report.figures.request import PictureRequest, numbered
from benchctl.units import parse_rate

XOf = Callable[[SummaryRow], float]
Rows = Sequence[SummaryRow]


def rows_of(request: PictureRequest) -> list[list[SummaryRow]]:
    """Return the rows of each metric of a request that have a place on its x-axis."""
    return [
        [
            row
            for row in request.report.rows_of(*metric)
            if request.part.holds(row.point) and (not request.x or request.x in row.point)
        ]
        for metric in request.metrics
    ]


# The round-trip times of a probe beside a load, and what its name gets.
_PHASES = {"rtt_idle_s": "idle", "rtt_under_load_s": "under load"}


def by_axis(request: PictureRequest) -> Picture:
    """Return a sweep, or bars at each value of the x-axis; without such an axis, of each flow."""
    found = [
        _by_phase(request, rows) if metric == ("rtt_s", "") else rows
        for metric, rows in zip(request.metrics, rows_of(request), strict=True)
    ]
    every = [row for rows in found for row in rows]
    naming = names_of(map(source_of, every), request.axes, request.x)
    if not request.x:
        return _by_line(request, found, naming)
    values = values_of(request, every)
    if request.kind is PictureKind.BARS:
        x = named_axis(title_of_axis(request.x), [str(value) for value in values])
        places = [float(place) for place in range(len(values))]
    else:
        x, places = swept_axis(request.x, values)
    at = dict(zip(map(str, values), places, strict=True))
    numbers, count = numbered((naming.key(source_of(row)), source_of(row)) for row in every)
    panels = [
        _panel(request, metric, rows, numbers, naming, lambda row: at[str(row.point[request.x])], x)
        for metric, rows in zip(request.metrics, found, strict=True)
    ]
    names = [", ".join(key) for key in numbers]
    notes = [
        *repeats_note(every), *left_out(count, len(numbers), "lines"), *doubts(every),
        *_absent(request, values),
    ]  # fmt: skip
    return request.figure(x, panels, names, naming.title, notes)


def _by_phase(request: PictureRequest, rows: Rows) -> list[SummaryRow]:
    """Return rows of round-trip times, those of the idle and of the loaded path apart if known."""
    places = {(point_key(row.point), row.flow) for row in rows}
    apart, phases = set(), []
    for metric, word in _PHASES.items():
        for row in request.report.rows_of(metric):
            if (place := (point_key(row.point), row.flow)) in places:
                apart.add(place)
                phases.append(replace(row, flow=f"{row.flow} {word}"))
    return [*(row for row in rows if (point_key(row.point), row.flow) not in apart), *phases]


def _absent(request: PictureRequest, values: Sequence[Any]) -> list[str]:
    """Return a note about values of the x-axis that were measured, and have no figure."""
    known = [*map(str, values)]
    tried = [str(trial.trial.point[request.x]) for trial in request.trials
             if request.x in trial.trial.point]  # fmt: skip
    absent = [text for text in dict.fromkeys(tried) if text not in known]
    return [f"there is no figure at {request.x}={', '.join(absent)}"] if absent else []


def _by_line(request: PictureRequest, found: Sequence[Rows], naming: Naming) -> Picture:
    """Return bars without an axis: a place for each flow."""
    every = [row for rows in found for row in rows]
    keys, count = numbered((naming.key(source_of(row)), source_of(row)) for row in every)
    names = [", ".join(key) or request.run.profile for key in keys]
    x = named_axis(naming.title, names)
    panels = [
        _panel(
            request, metric, [row for row in rows if naming.key(source_of(row)) in keys], {(): 0},
            Naming(()), lambda row: float(keys[naming.key(source_of(row))]), x,
        )
        for metric, rows in zip(request.metrics, found, strict=True)
    ]  # fmt: skip
    notes = [*repeats_note(every), *left_out(count, len(keys), "bars"), *doubts(every)]
    return request.figure(x, panels, [""], "", notes)


def source_of(row: SummaryRow) -> Source:
    """Return what a row of the summary is of."""
    return Source(row.point, row.flow, row.direction)


def values_of(request: PictureRequest, rows: Rows, axis: str = "") -> list[Any]:
    """Return the values of an axis that rows have, in the order of the profile."""
    axis = axis or request.x
    there = {str(row.point[axis]): row.point[axis] for row in rows}
    searched = request.run.settings.search
    if searched is not None and axis == searched.axis:
        return sorted(there.values(), key=parse_rate)
    return [value for value in request.run.values[axis] if str(value) in there]


def _panel(
    request: PictureRequest, metric: tuple[str, str], rows: Rows,
    numbers: Mapping[tuple[str, ...], int], naming: Naming, place: XOf, x: Axis,
) -> Panel:  # fmt: skip
    lines: list[PictureLine] = []
    for key, number in numbers.items():
        mine = sorted((row for row in rows if naming.key(source_of(row)) == key), key=place)
        if mine:
            lines += _lines(", ".join(key), number, mine, place)
    lines = [*_merged(line for line in lines if line.role is LineRole.EXPECTED),
             *(line for line in lines if line.role is not LineRole.EXPECTED)]  # fmt: skip
    described = request.run.vocabulary.describe(metric[0])
    bars = lines if request.kind is PictureKind.BARS else ()
    # A bar of 0 is not seen on any axis.
    seen = [y for line in bars if line.role is LineRole.MEASURED for y in line.ys if y > 0]
    y = value_axis(described, lines, aggregate=metric[1], x_is_log=x.log, seen=seen)
    return Panel(y, lines)


def _lines(name: str, number: int, rows: Rows, place: XOf) -> Iterator[PictureLine]:
    """Yield what was measured on a line, and what is beside it."""
    xs = [place(row) for row in rows]
    spreads = [row.spread for row in rows]
    known = any(spread.half is not None for spread in spreads)
    yield PictureLine(
        name, number, xs, [spread.mean for spread in spreads],
        [_known(spread.ci95_low) for spread in spreads] if known else (),
        [_known(spread.ci95_high) for spread in spreads] if known else (),
    )  # fmt: skip
    for role in (LineRole.EXPECTED, LineRole.REPORTED):
        values = [_known(row.beside.get(role.value)) for row in rows]
        if not all(map(math.isnan, values)):
            yield PictureLine(role.value, number, xs, values, role=role)
    doubtful = [row for row in rows if not row.valid]
    if doubtful:
        yield PictureLine(
            LineRole.INVALID.value, number, [place(row) for row in doubtful],
            [row.spread.mean for row in doubtful], role=LineRole.INVALID,
        )  # fmt: skip


def _known(value: float | None) -> float:
    return math.nan if value is None else value


def _merged(lines: Iterable[PictureLine]) -> list[PictureLine]:
    """Return lines of theory; a single one, of no line in particular, if they never differ."""
    lines = list(lines)
    values: dict[float, set[float]] = {}
    for line in lines:
        for x, y in zip(line.xs, line.ys, strict=True):
            if not math.isnan(y):
                values.setdefault(x, set()).add(y)
    if len(lines) < 2 or any(len(ys) > 1 for ys in values.values()):
        return lines
    xs = sorted(values)
    ys = [y for x in xs for y in values[x]]
    return [PictureLine(LineRole.EXPECTED.value, None, xs, ys, role=LineRole.EXPECTED)]


def repeats_note(rows: Rows, interval: str = " with its 95 % interval") -> list[str]:
    """Return a note about what the marks and their intervals are."""
    counts = sorted({row.spread.n for row in rows})
    if not counts:
        return []
    if counts[-1] == 1:
        return [f"one measurement each{': no interval' if interval else ''}"]
    many = " to ".join(str(count) for count in dict.fromkeys((counts[0], counts[-1])))
    return [f"mean of {many} repeats{interval}"]


def doubts(rows: Rows) -> list[str]:
    """Return a note about values that are not valid, if there are any."""
    doubtful = sum(not row.valid for row in rows)
    if not doubtful:
        return []
    return [f"{doubtful} of {len(rows)} values are {NOT_VALID_HERE}"]
