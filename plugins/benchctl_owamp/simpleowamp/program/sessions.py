"""A server's test sessions: those that are asked for, that run, and that can be fetched.

A session is taken only if its test packets go to the client that asked, or come from it: nobody can
aim a server at a third (RFC 4656, section 6).
"""

from __future__ import annotations

import itertools
import os
import time
from enum import Enum
from typing import Any, Callable, NamedTuple, Union

from benchctl_standalone.addresses import same_host
from benchctl_standalone.errors import Problem
from benchctl_standalone.hub import Hub, HubConnection

from ..measuring.channel import Channel
from ..measuring.clock import Clock
from ..measuring.endpoint import PACKET_LIMIT, at_port, open_endpoint
from ..measuring.kept import Kept, Shelf
from ..measuring.quota import Claim, Limits, Quota, duration_s, rate_bps
from ..measuring.receiving import Receiving
from ..measuring.reception import Reception
from ..measuring.sender import Order
from ..protocol.ciphers import Keys
from ..protocol.layouts import RECORD
from ..protocol.messages import Accept, SessionRequest, StoppedSession, make_sid
from ..protocol.packets import owamp_format
from ..protocol.records import SkipRange, unpack_records
from ..protocol.timestamps import from_interval, from_timestamp, to_timestamp

# Packets that are received before other events are handled.
_TAKEN_A_STEP = 256
# Packets of a session whose times are worked out with each sweep: 80,000 a second.
_WORKED_OUT = 2000
# A random schedule of n packets rarely takes longer than its mean and so many deviations.
_DEVIATIONS = 6
ANY_HOST = ("0.0.0.0", "::")


class Requester(NamedTuple):
    """Who asks: both ends of the control connection, its mode, and its keys unless that is open."""

    origin: bytes
    local: Any
    remote: Any
    mode: int
    keys: Keys | None


class Stage(Enum):
    """How far a session is: accepted, then running, then ended; each may be the last."""

    ACCEPTED = "accepted"
    RUNNING = "running"
    ENDED = "ended"


class _Session:
    """A session. ``end_s`` is on the monotonic clock, once it runs."""

    def __init__(self, request: SessionRequest, claim: Claim, sock: Any) -> None:
        self.request = request
        self.claim = claim
        self.sock = sock
        self.stage = Stage.ACCEPTED
        self.end_s = 0.0

    @property
    def port(self) -> int:
        """The port of the server's end."""
        asked = self.request
        return asked.sender_port if asked.conf_sender else asked.receiver_port

    def begin(self, clock: Clock) -> None:
        """Run; works out until when its packets may be under way, at the latest."""
        self.stage = Stage.RUNNING
        request = self.request
        wait_s = (from_timestamp(request.start_time) - clock.now_ns()) / 1e9
        mean_s = duration_s(request)
        spread_s = _DEVIATIONS * mean_s / request.packet_count**0.5
        timeout_s = from_interval(request.timeout) / 1e9
        self.end_s = time.monotonic() + max(wait_s, 0.0) + mean_s + spread_s + timeout_s


class Incoming(_Session, HubConnection):
    """A session that a client sends in."""

    def __init__(
        self, request: SessionRequest, claim: Claim, sock: Any, client: Requester, clock: Clock
    ) -> None:
        _Session.__init__(self, request, claim, sock)
        HubConnection.__init__(self, sock, claim.origin)
        self._receiving = Receiving(
            request.sid, request.slots, request.packet_count, request.start_time, request.timeout
        )
        form = owamp_format(b"", client.mode, client.keys, request.sid)
        self._reception = Reception(sock, self._receiving, form, clock)
        self._clock = clock
        self._records = bytearray()

    def on_readable(self, buffer: memoryview) -> None:
        self._take(buffer, _TAKEN_A_STEP)

    def on_sweep(self) -> None:
        self._receiving.work_out(to_timestamp(self._clock.now_ns()), _WORKED_OUT)

    def take_rest(self) -> None:
        """Take what has arrived."""
        self._take(memoryview(bytearray(PACKET_LIMIT)), self.request.packet_count)

    def _take(self, buffer: memoryview, count: int) -> None:
        for record in self._reception.take(buffer, count):
            # Duplicates count, too: a sender cannot fill the memory with more than it asked for.
            if len(self._records) < RECORD.size * self.request.packet_count:
                self._records += RECORD.pack_row(record)

    def on_broken(self) -> None:
        pass  # The client's port is closed; what else it sends may still arrive.

    def finish(self, stopped: StoppedSession | None, now: int) -> Kept:
        """Return what is kept of the session; without the sender's word it did not end in order.

        Whatever is due at or after the sender's end is not counted, and if that came early, what
        could still be on its way neither (RFC 4656, section 3.8).
        """
        request, receiving = self.request, self._receiving
        if stopped is None:
            return Kept(self.claim, request, bytes(self._records), receiving, finished=False)
        next_seq = min(stopped.next_seq, request.packet_count)
        if next_seq < request.packet_count:
            receiving.work_out(now, _WORKED_OUT)
            next_seq = min(next_seq, receiving.seq_due_at(now - request.timeout))
            records = unpack_records(bytes(self._records))
            whole = (RECORD.pack_row(record) for record in records if record.seq < next_seq)
            self._records = bytearray(b"".join(whole))
        skips = tuple(skip for skip in stopped.skips if skip.last_seq < next_seq)
        return Kept(self.claim, request, bytes(self._records), receiving, True, next_seq, skips)


