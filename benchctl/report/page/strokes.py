"""What figures of packets consist of, as SVG: strokes, steps, marks and spans. Pure."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from html import escape
from itertools import pairwise

from benchctl.report.figures.figure import Axis, LineRole, PictureLine
from benchctl.units import format_value

_Place = Callable[[float], float]
# Half of a stroke's width: a segment is often lower than that, and must be seen.
_LEAST = 0.6


def packets_of(x_axis: Axis, line: PictureLine, x: _Place, y: _Place, colour: str) -> Iterator[str]:
    """Yield the elements of a line; ``x`` and ``y`` place values on the page."""
    if line.role is LineRole.STEPS:
        yield f'<path class="line {colour}" d="{_steps(line, x, y)}"/>'
        return
    if line.role is LineRole.SPANS:
        yield f'<path class="line span {colour}" d="{_steps(line, x, y)}"/>'
        places = [*zip(line.xs, line.ys, strict=True)][::3]
    else:
        ends = zip(line.xs, line.lows, line.highs, strict=True)
        d = "".join(_stroke(x(at), y(low), y(high)) for at, low, high in ends)
        yield f'<path class="line {colour}" d="{d}"/>'
        places = [*zip(line.xs, line.ys, strict=True)] if line.role is LineRole.MARKS else []
    for at, value in places:
        tooltip = escape(f"{line.name}: {format_value(x_axis.metric, at)}")
        yield (
            f'<circle class="mark {colour}" cx="{x(at):.1f}" cy="{y(value):.1f}" r="3">'
            f"<title>{tooltip}</title></circle>"
        )


def _stroke(x: float, low: float, high: float) -> str:
    if low - high < 2 * _LEAST:
        middle = (low + high) / 2
        low, high = middle + _LEAST, middle - _LEAST
    return f"M{x:.1f} {low:.1f}V{high:.1f}"


def _steps(line: PictureLine, x: _Place, y: _Place) -> str:
    """Return a path whose values hold until the next; it has a gap where one is NaN."""
    path, open_at = "", math.nan
    for (x0, y0), (x1, y1) in pairwise(zip(line.xs, line.ys, strict=True)):
        if not math.isfinite(y0):
            continue
        if open_at != x0:
            path += f"M{x(x0):.1f} {y(y0):.1f}"
        path += f"H{x(x1):.1f}"
        if math.isfinite(y1):
            path += f"V{y(y1):.1f}"
            open_at = x1
    return path
