"""Escapes control characters in text from the other end, which a terminal would obey."""

from __future__ import annotations

from typing import TextIO

# Invisible themselves, but scripts and emoji need them.
_JOINERS = "\u200c\u200d"


def say(text: str, file: TextIO | None) -> None:
    """Print one line with every character visible: ESC becomes a backslash and x1b."""
    if file is None:  # the shell had closed it
        return
    shown = "".join(c if c.isprintable() or c in _JOINERS else _escape(c) for c in text)
    # A character that the terminal lacks is no reason to fail.
    encoding = file.encoding or "utf-8"
    print(shown.encode(encoding, "backslashreplace").decode(encoding), file=file, flush=True)


def _escape(character: str) -> str:
    return character.encode("unicode_escape").decode("ascii")
