"""The colour of results on a terminal: states, verdicts, what was not met, and lines of figures.

A pipe, a file and JSON get none, unless FORCE_COLOR asks for it.
"""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import TextIO

from benchctl.visible import VisibleText, visible

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
_BOLD, _FAINT = 1, 2
# As those of the screens in a terminal's own colours.
_CURVES = (96, 33, 32, 93, 35, 31, 34, 39)
_LOOKS = {"strong": (_BOLD,), "dim": (_FAINT,), "label": (_FAINT,), "axis": (_FAINT,)}
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


def painted(lines: Iterable[Sequence[tuple[str, str]]]) -> None:
    """Print lines of texts with roles, in colour where stdout and the environment want it."""
    out = sys.stdout
    shown: dict[str, str] = {}
    if isinstance(out, VisibleText) and wanted(out, os.environ):
        out.mark = lambda text: shown.get(text, text)
    for line in lines:
        text = visible("".join(part for part, _ in line).rstrip())
        shown[text] = "".join(_painted(visible(part), role) for part, role in line)
        print(text)
    if isinstance(out, VisibleText):
        out.mark = None


def _painted(text: str, role: str) -> str:
    codes = [_FAINT] if role.startswith("faint-") else []
    role = role.removeprefix("faint-")
    if role.startswith("curve-"):
        codes.append(_CURVES[int(role.removeprefix("curve-"))])
    codes += _LOOKS.get(role, ())
    return f"\x1b[{';'.join(map(str, codes))}m{text}\x1b[m" if codes else text
