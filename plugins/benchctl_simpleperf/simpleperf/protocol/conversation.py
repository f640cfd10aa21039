"""The control protocol: its format on the wire, and its table of states; no I/O.

A connection of the control protocol starts with a preamble, one line that begins with a zero byte
and the program's name; any other start makes it a plain client. After the preamble of a control
connection each message is one line of JSON, at most `MESSAGE_LIMIT` bytes from the server and
`REQUEST_LIMIT` from the client. A stream's connection carries only payload after its preamble. A
UDP stream sends the same line as a datagram, again and again until the server is ready.

Both ends keep the same state. A message changes it. A message that the table does not have in the
current state is a violation: a `Problem`, after which the connection is closed.
docs/simpleperf-protocol.md explains each state and message.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any, NamedTuple, NoReturn

from benchctl_standalone.errors import Problem

from .checks import (
    Check,
    Later,
    check_fields,
    choice,
    figures,
    flag,
    integer,
    list_of,
    mapping_of,
    number,
    object_of,
    scalar,
    text,
)
from .settings import SETTINGS_CHECKS, STREAMS_LIMIT

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


VERSION = 1
CLIENT, SERVER = "client", "server"

_DIRECTION = choice("send", "receive")
_NAME = text(40)
_PACKETS = list_of(integer(0, 1 << 53), STREAMS_LIMIT)
_KNOWN_BY = object_of({"control": text(80), "ports": list_of(integer(1, 65535), STREAMS_LIMIT)})
_FACTS = mapping_of(_NAME, scalar, 64)
_SIDE: Check = object_of(
    {
        "duration_s": number(0),
        "streams": list_of(figures, STREAMS_LIMIT),
        "effective": _FACTS,
    }
)

MESSAGES: Mapping[str, Mapping[str, Check]] = {
    "hello": {"version": integer(1, 1 << 16), "agent": text(64)},
    "challenge": {"nonce": text(64, "[0-9a-f]{64}")},
    "proof": {"nonce": text(64, "[0-9a-f]{64}"), "mac": text(64, "[0-9a-f]{64}")},
    "welcome": {"version": integer(1, 1 << 16), "agent": text(64)},
    "test": {**SETTINGS_CHECKS, "known_by": Later(_KNOWN_BY)},
    "accepted": {"token": text(32, "[0-9a-f]{32}"), "known": Later(flag)},
    "ready": {},
    "start": {},
    "stop": {},
    "samples": {
        "direction": _DIRECTION,
        "fields": list_of(_NAME, 64),
        "rows": list_of(list_of(number(), 68), 4096),
    },
    "sent": {
        "direction": _DIRECTION,
        "packets": _PACKETS,
        "omitted": Later(_PACKETS),
        "duration_s": Later(number(0)),
    },
    "result": {
        "directions": mapping_of(_DIRECTION, _SIDE, 2),
        "cpu": _FACTS,
        "unavailable": mapping_of(_NAME, text(200), 64),
    },
    "problem": {
        "kind": choice(*Problem.KINDS),
        "message": text(500),
        "hint": text(500),
    },
}
"""The members of each message, with their checks."""

_BEFORE_THE_RESULT = (
    "connected", "greeted", "challenged", "proven", "open", "asked", "joining", "ready", "running",
)  # fmt: skip

TRANSITIONS: Mapping[tuple[str, str, str], str] = {
    # (state, sender, message): next state
    ("connected", CLIENT, "hello"): "greeted",
    ("greeted", SERVER, "welcome"): "open",
    ("greeted", SERVER, "challenge"): "challenged",
    ("challenged", CLIENT, "proof"): "proven",
    ("proven", SERVER, "welcome"): "open",
    ("open", CLIENT, "test"): "asked",
    ("asked", SERVER, "accepted"): "joining",
    ("joining", SERVER, "ready"): "ready",
    ("ready", CLIENT, "start"): "running",
    ("running", SERVER, "samples"): "running",
    ("running", SERVER, "sent"): "running",
    ("running", CLIENT, "sent"): "running",
    ("running", CLIENT, "stop"): "running",
    ("running", SERVER, "result"): "done",
    # The client may send these before it reads a result or problem that is in transit to it.
    ("done", CLIENT, "start"): "done",
    ("done", CLIENT, "sent"): "done",
    ("done", CLIENT, "stop"): "done",
    # The server may give up at any time before the result.
    **{(state, SERVER, "problem"): "done" for state in _BEFORE_THE_RESULT},
}


class Conversation:
    """One end of a control connection."""

    def __init__(self, role: str) -> None:
        self.state = "connected"
        self._role = role
        self._peer = SERVER if role == CLIENT else CLIENT
        self._reader = LineReader(MESSAGE_LIMIT if role == CLIENT else REQUEST_LIMIT)

    def send(self, kind: str, /, **members: Any) -> bytes:
        """Return the bytes of a message. Raises Problem if it is not allowed now."""
        self._move(self._role, kind)
        return encode_message({"type": kind, **members})

    def receive(self, data: bytes) -> list[tuple[str, dict[str, Any]]]:
        """Take bytes from the peer; returns (type, members) of each message. Raises Problem."""
        return [self._checked(message) for message in self._reader.feed(data)]

    def _checked(self, message: dict[str, Any]) -> tuple[str, dict[str, Any]]:
        kind = message.get("type")
        if not isinstance(kind, str) or kind not in MESSAGES:
            raise Problem("peer", f"an unknown message: {str(kind)[:40]!r}")
        self._move(self._peer, kind)
        return kind, check_fields(message, MESSAGES[kind])

    def _move(self, sender: str, kind: str) -> None:
        following = TRANSITIONS.get((self.state, sender, kind))
        if following is None:
            raise Problem("peer", f"a {sender} says no {kind!r} when {self.state}")
        self.state = following
