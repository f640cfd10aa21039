"""The server: takes connections, finds out what each is, and hands it on."""

from __future__ import annotations

import resource
import socket
import time
from collections.abc import Mapping
from contextlib import suppress
from typing import Any, Callable

from .errors import Problem
from .hub import Hub, Peer
from .output import Output
from .plain_peer import PlainPeer
from .session import Policy, Session
from .settings import Limits
from .sockets import address_text, join_datagrams
from .waker import Waker
from .wire import Preamble, read_preamble

__all__ = ["Server"]

# A client says at once what it is; a plain one that has nothing to send yet gets as long.
_GREETING_S = 10.0
# Clients beyond the limit are told so, as long as they are not many.
_REFUSALS = 64
# Connections and datagrams that are taken before the others get their turn.
_TAKEN_A_STEP = 64


class Server:
    """Serves clients until it is interrupted, or one measurement when it is one-off.

    ``listener`` and ``datagrams`` are bound to the same address and port; ``datagrams`` is None
    where the port cannot be had for UDP.
    """

    def __init__(
        self,
        listener: socket.socket,
        datagrams: socket.socket | None,
        output: Output,
        waker: Waker,
        limits: Limits,
        key: bytes | None = None,
        interval_s: float = 0.0,
        one_off: bool = False,
    ) -> None:
        self._listener = listener
        self._output = output
        self._waker = waker
        spare = 2 * _REFUSALS
        clients = min(limits.clients, _allow_files(limits.clients + spare) - spare)
        self._limits = limits._replace(clients=clients)
        self._key = key
        self._interval_s = interval_s
        self._one_off = one_off
        self._served = 0
        self._plain_clients = 0
        self.hub = Hub(waker)
        self._sessions: dict[str, Session] = {}
        self._policy = Policy(
            self._limits,
            self._room,
            key,
            self._sessions,
            self._show,
            self._session_done,
            waker.wake,
        )
        self.hub.add(_Door(listener, self._welcome))
        if datagrams is not None:
            self.hub.add(_DatagramDoor(datagrams, self._sessions))
        self._doors = len(self.hub.peers)

    def run(self) -> None:
        """Serve."""
        self._output.listening(*self._listener.getsockname()[:2])
        while not self._waker.interrupted:
            clients = len(self.hub.peers) - self._doors
            if self._one_off and self._served and not clients:
                break
            self.hub.step(busy=clients > 0)
        self.hub.close()

    def introduce(self, sock: socket.socket, address: Any, preamble: Preamble) -> None:
        """Hand a connection on to whom it belongs. It is closed when it belongs to nobody."""
        if preamble.kind == "control":
            session = Session(sock, address, self.hub, self._policy)
            self.hub.add(session)
            if self._room() < 0:
                session.give_up(Problem("busy", f"the server has {self._limits.clients} clients"))
            else:
                session.feed(preamble.rest)
        elif preamble.kind == "stream":
            found = self._sessions.get(preamble.token)
            joined = (
                found
                and found.is_of(address)
                and found.join(preamble.direction, preamble.stream, sock)
            )
            # Who sends before the start would not be counted.
            if not joined or preamble.rest:
                sock.close()
        elif self._room() <= 0 or self._key is not None:
            sock.close()
        else:
            plain = PlainPeer(
                sock,
                address_text(address),
                self.hub,
                self._limits,
                self._plain_clients,
                self._interval_s,
                self._show,
                self._plain_done,
            )
            self._plain_clients += 1
            self.hub.add(plain)
            plain.feed(preamble.rest)

    def _room(self) -> int:
        """Return how many more connections and streams there may be."""
        streams = sum(peer.streams for peer in self.hub.peers)
        return self._limits.clients + self._doors - len(self.hub.peers) - streams

    def _welcome(self, sock: socket.socket, address: Any) -> None:
        if self._room() <= -_REFUSALS:
            sock.close()
        else:
            self.hub.add(_Newcomer(sock, address, self))

    def _show(self, interval: dict[str, Any]) -> None:
        if self._interval_s:
            self._output.interval(interval)

    def _plain_done(self, result: dict[str, Any]) -> None:
        self._served += 1
        self._output.finished(result)

    def _session_done(self, session: Session) -> None:
        if session.settings is not None:
            self._served += 1
        if session.result is not None:
            self._output.finished(session.result)


class _Door(Peer):
    """The listening socket. ``welcome`` gets each connection and its address."""

    def __init__(self, sock: socket.socket, welcome: Callable[[socket.socket, Any], None]) -> None:
        super().__init__(sock)
        self._welcome = welcome

    def on_readable(self, buffer: memoryview) -> None:
        for _ in range(_TAKEN_A_STEP):
            self._welcome(*self.sock.accept())

    def on_broken(self) -> None:
        pass  # None is left, or the one that was there has gone again.


class _DatagramDoor(Peer):
    """The UDP socket where streams present themselves."""

    def __init__(self, sock: socket.socket, sessions: Mapping[str, Session]) -> None:
        super().__init__(sock)
        self._sessions = sessions

    def on_readable(self, buffer: memoryview) -> None:
        for _ in range(_TAKEN_A_STEP):
            count, address = self.sock.recvfrom_into(buffer)
            with suppress(Problem):
                preamble = read_preamble(bytes(buffer[:count]))
                session = self._sessions.get(preamble.token) if preamble else None
                if preamble and session and session.is_of(address):
                    self._join(session, preamble, address)

    def on_broken(self) -> None:
        pass  # None is left.

    def _join(self, session: Session, preamble: Preamble, address: Any) -> None:
        """Give the stream a socket of its own, at the address where its client knows us."""
        sock = join_datagrams(session.sock.getsockname(), address)
        if not session.join(preamble.direction, preamble.stream, sock):
            sock.close()


class _Newcomer(Peer):
    """A connection that has not said yet what it is."""

    def __init__(self, sock: socket.socket, address: Any, server: Server) -> None:
        super().__init__(sock, time.monotonic() + _GREETING_S)
        self._address = address
        self._server = server
        self._data = b""

    def on_readable(self, buffer: memoryview) -> None:
        count = self.sock.recv_into(buffer)
        self._data += buffer[:count]
        try:
            preamble = read_preamble(self._data)
        except Problem:
            preamble, count = None, 0
        if not count:
            self._server.hub.remove(self)
        elif preamble:
            self._server.hub.remove(self, close=False)
            self._server.introduce(self.sock, self._address, preamble)

    def on_deadline(self) -> None:
        self._server.hub.remove(self)

    def on_broken(self) -> None:
        self._server.hub.remove(self)


def _allow_files(count: int) -> int:
    """Raise the limit of open files to a count, as far as may be; returns what it is then."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft == resource.RLIM_INFINITY or soft >= count:
        return count
    allowed = count if hard == resource.RLIM_INFINITY else min(count, hard)
    resource.setrlimit(resource.RLIMIT_NOFILE, (allowed, hard))
    return allowed
