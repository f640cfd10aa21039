"""The characters of plots and of all else: braille, blocks, those of the Linux console, or ASCII.

A cell of the terminal holds a small grid of dots; each set has a character for every choice of dots
in its grid. Which dots are set is given as bits, column by column, from the top.

The fonts of the Linux console have the characters of code page 437: its table of default is
``drivers/tty/vt/cp437.uni`` of the kernel. A set for a terminal of few characters says what stands
for the others, each as wide as what it replaces.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

from msgspec import Struct
from msgspec.structs import replace

from benchctl.visible import LIKE_IN_ASCII


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
    marks: int = 0
    """How many cells apart each of several lines has its mark, where there are no colours."""

    @property
    def stands_for(self) -> Mapping[str, str]:
        """What is drawn for characters that the terminal lacks; empty if it has all."""
        return _STANDS_FOR.get(self.name, {})

    def plain(self, text: str) -> str:
        """Return a text in characters that the terminal has; names from elsewhere stay."""
        if not self.stands_for or text.isascii():
            return text
        return _LACKING[self.name].sub(lambda found: self.stands_for[found[0]], text)


def _braille(bits: int) -> str:
    # Unicode numbers the dots 1-3 and 7 in the left column, 4-6 and 8 in the right one.
    places = (0, 1, 2, 6, 3, 4, 5, 7)
    return chr(0x2800 + sum(1 << place for bit, place in enumerate(places) if bits >> bit & 1))


# Bits: upper left, lower left, upper right, lower right.
_QUADRANTS = " ▘▖▌▝▀▞▛▗▚▄▙▐▜▟█"
_BOX = ("│", "─", "└", "┤", "┬", "▲", "▼", "◆")

BRAILLE = Glyphs("braille", 2, 4, " " + "".join(map(_braille, range(1, 256))), *_BOX)
BLOCKS = Glyphs("blocks", 2, 2, _QUADRANTS, *_BOX)
CONSOLE = Glyphs("console", 1, 2, " ▀▄█", *_BOX[:-1], "♦", "_▄█")
ASCII = Glyphs("ascii", 1, 2, " '.:", "|", "-", "+", "+", "+", "^", "v", "@", "_.-:=+*#", "^", "v")

_IN_CP437 = {
    "…": "~", "≠": "!", "✓": "√", "✗": "x", "●": "•", "∘": "°", "◆": "♦", "▶": "►", "◀": "◄",
    "❚": "│", "✎": '"', "▾": "▼", "⏎": "┘", "⌫": "◄", "🔎": "? ", "━": "═", "┃": "║", "▔": "─",
    "╸": "═", "╺": "═", "╭": "┌", "╮": "┐", "╰": "└", "╯": "┘",
    **dict(zip("▁▂▃▅▆▇", "__▄▄██", strict=True)),
    **dict(zip("▏▎▍▋▊▉", "  ▌▌▌█", strict=True)),
}  # fmt: skip
_IN_ASCII = {
    **{character: like for character, like in _IN_CP437.items() if like.isascii()},
    **{character: like for character, like in LIKE_IN_ASCII.items() if len(like) == 1},
    # Beside a figure, its half interval keeps its sign: that of a gap and of the character.
    " ±": "+-", "±": "~", "…": "~",
    "√": "+", "●": "*", "•": "*", "○": "o", "∘": "o", "◆": "@", "♦": "@", "▶": ">", "►": ">",
    "◀": "<", "◄": "<", "❚": "|", "▲": "^", "▼": "v", "▾": "v", "↑": "^", "↓": "v", "←": "<",
    "→": ">", "⏎": "<", "⌫": "<", "■": "#", "«": "<", "»": ">", "≈": "~", "≤": "<", "≥": ">",
    "░": "-", "▓": "#", "▀": "'", "▐": "#", "━": "-", "═": "-", "┃": "|", "║": "|", "▔": "-",
    "╸": "-", "╺": "-",
    **dict.fromkeys("┌┐└┘┬┴┼╭╮╰╯", "+"),
}  # fmt: skip
_STANDS_FOR = {CONSOLE.name: _IN_CP437, ASCII.name: _IN_ASCII}
_LACKING = {
    # Of two that begin alike, the longer one comes first.
    name: re.compile("|".join(map(re.escape, sorted(similar, reverse=True))))
    for name, similar in _STANDS_FOR.items()
}
SETS = {glyphs.name: glyphs for glyphs in (BRAILLE, BLOCKS, CONSOLE, ASCII)}
"""From the one that shows most to the one that needs least."""


def plainer_from(glyphs: Glyphs) -> list[Glyphs]:
    """Return a set and those that need less of the terminal."""
    sets = [replace(glyph_set, marks=glyphs.marks) for glyph_set in SETS.values()]
    return sets[sets.index(glyphs) :]
