"""The characters of plots: braille, blocks or plain ASCII.

A cell of the terminal holds a small grid of dots; each set has a character for every choice of dots
in its grid. Which dots are set is given as bits, column by column, from the top.
"""

from __future__ import annotations

from collections.abc import Sequence

from msgspec import Struct


class Glyphs(Struct, frozen=True):
    """One set: ``columns`` x ``rows`` dots a cell, and a character for every value of the bits."""

    name: str
    columns: int
    rows: int
    characters: Sequence[str]
    vertical: str
    horizontal: str
    corner: str
    """The axes: vertical, horizontal, and their corner."""
    tick: str
    drop: str
    """A tick of the vertical and of the horizontal axis."""
    above: str
    below: str
    """What lies beyond the upper and the lower end of the vertical axis."""
    event: str
    """The moment at which something happened."""
    bars: str = "▁▂▃▄▅▆▇█"
    """The steps of a sparkline."""
    up: str = "↑"
    down: str = "↓"
    """From a text to the line that it is about."""


def _braille(bits: int) -> str:
    # Unicode numbers the dots 1-3 and 7 in the left column, 4-6 and 8 in the right one.
    places = (0, 1, 2, 6, 3, 4, 5, 7)
    return chr(0x2800 + sum(1 << place for bit, place in enumerate(places) if bits >> bit & 1))


# Bits: upper left, lower left, upper right, lower right.
_QUADRANTS = " ▘▖▌▝▀▞▛▗▚▄▙▐▜▟█"
_BOX = ("│", "─", "└", "┤", "┬", "▲", "▼", "◆")

BRAILLE = Glyphs("braille", 2, 4, " " + "".join(map(_braille, range(1, 256))), *_BOX)
BLOCKS = Glyphs("blocks", 2, 2, _QUADRANTS, *_BOX)
ASCII = Glyphs("ascii", 1, 2, " '.:", "|", "-", "+", "+", "+", "^", "v", "@", "_.-:=+*#", "^", "v")

SETS = {glyphs.name: glyphs for glyphs in (BRAILLE, BLOCKS, ASCII)}
