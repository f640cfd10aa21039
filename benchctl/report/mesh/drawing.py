"""The history of a figure of a pair as SVG: past days as bands, newest days value by value. Pure.

Colours are classes, which the style sheet has for light and dark. A year of 60 hosts has millions
of values: they are whole dots, each written as the step from the one before.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from html import escape
from itertools import repeat
from operator import add, sub, truediv
from typing import NamedTuple

from benchctl.report.figures.figure import Axis
from benchctl.report.mesh.days import DayFigures
from benchctl.report.page.drawing import COLOURS, ends, ticks
from benchctl.units import format_time

WIDTH, HEIGHT = 720, 190
_LEFT, _RIGHT, _TOP, _BOTTOM = 66, 712, 14, 164
_SPLIT, _GAP = 400, 12
DAY_S = 86_400.0


class HistoryLine(NamedTuple):
    """A series: its number, which decides colour and dashes, its past days, its newest values."""

    number: int
    days: DayFigures | None
    times: Sequence[float]
    values: Sequence[float]


class HistorySpan(NamedTuple):
    """What a history covers, in Unix time: past days from the first on, newest values until."""

    days: range
    """Numbers of days, since 1970."""
    first: float
    until: float


class _Part(NamedTuple):
    """Where a time of one of the two parts of a history is."""

    left: float
    right: float
    begin: float
    end: float

    def x(self, time: float) -> float:
        share = (time - self.begin) / ((self.end - self.begin) or 1.0)
        return self.left + (self.right - self.left) * min(1.0, max(0.0, share))


def extent_of(lines: Iterable[HistoryLine]) -> tuple[float, float] | None:
    """Return the least and the greatest value of lines; None without any."""
    ends: list[float] = []
    for line in lines:
        for column, of in ((line.days.p5, min), (line.days.p95, max)) if line.days else ():
            some: Sequence[float] = column
            if not math.isfinite(sum(some)):
                some = [*filter(math.isfinite, some)]
            if some:
                ends.append(of(some))
        ends += line.values
    known = [end for end in ends if math.isfinite(end)]
    return (min(known), max(known)) if known else None


def history_of(
    axis: Axis, lines: Sequence[HistoryLine], span: HistorySpan, *, title: str,
    events: Sequence[tuple[float, str]] = (), failed: Sequence[float] = (), step: int = 1,
) -> str:  # fmt: skip
    """Return the history of a figure as an element.

    ``events`` have a time and a word, ``failed`` are the times of failed trials, all Unix. A point
    of past days stands for ``step`` of them.
    """
    low, high = ends(axis)
    factor = (_BOTTOM - _TOP) / ((high - low) or 1.0)
    newest = _Part(_SPLIT + _GAP if span.days else _LEFT, _RIGHT, span.first, span.until)
    past = _Part(_LEFT, _SPLIT, span.days.start * DAY_S, span.days.stop * DAY_S)
    parts = [f'<svg viewBox="0 0 {WIDTH} {HEIGHT}" role="img"><title>{escape(title)}</title>']
    for value, text in ticks(axis):
        at = _BOTTOM - (value - low) * factor
        parts.append(f'<path class="grid" d="M{_LEFT} {at:.0f}H{_RIGHT}"/>')
        parts.append(f'<text class="end" x="{_LEFT - 4}" y="{at + 4:.0f}">{escape(text)}</text>')
    unit = axis.scale[1]
    parts.append(f'<text class="small" x="2" y="10">{escape(unit)}</text>')
    for part in (past, newest) if span.days else (newest,):
        parts += _dates(part)
    for line in lines:
        colour = f"s{line.number % COLOURS}"
        dash = " dash" * (line.number % 2)
        if line.days is not None and span.days:
            drawn = _days(line.days, low, factor, step)
            scale = (past.right - past.left) / len(span.days)
            # The first point may stand for fewer days.
            left = past.left - scale * (-len(span.days) % step)
            parts.append(f'<g transform="translate({left:g})scale({scale:.4f} 1)">')
            parts += (f'<path class="{kind} {colour}{dash}" d="{d}"/>' for kind, d in drawn)
            parts.append("</g>")
        if line.values:
            wide = (newest.right - newest.left) / ((newest.end - newest.begin) or 1.0)
            left, top = newest.left - newest.begin * wide + 0.5, _BOTTOM + low * factor + 0.5
            dots = "".join(
                f"M{int(left + time * wide)} {int(top - value * factor)}h0"
                for time, value in zip(line.times, line.values, strict=True)
            )
            parts.append(f'<path class="dot {colour}" d="{dots}"/>')
            if len(line.values) > 1:
                d = f"M{dots[1:-2].replace('h0M', ' ')}"
                parts.append(f'<path class="thin {colour}{dash}" d="{d}"/>')
    if failed:
        places = dict.fromkeys(round((newest if t >= span.first else past).x(t)) for t in failed)
        d = "".join(f"M{x - 3} {_BOTTOM - 3}l6 6m0-6l-6 6" for x in places)
        parts.append(f'<path class="cross failed" d="{d}"/>')
    for time, word in events:
        x = (newest if time >= span.first else past).x(time)
        parts.append(f'<path class="event theory" d="M{x:.0f} {_TOP}V{_BOTTOM}"/>')
        parts.append(f'<text class="small" x="{x + 2:.0f}" y="{_TOP + 8}">{escape(word)}</text>')
    return "".join([*parts, "</svg>"])


def _dates(part: _Part) -> Iterator[str]:
    """Yield the axis of a part with the dates of its ends."""
    yield f'<path class="axis" d="M{part.left} {_BOTTOM}H{part.right}"/>'
    for at, time, kind in ((part.left, part.begin, ""), (part.right, part.end, "end")):
        text = format_time(time)
        word = text[:10] if part.end - part.begin > 3 * DAY_S else text[5:]
        yield f'<text class="small {kind}" x="{at}" y="{_BOTTOM + 14}">{word}</text>'


class _Steps(dict[int, str]):
    """How each step down, in dots, is written, with one or more days to the right or the left."""

    def __init__(self, days: int) -> None:
        self._days = days

    def __missing__(self, down: int) -> str:
        text = self[down] = f"{self._days}{down}" if down < 0 else f"{self._days} {down}"
        return text


_WRITTEN: dict[int, _Steps] = {}


def _written(days: int) -> _Steps:
    return _WRITTEN.setdefault(days, _Steps(days))


def _days(figures: DayFigures, low: float, factor: float, step: int) -> Iterator[tuple[str, str]]:
    """Yield class and path of the band and of the medians; x counts days from the first one."""
    top = _BOTTOM + low * factor
    columns = [_merged(figures.medians, step, _mean), _merged(figures.p5, step, min),
               _merged(figures.p95, step, max)]  # fmt: skip
    middle = step / 2
    # A day has all three figures, or none.
    is_whole = math.isfinite(sum(map(sum, columns)))
    pieces = [slice(0, len(columns[0]))] if is_whole else [*_pieces(columns)]
    band, line = [], []
    right, left = _written(step), _written(-step)
    for piece in pieces:
        ys, lows, highs = (
            [int(top - value * factor) for value in column[piece]] for column in columns
        )
        x = piece.start * step + middle
        if len(ys) == 1:  # a short line, which is seen
            line.append(f"M{x - 0.3:g} {ys[0]}h.6")
            band.append(f"M{x - 0.3:g} {highs[0]}h.6V{lows[0]}h-.6z")
            continue
        line.append(f"M{x:g} {ys[0]}l{_joined(right, ys)}")
        lows.reverse()
        band.append(f"M{x:g} {highs[0]}l{_joined(right, highs)}V{lows[0]}l{_joined(left, lows)}z")
    if line:
        yield "band", "".join(band)
        yield "line", "".join(line)


def _joined(steps: _Steps, ys: Sequence[int]) -> str:
    return " ".join(map(steps.__getitem__, map(sub, ys[1:], ys)))


def _mean(values: Sequence[float]) -> float:
    return sum(values) / len(values)


def _merged(values: Sequence[float], step: int, fold: Callable[..., float]) -> Sequence[float]:
    """Return a value for each ``step`` of them; NaN where there is none."""
    if step == 1:
        return values
    # The oldest days may be fewer: the points of the others stay where they are for `step` days.
    odd = len(values) % step
    if math.isfinite(sum(values)):
        first = [fold(values[:odd])] if odd else []
        columns = [values[at::step] for at in range(odd, odd + step)]
        if fold is _mean:
            totals: Iterable[float] = columns[0]
            for column in columns[1:]:
                totals = map(add, totals, column)
            return [*first, *map(truediv, totals, repeat(step))]
        return [*first, *map(fold, *columns)]
    whole = [values[max(0, end - step) : end] for end in range(len(values), 0, -step)]
    known = ([*filter(math.isfinite, some)] for some in reversed(whole))
    return [fold(some) if some else math.nan for some in known]


def _pieces(columns: Sequence[Sequence[float]]) -> Iterator[slice]:
    """Yield the runs of values between gaps."""
    begin = None
    for place, values in enumerate(zip(*columns, strict=True)):
        if not all(map(math.isfinite, values)):
            if begin is not None:
                yield slice(begin, place)
            begin = None
        elif begin is None:
            begin = place
    if begin is not None:
        yield slice(begin, len(columns[0]))
