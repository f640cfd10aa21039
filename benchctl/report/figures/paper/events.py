"""Draws what happened at moments in a figure on paper: lines across a panel, and words above it."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from itertools import groupby
from typing import Any

from benchctl.report.figures.figure import Axis, PictureEvent
from benchctl.report.figures.paper.legend import GREY

# Of the width of a panel, for each character, and rows of words.
_WORD_SHARE, _WORD_ROWS = 0.0125, 4
# A shorter word is above the middle of its line.
_MIDDLE = 0.2
# Events nearer than this are one word, with their number.
_CLOSE = 0.02


def draw_events(
    axes: Any, events: Sequence[PictureEvent], x: Axis, colour_of: Callable[[int | None], str]
) -> None:
    """Draw a line for each event, and above the panel the words for which there is room."""
    factor = x.scale[0]
    high = x.high / factor
    span = high - x.low / factor or 1.0
    for event in events:
        axes.axvline(event.x / factor, color=colour_of(event.number), linestyle=":",
                     linewidth=0.9, zorder=1.5)  # fmt: skip
    ends: list[float] = [-math.inf] * _WORD_ROWS
    for at, text in sorted(_words(events, factor, _CLOSE * span)):
        wide = len(text) * _WORD_SHARE * span
        side, begin = "center", at - wide / 2
        if wide > _MIDDLE * span:  # it would be beside the panel
            side, begin = ("left", at) if at + wide < high else ("right", at - wide)
        row = next((n for n, end in enumerate(ends) if begin > end), None)
        if row is None:
            continue  # its line is there; beside it are others' words
        ends[row] = begin + wide
        axes.annotate(
            f"{text}▾" if side == "right" else f"▾{text}", (at, 1.0), (0, 2 + 9 * row),
            xycoords=("data", "axes fraction"), textcoords="offset points", ha=side,
            va="bottom", fontsize="x-small", color=GREY,
        )  # fmt: skip


def _words(
    events: Sequence[PictureEvent], factor: float, close: float
) -> Iterator[tuple[float, str]]:
    """Yield the words of events and their places; the same word side by side is one."""
    named = sorted((event.word, event.x / factor) for event in events if event.word)
    for word, same in groupby(named, lambda pair: pair[0]):
        groups: list[list[float]] = []
        for _, at in same:
            if groups and at - groups[-1][0] < close:
                groups[-1].append(at)
            else:
                groups.append([at])
        for group in groups:
            yield group[0], word if len(group) == 1 else f"{len(group)} x {word}"
