r"""The plain protocol of the original simpleperf, without I/O.

The client sends any bytes over one TCP connection, in chunks of 1000, then ``BYE``; the server
answers ``ACK: BYE``, and both close. Nothing marks the end of the payload, so a ``BYE`` counts as
the end only if nothing follows it. The server waits `QUIET_S` for more, or for the client's end of
the stream, before it answers. If bytes follow, the ``BYE`` was payload.
"""

from __future__ import annotations

GOODBYE = b"BYE"
ANSWER = b"ACK: BYE"
CHUNK_BYTES = 1000
# Longer than the gap between two segments of one burst, and too short to notice.
QUIET_S = 0.05


class PlainStream:
    """The server's state of one plain stream: a count and the last three bytes."""

    def __init__(self) -> None:
        self._total = 0
        self._tail = b""

    def feed(self, data: bytes | bytearray | memoryview) -> None:
        """Take the next bytes of the stream, in pieces of any size."""
        self._total += len(data)
        self._tail = (self._tail + bytes(data[-len(GOODBYE) :]))[-len(GOODBYE) :]

    @property
    def at_goodbye(self) -> bool:
        """Whether the stream has ended correctly if nothing follows."""
        return self._tail == GOODBYE

    @property
    def payload_bytes(self) -> int:
        """Bytes received so far, without a ``BYE`` at the end."""
        return self._total - (len(GOODBYE) if self.at_goodbye else 0)
