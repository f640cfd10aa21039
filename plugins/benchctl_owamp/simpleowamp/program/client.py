"""The client: one session in each direction that is asked for, at the same time, and their packets.

Of the direction that this end receives, packets are reported as they arrive; of the other one, when
the server gives out what it received.
"""

from __future__ import annotations

import os
import selectors
import socket
import time
from collections.abc import Iterator
from contextlib import suppress
from typing import Any, NamedTuple

from benchctl_standalone.errors import Problem
from benchctl_standalone.sockets import Target, connect
from benchctl_standalone.waker import Interrupted, Waker

from ..measuring.channel import Channel
from ..measuring.clock import SECOND_NS, Clock
from ..measuring.directions import Direction, Packet
from ..measuring.endpoint import PACKET_LIMIT, at_port, open_endpoint
from ..measuring.reception import Reception
from ..measuring.sender import Order, Outcome
from ..protocol.control_client import ControlClient
from ..protocol.messages import (
    MODES,
    Accept,
    FetchedSession,
    FetchEnded,
    FetchStarted,
    Greeting,
    ServerStarted,
    SessionAccepted,
    SessionRequest,
    SessionsStarted,
    Stopped,
    StoppedSession,
    accept_words,
    make_sid,
    type_p_of,
)
from ..protocol.packets import owamp_format
from ..protocol.records import PacketRecord, SkipRange
from ..protocol.schedule import Slot
from ..protocol.timestamps import from_timestamp, to_interval, to_timestamp
from .output import Output

# How long the server may take for an answer, and to say that it has stopped.
_ANSWER_S = 10.0
# From the start of the conversation to that of the sessions: round trips, and a busy server.
_ROUND_TRIPS = 6
_LEAST_WAIT_S = 0.2
_READ_BYTES = 1 << 16
# Packets that are received before other events are handled.
_TAKEN_A_STEP = 64
# While packets are to come, their end is looked for this often.
_LOOK_S = 0.1


def _gone() -> Problem:
    return Problem("peer", "the server has closed the connection")


def host_of(address: Any) -> str:
    """Return an address without its scope, as messages have it."""
    return str(address[0]).partition("%")[0]


class Settings(NamedTuple):
    """What to measure. Directions are seen from the client, and STAMP's key is the passphrase.

    After the last packet the client waits as long as one may take; without ``waits`` only until
    all that it receives itself are there. Two-way measurements never wait longer.
    """

    protocol: str = "owamp"
    directions: tuple[str, ...] = ("send", "receive")
    packet_count: int = 100
    interval_s: float = 0.1
    slots: tuple[Slot, ...] = ()
    padding_bytes: int = 0
    timeout_s: float = 2.0
    dscp: int = 0
    mode: str = "open"
    user: str = ""
    passphrase: bytes = b""
    start_at_s: float | None = None
    ports: range | None = None
    waits: bool = True


