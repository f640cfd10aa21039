"""Text from elsewhere as a terminal shows it: profiles, tools, stores, file names.

A terminal obeys control characters, and direction marks reorder a line. Such text must not control
the reader's terminal. So control characters are escaped here, where text leaves the program:
`VisibleText` wraps stdout, stderr and every result file, and the screens draw through `visible`.
"""

from __future__ import annotations

import io
import re
import unicodedata
from collections.abc import Callable, Mapping

LIKE_IN_ASCII: Mapping[str, str] = {
    "─": "-", "│": "|", "±": "+-", "…": "...", "·": ".", "µ": "u", "μ": "u", "✓": "+", "✗": "x",
    "├": "|", "┤": "|", "▒": "=",
    **dict(zip("▁▂▃▄▅▆▇█", "_.-:=+*#", strict=True)),
    **dict(zip("▏▎▍▌▋▊▉", "   ####", strict=True)),
}  # fmt: skip
"""What stands for a character of ours where there are none but those of ASCII."""

# C0, DEL and C1 (ECMA-48); marks of direction (UAX #9, table 2) and other characters without a
# shape (category Cf), but for the joiners, which scripts and emoji need; separators of lines and
# paragraphs; halves of surrogate pairs, which stand for bytes of a file name that are no UTF-8;
# what is no character, and not allowed in XML 1.0 (2.2).
_HIDDEN = (
    "\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\xad\u061c\u180e\u200b\u200e\u200f\u2028-\u202e"
    "\u2060-\u206f\ufeff\ufff9-\ufffb\ufffe\uffff\ud800-\udfff\U000e0000-\U000e007f"
)
_IN_LINE = re.compile(f"[\t\n\r{_HIDDEN}]")
_IN_LINES = re.compile(f"\r(?!\n)|[{_HIDDEN}]")


def visible(text: str) -> str:
    """Return a text as one line with every character visible: ESC becomes a backslash and x1b."""
    return text if text.isprintable() else _IN_LINE.sub(_escape, text)


# Latin, punctuation, arrows, mathematics, boxes, blocks and braille: nothing wide, nothing without
# a width of its own.
_NARROW = re.compile(
    "[ -\u02ff\u2010-\u2027\u2030-\u205e\u2070-\u20cf\u2100-\u2319\u2500-\u25fc\u2800-\u28ff]*"
)


def width_of(text: str) -> int:
    """Return how many cells of a terminal a text takes: CJK and emoji take two, marks none."""
    if text.isascii() or _NARROW.fullmatch(text):
        return len(text)
    return sum(map(_cells, text))


def _cells(character: str) -> int:
    if unicodedata.category(character) in ("Mn", "Me", "Cf"):
        return 0
    return 2 if unicodedata.east_asian_width(character) in "WF" else 1


def fitting(text: str, width: int) -> int:
    """Return how many characters of a text fit in so many cells."""
    if width_of(text) == len(text):
        return max(0, min(len(text), width))
    for place, character in enumerate(text):
        width -= _cells(character)
        if width < 0:
            return place
    return len(text)


def padded(text: str, width: int, *, right: bool = False) -> str:
    """Return a text with spaces to so many cells."""
    space = " " * (width - width_of(text))
    return space + text if right else text + space


def visible_lines(text: str) -> str:
    """Return a text with every character visible, except line ends and tabs, which stay."""
    # This fast check saves exports of millions of lines the slow one.
    return text if text.replace("\n", "").isprintable() else _IN_LINES.sub(_escape, text)


def _escape(match: re.Match[str]) -> str:
    return match[0].encode("unicode_escape").decode("ascii")


class VisibleText(io.TextIOWrapper):
    """A text file that makes every character of its lines visible."""

    mark: Callable[[str], str] | None = None
    """What adds control characters of our own to visible text; none by default."""

    def write(self, text: str) -> int:
        shown = visible_lines(text)
        super().write(shown if self.mark is None else self.mark(shown))
        return len(text)
