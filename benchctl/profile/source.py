"""TOML files that remember on which line every key stands.

``tomllib`` parses; a second, forgiving pass over the text only locates keys, so that an error can
name its line. The two never disagree about values because the second one reads none.
"""

from __future__ import annotations

import re
import tomllib
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from benchctl.errors import ProfileError

Key = tuple[str | int, ...]

_BARE_OR_QUOTED = r"""(?:[A-Za-z0-9_-]+|"(?:[^"\\]|\\.)*"|'[^']*')"""
_DOTTED = rf"{_BARE_OR_QUOTED}(?:\s*\.\s*{_BARE_OR_QUOTED})*"
_HEADER = re.compile(rf"\s*(\[\[?)\s*({_DOTTED})\s*\]\]?")
_ASSIGN = re.compile(rf"\s*({_DOTTED})\s*=")
_PART = re.compile(_BARE_OR_QUOTED)
# What can hide brackets and line ends from a scan: strings of all four kinds, and comments.
_TOKEN = re.compile(
    r'"""(?:[^\\]|\\.)*?"""|\'\'\'.*?\'\'\'|"(?:[^"\\\n]|\\.)*"|\'[^\'\n]*\'|#[^\n]*|[\[\]{}]', re.S
)


@dataclass(frozen=True, slots=True)
class Source:
    """One TOML file: its data, its text, and the line of every key."""

    path: Path
    text: str
    data: dict[str, Any]
    lines: dict[Key, int]

    def line(self, key: Key) -> int:
        """Return the line of a key, or of its nearest ancestor that has one; 1 for the file."""
        while key and key not in self.lines:
            key = key[:-1]
        return self.lines.get(key, 1)

    def error(self, key: Key, what: str, hint: str = "") -> ProfileError:
        """Return the error of one key: ``file:line: key: what``."""
        name = dotted(key)
        return ProfileError(
            f"{self.path}:{self.line(key)}: {f'{name}: ' if name else ''}{what}", hint
        )


def dotted(key: Key) -> str:
    """Write a key as people read it: ``flows.main.window``, ``exclude[2].streams``."""
    text = ""
    for part in key:
        text += f"[{part}]" if isinstance(part, int) else f".{part}" if text else part
    return text


def read_toml(path: Path) -> Source:
    """Read a TOML file.

    Raises ProfileError when the file cannot be read or is not TOML.
    """
    try:
        return parse_toml(path.read_text(encoding="utf-8"), path)
    except OSError as error:
        raise ProfileError(f"{path}: {error.strerror}", "check the path") from error
    except UnicodeDecodeError as error:
        raise ProfileError(f"{path}: not UTF-8 text (byte {error.start})") from error


def parse_toml(text: str, path: Path) -> Source:
    """Parse TOML text that came from ``path``. Raises ProfileError."""
    try:
        data = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        what = str(error)
        where = re.search(r" \(at line (\d+), column (\d+)\)", what)
        line = where[1] if where else text.count("\n") + 1
        what = what[: where.start()] if where else what.removesuffix(" (at end of document)")
        raise ProfileError(f"{path}:{line}: not TOML: {what[0].lower()}{what[1:]}") from error
    return Source(path, text, data, _locate(text))


def _locate(text: str) -> dict[Key, int]:
    lines: dict[Key, int] = {}
    counts: dict[Key, int] = {}
    table: Key = ()
    position = number = 0
    while position < len(text):
        number += 1
        end = _end_of_statement(text, position)
        statement = text[position:end]
        if header := _HEADER.match(statement):
            table = _resolve(_parts(header[2]), counts)
            if header[1] == "[[":
                counts[table] = counts.get(table, -1) + 1
                table = (*table, counts[table])
            _note(lines, table, number)
        elif assign := _ASSIGN.match(statement):
            _note(lines, (*table, *_parts(assign[1])), number)
        number += statement.count("\n")
        position = end + 1
    return lines


def _note(lines: dict[Key, int], key: Key, number: int) -> None:
    for length in range(1, len(key) + 1):
        lines.setdefault(key[:length], number)


def _resolve(parts: Key, counts: dict[Key, int]) -> Key:
    """Insert the current index after every array of tables that a header passes through."""
    key: Key = ()
    for position, part in enumerate(parts):
        key = (*key, part)
        if key in counts and position < len(parts) - 1:
            key = (*key, counts[key])
    return key


def _parts(text: str) -> Key:
    return tuple(part.strip("\"'") for part in _PART.findall(text))


def _end_of_statement(text: str, start: int) -> int:
    """Return the offset of the line end that closes the statement at ``start``."""
    depth, position = 0, start
    while True:
        newline = text.find("\n", position)
        newline = len(text) if newline < 0 else newline
        token = _TOKEN.search(text, position)
        if token is None or token.start() >= newline:
            if depth <= 0 or newline == len(text):
                return newline
            position = newline + 1
            continue
        if token[0] in "[{":
            depth += 1
        elif token[0] in "]}":
            depth -= 1
        position = token.end()
