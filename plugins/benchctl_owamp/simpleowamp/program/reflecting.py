"""The UDP ports on which a server answers probes, and TWAMP's sessions, each of which has one."""

from __future__ import annotations

import math
import os
import socket
import time
from collections.abc import Iterable
from contextlib import suppress
from typing import Any, Callable

from benchctl_standalone.addresses import same_host
from benchctl_standalone.errors import Problem
from benchctl_standalone.hub import Hub, HubConnection
from benchctl_standalone.sockets import dropped_packets
from benchctl_standalone.waker import Waker

from ..measuring.allowance import Allowances
from ..measuring.channel import Channel
from ..measuring.clock import Clock
from ..measuring.endpoint import (
    answer,
    at_port,
    drop_hosts,
    note_destinations,
    open_endpoint,
    receive,
)
from ..measuring.quota import Claim, Limits
from ..measuring.reflector import IDLE_S, Reflector
from ..protocol.messages import Accept, make_sid
from ..protocol.timestamps import from_interval, to_timestamp
from ..protocol.twamp import TwampServer, TwoWayRequest
from ..protocol.two_way import TwoWayFormat, twamp_format
from .control_peer import ControlPeer
from .server import Server
from .sessions import ANY_HOST, Requester, Sessions, Stage

# Probes that are answered before other events are handled.
_TAKEN_A_STEP = 64
# How often it is looked whether a flood goes on.
_LOOK_S = 0.25
# A client may choose no lower port: other services have theirs there.
_FREE_PORTS = 1024


class ReflectorPort(HubConnection):
    """A port on which a reflector answers."""

    def __init__(self, sock: socket.socket, reflector: Reflector, clock: Clock) -> None:
        super().__init__(sock)
        self.reflector = reflector
        self._clock = clock

    def on_readable(self, buffer: memoryview) -> None:
        for _ in range(_TAKEN_A_STEP):
            arrival = receive(self.sock, buffer)
            arrived_ns = self._clock.of_system(arrival.received_ns)
            data = self.reflector.answer(arrival.data, arrival.address, arrived_ns, arrival.ttl)
            if data:
                # What cannot leave is lost, as it would be on the way.
                with suppress(OSError):
                    answer(self.sock, arrival, data)

    def on_broken(self) -> None:
        pass  # One sender's port is closed; others go on.


class OpenPort(ReflectorPort):
    """A port on which whoever sends probes is answered; who floods it is shut out for a while."""

    def __init__(
        self, sock: socket.socket, reflector: Reflector, clock: Clock, most_pps: float
    ) -> None:
        """``most_pps`` is what one client may send."""
        super().__init__(sock, reflector, clock)
        self._most_pps = most_pps
        self._hosts: tuple[str, ...] = ()
        self._looked_s = 0.0
        self._drops = 0

    def on_readable(self, buffer: memoryview) -> None:
        try:
            super().on_readable(buffer)
        finally:
            self._shut_out()

    def on_deadline(self) -> None:
        self._shut_out()

    def _shut_out(self) -> None:
        """Let the kernel drop what the reflector would not answer, as long as it comes."""
        if self._hosts and self._goes_on():
            self.reflector.keep_out()
        is_ipv6 = self.sock.family == socket.AF_INET6
        hosts = tuple(host for host in self.reflector.shut_out() if (":" in host) is is_ipv6)
        if hosts != self._hosts:
            with suppress(OSError):  # Without a filter, it is only counted.
                drop_hosts(self.sock, hosts)
            self._hosts = hosts
        self.deadline_s = time.monotonic() + _LOOK_S if hosts else math.inf

    def _goes_on(self) -> bool:
        """Whether more than one client may send was dropped since the last look."""
        now_s = time.monotonic()
        if (since_s := now_s - self._looked_s) < _LOOK_S:
            return False
        drops = dropped_packets(self.sock) or 0
        came = (drops - self._drops) % (1 << 32)
        self._looked_s, self._drops = now_s, drops
        return came > self._most_pps * since_s


