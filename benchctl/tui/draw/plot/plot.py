"""Draws lines over time as text: a pure function from series to spans of characters.

Each column of dots shows its whole range, from minimum to maximum, so a spike is visible at any
width: the line itself, or a faint band behind a line that is smoothed, of several lines only where
it reaches far. What lies beyond the axis is marked at its end with its value. A line's letter is at
its right end and in the legend: colour is never the only distinction.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import chain, groupby
from operator import itemgetter
from string import ascii_lowercase
from typing import NamedTuple

from msgspec import Struct

from benchctl.report.lines.spans import CURVES, PLAIN, Line, Span, fit
from benchctl.report.timeline.series import Series
from benchctl.tui.draw.axes.axis import PlotAxis
from benchctl.tui.draw.axes.ranges import Bounds, bounds_of, spikes_of
from benchctl.tui.draw.axes.scale import axis_for
from benchctl.tui.draw.axes.strip import Strip, strip_of
from benchctl.tui.draw.axes.times import TimeAxis, time_axis
from benchctl.tui.draw.plot.edges import Beyond, edge_row, event_row
from benchctl.tui.draw.plot.field import Cell, Field
from benchctl.tui.draw.text.glyphs import BRAILLE, Glyphs
from benchctl.tui.model.zoom import View

# The width of the scale: as wide as "Mbit/s", the same in all plots, so that their time axes are
# aligned.
MARGIN = 8
_ROLE, _TEXT = itemgetter(0), itemgetter(1)
# A plot of fewer rows has none for what lies beyond the axis.
LEAST_ROWS = 3
# Marks along lines that run side by side are not above each other.
APART = 3


class Curve(Struct, frozen=True):
    """One line of a plot: its name and its mark, and the number of its flow, for the colour.

    ``smooth_s`` is the time that its means are over, 0 for none. A line ``of_means`` has its range
    as a band behind it. ``expected`` is the theoretical value, and ``happened`` are the times and
    the words of its events. ``now`` is its figure, and ``sampled`` is what a caption may say of its
    samples, the longest first.
    """

    name: str
    series: Series
    number: int
    mark: str
    smooth_s: float = 0.0
    of_means: bool = False
    expected: float | None = None
    happened: Sequence[tuple[float, str]] = ()
    now: str = ""
    sampled: Sequence[str] = ()


class Plot(Struct, frozen=True):
    """Curves of one metric, and which values are shown: ``bounds``, or what suits the curves.

    The axis starts ``from_zero``, or where the values do. It is ``robust`` if a few far values may
    be beyond it. ``happened`` are the times and the words of what concerns all curves. A ``bare``
    plot is one of several with one scale, which has so many cells at most: means without their
    range, and expected values without their words.
    """

    metric: str
    curves: Sequence[Curve]
    from_zero: bool
    robust: bool = False
    log: bool = False
    bounds: Bounds | None = None
    happened: Sequence[tuple[float, str]] = ()
    bare: int = 0

    @property
    def expected(self) -> dict[float, list[Curve]]:
        """The theoretical values, each with its curves; those that read alike are one."""
        found: dict[str, tuple[float, list[Curve]]] = {}
        for curve in self.curves:
            if curve.expected is not None:
                _, curves = found.setdefault(f"{curve.expected:.3g}", (curve.expected, []))
                curves.append(curve)
        return dict(found.values())


class PlotFrame(Struct, frozen=True):
    """Where a plot is drawn: its time axis, its rows, and the room at its right for marks."""

    times: TimeAxis
    rows: int
    room: int
    glyphs: Glyphs


def role_of(number: int) -> str:
    """Return the role of the n-th flow."""
    return f"curve-{number % CURVES}"


def letter(number: int) -> str:
    """Return the letter of the n-th flow; after z comes aa."""
    before, own = divmod(number, len(ascii_lowercase))
    return (letter(before - 1) if before else "") + ascii_lowercase[own]


def frame_of(
    view: View, width: int, height: int, *, below: int, glyphs: Glyphs, room: int
) -> PlotFrame | None:
    """Return the frame of a plot in ``height`` lines of ``width`` characters; None if too small.

    The last lines, so many ``below``, are those of its time axis. ``room`` is the length of the
    longest mark of all plots, so that their time axes are aligned.
    """
    columns = width - MARGIN - 1 - room  # the vertical axis, and the marks at the right
    rows = height - below
    if rows < 1 or columns < 2:
        return None
    times = time_axis(view.from_s, view.to_s, columns)
    return PlotFrame(times, rows, room + columns - times.cells, glyphs)


def strips_of(plot: Plot, view: View, frame: PlotFrame) -> list[Strip]:
    """Return every curve by columns of dots."""
    dots, end_s = frame.times.cells * frame.glyphs.columns, frame.times.end_s
    return [
        strip_of(curve.series.columns(view.from_s, end_s, dots, view.until_s, curve.smooth_s))
        for curve in plot.curves
    ]


def drawn_of(plot: Plot, view: View, frame: PlotFrame) -> list[Strip]:
    """Return what is drawn of every curve: of several means, the range of spikes only."""
    drawn = []
    for curve, strip in zip(plot.curves, strips_of(plot, view, frame), strict=True):
        if not curve.of_means or (len(plot.curves) == 1 and not plot.bare):
            drawn.append(strip)
        elif plot.bare:
            drawn.append(strip._replace(lows=strip.means, highs=strip.means))
        else:
            drawn.append(spikes_of(strip))
    return drawn


class Layout(NamedTuple):
    """What is drawn in a frame: the curves, their axis, and what has a row besides it."""

    drawn: Sequence[Strip]
    axis: PlotAxis
    above: bool
    below: bool
    happened: Sequence[list[Beyond]]
    marks: Sequence[Beyond] = ()
    """Events that have no row: their signs are at the lower end."""

    @property
    def taken(self) -> int:
        """How many rows are not the axis's."""
        return self.above + self.below + len(self.happened)


