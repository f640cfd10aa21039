"""How messages are cut out of a stream of bytes: lengths, a head in JSON, a body.

Both ends of a connection to an agent have this file: it is a part of the agent's text, so it needs
Python 3.9 and the standard library only.
"""

from __future__ import annotations

import json
import struct
from typing import Any

HELLO = b"\0benchctl agent 1\n"
"""What the agent writes first. What comes before is from the start-up files of a shell."""
MOST_HEAD = 1 << 20
"""In bytes. The facts of a host with 4000 interfaces are as long."""

_LENGTHS = struct.Struct(">II")


def frame(head: dict[str, Any], body: bytes = b"") -> bytes:
    """Return a message as it is sent. Raises ValueError if it is too long, or no JSON."""
    text = json.dumps(head, separators=(",", ":"), allow_nan=False).encode()
    if len(text) > MOST_HEAD:
        raise ValueError(f"a message of {len(text)} bytes")
    return _LENGTHS.pack(len(text), len(body)) + text + body


class FrameReader:
    """Takes bytes as they come, cut anywhere, and returns the messages that are whole.

    It keeps less than a message of the greatest length, whatever comes.
    """

    def __init__(self, most_body: int) -> None:
        self._buffer = bytearray()
        self._most_body = most_body

    def feed(self, data: bytes) -> list[tuple[dict[str, Any], bytes]]:
        """Return heads with their bodies. Raises ValueError for what is no frame."""
        self._buffer += data
        found = []
        while len(self._buffer) >= _LENGTHS.size:
            head, body = _LENGTHS.unpack_from(self._buffer)
            if head > MOST_HEAD or body > self._most_body:
                raise ValueError("not a frame")
            begin = _LENGTHS.size + head
            end = begin + body
            if len(self._buffer) < end:
                break
            try:
                said = json.loads(bytes(self._buffer[_LENGTHS.size : begin]))
            except RecursionError:
                raise ValueError("nested too deeply") from None
            if not isinstance(said, dict):
                raise ValueError("not a frame")
            found.append((said, bytes(self._buffer[begin:end])))
            del self._buffer[:end]
        return found
