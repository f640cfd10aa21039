"""TOML files with the line and column of every key.

``tomllib`` parses. A second pass over the text, which is known to be valid TOML by then, only
locates keys and the items of lists, so that an error can name its line. The two cannot disagree
about values, because the second one reads none.
"""

from __future__ import annotations

import ast
import re
import sys
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, field
from io import StringIO
from pathlib import Path
from typing import IO, Any

from benchctl.errors import Place, ProfileError
from benchctl.units import quoted

Key = tuple[str | int, ...]

# A hundred times the longest that people wrote; such a file is checked in a second or two.
_MOST_CHARACTERS = 500_000
_BARE = re.compile(r"[A-Za-z0-9_-]+")
_TOKEN = re.compile(
    r'"""(?:[^\\]|\\.)*?"""+|\'\'\'.*?\'\'\'+|"(?:[^"\\\n]|\\.)*"|\'[^\'\n]*\''
    r"|#[^\n]*|[\[\]{},=.\n]|[^\s\[\]{},=.\"'#]+",
    re.DOTALL,
)


@dataclass(frozen=True, slots=True)
class TomlSource:
    """One TOML file: its data, its text, and the line and the column of every key."""

    path: Path
    text: str
    data: dict[str, Any]
    lines: Mapping[Key, int]
    columns: Mapping[Key, int] = field(default_factory=dict)

    def line(self, key: Key) -> int:
        """Return the line of a key, or of its nearest ancestor that has one; 1 for the file."""
        return self.lines.get(self._written(key), 1)

    def _written(self, key: Key) -> Key:
        while key and key not in self.lines:
            key = key[:-1]
        return key

    def error(self, key: Key, what: str, hint: str = "") -> ProfileError:
        """Return the error of one key: ``file:line: key: what``."""
        name = dotted(key)
        column = self.columns.get(self._written(key), 1)
        return _error(self.path, self.line(key), column, f"{name}: {what}" if name else what, hint)


def _error(path: Path, line: int, column: int, what: str, hint: str = "") -> ProfileError:
    error = ProfileError(f"{path}:{line}: {what}", hint)
    error.place = Place(str(path), line, column)
    return error


def dotted(key: Key) -> str:
    """Write a key as people write it: ``flows.main.window``, ``exclude[2]."main.streams"``."""
    text = ""
    for part in key:
        if isinstance(part, int):
            text += f"[{part}]"
        else:
            name = part if _BARE.fullmatch(part) else quoted(part)
            text += f".{name}" if text else name
    return text


def merge(base: Mapping[str, Any], over: Mapping[str, Any]) -> dict[str, Any]:
    """Merge one table into another: tables merge, everything else is replaced."""
    merged = dict(base)
    for key, value in over.items():
        old = merged.get(key)
        if isinstance(old, dict) and isinstance(value, dict):
            value = merge(old, value)
        merged[key] = value
    return merged


def read_toml(path: Path) -> TomlSource:
    """Read a TOML file, or a pipe as `read_stdin`.

    Raises ProfileError if the file cannot be read or is not TOML.
    """
    try:
        if path.is_fifo():
            with path.open("rb") as pipe:
                return _read_pipe(pipe)
        with path.open(encoding="utf-8-sig") as file:
            return _read(file, path)
    except OSError as error:
        raise ProfileError(f"{path}: {error.strerror}", "check the path") from error
    except UnicodeDecodeError as error:
        raise ProfileError(f"{path}: not UTF-8 text (byte {error.start})") from error


STDIN = Path("stdin")
"""What a file that is read from stdin or a pipe is called; its relative paths begin here."""


def read_stdin() -> TomlSource:
    """Read a TOML file from stdin. Raises ProfileError as `read_toml`."""
    return _read_pipe(sys.stdin.buffer)


def _read_pipe(pipe: IO[bytes]) -> TomlSource:
    try:
        # A character has four bytes at most.
        text = pipe.read(4 * _MOST_CHARACTERS).decode("utf-8-sig")
        return _read(StringIO(text, newline=None), STDIN)
    except UnicodeDecodeError as error:
        raise ProfileError(f"{STDIN}: not UTF-8 text (byte {error.start})") from error


def _read(file: IO[str], path: Path) -> TomlSource:
    text = file.read(_MOST_CHARACTERS + 1)
    if len(text) > _MOST_CHARACTERS:
        what = f"{path}: larger than {_MOST_CHARACTERS:,} characters"
        raise ProfileError(what, "remove values from its axes")
    return parse_toml(text, path)