def lay_out(plot: Plot, view: View, frame: PlotFrame) -> Layout:
    """Return what is drawn in a frame; what lies beyond the axis has a row at its end."""
    drawn = drawn_of(plot, view, frame)
    axis = _axis_of_plot(plot, drawn, frame.rows)
    edges = frame.rows - plot.bare >= LEAST_ROWS - 1 if plot.bare else frame.rows >= LEAST_ROWS
    above, below = (any(_beyond(plot, drawn, axis, frame, end)) and edges for end in (1, -1))
    happened = [*filter(None, _happened(plot, view, frame))]
    layout = Layout(drawn, axis, above, below, happened)
    spare = frame.rows - plot.bare if plot.bare else frame.rows - LEAST_ROWS
    if spare < len(happened):
        layout = layout._replace(happened=[], marks=[*chain.from_iterable(happened)])
    if layout.taken <= frame.rows - axis.cells:
        return layout
    return layout._replace(axis=_axis_of_plot(plot, drawn, frame.rows - layout.taken))


def _axis_of_plot(plot: Plot, drawn: Sequence[Strip], rows: int) -> PlotAxis:
    """Return the value axis, in at most ``rows`` cells."""
    bounds, from_zero = plot.bounds, False
    if bounds is None:
        bounds = bounds_of(
            drawn, from_zero=plot.from_zero, robust=plot.robust and not plot.log,
            beside=[*plot.expected],
        )  # fmt: skip
        from_zero = plot.from_zero
    rows = min(rows, plot.bare or rows)
    return axis_for(plot.metric, *bounds, rows, from_zero=from_zero, log=plot.log)


def draw(
    plot: Plot, view: View, width: int, height: int, *, below: int = 2, glyphs: Glyphs = BRAILLE,
    room: int = 1, beside: Sequence[Span] = (),
) -> list[Line]:  # fmt: skip
    """Draw a plot into ``height`` lines of ``width`` characters.

    The last lines, so many ``below``, are the time axis: its line, and the times. ``room`` is
    the length of the longest mark of all plots, so that their time axes are aligned. At its end
    the texts ``beside`` stand, a row each.
    """
    frame = frame_of(view, width, height, below=below, glyphs=glyphs, room=room)
    if frame is None:
        return [[Span(" " * width)] for _ in range(height)]
    layout = lay_out(plot, view, frame)
    drawn, axis, above, under, happened, marks = layout
    rows = _rows(plot, drawn, axis, frame)
    for mark in marks:
        rows[-1][mark.column] = (mark.role, glyphs.event)
    labels = {tick.cell: tick.text for tick in axis.ticks}
    ends = []
    for end, there, glyph in ((1, above, glyphs.above), (-1, under, glyphs.below)):
        found = _beyond(plot, drawn, axis, frame, end)
        ends.append(
            [edge_row(found, axis.number, glyph, frame.times.cells + frame.room)] if there else []
        )
    width = frame.times.cells + frame.room
    marked = [event_row(events, glyphs.event, width) for events in happened]
    spare = [[(PLAIN, " ")] * width for _ in range(frame.rows - axis.cells - layout.taken)]
    lines: list[Line] = []
    cells = [*spare, *marked, *ends[0], *rows, *ends[1]]
    for row, (text, role) in zip(cells, beside, strict=False):
        row[-len(text) :] = [(role, character) for character in text]
    for number, row in enumerate(cells):
        cell = frame.rows - under - 1 - number
        label = fit(labels.get(cell, ""), MARGIN - 1, right=True)
        edge = glyphs.tick if cell in labels else glyphs.vertical
        lines.append([Span(f"{label} ", "label"), Span(edge, "axis"), *_joined(row)])
    line, texts = _time_axis(frame.times, frame.room, glyphs)
    margin = fit(axis.unit, MARGIN - 1, right=True)
    times: list[Line] = [
        [Span(f"{margin} ", "label"), Span(f"{glyphs.corner}{line}", "axis")],
        [Span(" " * MARGIN), Span(f" {texts}", "label")],
    ]
    return [*lines, *times[:below]]