class Outgoing(_Session):
    """A session that a client receives. ``stopped`` is what was sent, once that is known."""

    stopped: StoppedSession | None = None


Session = Union[Incoming, Outgoing]


class Sessions:
    """The test sessions of all clients. ``ports`` is where their UDP sockets are bound."""

    def __init__(
        self, hub: Hub, limits: Limits, clock: Clock, channel: Channel, ports: range | None
    ) -> None:
        self._hub = hub
        self._limits = limits
        self._quota = Quota(limits)
        self._clock = clock
        self._channel = channel
        self._ports = ports
        self._numbers = itertools.count(1)
        self._outgoing: dict[int, tuple[Outgoing, Callable[[], None]]] = {}
        self._ids: set[bytes] = set()
        self.shelf = Shelf(limits.keep_s, self._quota.forget)

    @property
    def running(self) -> int:
        """The number of sessions that hold a place."""
        return self._quota.sessions

    def open(self, client: Requester, request: SessionRequest) -> Session | Accept:
        """Accept a session, or say why not. Its id is in its ``request``."""
        refusal = request.refusal()
        if refusal:
            return refusal
        asks = request.receiver_address if request.conf_sender else request.sender_address
        far_port = request.receiver_port if request.conf_sender else request.sender_port
        if asks not in ANY_HOST and not same_host((asks, 0), client.remote):
            return Accept.REFUSED  # Of a third, or of this client behind an address translator.
        if request.conf_receiver:
            here = at_port(client.local, 0)[0].partition("%")[0]
            sid = make_sid(here, to_timestamp(self._clock.now_ns()), os.urandom(4))
            request = request._replace(sid=sid)
        if not far_port or request.sid in self._ids or request.sid in self.shelf:
            return Accept.REFUSED
        wait_s = (from_timestamp(request.start_time) - self._clock.now_ns()) / 1e9
        if max(wait_s, from_interval(request.timeout) / 1e9) > self._limits.duration_s:
            return Accept.PERMANENT_LIMIT
        claim = Claim(client.origin, rate_bps(request, client.mode), request.packet_count)
        accept = self._claim(claim, request)
        if accept:
            return accept
        try:
            sock = open_endpoint(at_port(client.local, 0), self._ports, request.dscp or 0)
            sock.connect(at_port(client.remote, far_port))
        except (Problem, OSError):
            self._quota.end(claim)
            self._quota.forget(claim)
            return Accept.TEMPORARY_LIMIT
        self._ids.add(request.sid)
        port = sock.getsockname()[1]
        if request.conf_sender:
            return Outgoing(request._replace(sender_port=port), claim, sock)
        request = request._replace(receiver_port=port)
        return Incoming(request, claim, sock, client, self._clock)

    def _claim(self, claim: Claim, request: SessionRequest) -> Accept:
        accept = self._quota.take(claim, request)
        while accept == Accept.TEMPORARY_LIMIT and self.shelf.make_room(claim.origin):
            accept = self._quota.take(claim, request)
        return accept

    def start(self, session: Session, client: Requester, done: Callable[[], None]) -> None:
        """Let a session begin; ``done`` is called when all its packets are sent by this end."""
        session.begin(self._clock)
        if isinstance(session, Incoming):
            self._hub.add(session)
            return
        request = session.request
        number = next(self._numbers)
        self._outgoing[number] = session, done
        order = Order(
            number,
            request.sid,
            request.slots,
            request.packet_count,
            from_timestamp(request.start_time),
            from_interval(request.timeout),
            request.padding_bytes,
            client.mode,
            client.keys,
        )
        self._channel.send(order, session.sock.fileno())
        session.sock.close()

    def stop(self, session: Outgoing) -> None:
        """Let a session send no more; its ``done`` is called soon."""
        for number, (running, _) in self._outgoing.items():
            if running is session:
                self._channel.send(number)

    def take_outcomes(self) -> None:
        """Take what the sending process says. Raises EOFError if it has ended."""
        for outcome, _ in self._channel.receive():
            session, done = self._outgoing.pop(outcome.number)
            skips = tuple(SkipRange(*skipped) for skipped in outcome.skipped)
            session.stopped = StoppedSession(session.request.sid, outcome.next_seq, skips)
            self._end(session)
            self._quota.forget(session.claim)
            done()

    def _end(self, session: Session) -> None:
        session.stage = Stage.ENDED
        self._ids.discard(session.request.sid)
        self._quota.end(session.claim)

    def finish(self, session: Incoming, stopped: StoppedSession | None) -> None:
        """End a session that a client sent in, and keep it."""
        # What has arrived is taken, even if the end of the session was seen first.
        self._hub.turn(session, session.take_rest)
        self._hub.remove(session)
        self._end(session)
        now = to_timestamp(self._clock.now_ns())
        self.shelf.put(session.finish(stopped, now), time.monotonic())

    def drop(self, session: Session) -> None:
        """Give up a session, if it has not ended: its client has gone."""
        if session.stage is Stage.ACCEPTED:
            session.sock.close()
            self._end(session)
            self._quota.forget(session.claim)
        elif session.stage is Stage.RUNNING:
            if isinstance(session, Incoming):
                self.finish(session, None)
            else:
                self.stop(session)