class TwoWaySession(ReflectorPort):
    """A session of TWAMP, which answers one client; it ends when that is silent for long.

    ``ended`` is called then. `end_s` is when that will be, on the monotonic clock.
    """

    stopped = None

    def __init__(
        self,
        sock: socket.socket,
        reflector: Reflector,
        clock: Clock,
        request: TwoWayRequest,
        claim: Claim,
        most_s: float,
        ended: Callable[[TwoWaySession], None],
    ) -> None:
        super().__init__(sock, reflector, clock)
        self.request = request
        self.claim = claim
        self.stage = Stage.ACCEPTED
        self.port = int(sock.getsockname()[1])
        self.most_s = most_s
        self._ended = ended
        self._last_s = 0.0

    def begin(self) -> None:
        """Answer from now on, for no longer than a session may last."""
        self.stage = Stage.RUNNING
        self._last_s = time.monotonic() + self.most_s
        self.deadline_s = self.end_s

    def stop(self) -> None:
        """Answer only what is still on its way (RFC 5357, section 4.2)."""
        timeout_s = min(from_interval(self.request.timeout) / 1e9, IDLE_S)
        self._last_s = min(self._last_s, time.monotonic() + timeout_s)
        self.deadline_s = self.end_s

    @property
    def end_s(self) -> float:
        """Until when it answers, if no more probes come."""
        return min(self._last_s, self.reflector.seen_ns / 1e9 + IDLE_S)

    def on_deadline(self) -> None:
        self.deadline_s = self.end_s
        if self.deadline_s <= time.monotonic():
            self._ended(self)


class TwoWaySessions(Sessions):
    """TWAMP's sessions of all clients."""

    def __init__(
        self, hub: Hub, limits: Limits, clock: Clock, channel: Channel, ports: range | None
    ) -> None:
        super().__init__(hub, limits, clock, channel, ports)
        self._limits = limits
        self._allowances = Allowances(limits)

    def open(self, client: Requester, request: Any) -> Any:
        """Accept a session, or say why not. Its id is in its ``request``."""
        form = twamp_format(client.mode, client.keys, bytes(16))
        # With less padding the answers would be longer than the probes.
        if request.refusal() or request.padding_bytes < form.padding_bytes(0):
            return Accept.UNSUPPORTED
        asks = request.sender_address
        if asks not in ANY_HOST and not same_host((asks, 0), client.remote):
            return Accept.REFUSED  # Of a third, or of this client behind an address translator.
        claim = Claim(client.origin, 0.0, 0)
        accept = self._quota.take(claim, request)
        if accept:
            return accept
        try:
            sock = self._bound(client, request)
        except Problem:
            self._release(claim)
            return Accept.TEMPORARY_LIMIT
        here = at_port(client.local, 0)[0].partition("%")[0]
        sid = make_sid(here, to_timestamp(self._clock.now_ns()), os.urandom(4))
        peer = at_port(client.remote, request.sender_port)
        form = twamp_format(client.mode, client.keys, sid)
        reflector = Reflector(form, self._clock, self._allowances, peer, sessions=1)
        return TwoWaySession(
            sock,
            reflector,
            self._clock,
            request._replace(sid=sid),
            claim,
            self._limits.duration_s,
            self.end,
        )

    def _bound(self, client: Requester, request: TwoWayRequest) -> socket.socket:
        """Return a socket at the port that the client wants, if it is free, or at another."""
        wanted, dscp = request.receiver_port, request.dscp or 0
        if wanted in (self._ports or range(_FREE_PORTS, 1 << 16)):
            with suppress(Problem):
                return open_endpoint(at_port(client.local, wanted), None, dscp)
        return open_endpoint(at_port(client.local, 0), self._ports, dscp)

    def start(self, session: Any, client: Requester, done: Callable[[], None]) -> None:
        """Let a session answer."""
        session.begin()
        self._hub.add(session)

    def stop(self, session: Any) -> None:
        """Let a session answer what is on its way, then end."""
        session.stop()

    def drop(self, session: Any) -> None:
        """End a session, if it has not ended: its client has gone."""
        self.end(session)

    def end(self, session: TwoWaySession) -> None:
        """End a session."""
        if session.stage is Stage.ENDED:
            return
        session.stage = Stage.ENDED
        self._hub.remove(session)
        session.sock.close()
        self._release(session.claim)

    def _release(self, claim: Claim) -> None:
        self._quota.end(claim)
        self._quota.forget(claim)


class TwampPeer(ControlPeer):
    """A control connection of TWAMP, which is quiet as long as its sessions answer probes."""

    def on_deadline(self) -> None:
        self._wait_again()
        if self.deadline_s <= time.monotonic():
            super().on_deadline()


class TwoWayServer(Server):
    """Serves clients of TWAMP."""

    _sessions_type = TwoWaySessions
    _talk_type = TwampServer
    _peer_type = TwampPeer


def run_reflector(
    socks: Iterable[socket.socket],
    form: TwoWayFormat,
    limits: Limits,
    clock: Clock,
    waker: Waker,
    warn: Callable[[str], None],
) -> None:
    """Answer whoever sends probes to some ports, until it is interrupted."""
    hub = Hub(waker, warn)
    reflector = Reflector(form, clock, Allowances(limits), warn=warn)
    for sock in socks:
        note_destinations(sock)
        hub.add(OpenPort(sock, reflector, clock, limits.client_rate_pps))
    while not waker.interrupted:
        hub.step(busy=any(peer.deadline_s < math.inf for peer in hub.peers))
    hub.close()
