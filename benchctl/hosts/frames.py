"""The messages between the runner and the agent of a host: lengths, a head in JSON, a body.

Both ends have this file: it is a part of the agent's text, so it needs Python 3.9 and the standard
library only.
"""

from __future__ import annotations

import json
import struct
from typing import Any

HELLO = b"\0benchctl agent 1\n"
"""What the agent writes first. What comes before is from the start-up files of a shell."""
PATIENCE_S = 4.0
"""The longest silence of the runner, which sends a ping each second."""

_LENGTHS = struct.Struct(">II")
_MOST_HEAD, _MOST_BODY = 1 << 20, 1 << 26


def frame(head: dict[str, Any], body: bytes = b"") -> bytes:
    """Return a message as it is sent."""
    text = json.dumps(head, separators=(",", ":")).encode()
    return _LENGTHS.pack(len(text), len(body)) + text + body


class FrameReader:
    """Takes bytes as they come, cut anywhere, and returns the messages that are whole."""

    def __init__(self) -> None:
        self._buffer = bytearray()

    def feed(self, data: bytes) -> list[tuple[dict[str, Any], bytes]]:
        """Return heads with their bodies. Raises ValueError for what is no frame."""
        self._buffer += data
        found = []
        while len(self._buffer) >= _LENGTHS.size:
            head, body = _LENGTHS.unpack_from(self._buffer)
            if head > _MOST_HEAD or body > _MOST_BODY:
                raise ValueError("not a frame")
            begin = _LENGTHS.size + head
            end = begin + body
            if len(self._buffer) < end:
                break
            said = json.loads(bytes(self._buffer[_LENGTHS.size : begin]))
            if not isinstance(said, dict):
                raise ValueError("not a frame")
            found.append((said, bytes(self._buffer[begin:end])))
            del self._buffer[:end]
        return found
