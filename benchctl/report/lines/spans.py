"""Lines of text whose parts have roles: the format of everything drawn here.

A role gives the meaning of a text (``label``, ``good``, ``curve-2``); the theme gives its look.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

from benchctl.visible import fitting, padded, width_of

PLAIN = ""
CURVES = 8
"""The number of colours of curves; the ninth curve has the colour of the first."""
HEATS = 7


class Span(NamedTuple):
    """Characters with one role."""

    text: str
    role: str = PLAIN


Line = Sequence[Span]
ELLIPSIS = "…"
# A number that is a word of its own, with the units and the interval after it: "26.9 Mbit/s ±0.42".
_UNIT = r" (?:[kMGT]?bit/s|[mun]?s|[KMGT]?i?B|%|min|h)(?!\w)"
_FIGURE = re.compile(
    rf"(?<![\w.])[-+±]?\d[\d.,:/]*(?:e[-+]\d+)?(?![\w-])(?:{_UNIT}(?: \d+{_UNIT})?)?(?: ±\S+)?"
)


def whole(text: str, width: int) -> str:
    """Return a figure as it is, or an ellipsis: a part of it would be another figure."""
    return text if width_of(text) <= width else ELLIPSIS[:width]


def shorten(text: str, width: int) -> str:
    """Return a text in at most ``width`` cells.

    A shortened one ends in an ellipsis, before a figure that does not fit as a whole.
    """
    if width_of(text) <= width:
        return text
    cut = fitting(text, width - 1)
    for figure in _FIGURE.finditer(text):
        if figure.start() < cut < figure.end():
            cut = figure.start()
    return text[:cut] + ELLIPSIS if width > 0 else ""


def without_middle(text: str, width: int) -> str:
    """Return a text in at most ``width`` cells; an ellipsis replaces its middle: ends differ."""
    if width_of(text) <= width:
        return text
    behind = (width - 1) // 2
    last = len(text)
    while width_of(text[last - 1 :]) <= behind:
        last -= 1
    return text[: fitting(text, width - 1 - behind)] + ELLIPSIS + text[last:]


def fit(text: str, width: int, *, right: bool = False) -> str:
    """Return a text in exactly ``width`` cells, shortened; at the right, figures are whole."""
    return padded((whole if right else shorten)(text, width), width, right=right)


def crop(line: Iterable[Span], width: int) -> list[Span]:
    """Return a line of exactly ``width`` cells, shortened as a text is."""
    line = list(line)
    text = "".join(span.text for span in line).rstrip()
    too_long = width_of(text) > width
    left = width_of(shorten(text, width)) - 1 if too_long else width
    cropped: list[Span] = []
    for part, role in line:
        cropped.append(Span(part[: fitting(part, left)], role))
        left -= width_of(part)
        if left < 0:
            break
    if too_long:
        cropped.append(Span(ELLIPSIS[:width], cropped[-1].role))
    return [*cropped, Span(" " * (width - sum(width_of(span.text) for span in cropped)))]


def wrap(line: Line, width: int, indent: int = 4) -> Iterator[list[Span]]:
    """Yield a line in pieces of at most ``width`` characters, split at spaces where possible."""
    pieces: list[Span] = []
    used = 0
    for text, role in line:
        rest = text
        while used + len(rest) > width:
            room = max(0, width - used)
            cut = rest.rfind(" ", 0, room + 1)
            if len(rest[cut + 1 :].partition(" ")[0]) > width - indent:
                cut = room  # a word longer than a line is split anywhere
            elif cut <= 0:
                cut = 0 if used > indent else max(1, room)
            yield [*pieces, Span(rest[:cut], role)]
            rest = rest[cut:].lstrip(" ")
            pieces, used = [Span(" " * indent)], indent
        pieces.append(Span(rest, role))
        used += len(rest)
    yield pieces


def to_text(lines: Iterable[Line]) -> str:
    """Return lines as plain text."""
    return "\n".join("".join(span.text for span in line) for line in lines)


_STATES = {
    "planned": ("·", "planned", "dim"),
    "running": ("▶", "running", "running"),
    "ok": ("✓", "ok", "good"),
    "failed": ("✗", "failed", "bad"),
    "timed_out": ("✗", "timed out", "bad"),
    "interrupted": ("■", "stopped", "warn"),
    "skipped": ("»", "skipped", "warn"),
    "died": ("✗", "died", "bad"),
}
WIDTH = 11
"""The width of the longest."""


def state(status: str) -> Span:
    """Return a status for display; an unknown one unchanged."""
    glyph, word, role = _STATES.get(status, ("?", status, "warn"))
    return Span(f"{glyph} {word}", role)
