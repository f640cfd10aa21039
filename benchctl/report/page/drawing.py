"""A figure as SVG, for readers without scripts and for paper. Pure; needs nothing but the figure.

Colours are classes (``s0`` to ``s7``), which the page's style sheet has for light and dark. Text
is escaped.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from html import escape

from msgspec.structs import replace

from benchctl.report.figures.figure import (
    Axis,
    Box,
    LineRole,
    Panel,
    Picture,
    PictureEvent,
    PictureKind,
    PictureLine,
)
from benchctl.report.figures.paper.slots import BAR, slots_of
from benchctl.report.page.strokes import packets_of
from benchctl.report.page.thinning import thinned
from benchctl.units import format_value

WIDTH, HEIGHT = 720, 200
_LEFT, _RIGHT, _TOP, _BOTTOM = 70, 14, 16, 44
COLOURS = 8
_LABELS = 10
# Wider characters than most of a sans-serif font: what is left out of an axis never overlaps.
_CHARACTER, _SMALL_CHARACTER = 6.6, 5.6
_LONGEST = 60
_WIDEST_BAR = 48.0
_Place = Callable[[float], float]
_Value = tuple[float, float, float | None, float | None]
"""A place and a value of a line, and the ends of its interval, if known."""


def svg_of(figure: Picture, points: int) -> str:
    """Return a figure as an element; a line has at most this number of points."""
    body = "".join(
        _panel(figure, number, panel, points) for number, panel in enumerate(figure.panels)
    )
    height = len(figure.panels) * (HEIGHT + _TOP) + _BOTTOM
    title = escape(f"{figure.title}: {figure.about}" if figure.about else figure.title)
    return (
        f'<svg viewBox="0 0 {WIDTH} {height}" role="img" xmlns="http://www.w3.org/2000/svg">'
        f"<title>{title}</title>{body}</svg>"
    )


def ends(axis: Axis) -> tuple[float, float]:
    """Return the lowest and the highest value that an axis shows, with room beside them."""
    low, high = axis.low, axis.high
    if axis.metric == "time_s" and low < high:
        return low, high
    if axis.even:
        return low - 0.5, high + 0.5
    if axis.log and low > 0:
        room = (high / low) ** 0.04 if high > low else 1.1
        return low / room, high * room
    room = 0.05 * (high - low) or abs(high) * 0.05 or 1.0
    return (0.0 if axis.from_zero else low - room), high + room


def ticks(axis: Axis) -> list[tuple[float, str]]:
    """Return the named values of an axis, with their texts; at most about ten."""
    if axis.ticks:
        step = math.ceil(len(axis.ticks) / _LABELS)
        return [(tick.value, tick.text) for tick in axis.ticks[::step]]
    factor, _ = axis.scale
    low, high = (end / factor for end in ends(axis))
    if axis.log and low > 0:
        powers = range(math.floor(math.log10(low)), math.ceil(math.log10(high)) + 1)
        steps = (1, 2, 5) if len(powers) < 4 else (1,)
        values = [digit * 10.0**exponent for exponent in powers for digit in steps]
    else:
        width = _step((high - low) / 5)
        first = math.ceil(low / width - 1e-9)
        last = math.floor(high / width + 1e-9)
        values = [place * width for place in range(first, last + 1)]
    return [(value * factor, f"{value:.10g}") for value in values if low <= value <= high]


def _step(least: float) -> float:
    """Return a round number, at least this one: 1, 2 or 5 times a power of ten."""
    power: float = 10.0 ** math.floor(math.log10(least))
    return next(digit * power for digit in (1, 2, 5, 10) if digit * power >= least * (1 - 1e-9))


def _placed(axis: Axis, begin: float, end: float) -> _Place:
    """Return where on the page each value of an axis is."""
    low, high = ends(axis)
    if axis.log and low > 0:
        low, high = math.log(low), math.log(high)

    def place(value: float) -> float:
        at = math.log(value) if axis.log and value > 0 else low if axis.log else value
        return begin + (end - begin) * min(1.0, max(0.0, (at - low) / (high - low)))

    return place


def _panel(figure: Picture, number: int, panel: Panel, points: int) -> str:
    top = _TOP + number * (HEIGHT + _TOP)
    bottom = top + HEIGHT - 12
    if figure.kind is PictureKind.BARS and panel.y.low >= 0 and not panel.y.log:
        panel = replace(panel, y=replace(panel.y, from_zero=True))  # half a bar misleads
    x = _placed(figure.x, _LEFT, WIDTH - _RIGHT)
    ends = (top, bottom) if figure.kind is PictureKind.MATRIX else (bottom, top)
    y = _placed(panel.y, *ends)
    last = number == len(figure.panels) - 1
    parts = [*_frame(figure.x, panel, x, y, (top, bottom), last=last)]
    if panel.cells:
        parts += _cells(figure, panel, x, y)
    for line in panel.lines:
        if figure.kind is PictureKind.BARS:
            parts += _bars(figure, panel, line, x, y)
        else:
            parts += _line(figure, panel.y, line, x, y, points)
    for box in panel.boxes:
        parts += _box(figure, panel, box, x, y)
    return "".join([*parts, *_events(panel, x, top, bottom)])


def _events(panel: Panel, x: _Place, top: float, bottom: float) -> Iterator[str]:
    """Yield a line for each event, and as much of its words as there is room for."""
    free = [-math.inf] * 3
    for event in panel.events:
        at = x(event.x)
        yield f'<path class="event {colour_of(event)}" d="M{at:.0f} {top}V{bottom}"/>'
        row = next((place for place, end in enumerate(free) if end < at), None)
        word = _whole_words(event.word, int((WIDTH - at) / _SMALL_CHARACTER))
        if word and row is not None:
            free[row] = at + len(word) * _SMALL_CHARACTER
            yield _text(at + 3, top + 9 + 11 * row, word, "small")


def _frame(
    x_axis: Axis, panel: Panel, x: _Place, y: _Place, span: tuple[float, float], *, last: bool
) -> Iterator[str]:
    y_axis, (top, bottom) = panel.y, span
    for value, text in ticks(y_axis):
        at = y(value)
        if not panel.cells:  # it would cross their values
            yield f'<path class="grid" d="M{_LEFT} {at:.1f}H{WIDTH - _RIGHT}"/>'
        yield _text(_LEFT - 5, at + 4, text, "end")
    yield f'<path class="axis" d="M{_LEFT} {top}V{bottom}H{WIDTH - _RIGHT}"/>'
    middle = (top + bottom) / 2
    yield (
        f'<text class="label" transform="translate(12 {middle:.0f}) rotate(-90)">'
        f"{_short(y_axis.label, 32)}</text>"
    )
    free: float = -math.inf
    for value, text in ticks(x_axis):
        at, half = x(value), min(len(text), _LONGEST) * _CHARACTER / 2
        yield f'<path class="axis" d="M{at:.1f} {bottom}v4"/>'
        if at - half > free:
            free = at + half + 4
            yield _text(min(at, WIDTH - half), bottom + 16, text, "middle")
    if last:
        yield _text((_LEFT + WIDTH - _RIGHT) / 2, bottom + 34, x_axis.label, "label")


def _line(
    figure: Picture, axis: Axis, line: PictureLine, x: _Place, y: _Place, points: int
) -> Iterator[str]:
    colour = colour_of(line)
    if line.role.is_of_packets:
        yield from packets_of(figure.x, line, x, y, colour)
        return
    if figure.kind is PictureKind.TIME or len(line.xs) > points:
        line = thinned(line, points, merge=figure.kind is PictureKind.TIME)
        yield from _band(line, x, y, colour)
        yield f'<path class="line {colour}{_dash(line)}" d="{_path(line.xs, line.ys, x, y)}"/>'
        return
    dense = figure.kind in (PictureKind.CDF, PictureKind.HISTOGRAM)
    marks = line.role is not LineRole.EXPECTED and not dense
    if line.role in (LineRole.MEASURED, LineRole.EXPECTED):
        yield f'<path class="line {colour}{_dash(line)}" d="{_path(line.xs, line.ys, x, y)}"/>'
    for value_x, value_y, low, high in _values(line):
        at, height = x(value_x), y(value_y)
        if low is not None and high is not None:
            yield f'<path class="line {colour}" d="M{at:.1f} {y(low):.1f}V{y(high):.1f}"/>'
        if marks:
            kind = {LineRole.REPORTED: "open", LineRole.INVALID: "cross"}.get(line.role, "mark")
            title = _said(figure, axis, line, (value_x, value_y, low, high))
            yield _mark(at, height, f"{kind} {colour}", title)


def _values(line: PictureLine) -> Iterator[_Value]:
    """Yield the places of a line with their intervals, as far as known."""
    for place, (x, y) in enumerate(zip(line.xs, line.ys, strict=True)):
        if math.isfinite(y):
            low, high = (some[place] if some else math.nan for some in (line.lows, line.highs))
            yield x, y, *((low, high) if math.isfinite(low + high) else (None, None))


def _said(figure: Picture, axis: Axis, line: PictureLine, value: _Value) -> str:
    """Return a value of a line in words: where it is, what it is of, and its interval."""
    x, y, low, high = value
    where = next((tick.text for tick in figure.x.ticks if tick.value == x), "")
    interval = "" if low is None or high is None else f", 95 % interval {_range(axis, low, high)}"
    return _named([where, label_of(figure, line)], format_value(axis.metric, y) + interval)


def _range(axis: Axis, low: float, high: float) -> str:
    return f"{format_value(axis.metric, low)} to {format_value(axis.metric, high)}"


def _named(names: Iterable[str], value: str) -> str:
    name = ", ".join(filter(None, names))
    return f"{name}: {value}" if name else value


def _titled(element: str, text: str) -> str:
    """Return an element, written as ``<name …/>``, with a title: what it shows, in words."""
    name = element[1:].partition(" ")[0]
    return f"{element.removesuffix('/>')}><title>{escape(text)}</title></{name}>"


def _mark(x: float, y: float, kind: str, title: str) -> str:
    if kind.startswith("cross"):
        return _titled(f'<path class="{kind}" d="M{x - 4:.1f} {y - 4:.1f}l8 8m0-8l-8 8"/>', title)
    return _titled(f'<circle class="{kind}" cx="{x:.1f}" cy="{y:.1f}" r="3.5"/>', title)


def _band(line: PictureLine, x: _Place, y: _Place, colour: str) -> Iterator[str]:
    known = [
        (x(at), y(low), y(high))
        for at, low, high in zip(line.xs, line.lows, line.highs, strict=False)
        if math.isfinite(low + high)
    ]
    if any(low - high >= 1 for _, low, high in known):
        upper = [(at, high) for at, _, high in known]
        lower = [(at, low) for at, low, _ in reversed(known)]
        yield f'<path class="band {colour}" d="{_joined([*upper, *lower])}z"/>'


def _path(xs: Sequence[float], ys: Sequence[float], x: _Place, y: _Place) -> str:
    """Return the pieces of a line between its gaps."""
    pieces: list[list[tuple[float, float]]] = [[]]
    for at, value in zip(xs, ys, strict=True):
        if math.isfinite(value):
            pieces[-1].append((x(at), y(value)))
        elif pieces[-1]:
            pieces.append([])
    return "".join(map(_joined, pieces))


def _joined(places: Sequence[tuple[float, float]]) -> str:
    """Return a line through places, to half a pixel: the shortest way to write it."""
    doubled = [(round(2 * x), round(2 * y)) for x, y in places]
    if not doubled:
        return ""
    text = f"M{doubled[0][0] / 2:g} {doubled[0][1] / 2:g}l"
    for (x0, y0), (x1, y1) in zip(doubled, doubled[1:] or doubled, strict=False):
        step = f"{_half(x1 - x0)} {_half(y1 - y0)}".replace(" -", "-")
        text += f"{'' if step.startswith('-') or text.endswith('l') else ' '}{step}"
    return text


def _half(doubled: int) -> str:
    text = f"{doubled / 2:g}"
    return text.replace("0", "", 1) if abs(doubled) == 1 else text


def _bars(figure: Picture, panel: Panel, line: PictureLine, x: _Place, y: _Place) -> Iterator[str]:
    """Yield a bar for each value; bars of several lines stand beside each other."""
    axis, slots = panel.y, slots_of(panel)
    width = min(_WIDEST_BAR, x(slots.width) - x(0.0))
    colour = colour_of(line)
    floor = y(axis.low if axis.log else 0.0)
    for value_x, value_y, low, high in _values(line):
        at, height = x(slots.middle(value_x, line.number)), y(value_y)
        title = _said(figure, axis, line, (value_x, value_y, low, high))
        if line.role is LineRole.MEASURED:
            left, wide = at - width * 0.45, width * 0.9
            top, tall = min(floor, height), abs(floor - height)
            yield _titled(
                f'<rect class="bar {colour}{_dash(line)}" x="{left:.1f}" y="{top:.1f}"'
                f' width="{wide:.1f}" height="{tall:.1f}"/>', title,
            )  # fmt: skip
            if low is not None and high is not None:
                yield f'<path class="whisker" d="M{at:.1f} {y(low):.1f}V{y(high):.1f}"/>'
        if line.role is LineRole.EXPECTED:
            half = (x(BAR) - x(0.0) if line.number is None else width) / 2
            d = f"M{at - half:.1f} {height:.1f}h{2 * half:.1f}"
            yield _titled(f'<path class="line dash {colour}" d="{d}"/>', title)
        elif line.role is not LineRole.MEASURED:
            kind = "open" if line.role is LineRole.REPORTED else "cross"
            yield _mark(at, height, f"{kind} {colour}", title)


def _box(figure: Picture, panel: Panel, box: Box, x: _Place, y: _Place) -> Iterator[str]:
    axis, slots = panel.y, slots_of(panel)
    width = min(_WIDEST_BAR, x(slots.width) - x(0.0))
    at = x(slots.middle(box.x, box.number))
    left, wide, colour = at - width * 0.4, width * 0.8, f"s{box.number % COLOURS}"
    yield f'<path class="line {colour}" d="M{at:.1f} {y(box.p5):.1f}V{y(box.p95):.1f}"/>'
    where = next((tick.text for tick in figure.x.ticks if tick.value == box.x), "")
    title = (
        f"median {format_value(axis.metric, box.median)}, quartiles {_range(axis, box.q1, box.q3)},"
        f" 5 % to 95 % {_range(axis, box.p5, box.p95)}, all {box.count:,}"
        f" {_range(axis, box.least, box.greatest)}"
    )
    yield _titled(
        f'<rect class="bar {colour}" x="{left:.1f}" y="{y(box.q3):.1f}" width="{wide:.1f}"'
        f' height="{max(1.0, y(box.q1) - y(box.q3)):.1f}"/>',
        _named([where, figure.names[box.number]], title),
    )
    yield f'<path class="whisker" d="M{left:.1f} {y(box.median):.1f}h{wide:.1f}"/>'
    for value in (box.least, box.greatest):
        yield f'<circle class="open {colour}" cx="{at:.1f}" cy="{y(value):.1f}" r="2"/>'


def _cells(figure: Picture, panel: Panel, x: _Place, y: _Place) -> Iterator[str]:
    heat = panel.heat or Axis("")
    wide, tall = x(1.0) - x(0.0), abs(y(0.0) - y(1.0))
    for cell in panel.cells:
        at, height = x(cell.column), y(cell.row)
        words = [cell.text or "-", *["not valid"] * (not cell.valid)]
        if cell.value is not None:
            places = (figure.x, cell.column), (panel.y, cell.row)
            names = (f"{axis.title} {axis.ticks[number].text}" for axis, number in places)
            title = ", ".join([format_value(heat.metric, cell.value), *words[1:]])
            share = heat.share(cell.value) if heat.high > heat.low else 0.5
            side = ""
            if heat.low < 0 < heat.high:  # two colours, each from nothing in the middle
                side, share = " less" if share < 0.5 else "", abs(2 * share - 1)
            yield _titled(
                f'<rect class="cell{side}" fill-opacity="{0.08 + 0.6 * share:.2f}"'
                f' x="{at - wide / 2:.1f}" y="{height - tall / 2:.1f}"'
                f' width="{wide:.1f}" height="{tall:.1f}"/>', _named(names, title),
            )  # fmt: skip
        # Where there is no room for the value, it is shown when it is pointed at.
        text = " ".join(words)
        if len(text) * _CHARACTER < wide:
            yield _text(at, height + 4, text, "middle")
        elif not cell.valid:
            yield _text(at, height + 4, "!", "middle")


def colour_of(line: PictureLine | PictureEvent) -> str:
    """Return the class of the colour of a line, or of its event; of what is of every line, ink."""
    return "theory" if line.number is None else f"s{line.number % COLOURS}"


def label_of(figure: Picture, line: PictureLine) -> str:
    """Return the name of a line with its role; empty for the only measured one."""
    number = line.number
    name = figure.names[number] if number is not None and number < len(figure.names) else ""
    role = line.name if line.role is LineRole.REPORTED else line.role
    return name if line.role is LineRole.MEASURED else f"{name} {role}".strip()


def _dash(line: PictureLine) -> str:
    # Of more lines than colours, the others are dotted.
    if line.role is LineRole.EXPECTED:
        return " dash"
    return " dots" if (line.number or 0) >= COLOURS else ""


def _text(x: float, y: float, text: str, kind: str) -> str:
    return f'<text class="{kind}" x="{x:.1f}" y="{y:.1f}">{_short(text, _LONGEST)}</text>'


def _short(text: str, most: int) -> str:
    return escape(text if len(text) <= most else f"{text[: most - 1]}…")


def _whole_words(text: str, most: int) -> str:
    return text if len(text) <= most else f"{text[:most].rpartition(' ')[0]}…"
