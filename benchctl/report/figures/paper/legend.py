"""What distinguishes lines on paper besides their colour, and the legend that says whose it is."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from benchctl.report.figures.figure import LineRole, Picture, PictureKind

GREY = "#555555"
"""Of what belongs to no line."""
# Without crosses, which mean "not valid".
_MARKS = "os^Dv<P>phd*H8"
# Of lines only: circles make an SVG large.
_HATCHES = ("", "///", "\\\\\\", "xxx", "---", "|||", "+++", "/////")


def mark_of(number: int | None) -> str:
    """Return the mark of a line."""
    return _MARKS[(number or 0) % len(_MARKS)]


def hatch_of(number: int) -> str:
    """Return the hatch of a bar; with the colours that repeat, those are shifted."""
    return _HATCHES[(number + number // len(_HATCHES)) % len(_HATCHES)]


def handles_of(
    figure: Picture, colour_of: Callable[[int | None], str]
) -> Iterator[tuple[Any, str]]:
    """Yield what stands for each line in the legend, and its name."""
    from matplotlib.lines import Line2D
    from matplotlib.patches import Patch

    filled = figure.kind is PictureKind.BARS or any(panel.boxes for panel in figure.panels)
    if figure.kind is PictureKind.SEQUENCE:
        yield from _of_packets(figure, colour_of)
    elif any(figure.names):
        for number, name in enumerate(figure.names):
            colour, mark = colour_of(number), mark_of(number)
            if filled:
                handle: Any = Patch(facecolor=colour, edgecolor="black", linewidth=0.6,
                                    hatch=hatch_of(number))  # fmt: skip
            else:
                joined = "none" if figure.kind is PictureKind.PLANE else "-"
                handle = Line2D([], [], color=colour, marker=mark, linestyle=joined)
            yield handle, name or "-"
    beside: dict[LineRole, dict[str, Any]] = {
        LineRole.EXPECTED: {"color": GREY, "linestyle": "--", "linewidth": 1.1},
        LineRole.REPORTED: {
            "color": GREY, "linestyle": "none", "marker": "o", "markerfacecolor": "white",
        },
        LineRole.INVALID: {"color": "black", "linestyle": "none", "marker": "x"},
    }  # fmt: skip
    yield from ((Line2D([], [], **beside[role]), name) for role, name in figure.beside.items())


def _of_packets(
    figure: Picture, colour_of: Callable[[int | None], str]
) -> Iterator[tuple[Any, str]]:
    """Yield what stands for each line of a figure of packets, and its name."""
    from matplotlib.lines import Line2D

    roles = {line.number: line.role for panel in figure.panels for line in panel.lines}
    for number, name in figure.named:
        drawn: Any = {
            LineRole.STROKES: {"marker": "|", "linestyle": "none", "markersize": 9},
            LineRole.MARKS: {"marker": mark_of(number), "linestyle": "none"},
            LineRole.SPANS: {"marker": mark_of(number), "linewidth": 4.0},
        }.get(roles[number], {})
        yield Line2D([], [], color=colour_of(number), **drawn), name