def _deepest_line(text: str) -> int:
    """Return the line of the innermost of all brackets and braces, for text that may be no TOML."""
    line = deepest = 1
    depth = most = 0
    for token in map(re.Match.group, _TOKEN.finditer(text)):
        depth += (token in "[{") - (token in "]}")
        if depth > most:
            most, deepest = depth, line
        line += token.count("\n")
    return deepest


def parse_toml(text: str, path: Path) -> TomlSource:
    """Parse TOML text that came from ``path``. Raises ProfileError."""
    try:
        data, found = tomllib.loads(text), _Locator(text)
        return TomlSource(path, text, data, found.lines, found.columns)
    except RecursionError:
        raise _error(path, _deepest_line(text), 1, "invalid TOML: nested too deeply") from None
    except ValueError as error:  # TOMLDecodeError, or an integer of thousands of digits
        what = str(error)
        where = re.search(r" \(at line (\d+), column (\d+)\)", what)
        line, column = map(int, where.groups()) if where else (text.count("\n") + 1, 1)
        what = what[: where.start()] if where else what.removesuffix(" (at end of document)")
        what = what.replace("Cannot overwrite a value", "this key is already defined")
        if twice := re.search(r"\('.*\)", what):  # tomllib names a table as a tuple
            what = what.replace(twice[0], dotted(ast.literal_eval(twice[0])))
        what = f"invalid TOML: {what[0].lower()}{what[1:]}"
        raise _error(path, line, column, what) from error


class _Locator:
    """Walks the tokens of a TOML text and notes the place of every key and list item."""

    def __init__(self, text: str) -> None:
        self.lines: dict[Key, int] = {}
        self.columns: dict[Key, int] = {}
        self._tables: dict[Key, int] = {}  # index of the current item of each array of tables
        found = [match for match in _TOKEN.finditer(text) if not match[0].startswith("#")]
        self._tokens = [*(match[0] for match in found), ""]
        self._starts = [*(match.start() for match in found), len(text)]
        self._text = text
        self._position = 0
        self._line = 1
        table: Key = ()
        while self._skip("\n") or self._peek():
            if self._peek() == "[":
                table = self._header()
            elif self._peek():
                start = self._starts[self._position]
                key = (*table, *self._key("="))
                self._value(key, self._line, start)

    def _peek(self) -> str:
        return self._tokens[self._position]

    def _take(self) -> str:
        token = self._tokens[self._position]
        self._position += 1
        self._line += token.count("\n")
        return token

    def _skip(self, token: str) -> bool:
        start = self._position
        while self._peek() == token:
            self._take()
        return self._position > start

    def _key(self, end: str) -> Key:
        """Take a dotted key and the token that ends it."""
        parts: list[str] = []
        while (token := self._take()) != end:
            if token[0] in "\"'":
                parts += tomllib.loads(f"{token} = 0")
            elif token != ".":
                parts.append(token)
        return tuple(parts)

    def _header(self) -> Key:
        line, start = self._line, self._starts[self._position]
        self._take()
        array = self._skip("[")
        parts = self._key("]")
        self._skip("]")
        table: Key = ()
        for part in parts[:-1]:
            table = (*table, part)
            if table in self._tables:
                table = (*table, self._tables[table])
        table = (*table, parts[-1])
        if array:
            self._tables[table] = self._tables.get(table, -1) + 1
            table = (*table, self._tables[table])
        self._note(table, line, start)
        return table

    def _value(self, key: Key, line: int, start: int) -> None:
        """Take a value, up to the token that ends it, and note the place of its key or item."""
        self._note(key, line, start)
        if self._peek() == "[":
            self._take()
            index = 0
            while self._more("]"):
                self._value((*key, index), self._line, self._starts[self._position])
                index += 1
        elif self._peek() == "{":
            self._take()
            while self._more("}"):
                line, start = self._line, self._starts[self._position]
                self._value((*key, *self._key("=")), line, start)
        else:
            while self._peek() not in ("", "\n", ",", "]", "}"):
                self._take()

    def _more(self, end: str) -> bool:
        """Skip to the next item of a list or inline table; False after taking its end."""
        while self._peek() in ("\n", ","):
            self._take()
        if self._peek() == end:
            self._take()
            return False
        return True

    def _note(self, key: Key, line: int, start: int) -> None:
        column = start - self._text.rfind("\n", 0, start)
        for length in range(1, len(key) + 1):
            self.lines.setdefault(key[:length], line)
            self.columns.setdefault(key[:length], column)
