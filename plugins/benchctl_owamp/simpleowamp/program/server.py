"""The server: accepts control connections, and answers each in one loop with the test sessions."""

from __future__ import annotations

import socket
import time
from collections.abc import Mapping
from typing import Any, Callable

from benchctl_standalone.addresses import allows
from benchctl_standalone.errors import Problem
from benchctl_standalone.hub import Hub, HubConnection, thin_out
from benchctl_standalone.sockets import allow_files
from benchctl_standalone.waker import Waker

from ..measuring.channel import Channel
from ..measuring.clock import Clock
from ..measuring.quota import Limits
from ..protocol.control_server import ControlServer
from ..protocol.messages import AUTHENTICATED, ENCRYPTED, OPEN
from ..protocol.timestamps import to_timestamp
from .control_peer import ControlPeer
from .sessions import Sessions

# Connections without a session. If there are more, the oldest of the client with the most of them
# are closed, so many at a time.
_WAITING = 8192
_THINNED = 512
# Listening sockets, standard streams, the sending process, and what Python opens now and then.
_SPARE_FILES = 64
_TAKEN_A_STEP = 64
# The listening socket and the channel: while there are no others, no time is to be kept.
_LASTING = 2
# How often sessions that are too old to be fetched are looked for.
_TIDY_S = 1.0


class Server:
    """Serves clients until it is interrupted.

    ``channel`` leads to a process that sends (`sender.run_sender`). ``passphrases`` has that of
    each user; without any only the open mode is offered, and with some ``open_mode`` says whether
    it is.
    """

    _sessions_type = Sessions
    _talk_type = ControlServer
    _peer_type = ControlPeer

    def __init__(
        self,
        listener: socket.socket,
        channel: Channel,
        waker: Waker,
        warn: Callable[[str], None],
        limits: Limits,
        clock: Clock,
        passphrases: Mapping[str, bytes],
        open_mode: bool = True,
        ports: range | None = None,
    ) -> None:
        # A session in each direction holds one open file, besides that of its connection.
        files = allow_files(2 * limits.sessions + _WAITING + _SPARE_FILES) - _SPARE_FILES
        self._waiting = min(_WAITING, max(files - 2 * limits.sessions, files // 4))
        self._limits = limits
        self._waker = waker
        self._passphrases = passphrases
        self._modes = OPEN * (open_mode or not passphrases)
        if passphrases:
            self._modes |= AUTHENTICATED | ENCRYPTED
        self._start_time = to_timestamp(clock.now_ns())
        self.hub = Hub(waker, warn)
        self.sessions = self._sessions_type(self.hub, limits, clock, channel, ports)
        self._sender = _Sender(channel, self.sessions)
        self.hub.add(_Door(listener, self._welcome))
        self.hub.add(self._sender)
        # Orders are small, and read at once.
        self._sender.sock.setblocking(True)

    @property
    def connections(self) -> int:
        """The number of control connections."""
        return sum(isinstance(peer, ControlPeer) for peer in self.hub.peers)

    def run(self) -> None:
        """Serve. Raises Problem if the process that sends has ended."""
        tidied_s = 0.0
        while not self._waker.interrupted:
            self.hub.step(busy=len(self.hub.peers) > _LASTING or len(self.sessions.shelf) > 0)
            if self._sender.ended:
                raise Problem("tool", "the process that sends test packets has ended")
            now_s = time.monotonic()
            if now_s > tidied_s + _TIDY_S:
                tidied_s = now_s
                self.sessions.shelf.tidy(now_s)
        self.hub.close()

    def _welcome(self, sock: socket.socket, address: Any) -> None:
        allowed = allows(self._limits.networks, address)
        modes = self._modes if allowed else 0
        talk = self._talk_type(modes, self._passphrases, self._start_time)
        peer = self._peer_type(sock, address, self.hub, self.sessions, talk, self._limits.idle_s)
        self.hub.add(peer)
        self.hub.turn(peer, peer.greet, allowed)
        if len(self.hub.peers) > self._waiting + self.sessions.running:
            thin_out(self.hub.peers, _THINNED)


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


class _Sender(HubConnection):
    """The channel to the process that sends."""

    def __init__(self, channel: Channel, sessions: Sessions) -> None:
        super().__init__(channel.sock)
        self._sessions = sessions
        self.ended = False

    def on_readable(self, buffer: memoryview) -> None:
        try:
            self._sessions.take_outcomes()
        except EOFError:
            self.ended = True

    def on_broken(self) -> None:
        self.ended = True
