"""The crosshair of plots: a line at a moment, and what every line of them had there. Pure."""

from __future__ import annotations

import math
import re
from bisect import bisect_left
from collections.abc import Sequence
from typing import NamedTuple

from msgspec import Struct

from benchctl.metrics import title_of
from benchctl.report.lines.spans import PLAIN, Line, Span
from benchctl.report.timeline.series import LineValue
from benchctl.tui.draw.axes.times import moment
from benchctl.tui.draw.plot.charts import Chart
from benchctl.tui.draw.plot.plot import MARGIN, Curve, Plot, PlotFrame, frame_of, role_of, strips_of
from benchctl.tui.draw.text.glyphs import Glyphs
from benchctl.tui.model.zoom import View
from benchctl.units import format_range, format_value
from benchctl.visible import padded, width_of

NO_SAMPLE = "no sample"
WORDS = re.compile(r"\S+( \S+)*")
# The first column of a plot is right of its scale.
LEFT = MARGIN + 1
# What is told of a line, by its place in `_labels`: the first that has room for all lines.
MARK, NAME, VALUE, RANGE, END = range(5)
FORMS = ((MARK, NAME, VALUE, RANGE, END), (MARK, VALUE, RANGE, END), (MARK, VALUE, END),
         (MARK, VALUE))  # fmt: skip


class LineAt(NamedTuple):
    """What a line had at a moment: the nearest sample, None if none is near.

    ``bounds`` are the least and the greatest value in the column of the plot, if it has any.
    """

    curve: Curve
    reading: LineValue | None
    bounds: tuple[float, float] | None


class PlotFrames(Struct, frozen=True):
    """Where some plots are, one below the other: their frames have the same time axis."""

    charts: Sequence[Chart]
    frames: Sequence[PlotFrame]
    view: View

    @property
    def columns(self) -> int:
        """How many columns of characters a plot has."""
        return self.frames[0].times.cells

    @property
    def column_s(self) -> float:
        """The time that a column covers."""
        return (self.frames[0].times.end_s - self.view.from_s) / self.columns

    def time_at(self, x: int) -> float | None:
        """Return the middle of the time at a character of a line; None beside the plots."""
        return self._middle(x - LEFT) if 0 <= x - LEFT < self.columns else None

    def _middle(self, column: int) -> float:
        return self.view.from_s + (column + 0.5) * self.column_s

    def column_of(self, time_s: float) -> int:
        """Return the column of a time, which may be beside the plots."""
        return math.floor((time_s - self.view.from_s) / self.column_s)

    def moved(self, time_s: float | None, steps: int) -> float | None:
        """Return the time so many columns with samples further on, or back.

        None is beyond the last one.
        """
        places = {
            place // frame.glyphs.columns
            for chart, frame in zip(self.charts, self.frames, strict=True)
            for strip in strips_of(chart.plot, self.view, frame)
            for place in strip.places
        }
        here = self.columns if time_s is None else self.column_of(time_s)
        if steps < 0:
            on = sorted((place for place in places if place < here), reverse=True)
        else:
            on = sorted(place for place in places if place > here)
        return self._middle(on[min(abs(steps), len(on)) - 1]) if on else time_s


def plot_frames(
    charts: Sequence[Chart], view: View, width: int, glyphs: Glyphs
) -> PlotFrames | None:
    """Return where plots are in lines of ``width`` characters; None if there is no room."""
    frames = [
        frame_of(
            view, width, chart.rows, below=chart.below, glyphs=glyphs, room=chart.room
        )
        for chart in charts
    ]  # fmt: skip
    found = [frame for frame in frames if frame is not None]
    return PlotFrames(charts, found, view) if found and len(found) == len(frames) else None


def lines_at(plot: Plot, view: View, frame: PlotFrame, time_s: float) -> list[LineAt]:
    """Return what every line of a plot had at a time in sight."""
    column_s = (frame.times.end_s - view.from_s) / frame.times.cells
    dots = frame.glyphs.columns
    column = math.floor((time_s - view.from_s) / column_s)
    found = []
    for curve, strip in zip(plot.curves, strips_of(plot, view, frame), strict=True):
        spacing_s = curve.series.spacing_s
        near_s = max(column_s, spacing_s) if math.isfinite(spacing_s) else column_s
        begin, end = (bisect_left(strip.places, (column + n) * dots) for n in (0, 1))
        bounds = None
        if begin < end:
            bounds = min(strip.lows[begin:end]), max(strip.highs[begin:end])
        found.append(LineAt(curve, curve.series.nearest(time_s, near_s, view.until_s), bounds))
    return found


def values_at(where: PlotFrames, time_s: float) -> list[list[str]]:
    """Return what every line had at a time in sight: rows of texts, the metric first."""
    return [
        [title_of(chart.plot.metric), *(span.text for span in _spans(chart.plot.metric, line))]
        for chart, frame in zip(where.charts, where.frames, strict=True)
        for line in lines_at(chart.plot, where.view, frame, time_s)
    ]


