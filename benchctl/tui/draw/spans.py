"""Lines of text whose parts have roles: the format of everything drawn here.

A role gives the meaning of a text (``label``, ``good``, ``curve-2``); the theme gives its look.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

PLAIN = ""
ROLES = (
    "axis", "label", "dim", "strong", "title", "cursor", "good", "bad", "warn", "running", "keys",
    *(f"curve-{number}" for number in range(8)),
    *(f"heat-{step}" for step in range(7)),
)  # fmt: skip
CURVES = 8
"""The number of colours of curves; the ninth curve has the colour of the first."""
HEATS = 7


class Span(NamedTuple):
    """Characters with one role."""

    text: str
    role: str = PLAIN


Line = Sequence[Span]


def fit(text: str, width: int, *, right: bool = False) -> str:
    """Return a text in exactly ``width`` characters; a shortened one ends in an ellipsis."""
    if len(text) > width:
        return text[: width - 1] + "…" if width > 0 else ""
    return text.rjust(width) if right else text.ljust(width)


def crop(line: Iterable[Span], width: int) -> list[Span]:
    """Return a line of exactly ``width`` characters."""
    cropped: list[Span] = []
    for text, role in line:
        cropped.append(Span(text[:width], role))
        width -= len(text)
        if width <= 0:
            return cropped
    return [*cropped, Span(" " * width)]


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
