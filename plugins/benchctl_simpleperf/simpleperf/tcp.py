"""TCP streams: move bytes as fast as the kernel takes or gives them."""

from __future__ import annotations

import socket
import struct

from .measurement import Reading, Stream
from .plain import ANSWER, CHUNK_BYTES, GOODBYE

__all__ = ["PlainSender"]

# One call hands over this many chunks: the wire shows the same bytes, at a hundredth of the cost.
_CHUNKS_A_CALL = 100
# A send that the path blocks comes back this often, to see whether time is up.
_PATIENCE_S = 0.1


class PlainSender(Stream):
    """Sends chunks until it is stopped or has sent its share, then says BYE."""

    def __init__(self, index: int, sock: socket.socket, quota: int | None) -> None:
        super().__init__(index)
        self.sock = sock
        self._quota = quota
        self._sent = 0
        # A time limit inside the kernel; Python's own would poll before each call.
        limit = struct.pack("@ll", 0, int(_PATIENCE_S * 1e6))
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_SNDTIMEO, limit)

    def move(self) -> None:
        payload = memoryview(bytes(CHUNK_BYTES * _CHUNKS_A_CALL))
        self.begin()
        while not self.stopped:
            left = len(payload) if self._quota is None else self._quota - self._sent
            if not left:
                return
            try:
                self._sent += self.sock.send(payload[:left])
            except BlockingIOError:
                continue

    def reading(self) -> Reading:
        return Reading({"bytes_sent": self._sent}, {})

    def finish(self, timeout_s: float) -> None:
        """Say BYE and wait for the answer. Raises OSError when the server does not give it."""
        self.sock.settimeout(timeout_s)
        self.sock.sendall(GOODBYE)
        # The end of the stream tells a server that knows it that nothing follows the BYE.
        self.sock.shutdown(socket.SHUT_WR)
        answer = b""
        while ANSWER not in answer:
            received = self.sock.recv(len(ANSWER))
            if not received:
                raise ConnectionResetError("the server closed without its ACK: BYE")
            answer = (answer + received)[-2 * len(ANSWER) :]
