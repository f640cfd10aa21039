"""The colour of results on a terminal: states, verdicts, and what was not met; nothing else.

A pipe, a file and JSON get none, unless FORCE_COLOR asks for it.
"""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import TextIO

from benchctl.visible import VisibleText

# Foregrounds of the terminal's own palette (ECMA-48, SGR), which its theme makes legible.
_GREEN, _RED, _YELLOW = 32, 31, 33
_STYLES = {
    "ok": _GREEN,
    "better": _GREEN,
    "failed": _RED,
    "timed_out": _RED,
    "died": _RED,
    "worse": _RED,
    "expectation not met": _RED,
    "interrupted": _YELLOW,
    "skipped": _YELLOW,
    "running": _YELLOW,
    "different": _YELLOW,
    "note": _YELLOW,
    "warning": _YELLOW,
}
# In a column of their own, at the start of a line, or after a name and a colon.
_WORD = re.compile(rf"(?:^|(?<=  )|(?<=: ))({'|'.join(_STYLES)})(?=$|[\s:;,])", re.M)


@contextmanager
def coloured() -> Iterator[None]:
    """Print the words of a result in colour meanwhile, where stdout and the environment want it."""
    out = sys.stdout
    if isinstance(out, VisibleText) and wanted(out, os.environ):
        out.mark = mark
    try:
        yield
    finally:
        if isinstance(out, VisibleText):
            out.mark = None


def wanted(stream: TextIO, environment: Mapping[str, str]) -> bool:
    """Return whether a stream gets colour: a terminal that has it, or any by FORCE_COLOR."""
    if environment.get("NO_COLOR"):
        return False
    if environment.get("FORCE_COLOR"):
        return True
    return stream.isatty() and environment.get("TERM", "dumb") not in ("", "dumb")


def mark(text: str) -> str:
    """Return text with its states and verdicts in colour."""
    return _WORD.sub(lambda found: f"\x1b[{_STYLES[found[1]]}m{found[1]}\x1b[m", text)
