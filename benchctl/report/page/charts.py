"""A figure as the data of a chart, for the script of the page. Pure."""

from __future__ import annotations

import base64
import math
import sys
from array import array
from collections.abc import Sequence
from typing import Any

from benchctl.report.figures.figure import Axis, Panel, Picture, PictureKind
from benchctl.report.page.drawing import COLOURS, colour_of, ends, label_of, ticks
from benchctl.report.page.thinning import thinned

# Kinds that a cursor and a zoom say more of than the drawing does.
INTERACTIVE = (PictureKind.TIME, PictureKind.SWEEP, PictureKind.CDF, PictureKind.PLANE)
# A short list is written as it is, a long one as 16 bits for each value, of which one is no value.
_SHORT = 64
_STEPS, _GAP = 0xFFFE, 0xFFFF


def chart_of(figure: Picture, points: int) -> dict[str, Any] | None:
    """Return the axes, lines and events of a figure, in the units of its axes.

    A line has at most ``points`` points. None for a figure that a drawing shows as well.
    """
    if figure.kind not in INTERACTIVE:
        return None
    xs: list[Any] = []
    panels = [_panel(figure, panel, points, xs) for panel in figure.panels]
    return {"x": _axis(figure.x), "xs": xs, "series": figure.series, "panels": panels}


def _axis(axis: Axis) -> dict[str, Any]:
    factor, _ = axis.scale
    named = [[_rounded(value / factor), text] for value, text in ticks(axis)] if axis.ticks else []
    low, high = ends(axis)
    return {
        "label": axis.label,
        "log": axis.log,
        "ticks": named,
        "ends": [_rounded(low / factor), _rounded(high / factor)],
    }


def _panel(figure: Picture, panel: Panel, points: int, xs: list[Any]) -> dict[str, Any]:
    """Return a panel; ``xs`` are the places of all lines, each list once."""
    x, y = figure.x.scale[0], panel.y.scale[0]
    lines = []
    for line in panel.lines:
        few = thinned(line, points, merge=figure.kind is PictureKind.TIME)
        places = packed(few.xs, x)
        if places not in xs:
            xs.append(places)
        has_range = any(
            math.isfinite(low + high) and high > low
            for low, high in zip(few.lows, few.highs, strict=False)
        )
        lines.append({
            "name": label_of(figure, line),
            "colour": colour_of(line),
            "more": (line.number or 0) >= COLOURS,
            "role": str(line.role),
            "x": xs.index(places),
            "y": packed(few.ys, y),
            **({"low": packed(few.lows, y), "high": packed(few.highs, y)} if has_range else {}),
        })  # fmt: skip
    return {
        "y": _axis(panel.y),
        "lines": lines,
        "marks": figure.kind in (PictureKind.SWEEP, PictureKind.PLANE),
        "events": [[_rounded(event.x / x), event.word, colour_of(event)] for event in panel.events],
    }


def packed(values: Sequence[float], factor: float) -> Any:
    """Return values, divided by a factor, as JSON that the page's script unpacks."""
    found = [value / factor for value in values]
    if len(found) <= _SHORT:
        return [_rounded(value) if math.isfinite(value) else None for value in found]
    known = [value for value in found if math.isfinite(value)]
    low, high = min(known, default=0.0), max(known, default=0.0)
    step = (high - low) / _STEPS or 1.0
    steps = array("H", (round((v - low) / step) if math.isfinite(v) else _GAP for v in found))
    if sys.byteorder == "big":
        steps.byteswap()
    return [low, step, base64.b64encode(steps.tobytes()).decode()]


def _rounded(value: float) -> float:
    return float(f"{value:.6g}")
