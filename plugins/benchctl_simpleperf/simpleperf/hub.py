"""The server's loop: many quiet connections in one thread, and their deadlines.

No peer can break the loop: an OSError is that peer's end (`Peer.on_broken`), and a handler that has
something better to do with one catches it itself. Any other error is a defect of ours. It is
reported and ends the peer too, because who listens to a network must not end by what one peer says.

Peers are connections that carry few bytes, or that come in thousands. They share one receive
buffer. Deadlines are looked at every `_SWEEP_S`, so none is kept more exactly than that.
"""

from __future__ import annotations

import math
import selectors
import socket
import time
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
        """Whether it holds no place, so that it may be closed when too many do so."""
        return False

    def on_readable(self, buffer: memoryview) -> None:
        """Bytes have come, or the end."""
        raise NotImplementedError

    def on_writable(self) -> None:
        """There is room for what `Hub.watch_writing` was called for."""

    def on_broken(self) -> None:
        """The connection has failed, in whatever way a peer can make it fail."""
        raise NotImplementedError

    def on_sweep(self) -> None:
        """Look at what goes on in other threads; called every so often, and when they ask."""

    def on_deadline(self) -> None:
        """The deadline has passed."""

    def close(self) -> None:
        """Free the connection and what it brought with it; the hub calls this."""
        self.sock.close()


class Hub:
    """Waits for peers and calls them; ``warn`` is told of defects."""

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
        """Watch a peer no longer; nothing happens when it is not watched."""
        if peer in self.peers:
            self.peers.remove(peer)
            self._selector.unregister(peer.sock)
            if close:
                peer.close()

    def watch_writing(self, peer: HubConnection, wanted: bool) -> None:
        """Call `on_writable` when there is room, or no longer."""
        events = selectors.EVENT_READ | (selectors.EVENT_WRITE if wanted else 0)
        self._selector.modify(peer.sock, events, peer)

    def step(self, busy: bool) -> None:
        """Wait for something to happen, and let the peers deal with it.

        Without ``busy`` it may wait for ever: no deadline is near.
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
        """Let a peer deal with something; an error is its end, and nobody else's."""
        try:
            handler(*arguments)
        except BlockingIOError:
            pass  # There was nothing after all, or not everything goes at once.
        except OSError:
            peer.on_broken()
        except Exception:
            import traceback  # Who has no defects needs none.

            told = traceback.format_exc(limit=-2).replace("\n", " ")
            self._warn(f"a bug in simpleperf: {told}")
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
