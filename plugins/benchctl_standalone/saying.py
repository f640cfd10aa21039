"""Prints lines of which every character shows, on any terminal."""

from __future__ import annotations

from typing import TextIO

# Without a shape of their own, but scripts and emoji need them.
_JOINERS = "\u200c\u200d"


def say(text: str, file: TextIO | None) -> None:
    """Print one line in which every character shows: ESC as a backslash and x1b."""
    if file is None:  # the shell had closed it
        return
    shown = "".join(c if c.isprintable() or c in _JOINERS else _escape(c) for c in text)
    # A terminal that lacks a character is no reason to fail.
    encoding = file.encoding or "utf-8"
    print(shown.encode(encoding, "backslashreplace").decode(encoding), file=file, flush=True)


def _escape(character: str) -> str:
    return character.encode("unicode_escape").decode("ascii")
