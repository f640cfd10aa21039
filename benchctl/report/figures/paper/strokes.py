"""Draws what figures of packets consist of, with Matplotlib: strokes, steps, marks and spans."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from benchctl.report.figures.figure import LineRole, PictureLine


def draw_packets(
    axes: Any, line: PictureLine, xs: Sequence[float], factor: float, colour: str, mark: str
) -> None:
    """Draw a line of a figure of packets; ``xs`` are in the units of its axis, ``factor`` of y."""
    ys = [y / factor for y in line.ys]
    match line.role:
        case LineRole.STEPS:
            axes.step(xs, ys, where="post", color=colour, linewidth=1.0, zorder=2.3)
        case LineRole.SPANS:
            axes.plot(xs, ys, color=colour, linewidth=4.0, solid_capstyle="butt", zorder=2.6)
            axes.plot(xs[::3], ys[::3], color=colour, linestyle="none", marker=mark, zorder=3.2)
        case _:
            lows, highs = ([end / factor for end in ends] for ends in (line.lows, line.highs))
            # A segment is less than a dot high: its ends project, so that it is seen.
            axes.vlines(xs, lows, highs, color=colour, linewidth=0.9, capstyle="projecting",
                        zorder=2.4)  # fmt: skip
            if line.role is LineRole.MARKS:
                axes.plot(xs, ys, color=colour, linestyle="none", marker=mark, markersize=4.5,
                          zorder=3.0)  # fmt: skip
