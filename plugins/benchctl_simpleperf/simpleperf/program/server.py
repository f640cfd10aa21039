"""The server: accepts connections, identifies each, and passes it on."""

from __future__ import annotations

import socket
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from typing import Any, Callable

from benchctl_standalone.addresses import allows, origin_of
from benchctl_standalone.errors import Problem
from benchctl_standalone.hub import Hub, HubConnection, thin_out
from benchctl_standalone.sockets import address_text, allow_files
from benchctl_standalone.waker import Waker

from ..measuring.sockets import join_datagrams
from ..protocol.conversation import SERVER, Conversation, Preamble, read_preamble
from ..protocol.settings import Limits, MeasurementSettings, Pause
from .output import ResultOutput
from .plain_peer import PlainPeer
from .quota import Claim, Quota
from .session import Policy, Session

# A client identifies itself at once; a plain one without data yet gets as long.
_GREETING_S = 10.0
# How long a client that is not allowed may take to read the reason.
_FAREWELL_S = 2.0
# Connections without a place: unidentified ones, clients before their request, rejected ones. If
# there are more, the oldest of the client with the most of them are closed, so many at a time.
_WAITING = 1024
_THINNED = 128
# A plain client that took longer than this for its last chunk is closed if others need its place.
_SLOW_S = 1.0
# Listening sockets, standard streams, and what Python opens now and then.
_SPARE_FILES = 64
# Connections and datagrams that are accepted before other events are handled.
_TAKEN_A_STEP = 64


