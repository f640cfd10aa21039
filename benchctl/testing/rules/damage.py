"""Output that no tool prints: what garbles a transcript, and garbage of every kind.

The same for each run, so that what fails once fails again.
"""

from __future__ import annotations

import random
import re
from collections.abc import Callable, Iterator

_NUMBER = re.compile(rb"-?\d+(?:\.\d+)?")
# A text, or a list or an object of plain values.
_VALUE = re.compile(rb'"[^"\n]*"|\[[^\[\]{}\n]*\]|\{[^\[\]{}\n]*\}')
# What stands where a number belongs.
_ODD_NUMBERS = (
    b"-1", b"0", b"-0.0", b"1e999", b"-nan", b"NaN", b"inf", b"9" * 8, b"9" * 19,
    b"9" * 30, b"9" * 5000,
    b"1.2.3", b"0x10", b"1e-400", b"", b"null", b"true", b"[]", b"{}", b'"x"',
)  # fmt: skip
_ODD_VALUES = (
    b"null", b"1", b"[1]", b"{}", b'"both"', b'""', b'"\\ud800"', b"true",
    b"[" * 500 + b"]" * 500, b"[" * 950 + b"]" * 950, b"[" * 5000,
)  # fmt: skip
_ODD_BYTES = (b"\0", b"\xff\xfe", b"\r", b"\n", b"\x1b[31m", b"}", b"]", b",", b"\xe2\x82")


def garbage() -> Iterator[tuple[str, bytes]]:
    """Yield bytes that have nothing to do with the tool, each with its description."""
    yield "nothing", b""
    yield "empty lines", b"\n" * 5000
    yield "zeros", b"\0" * 5000
    yield "no UTF-8", b"\xff\xfe\n" * 500
    yield "a web page", b"<html><body>400 Bad Request</body></html>\r\n"
    yield "deep JSON", b"[" * 100_000 + b"]" * 100_000 + b"\n"
    yield "deep JSON objects", b'{"event":' * 20_000 + b"\n"
    yield "JSON of other kinds", b'{}\n[]\nnull\n1e999\n"text"\n{"event":["end"]}\n{"event":NaN}\n'
    for unit in (b"a", b"1", b" ", b"=", b"a ", b"1.", b"(", b"\t0", b"::", b"\xc3\xa9"):
        # Where a pattern backtracks, this takes for ever.
        yield f"a line of {unit.decode()!r}", unit * 2000 + b"!\n"
    dice = random.Random(0)
    for size in (1, 7, 100, 5000):
        yield f"{size} random bytes", dice.randbytes(size)


def damaged(stdout: bytes, count: int, seed: int) -> Iterator[tuple[str, bytes]]:
    """Yield ``count`` garbled versions of a tool's output, each with its description."""
    dice = random.Random(seed)
    for number in range(count if stdout else 0):
        damage = _DAMAGES[number % len(_DAMAGES)]
        data = stdout
        for _ in range(dice.choice((1, 1, 2, 5))):
            data = damage(dice, data or stdout)
        yield damage.__name__.strip("_").replace("_", " "), data


def _other_bytes(dice: random.Random, data: bytes) -> bytes:
    at = dice.randrange(len(data))
    other = dice.choice((*_ODD_BYTES, dice.randbytes(1)))
    return data[:at] + other + data[at + dice.randrange(3) :]


def _part_missing(dice: random.Random, data: bytes) -> bytes:
    start, stop = sorted((dice.randrange(len(data)), dice.randrange(len(data))))
    return data[:start] + data[stop:]


def _part_twice(dice: random.Random, data: bytes) -> bytes:
    start, stop = sorted((dice.randrange(len(data)), dice.randrange(len(data))))
    return data[:stop] + data[start:]


def _lines_in_another_order(dice: random.Random, data: bytes) -> bytes:
    lines = data.splitlines(keepends=True)
    first, second = dice.randrange(len(lines)), dice.randrange(len(lines))
    lines[first], lines[second] = lines[second], lines[first]
    return b"".join(lines)


def _another_number(dice: random.Random, data: bytes) -> bytes:
    return _instead(dice, data, _NUMBER, _ODD_NUMBERS)


def _another_value(dice: random.Random, data: bytes) -> bytes:
    return _instead(dice, data, _VALUE, _ODD_VALUES)


def _instead(
    dice: random.Random, data: bytes, pattern: re.Pattern[bytes], others: tuple[bytes, ...]
) -> bytes:
    found = [match.span() for match in pattern.finditer(data)]
    if not found:
        return _other_bytes(dice, data)
    start, stop = dice.choice(found)
    return data[:start] + dice.choice(others) + data[stop:]


_DAMAGES: tuple[Callable[[random.Random, bytes], bytes], ...] = (
    _another_number, _other_bytes, _another_value, _part_missing, _another_number, _part_twice,
    _lines_in_another_order,
)  # fmt: skip


def variations(line: bytes, count: int) -> Iterator[bytes]:
    """Yield a line many times, each time with other numbers where it has any."""
    for number in range(count):
        yield _NUMBER.sub(b"%d" % number, line)


def shapes(stdout: bytes) -> Iterator[tuple[bytes, bytes]]:
    """Yield the lines of each kind once, each with the output before it."""
    seen: set[bytes] = set()
    before = 0
    for line in stdout.splitlines(keepends=True):
        shape = _NUMBER.sub(b"0", line)[:40]
        if shape not in seen:
            seen.add(shape)
            yield stdout[:before], line.rstrip(b"\r\n") + b"\n"
        before += len(line)
