"""The server's loop: many quiet connections in one thread, and their deadlines.

No peer can break the loop: an OSError ends that peer (`Peer.on_broken`), and a handler with a
better reaction catches it itself. Any other error is a bug. It is reported and also ends the peer,
because no message of one peer may end the server.

Peers are connections that carry few bytes, or that come in thousands. They share one receive
buffer. Deadlines are checked every `_SWEEP_S`, which is their precision.
"""

from __future__ import annotations

import math
import selectors
import socket
import time
from collections.abc import Iterable
from typing import Any, Callable

from .waker import Waker

_SWEEP_S = 0.025
_BUFFER_BYTES = 1 << 20


class HubConnection:
    """A connection that the hub watches, of the client ``origin``.

    `deadline_s` is on the monotonic clock.
    """

    def __init__(
        self, sock: socket.socket, origin: bytes = b"", deadline_s: float = math.inf
    ) -> None:
        self.sock = sock
        self.origin = origin
        self.deadline_s = deadline_s

    @property
    def waits(self) -> bool:
        """Whether it holds no place, so that it may be closed if there are too many such."""
        return False

    def on_readable(self, buffer: memoryview) -> None:
        """Bytes have arrived, or the end."""
        raise NotImplementedError

    def on_writable(self) -> None:
        """There is space to write, as requested by `Hub.watch_writing`."""

    def on_broken(self) -> None:
        """The connection has failed in any way."""
        raise NotImplementedError

    def on_sweep(self) -> None:
        """Check the state of other threads; called periodically, and on their request."""

    def on_deadline(self) -> None:
        """The deadline has passed."""

    def close(self) -> None:
        """Free the connection and its resources; called by the hub."""
        self.sock.close()


def thin_out(peers: Iterable[HubConnection], count: int) -> None:
    """Close so many connections that hold no place: the oldest of the client with most of them."""
    waiting: dict[bytes, list[HubConnection]] = {}
    for peer in sorted(peers, key=lambda peer: peer.deadline_s, reverse=True):
        if peer.waits:
            waiting.setdefault(peer.origin, []).append(peer)
    for _ in range(min(count, sum(map(len, waiting.values())))):
        max(waiting.values(), key=len).pop().on_broken()


class Hub:
    """Waits for peers and calls them; ``warn`` receives bugs."""

    def __init__(self, waker: Waker, warn: Callable[[str], None]) -> None:
        self.peers: set[HubConnection] = set()
        self._warn = warn
        self._waker = waker
        self._selector = selectors.DefaultSelector()
        self._selector.register(waker, selectors.EVENT_READ)
        self._swept_s = 0.0
        self._buffer = memoryview(bytearray(_BUFFER_BYTES))

    def add(self, peer: HubConnection) -> None:
        """Watch a peer; its socket becomes non-blocking."""
        peer.sock.setblocking(False)
        self._selector.register(peer.sock, selectors.EVENT_READ, peer)
        self.peers.add(peer)

    def remove(self, peer: HubConnection, close: bool = True) -> None:
        """Stop watching a peer; no effect if it is not watched."""
        if peer in self.peers:
            self.peers.remove(peer)
            self._selector.unregister(peer.sock)
            if close:
                peer.close()

    def watch_writing(self, peer: HubConnection, wanted: bool) -> None:
        """Call `on_writable` when there is space, or stop that."""
        events = selectors.EVENT_READ | (selectors.EVENT_WRITE if wanted else 0)
        self._selector.modify(peer.sock, events, peer)

    def step(self, busy: bool) -> None:
        """Wait for events, and let the peers handle them.

        Without ``busy`` it may wait without limit: no deadline is near.
        """
        woken = False
        for key, events in self._selector.select(_SWEEP_S if busy else None):
            peer = key.data
            if peer is None:
                self._waker.clear()
                woken = True
                continue
            if events & selectors.EVENT_READ and peer in self.peers:
                self.turn(peer, peer.on_readable, self._buffer)
            if events & selectors.EVENT_WRITE and peer in self.peers:
                self.turn(peer, peer.on_writable)
        now_s = time.monotonic()
        if woken or now_s >= self._swept_s + _SWEEP_S:
            self._swept_s = now_s
            self._sweep(now_s)

    def turn(self, peer: HubConnection, handler: Callable[..., None], *arguments: Any) -> None:
        """Let a peer handle an event; an error ends this peer only."""
        try:
            handler(*arguments)
        except BlockingIOError:
            pass  # There was no data after all, or not everything fits at once.
        except OSError:
            peer.on_broken()
        except Exception:
            import traceback  # Only imported if there is a bug.

            text = traceback.format_exc(limit=-2).replace("\n", " ")
            self._warn(f"this is a bug: {text}")
            peer.on_broken()

    def close(self) -> None:
        """Close what is still open."""
        for peer in list(self.peers):
            self.remove(peer)
        self._selector.close()

    def _sweep(self, now_s: float) -> None:
        for peer in list(self.peers):
            if peer in self.peers:
                self.turn(peer, peer.on_sweep)
            if peer.deadline_s <= now_s and peer in self.peers:
                self.turn(peer, peer.on_deadline)