class Server:
    """Serves clients until it is interrupted, or one measurement if it is one-off.

    ``listener`` and ``datagrams`` are bound to the same address and port; ``datagrams`` is None if
    the port is not available for UDP. ``pauses`` are when receivers over TCP stop reading.
    """

    def __init__(
        self,
        listener: socket.socket,
        datagrams: socket.socket | None,
        output: ResultOutput,
        waker: Waker,
        limits: Limits,
        key: bytes | None = None,
        interval_s: float = 0.0,
        one_off: bool = False,
        pauses: Sequence[Pause] = (),
    ) -> None:
        self._listener = listener
        self._output = output
        self._waker = waker
        # The connections' share of the open files that the system grants.
        files = allow_files(limits.clients + _WAITING + _SPARE_FILES) - _SPARE_FILES
        self._waiting = min(_WAITING, max(files - limits.clients, files // 4))
        limits = limits._replace(clients=min(limits.clients, files - self._waiting))
        self.quota = Quota(limits)
        self._interval_s = interval_s
        self._one_off = one_off
        self._served = 0
        self._plain_clients = 0
        self.hub = Hub(waker, output.warning)
        self._policy = Policy(
            limits,
            self.quota,
            self._admit,
            key,
            {},
            {},
            self._show,
            self._session_done,
            waker.wake,
            pauses,
        )
        self.hub.add(_Door(listener, self._welcome))
        self._datagram_door = _DatagramDoor(datagrams, self._policy.sessions) if datagrams else None

    def run(self) -> None:
        """Serve."""
        self._output.listening(*self._listener.getsockname()[:2])
        while not self._waker.interrupted:
            if self._one_off and self._served and not self.connections:
                break
            self._mind_datagrams()
            self.hub.step(busy=self.connections > 0)
        self.hub.close()
        if self._datagram_door is not None:
            self._datagram_door.close()

    @property
    def connections(self) -> int:
        """The number of connections, without streams."""
        return len(self.hub.peers) - 1 - (self._datagram_door in self.hub.peers)

    def _mind_datagrams(self) -> None:
        """Watch for UDP streams only while some are awaited: other datagrams cost nothing."""
        door = self._datagram_door
        awaited = any(session.awaits_datagrams for session in self._policy.sessions.values())
        if door is not None and awaited != (door in self.hub.peers):
            if awaited:
                self.hub.add(door)
            else:
                self.hub.remove(door, close=False)

    def introduce(self, sock: socket.socket, address: Any, preamble: Preamble) -> None:
        """Pass a connection on to its owner. It is closed if it has none."""
        if preamble.kind == "control":
            session = Session(sock, address, self.hub, self._policy)
            self.hub.add(session)
            self.hub.turn(session, session.feed, preamble.rest)
        elif preamble.kind == "stream":
            found = self._policy.sessions.get(preamble.token)
            joined = (
                found
                and found.is_of(address)
                and found.join(preamble.direction, preamble.stream, sock)
            )
            # Data sent before the start would not be counted.
            if not joined or preamble.rest:
                sock.close()
        elif self._policy.key is None:
            self._introduce_plain(sock, address, preamble.rest)
        else:
            sock.close()

    def _introduce_plain(self, sock: socket.socket, address: Any, data: bytes) -> None:
        try:
            claim = self._admit(origin_of(address), None)
        except Problem:
            sock.close()  # The plain protocol has no message for it.
            return
        plain = PlainPeer(
            sock,
            address_text(address),
            self.hub,
            self._policy,
            claim,
            self._plain_clients,
            self._interval_s,
            self._plain_done,
        )
        self._plain_clients += 1
        self.hub.add(plain)
        self.hub.turn(plain, plain.feed, data)

    def _admit(self, origin: bytes, settings: MeasurementSettings | None) -> Claim:
        """Claim what a measurement, or a plain client (None), needs. Raises Problem."""
        claim = self.quota.claim(origin, settings)
        if self.quota.lacks(claim):
            self._dismiss_slow_plain_clients(claim)
        self.quota.take(claim, settings.protocol if settings else "tcp")
        return claim

    def _dismiss_slow_plain_clients(self, claim: Claim) -> None:
        """Close plain clients that barely send to make room for a claim, the slowest first."""
        before_s = time.monotonic() - _SLOW_S
        plain = (peer for peer in self.hub.peers if isinstance(peer, PlainPeer))
        slow = [peer for peer in plain if peer.progress_s < before_s]
        for peer in sorted(slow, key=lambda peer: peer.progress_s):
            lacks = self.quota.lacks(claim)
            if not lacks:
                return
            if lacks == "server" or peer.origin == claim.origin:
                peer.drop()

    def _welcome(self, sock: socket.socket, address: Any) -> None:
        session, stream = self._policy.known.pop(address, (None, 0))
        if session:
            if not session.join("send", stream, sock):
                sock.close()
            return
        if allows(self._policy.limits.networks, address):
            self.hub.add(_Newcomer(sock, address, self))
        else:
            self.hub.add(_Stranger(sock, address, self.hub))
        if self.connections - self.quota.claims > self._waiting:
            thin_out(self.hub.peers, min(_THINNED, self._waiting))

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
        elif session.settings is not None:
            self._output.unfinished(session.problem, session.stream_names)


class _Door(HubConnection):
    """The listening socket. ``welcome`` gets each connection and its address."""

    def __init__(self, sock: socket.socket, welcome: Callable[[socket.socket, Any], None]) -> None:
        super().__init__(sock)
        self._welcome = welcome

    def on_readable(self, buffer: memoryview) -> None:
        for _ in range(_TAKEN_A_STEP):
            self._welcome(*self.sock.accept())

    def on_broken(self) -> None:
        pass  # There is none left, or it has closed already.


class _DatagramDoor(HubConnection):
    """The UDP socket where streams identify themselves."""

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
        """Give the stream a socket of its own, at the address that its client uses."""
        sock = join_datagrams(session.sock.getsockname(), address)
        if not session.join(preamble.direction, preamble.stream, sock):
            sock.close()


class _Waiting(HubConnection):
    """A connection without a place."""

    def __init__(self, sock: socket.socket, address: Any, hub: Hub, patience_s: float) -> None:
        super().__init__(sock, origin_of(address), time.monotonic() + patience_s)
        self._hub = hub

    @property
    def waits(self) -> bool:
        return True

    def on_deadline(self) -> None:
        self._hub.remove(self)

    def on_broken(self) -> None:
        self._hub.remove(self)


class _Stranger(_Waiting):
    """A connection of a network that is not allowed: it gets the reason, unread."""

    def __init__(self, sock: socket.socket, address: Any, hub: Hub) -> None:
        super().__init__(sock, address, hub, _FAREWELL_S)
        problem = Conversation(SERVER).send(
            "problem",
            kind="refused",
            message=f"the server does not accept clients from {address[0]}",
            hint="its option --allow lists the networks that it accepts",
        )
        with suppress(OSError):  # It may have closed already.
            sock.send(problem)
            sock.shutdown(socket.SHUT_WR)

    def on_readable(self, buffer: memoryview) -> None:
        if not self.sock.recv_into(buffer):
            self._hub.remove(self)


class _Newcomer(_Waiting):
    """A connection that has not identified itself yet."""

    def __init__(self, sock: socket.socket, address: Any, server: Server) -> None:
        super().__init__(sock, address, server.hub, _GREETING_S)
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
            self._hub.remove(self)
        elif preamble:
            self._hub.remove(self, close=False)
            self._server.introduce(self.sock, self._address, preamble)
