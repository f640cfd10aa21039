"""The server's side of the plain protocol: counts what a client sends and answers its BYE."""

from __future__ import annotations

import socket
import time
from contextlib import suppress
from typing import Any, Callable

from benchctl_standalone.hub import Hub, HubConnection

from ..measuring.options import notice_absence
from ..protocol.intervals import SECOND_NS, rate_bps
from ..protocol.plain import ANSWER, CHUNK_BYTES, QUIET_S, PlainStream
from .quota import Claim
from .session import Policy

# How long a client may take to close after its answer.
_CLOSING_S = 5.0


class PlainPeer(HubConnection):
    """One plain client, the server's ``number``-th. ``name`` is its address.

    ``done`` gets its result.
    """

    def __init__(
        self,
        sock: socket.socket,
        name: str,
        hub: Hub,
        policy: Policy,
        claim: Claim,
        number: int,
        interval_s: float,
        done: Callable[[dict[str, Any]], None],
    ) -> None:
        super().__init__(sock, claim.origin, time.monotonic() + policy.limits.idle_s)
        notice_absence(sock, policy.limits.idle_s)
        self.progress_s = time.monotonic()
        """When it last had sent another chunk, on the monotonic clock."""
        self._chunks = 0
        self._hub = hub
        self._policy = policy
        self._claim = claim
        self._interval_ns = round(interval_s * SECOND_NS)
        self._number = number
        self._done = done
        self._name = name
        self._stream = PlainStream()
        self._first_ns = 0
        self._last_ns = 0
        self._answered = False
        self._shown_ns = 0
        self._shown_bytes = 0

    def feed(self, data: bytes | memoryview) -> None:
        """Take the next bytes of the stream."""
        self._last_ns = time.monotonic_ns()
        self._first_ns = self._first_ns or self._last_ns
        self._answered = False
        self._stream.feed(data)
        now_s = self._last_ns / SECOND_NS
        # Only whole chunks count: otherwise a client could hold its place by single bytes.
        if self._stream.payload_bytes >= (self._chunks + 1) * CHUNK_BYTES:
            self._chunks = self._stream.payload_bytes // CHUNK_BYTES
            self.progress_s = now_s
        waiting_s = self.progress_s + self._policy.limits.idle_s
        self.deadline_s = now_s + QUIET_S if self._stream.at_goodbye else waiting_s
        if not self._policy.quota.spend(self._claim, len(data), now_s):
            self.drop()

    def on_readable(self, buffer: memoryview) -> None:
        count = self.sock.recv_into(buffer)
        if count:
            self.feed(buffer[:count])
        else:
            self._end()

    def on_broken(self) -> None:
        self._end()  # Data before it counts.

    def on_sweep(self) -> None:
        lasted_ns = self._last_ns - self._first_ns
        if lasted_ns / SECOND_NS > self._policy.limits.duration_s:
            self.drop()
        elif self._interval_ns and lasted_ns >= self._shown_ns + self._interval_ns:
            self._show_interval()

    def on_deadline(self) -> None:
        # Nothing arrived for a while: the payload has ended, or the client is gone.
        if self._stream.at_goodbye and not self._answered:
            self._answer()
            self.deadline_s = time.monotonic() + _CLOSING_S
        else:
            self._end()

    def drop(self) -> None:
        """Close the client, with the result so far."""
        if self in self._hub.peers:
            self._end()

    def close(self) -> None:
        self._policy.quota.free(self._claim)
        super().close()

    def _end(self) -> None:
        if self._stream.at_goodbye and not self._answered:
            self._answer()
        self._hub.remove(self)
        if self._interval_ns and self._stream.payload_bytes > self._shown_bytes:
            self._show_interval()
        whole = self._figures(0, self._last_ns - self._first_ns, self._stream.payload_bytes)
        self._done(
            {
                "throughput_bps": whole["throughput_bps"],
                "plain": True,
                "complete": self._stream.at_goodbye,
                "directions": {"send": {**whole, "streams": [whole]}},
            }
        )

    def _show_interval(self) -> None:
        lasted_ns, count = self._last_ns - self._first_ns, self._stream.payload_bytes
        self._policy.show(self._figures(self._shown_ns, lasted_ns, count - self._shown_bytes))
        self._shown_ns, self._shown_bytes = lasted_ns, count

    def _answer(self) -> None:
        self._answered = True
        with suppress(OSError):  # If the client is gone, the data it sent still counts.
            self.sock.send(ANSWER)

    def _figures(self, start_ns: int, end_ns: int, count: int) -> dict[str, Any]:
        return {
            "direction": "send",
            "stream": self._number,
            "id": self._name,
            "start_s": start_ns / SECOND_NS,
            "end_s": end_ns / SECOND_NS,
            "omitted": False,
            "bytes_received": count,
            "throughput_bps": rate_bps(count, (end_ns - start_ns) / SECOND_NS),
        }
