"""Reads the JSON that iperf3 wrote to a file, with the faults that such files have.

- Numbers that are none: ``nan``, ``-nan``, ``inf`` (C's printf writes them, JSON has none).
- Several reports in one file: ``--logfile`` appends, a server writes one for each client, and
  ``--json-stream-full-output`` repeats what it has streamed.
- Lines of text between them, such as warnings.
- An end that is missing, because iperf3 was killed or the disk was full.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from benchctl.api import ParserError
from benchctl_iperf3.values import JsonObject, as_object

# A server's log of a year of hourly tests has 8,760.
MOST_DOCUMENTS = 100_000

_STRING = r'"(?:[^"\\]|\\.)*"'
_NO_NUMBER = r"[-+]?\b(?:nan|inf(?:inity)?)\b(?:\([^()]{0,20}\))?"
_SUSPECT = re.compile(rf"[:\[,]\s*{_NO_NUMBER}", re.IGNORECASE)
_MENDED = re.compile(rf"({_STRING})|{_NO_NUMBER}", re.IGNORECASE)
_TOKEN = re.compile(rf"{_STRING}|[{{}}\[\]]")
_HERE = re.compile(r"\s*\{")
_NEXT = re.compile(r"^\s*\{", re.MULTILINE)
_DECODER = json.JSONDecoder()
# The elements of "intervals" lie this deep, and everything that is shallower.
_DEPTH_KEPT = 2


@dataclass(frozen=True, slots=True)
class Document:
    """One JSON object of a file; ``is_whole`` is False if its end is missing."""

    value: JsonObject
    is_whole: bool = True


def without_nan(text: str) -> tuple[str, int]:
    """Return a text with null for numbers that are none, and how many there were."""
    if not _SUSPECT.search(text):
        return text, 0
    count = 0

    def mend(match: re.Match[str]) -> str:
        nonlocal count
        if match[1] is not None:
            return match[1]
        count += 1
        return "null"

    return _MENDED.sub(mend, text), count


def documents(text: str) -> Iterator[Document | str]:
    """Yield the JSON objects of a text, and the lines of text before and between them.

    Raises ParserError if an object is neither whole nor has a beginning that can be read.
    """
    at = 0
    for _ in range(MOST_DOCUMENTS):
        begin = _HERE.match(text, at) or _NEXT.search(text, at)
        if between := text[at : begin.start() if begin else len(text)].strip():
            yield between
        if begin is None:
            return
        place = begin.end() - 1
        try:
            value, at = _DECODER.raw_decode(text, place)
        except RecursionError:
            raise ParserError("its JSON is nested too deeply") from None
        except ValueError as error:
            yield Document(_beginning(text[place : getattr(error, "pos", len(text))]), False)
            return
        yield Document(as_object(value))
    raise ParserError(f"more than {MOST_DOCUMENTS:,} JSON documents")


def _beginning(text: str) -> JsonObject:
    """Return what a text that ends too early says up to its last interval."""
    open_ones: list[str] = []
    kept, closing = 0, ""
    for match in _TOKEN.finditer(text):
        token = match[0]
        if token in ("{", "["):
            open_ones.append("}" if token == "{" else "]")
        elif token in ("}", "]"):
            if not open_ones or open_ones.pop() != token:
                break
            if len(open_ones) <= _DEPTH_KEPT:
                kept, closing = match.end(), "".join(reversed(open_ones))
    try:
        value: Any = json.loads(text[:kept] + closing)
    except (ValueError, RecursionError):
        raise ParserError(f"not JSON: {text[:80]!r}") from None
    return as_object(value)
