"""Text from elsewhere (profiles, tools, services, stores, file names) as people may see it.

A terminal obeys control characters, and marks of direction turn a line round; whoever wrote a title
or a tool's complaint must not steer what reads it. So they are written as escapes, here and nowhere
else, where text leaves the program: `VisibleText` is under stdout, stderr and every file of
results, the screens paint through `visible`, and so does what has its place in one line.
"""

from __future__ import annotations

import io
import re

# C0, DEL and C1 (ECMA-48); marks of direction (UAX #9, table 2) and other characters without a
# shape (category Cf), but for the joiners, which scripts and emoji need; separators of lines and
# paragraphs; halves of surrogate pairs, which stand for bytes of a file name that are no UTF-8.
_HIDDEN = (
    "\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\xad\u061c\u180e\u200b\u200e\u200f\u2028-\u202e"
    "\u2060-\u206f\ufeff\ufff9-\ufffb\ud800-\udfff\U000e0000-\U000e007f"
)
_IN_LINE = re.compile(f"[\t\n\r{_HIDDEN}]")
_IN_LINES = re.compile(f"\r(?!\n)|[{_HIDDEN}]")


def visible(text: str) -> str:
    """Return a text as one line in which every character shows: ESC as a backslash and x1b."""
    return text if text.isprintable() else _IN_LINE.sub(_escape, text)


def visible_lines(text: str) -> str:
    """Return a text in which every character shows, but for line ends and tabs, which stay."""
    # The quick look spares exports of millions of lines the slow one.
    return text if text.replace("\n", "").isprintable() else _IN_LINES.sub(_escape, text)


def _escape(match: re.Match[str]) -> str:
    return match[0].encode("unicode_escape").decode("ascii")


class VisibleText(io.TextIOWrapper):
    """A text file that takes lines and shows every character in them."""

    def write(self, text: str) -> int:
        super().write(visible_lines(text))
        return len(text)