def _rows(plot: Plot, drawn: Sequence[Strip], axis: PlotAxis, frame: PlotFrame) -> list[list[Cell]]:
    """Return the cells of the axis with all curves, their marks, and the expected values.

    A curve's mark is at its end; several that end side by side share a ``+``.
    """
    field = Field(frame.times.cells, axis, frame.glyphs)
    ends: dict[tuple[int, int], Cell] = {}
    marks: dict[tuple[int, int], Cell] = {}
    every = frame.glyphs.marks * (len(plot.curves) > 1)
    for curve, strip in zip(plot.curves, drawn, strict=True):
        role = role_of(curve.number)
        band = "" if plot.bare else f"faint-{role}"
        end = field.add_line(role, band if curve.of_means else None, strip)
        if end is not None:
            ends[end] = ("label", "+") if end in ends else (role, curve.mark)
        if every and end is not None:
            passed = field.passed(every, curve.number * APART % every)
            marks |= dict.fromkeys(passed, (role, curve.mark[:1]))
    for value in plot.expected:
        if axis.shows(value):
            text = "" if plot.bare else _expected(plot, axis, value)
            field.add_dashes(_role_of(plot, value), value, text)
    rows = [[*row, *[(PLAIN, " ")] * frame.room] for row in field.cells()]
    for (row, column), cell in marks.items():
        rows[row][column] = cell
    for (row, column), (role, mark) in ends.items():
        rows[row][column + 1 : column + 1 + len(mark)] = [(role, character) for character in mark]
    return rows


def _role_of(plot: Plot, value: float) -> str:
    """Return the role of an expected value: that of its curve, if it is of one."""
    curves = plot.expected[value]
    return role_of(curves[0].number) if len(curves) == 1 else "label"


def _expected(plot: Plot, axis: PlotAxis, value: float) -> str:
    """Return an expected value with the marks of its curves, if others have none or another."""
    marks = ",".join(curve.mark for curve in plot.expected[value])
    whose = "" if len(plot.expected[value]) == len(plot.curves) else f"{marks} "
    return f"{whose}expected {axis.number(value)}"


def _beyond(
    plot: Plot, drawn: Sequence[Strip], axis: PlotAxis, frame: PlotFrame, end: int
) -> Iterator[Beyond]:
    """Yield what lies beyond the upper end of the axis (1), or the lower one (-1)."""
    low, high = axis.limits
    limit = high if end > 0 else -low
    for curve, strip in zip(plot.curves, drawn, strict=True):
        values = strip.highs if end > 0 else strip.lows
        if not values or max(end * min(values), end * max(values)) <= limit:
            continue
        role = role_of(curve.number)
        for place, value in zip(strip.places, values, strict=True):
            if end * value > limit:
                yield Beyond(place // frame.glyphs.columns, end * value - limit, value, role)
    for value in plot.expected:
        if end * value > limit:
            text = _expected(plot, axis, value)
            yield Beyond(0, end * value - limit, value, _role_of(plot, value), text)


def _happened(plot: Plot, view: View, frame: PlotFrame) -> Iterator[list[Beyond]]:
    """Yield what is in sight of what concerns all curves, and of the events of single ones.

    A word of those has its curve's mark if there are other curves.
    """
    cell_s = (frame.times.end_s - view.from_s) / frame.times.cells
    of_curves = [
        (at_s, f"{f'{curve.mark} ' * (len(plot.curves) > 1)}{word}", role_of(curve.number))
        for curve in plot.curves
        for at_s, word in curve.happened
    ]
    for events in ([(at_s, word, "label") for at_s, word in plot.happened], of_curves):
        yield [
            Beyond(int((at_s - view.from_s) / cell_s), -at_s, at_s, role, word)
            for at_s, word, role in events
            if view.from_s <= at_s < min(frame.times.end_s, view.until_s)
        ]


def _joined(cells: Sequence[Cell]) -> list[Span]:
    """Return cells as spans, neighbours of one role joined."""
    return [Span("".join(map(_TEXT, group)), role) for role, group in groupby(cells, key=_ROLE)]


def _time_axis(axis: TimeAxis, room: int, glyphs: Glyphs) -> tuple[str, str]:
    """Return the horizontal axis with ``room`` cells after it, and the times below its ticks."""
    width = axis.cells + room
    line = [glyphs.horizontal] * axis.cells + [" "] * room
    text = [" "] * width
    for cell, _, label in axis.ticks:
        line[cell] = glyphs.drop
        begin = min(max(0, cell - len(label) // 2), width - len(label))
        if begin >= 0:
            text[begin : begin + len(label)] = label
    return "".join(line), "".join(text)
