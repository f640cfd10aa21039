r"""The format of messages and greetings on the wire; no I/O.

A connection of the control protocol starts with a preamble, one line that begins with a zero byte
and the program's name; any other start makes it a plain client. After the preamble of a control
connection each message is one line of JSON, at most `MESSAGE_LIMIT` bytes from the server and
`REQUEST_LIMIT` from the client. A stream's connection carries only payload after its preamble. A
UDP stream sends the same line as a datagram, again and again until the server is ready.
"""

from __future__ import annotations

import json
from typing import Any, NamedTuple, NoReturn

from .errors import Problem

MAGIC = b"\0simpleperf "
CONTROL_PREAMBLE = MAGIC + b"control 1\n"
# Enough for the result of 128 streams in both directions.
MESSAGE_LIMIT = 256 * 1024
# A client sends only requests and counts, so a stranger cannot make the server buffer more than
# this.
REQUEST_LIMIT = 8 * 1024
_PREAMBLE_LIMIT = 80


class Preamble(NamedTuple):
    """The kind of a connection: ``plain``, ``control`` or ``stream``.

    ``rest`` is the data after the preamble; for a plain client it is all data so far.
    """

    kind: str
    rest: bytes
    token: str = ""
    direction: str = ""
    stream: int = 0


def stream_preamble(token: str, direction: str, stream: int) -> bytes:
    """Return the first bytes of a stream's connection, or its first datagram."""
    return MAGIC + f"stream {token} {direction} {stream}\n".encode()


def read_preamble(data: bytes) -> Preamble | None:
    """Return the kind of a connection by its first bytes; None if more are needed.

    Raises Problem for bytes that start like a preamble and then differ.
    """
    if not data.startswith(MAGIC[: len(data)]):
        return Preamble("plain", data)
    line, end, rest = data.partition(b"\n")
    if not end:
        if len(data) > _PREAMBLE_LIMIT:
            raise Problem("peer", "a preamble without an end")
        return None
    if line + end == CONTROL_PREAMBLE:
        return Preamble("control", rest)
    words = line.decode("ascii", "replace").split(" ")
    if len(words) != 5 or words[1] != "stream" or words[3] not in ("send", "receive"):
        raise Problem("peer", f"an unknown preamble: {line[:_PREAMBLE_LIMIT]!r}")
    if not (words[4].isascii() and words[4].isdigit() and len(words[4]) < 6):
        raise Problem("peer", f"an unknown stream: {words[4]!r}")
    return Preamble("stream", rest, words[2], words[3], int(words[4]))


def encode_message(message: dict[str, Any]) -> bytes:
    """Return the line of a message."""
    return json.dumps(message, separators=(",", ":"), allow_nan=False).encode() + b"\n"


class LineReader:
    """Splits received bytes into messages of limited length. Raises Problem for invalid ones."""

    def __init__(self, limit: int = MESSAGE_LIMIT) -> None:
        self._limit = limit
        self._pending = b""

    def feed(self, data: bytes) -> list[dict[str, Any]]:
        """Take the next bytes; returns the messages that they complete."""
        *lines, self._pending = (self._pending + data).split(b"\n")
        if any(len(line) > self._limit for line in (*lines, self._pending)):
            raise Problem("peer", f"a message of more than {self._limit} bytes")
        return [_decode(line) for line in lines]


def _refuse_constant(name: str) -> NoReturn:
    raise ValueError(f"{name} is not a number")


def _decode(line: bytes) -> dict[str, Any]:
    try:
        message = json.loads(line, parse_constant=_refuse_constant)
    except (ValueError, RecursionError) as error:
        raise Problem("peer", f"not a message: {line[:60]!r}") from error
    if not isinstance(message, dict):
        raise Problem("peer", f"not a message: {line[:60]!r}")
    return message
