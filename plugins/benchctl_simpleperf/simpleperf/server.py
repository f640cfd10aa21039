"""The server: one loop that accepts, greets and serves every client.

The loop alone touches connections that carry few bytes or that come in thousands: plain clients
share one receive buffer and need no thread. Timers are looked at every `_SWEEP_S`.
"""

from __future__ import annotations

import selectors
import socket
import time
from contextlib import suppress
from typing import Any

from .output import Output
from .plain import ANSWER, QUIET_S, PlainStream
from .schedule import SECOND_NS
from .sockets import address_text
from .waker import Waker

__all__ = ["Server"]

_SWEEP_S = 0.025
_BUFFER_BYTES = 1 << 20
_IDLE_S = 30.0


class PlainPeer:
    """One plain client: counts what it sends, answers its BYE."""

    def __init__(self, sock: socket.socket, server: Server, interval_s: float) -> None:
        self.sock = sock
        self.deadline_s = time.monotonic() + _IDLE_S
        self._server = server
        self._stream = PlainStream()
        self._name = address_text(sock.getpeername())
        self._interval_ns = round(interval_s * SECOND_NS)
        self._first_ns = 0
        self._last_ns = 0
        self._answered = False
        self._shown_ns = 0
        self._shown_bytes = 0

    def on_readable(self, buffer: memoryview) -> None:
        """Take what arrived."""
        try:
            count = self.sock.recv_into(buffer)
        except BlockingIOError:
            return
        except OSError:
            count = 0
        now_ns = time.monotonic_ns()
        if not count:
            self._end()
            return
        self._first_ns = self._first_ns or now_ns
        self._last_ns = now_ns
        self._answered = False
        self._stream.feed(buffer[:count])
        quiet_s = QUIET_S if self._stream.at_goodbye else _IDLE_S
        self.deadline_s = now_ns / SECOND_NS + quiet_s

    def on_deadline(self) -> None:
        """Nothing came for a while: the end of the payload, or a client that is gone."""
        if self._stream.at_goodbye and not self._answered:
            self._answer()
            self.deadline_s = time.monotonic() + _IDLE_S
        else:
            self._end()

    def _answer(self) -> None:
        self._answered = True
        with suppress(OSError):  # When the client is gone, what it sent counts all the same.
            self.sock.send(ANSWER)

    def _end(self) -> None:
        if self._stream.at_goodbye and not self._answered:
            self._answer()
        self._server.forget(self)
        self._server.served(self._result())

    def _result(self) -> dict[str, Any]:
        count = self._stream.payload_bytes
        seconds = (self._last_ns - self._first_ns) / SECOND_NS
        figures = {
            "end_s": seconds,
            "bytes_received": count,
            "throughput_bps": count * 8 / seconds if seconds else 0.0,
        }
        return {
            "throughput_bps": figures["throughput_bps"],
            "complete": self._stream.at_goodbye,
            "directions": {
                "send": {**figures, "streams": [{"stream": 0, "id": self._name, **figures}]}
            },
        }


class Server:
    """Serves clients until it is interrupted, or one measurement when it is one-off."""

    def __init__(
        self,
        listener: socket.socket,
        output: Output,
        waker: Waker,
        interval_s: float = 0.0,
        one_off: bool = False,
    ) -> None:
        self._listener = listener
        self._output = output
        self._waker = waker
        self._interval_s = interval_s
        self._one_off = one_off
        self._served = 0
        self._peers: set[PlainPeer] = set()
        self._selector = selectors.DefaultSelector()
        self._buffer = memoryview(bytearray(_BUFFER_BYTES))

    def run(self) -> None:
        """Serve."""
        host, port = self._listener.getsockname()[:2]
        self._selector.register(self._listener, selectors.EVENT_READ, None)
        self._selector.register(self._waker, selectors.EVENT_READ, self._waker)
        self._output.listening(host, port)
        swept_s = 0.0
        while not self._waker.interrupted:
            if self._one_off and self._served and not self._peers:
                return
            for key, _ in self._selector.select(_SWEEP_S if self._peers else None):
                if key.data is None:
                    self._accept()
                elif key.data is self._waker:
                    self._waker.clear()
                else:
                    key.data.on_readable(self._buffer)
            now_s = time.monotonic()
            if now_s - swept_s >= _SWEEP_S:
                swept_s = now_s
                for peer in [peer for peer in self._peers if peer.deadline_s <= now_s]:
                    peer.on_deadline()

    def served(self, result: dict[str, Any]) -> None:
        """Tell the result of one measurement."""
        self._served += 1
        self._output.finished(result)

    def forget(self, peer: PlainPeer) -> None:
        """Close a peer's connection."""
        self._peers.discard(peer)
        self._selector.unregister(peer.sock)
        peer.sock.close()

    def _accept(self) -> None:
        try:
            sock, _ = self._listener.accept()
        except BlockingIOError:
            return
        sock.setblocking(False)
        peer = PlainPeer(sock, self, self._interval_s)
        self._peers.add(peer)
        self._selector.register(sock, selectors.EVENT_READ, peer)
