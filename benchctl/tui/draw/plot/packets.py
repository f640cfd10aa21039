"""Draws what figures of packets consist of, in a field of dots: strokes, steps, marks and spans."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from itertools import pairwise

from benchctl.report.figures.figure import LineRole, PictureLine
from benchctl.tui.draw.plot.field import Cell, Field
from benchctl.tui.draw.plot.plot import letter, role_of


def draw_packets(
    field: Field, line: PictureLine, dot: Callable[[float], int]
) -> Iterator[tuple[float, float, Cell]]:
    """Draw a line; yield where its letter belongs: at each mark, or once, at its end.

    ``dot`` gives the column of dots of a value of the horizontal axis.
    """
    number = line.number or 0
    cell = (role_of(number), letter(number))
    if line.role in (LineRole.STROKES, LineRole.MARKS):
        field.add_strokes(cell[0], [*map(dot, line.xs)], line.lows, line.highs)
    else:
        _add_steps(field, line, dot, cell[0])
    places = [place for place in zip(line.xs, line.ys, strict=True) if math.isfinite(place[1])]
    if line.role is LineRole.SPANS:
        places = places[::2]
    elif line.role is not LineRole.MARKS:
        places = places[-1:]
    yield from ((x, y, cell) for x, y in places)


def _add_steps(field: Field, line: PictureLine, dot: Callable[[float], int], role: str) -> None:
    """Draw a line whose values hold until the next."""
    columns: list[int] = []
    lows: list[float] = []
    highs: list[float] = []
    for (x0, y0), (x1, y1) in pairwise(zip(line.xs, line.ys, strict=True)):
        if math.isfinite(y0):
            first, last = sorted((dot(x0), dot(x1)))  # packets may be earlier than the one before
            rise = y1 if math.isfinite(y1) else y0
            columns += range(first, last + 1)
            lows += [y0] * (last - first) + [min(y0, rise)]
            highs += [y0] * (last - first) + [max(y0, rise)]
    field.add_strokes(role, columns, lows, highs)