def crossed(lines: Sequence[Line], where: PlotFrames, time_s: float) -> list[Line]:
    """Return the lines of plots with a crosshair, and beside it what each curve had there."""
    drawn = [*lines]
    column = where.column_of(time_s)
    if not 0 <= column < where.columns:
        return drawn
    left, right = column, where.columns - column - 1
    top = 0
    for chart, frame in zip(where.charts, where.frames, strict=True):
        top += chart.height - chart.rows  # the caption
        rows = range(top, top + frame.rows)
        for row in rows:
            drawn[row] = _over_blank(drawn[row], LEFT + column, frame.glyphs.vertical)
        found = lines_at(chart.plot, where.view, frame, time_s)
        beside, width = _labels(chart.plot.metric, found, max(left, right), frame.rows)
        begin = LEFT + (where.columns - width if right > left else 0)
        for row, line in zip(rows, beside, strict=False):
            drawn[row] = _put(drawn[row], begin, width, line)
        if chart.below > 1:
            drawn[rows.stop + 1] = _labelled(drawn[rows.stop + 1], column, where, time_s)
        top += chart.rows
    return drawn


def _labelled(line: Line, column: int, where: PlotFrames, time_s: float) -> Line:
    """Return the times below the axis with that of the crosshair instead of those it touches."""
    digits = max(0, math.ceil(-math.log10(where.column_s)))
    shown = moment(round(time_s, digits))
    begin = max(LEFT, min(LEFT + column - len(shown) // 2, LEFT + where.columns - len(shown)))
    text = "".join(span.text for span in line)
    for word in WORDS.finditer(text):
        if word.start() <= begin + len(shown) and begin <= word.end():
            text = text[: word.start()] + " " * len(word[0]) + text[word.end() :]
    return _put([Span(text, "label")], begin, len(shown), [Span(shown, "strong")])


def _over_blank(line: Line, at: int, glyph: str) -> Line:
    """Return a line with a character at a place, unless a curve or a text is there."""
    text = "".join(span.text for span in line)
    return _put(line, at, 1, [Span(glyph, "label")]) if text[at : at + 1] == " " else line


def _put(line: Line, at: int, width: int, spans: Sequence[Span]) -> Line:
    """Return a line of narrow characters with other spans instead of ``width`` of them."""
    before, after, place = [], [], 0
    for text, role in line:
        before.append(Span(text[: max(0, at - place)], role))
        after.append(Span(text[max(0, at + width - place) :], role))
        place += len(text)
    return [span for span in (*before, *spans, *after) if span.text]


def _labels(
    metric: str, found: Sequence[LineAt], width: int, height: int
) -> tuple[list[Line], int]:
    """Return what lines had as rows of one width, which is returned, too.

    As much is told of each as there is room for all, in columns if need be; lines that have no room
    in the shortest form are counted at the end.
    """
    rows = [_spans(metric, line) for line in found]
    cells: list[Line] = []
    each = count = 0
    for form in FORMS:
        cells, each = _aligned(rows, form)
        count = min(width // each, -(-len(cells) // height))
        if count * height >= len(cells):
            break
    if not count:
        return [], 0
    if (left := len(cells) - count * height) > 0:
        more = Span(padded(f" +{left + 1} more", each), "dim")
        cells = [*cells[: -left - 1], [more]]
    cells = [*cells, *[[Span(" " * each)]] * (-len(cells) % count)]
    down = len(cells) // count
    return [[span for cell in cells[row::down] for span in cell] for row in range(down)], (
        each * count
    )


def _aligned(rows: Sequence[Sequence[Span]], form: Sequence[int]) -> tuple[list[Line], int]:
    """Return some places of each row as a cell of one width, which is returned, too."""
    widths = {place: max((width_of(row[place].text) for row in rows), default=0) for place in form}
    shown = [place for place in form if widths[place]]
    cells: list[Line] = []
    for row in rows:
        cell = [Span(" ")]
        for place in shown:
            text = padded(row[place].text, widths[place], right=place > NAME)
            cell.append(Span(f"{text} ", row[place].role))
        cells.append(cell)
    return cells, 1 + sum(widths[place] + 1 for place in shown)


def _spans(metric: str, line: LineAt) -> tuple[Span, Span, Span, Span, Span]:
    """Return all that is told of a line: mark, name, value, range, end of the interval."""
    role = role_of(line.curve.number)
    mark, name = Span(line.curve.mark, role), Span(line.curve.name, role)
    if line.reading is None:
        return mark, name, Span(NO_SAMPLE, "dim"), Span(""), Span("")
    spread = ""
    if line.bounds is not None and line.bounds[0] < line.bounds[1]:
        spread = format_range(metric, *line.bounds)
    return (
        mark, name, Span(format_value(metric, line.reading.value), PLAIN), Span(spread, "dim"),
        Span(f"at {moment(line.reading.end_s)}", "dim"),
    )  # fmt: skip