class Client:
    """One measurement. ``channel`` leads to a process that sends (`sender.run_sender`)."""

    def __init__(
        self,
        target: Target,
        settings: Settings,
        channel: Channel,
        clock: Clock,
        output: Output,
        waker: Waker,
    ) -> None:
        self._target = target
        self._settings = settings
        self._channel = channel
        self._clock = clock
        self._output = output
        self._waker = waker
        self._talk = ControlClient()
        self._events: Iterator[Any] = iter(())
        self._directions: dict[str, Direction] = {}
        self._buffer = memoryview(bytearray(PACKET_LIMIT))
        self._selector = selectors.DefaultSelector()
        self._sock: socket.socket | None = None
        self._started = False
        self._outcome: Outcome | None = None
        self._server_stop: Stopped | None = None

    def run(self) -> None:
        """Measure. Raises Problem, and Interrupted if the user ends it before any packet."""
        try:
            self._run()
        finally:
            self._selector.close()
            for direction in self._directions.values():
                direction.sock.close()
            if self._sock is not None:
                self._sock.close()

    def _run(self) -> None:
        trip_s = self._connect()
        self._set_up()
        start_ns = self._start_ns(trip_s)
        for name in self._settings.directions:
            self._directions[name] = self._request(name, start_ns)
        self._say(self._talk.start_sessions())
        self._accepted(self._answer(SessionsStarted).accept, "the sessions")
        self._started = True
        self._measure()
        self._stop()
        self._fetch()

    def _watch(self) -> None:
        """Listen to what does not come from the server."""
        self._selector.register(self._channel, selectors.EVENT_READ, self._read_channel)
        self._selector.register(self._waker, selectors.EVENT_READ, self._waker.clear)

    def _connect(self) -> float:
        """Connect to the server; returns how long that took."""
        began_s = time.monotonic()
        self._sock = connect(self._target)
        trip_s = time.monotonic() - began_s
        self._selector.register(self._sock, selectors.EVENT_READ, self._read_control)
        self._watch()
        return trip_s

    def _start_ns(self, trip_s: float) -> int:
        """Return when the sessions begin: when they are agreed, or at the time that was asked."""
        wait_s = max(_ROUND_TRIPS * trip_s, _LEAST_WAIT_S)
        start_s = self._settings.start_at_s
        start_ns = self._clock.now_ns() + round(wait_s * SECOND_NS)
        if start_s is None:
            return start_ns
        return max(start_ns, self._clock.of_system(round(start_s * SECOND_NS)))

    # The conversation.

    def _set_up(self) -> None:
        settings = self._settings
        self._answer(Greeting)
        self._say(self._talk.set_up(settings.mode, settings.user, settings.passphrase))
        self._accepted(self._answer(ServerStarted).accept, "this client")

    def _request(self, name: str, start_ns: int) -> Direction:
        """Ask for a session in a direction."""
        assert self._sock is not None
        settings, sends = self._settings, name == "send"
        local, remote = self._sock.getsockname(), self._sock.getpeername()
        sock = open_endpoint(at_port(local, 0), settings.ports, settings.dscp)
        here, there = (host_of(at_port(address, 0)) for address in (local, remote))
        port = sock.getsockname()[1]
        now = to_timestamp(self._clock.now_ns())
        request = SessionRequest(
            conf_sender=not sends,
            conf_receiver=sends,
            packet_count=settings.packet_count,
            slots=settings.slots,
            sender_address=here if sends else there,
            sender_port=port if sends else 0,
            receiver_address=there if sends else here,
            receiver_port=0 if sends else port,
            start_time=to_timestamp(start_ns),
            timeout=to_interval(round(settings.timeout_s * SECOND_NS)),
            padding_bytes=settings.padding_bytes,
            type_p=type_p_of(settings.dscp),
            sid=bytes(16) if sends else make_sid(here, now, os.urandom(4)),
        )
        try:
            self._say(self._talk.request_session(request))
            answer = self._answer(SessionAccepted)
            self._accepted(answer.accept, "the session")
            sock.connect(at_port(remote, answer.port))
        except BaseException:
            sock.close()
            raise
        return Direction(name, request._replace(sid=answer.sid if sends else request.sid), sock)

    def _accepted(self, accept: int, what: str) -> None:
        if accept == Accept.OK:
            return
        kind = "busy" if accept == Accept.TEMPORARY_LIMIT else "refused"
        raise Problem(kind, f"the server does not accept {what}: {accept_words(accept)}")

    def _say(self, data: bytes) -> None:
        assert self._sock is not None
        try:
            self._sock.sendall(data)
        except OSError as error:
            raise _gone() from error

    def _answer(self, kind: type[Any] | tuple[type[Any], ...]) -> Any:
        """Wait for an event of a kind. Raises Problem, and Interrupted."""
        until_s = time.monotonic() + _ANSWER_S
        while True:
            event = next(self._events, None)
            if isinstance(event, kind):
                return event
            if event is not None:
                raise Problem("peer", "the server answers something else than was asked")
            self._wait(until_s)
            if time.monotonic() >= until_s:
                raise Problem("unreachable", "the server does not answer")
            if self._waker.interrupted and not self._started:
                raise Interrupted

    def _wait(self, until_s: float) -> None:
        """Handle what happens next, or nothing until a time."""
        for key, _ in self._selector.select(max(until_s - time.monotonic(), 0.0)):
            key.data()

    def _read_control(self) -> None:
        assert self._sock is not None
        try:
            data = self._sock.recv(_READ_BYTES)
        except OSError as error:
            raise _gone() from error
        if not data:
            raise _gone()
        self._events = self._talk.receive(data)

    def _read_channel(self) -> None:
        try:
            for outcome, _ in self._channel.receive():
                self._outcome = outcome
        except EOFError:
            raise Problem("tool", "the process that sends test packets has ended") from None

    # The sessions.

    def _measure(self) -> None:
        """Let the sessions run to their end, or until the user or the server ends them."""
        assert self._sock is not None
        self._output.started(self._sock.getpeername(), self._settings, self._directions)
        mode = MODES[self._settings.mode]
        for name, direction in self._directions.items():
            if name == "send":
                self._order(direction)
            else:
                form = owamp_format(b"", mode, self._talk.keys, direction.request.sid)
                sock = direction.sock
                self._reception = Reception(sock, direction.receiving, form, self._clock)
                with suppress(OSError):  # then packets come, or none, as without it
                    # A firewall here lets in what looks like an answer. The sender reads nothing.
                    sock.send(b"")
                self._selector.register(sock, selectors.EVENT_READ, self._receive)
        while not self._waker.interrupted and self._server_stop is None:
            left_ns = self._left_ns()
            if left_ns is not None and left_ns <= 0:
                break
            wait_s = _LOOK_S if left_ns is None else min(left_ns / SECOND_NS, _LOOK_S)
            self._wait(time.monotonic() + wait_s)
            self._server_stop = self._next_stop()

    def _left_ns(self) -> int | None:
        """Return how long packets may still be under way; None while some are still to leave."""
        if "send" in self._directions and self._outcome is None:
            return None
        receiving = self._directions.get("receive")
        if not self._settings.waits and (not receiving or receiving.complete):
            return 0
        now_ns = self._clock.now_ns()
        ends = [direction.end_ns(now_ns) for direction in self._directions.values()]
        known = [end for end in ends if end is not None]
        return max(known) - now_ns if len(known) == len(ends) else None

    def _order(self, direction: Direction) -> None:
        """Let the process that sends begin."""
        request = direction.request
        order = Order(
            0,
            request.sid,
            request.slots,
            request.packet_count,
            from_timestamp(request.start_time),
            direction.timeout_ns,
            request.padding_bytes,
            MODES[self._settings.mode],
            self._talk.keys,
            self._settings.protocol,
            self._settings.passphrase if self._settings.protocol == "stamp" else b"",
            # Of a two-way session this process reads the socket.
            stamps=direction.name == "send",
        )
        self._channel.send(order, direction.sock.fileno())

    def _receive(self, count: int = _TAKEN_A_STEP) -> None:
        direction = self._directions["receive"]
        for record in self._reception.take(self._buffer, count):
            self._show(direction, record)

    def _show(self, direction: Direction, record: PacketRecord) -> None:
        packet = Packet.of_record(record)
        direction.take(packet)
        self._output.packet(direction, packet)

    def _next_stop(self) -> Stopped | None:
        for event in self._events:
            if isinstance(event, Stopped):
                return event
            raise Problem("peer", "the server speaks where it should only stop")
        return None

    # The end.

    def _stop(self) -> None:
        """Stop both ends, and say what has become of the direction that this one received."""
        sending, receiving = map(self._directions.get, ("send", "receive"))
        stopped = []
        if sending:
            outcome = self._sent()
            skips = tuple(SkipRange(*skipped) for skipped in outcome.skipped)
            stopped = [StoppedSession(sending.request.sid, outcome.next_seq, skips)]
        self._say(self._talk.stop_sessions(stopped))
        theirs = self._server_stop or self._answer(Stopped)
        if receiving:
            self._receive(receiving.request.packet_count)
            said = {each.sid: each for each in theirs.sessions}.get(receiving.request.sid)
            next_seq = said.next_seq if said else receiving.request.packet_count
            # What could still be on its way is not lost (RFC 4656, section 3.8).
            judged = receiving.due_before(self._clock.now_ns() - receiving.timeout_ns)
            self._end(receiving, min(next_seq, judged), said.skips if said else ())

    def _sent(self) -> Outcome:
        """Return what was sent, and stop what is not."""
        if self._outcome is None:
            self._channel.send(0)
        until_s = time.monotonic() + _ANSWER_S
        while self._outcome is None:
            self._wait(until_s)
            if time.monotonic() > until_s:
                raise Problem("tool", "the process that sends test packets does not answer")
        if self._outcome.problem:
            raise Problem("tool", self._outcome.problem)
        return self._outcome

    def _end(self, direction: Direction, next_seq: int, skips: tuple[SkipRange, ...]) -> None:
        for seq in direction.end(next_seq, skips):
            self._output.lost(direction, seq)
        self._output.ended(direction, self._outcome if direction.name == "send" else None)

    def _fetch(self) -> None:
        """Get what the server received."""
        direction = self._directions.get("send")
        if direction is None:
            return
        self._say(self._talk.fetch_session(direction.request.sid))
        started = self._answer(FetchStarted)
        self._accepted(started.accept, "to give out what it received")
        skips = self._answer(FetchedSession).skips
        while True:
            event = self._answer((PacketRecord, FetchEnded))
            if isinstance(event, FetchEnded):
                break
            if not event.lost:
                self._show(direction, event)
        next_seq = started.next_seq if started.finished else direction.seen_to
        self._end(direction, next_seq, skips)
