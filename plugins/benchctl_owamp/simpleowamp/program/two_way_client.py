"""The client of two-way measurements: TWAMP has a conversation first, TWAMP-Light and STAMP none.

Whether the latter reach anybody only the answers say.
"""

from __future__ import annotations

import os
import selectors
import socket
import time

from benchctl_standalone.errors import Problem, describe_os_error
from benchctl_standalone.sockets import address_text, bind_device, resolve

from ..measuring.clock import SECOND_NS
from ..measuring.endpoint import at_port, open_endpoint, receive
from ..measuring.two_way_session import TwoWaySession
from ..protocol.messages import MODES, SessionAccepted, SessionRequest, SessionsStarted, type_p_of
from ..protocol.records import SkipRange
from ..protocol.timestamps import to_interval, to_timestamp
from ..protocol.twamp import TwampClient, TwoWayRequest
from ..protocol.two_way import TwoWayFormat, two_way_format
from .client import Client, host_of

# Answers that are taken before other events are handled.
_TAKEN_A_STEP = 64


class TwoWayClient(Client):
    """One two-way measurement; which protocol it speaks is in its settings."""

    _talk: TwampClient
    _session: TwoWaySession

    def _run(self) -> None:
        settings = self._settings
        self._talk = TwampClient()
        self._error = ""
        self._session = self._agreed() if settings.protocol == "twamp" else self._aimed()
        self._directions["both"] = self._session
        self._started = True
        where = self._session.sock.getpeername()
        server = self._sock.getpeername() if self._sock else where
        self._output.started(server, settings, self._directions)
        self._order(self._session)
        self._measure()
        if settings.protocol == "twamp":
            self._say(self._talk.stop_two_way(1))
        self._finish()
        if not self._session.received:
            reason = f": {self._error}" if self._error else ""
            hint = (
                f"is this UDP port that of a {settings.protocol} reflector, and does it serve you?"
            )
            short, due = self._session.trip.short_bytes, self._session.form.answer_bytes
            if 0 < short < due:
                reason = f": packets of {short} octets came back, and an answer has {due} or more"
                hint = "its answers are not those of RFC 5357, section 4.2.1: ask who wrote it"
            raise Problem("unreachable", f"no answer from {address_text(where)}{reason}", hint)

    # The session.

    def _agreed(self) -> TwoWaySession:
        """Return a session that a server of TWAMP has agreed to, and started."""
        trip_s = self._connect()
        assert self._sock is not None
        self._set_up()
        settings = self._settings
        local, remote = self._sock.getsockname(), self._sock.getpeername()
        sock = open_endpoint(at_port(local, 0), settings.ports, settings.dscp)
        try:
            request = self._request_of(sock, self._start_ns(trip_s))
            asked = TwoWayRequest(
                sender_address=host_of(at_port(local, 0)),
                sender_port=request.sender_port,
                receiver_address=host_of(at_port(remote, 0)),
                receiver_port=request.sender_port,
                start_time=request.start_time,
                timeout=request.timeout,
                padding_bytes=self._form(bytes(16)).padding_bytes(settings.padding_bytes),
                type_p=request.type_p,
            )
            self._say(self._talk.request_two_way(asked))
            answer = self._answer(SessionAccepted)
            self._accepted(answer.accept, "the session")
            sock.connect(at_port(remote, answer.port))
            self._say(self._talk.start_sessions())
            self._accepted(self._answer(SessionsStarted).accept, "the session")
        except BaseException:
            sock.close()
            raise
        request = request._replace(sid=answer.sid)
        return TwoWaySession(request, sock, self._form(answer.sid), counts=True)

    def _aimed(self) -> TwoWaySession:
        """Return a session with a reflector that is asked for nothing before."""
        target, settings = self._target, self._settings
        self._watch()
        problem = Problem("unreachable", f"{target.host}: no address")
        for family, _, _, _, address in resolve(target.host, target.port, target.family):
            any_host = "::" if family == socket.AF_INET6 else "0.0.0.0"
            sock = open_endpoint((target.source or any_host, 0), settings.ports, settings.dscp)
            try:
                if target.device:
                    bind_device(sock, target.device)
                sock.connect(address)
            except OSError as error:
                sock.close()
                reason = describe_os_error(error)
                problem = Problem("unreachable", f"{address_text(address)}: {reason}")
            else:
                request = self._request_of(sock, self._start_ns(0.0))
                return TwoWaySession(request, sock, self._form(request.sid), counts=False)
        raise problem

    def _request_of(self, sock: socket.socket, start_ns: int) -> SessionRequest:
        """Return what the sender keeps to; the id is only the seed of its schedule."""
        settings = self._settings
        return SessionRequest(
            conf_sender=False,
            conf_receiver=False,
            packet_count=settings.packet_count,
            slots=settings.slots,
            sender_address="",
            sender_port=sock.getsockname()[1],
            receiver_address="",
            receiver_port=0,
            start_time=to_timestamp(start_ns),
            timeout=to_interval(round(settings.timeout_s * SECOND_NS)),
            padding_bytes=settings.padding_bytes,
            type_p=type_p_of(settings.dscp),
            sid=os.urandom(16),
        )

    def _form(self, sid: bytes) -> TwoWayFormat:
        settings = self._settings
        mode = MODES[settings.mode]
        return two_way_format(settings.protocol, mode, self._talk.keys, sid, settings.passphrase)

    # The packets.

    def _measure(self) -> None:
        """Take answers until none is missing, or all that miss are lost, or the user ends it."""
        session = self._session
        self._selector.register(session.sock, selectors.EVENT_READ, self._take)
        last_ns = session.due_ns(session.request.packet_count - 1) + session.timeout_ns
        while not self._waker.interrupted and not self._complete():
            left_s = (last_ns - self._clock.now_ns()) / SECOND_NS
            if left_s <= 0:
                break
            self._wait(time.monotonic() + left_s)
            # Only its end can come: TWAMP's server says nothing while sessions run.
            next(self._events, None)

    def _complete(self) -> bool:
        return self._outcome is not None and self._session.received >= self._outcome.sent

    def _take(self) -> None:
        for _ in range(_TAKEN_A_STEP):
            try:
                arrival = receive(self._session.sock, self._buffer)
            except BlockingIOError:
                return
            except OSError as error:
                self._error = describe_os_error(error)  # Of a probe that nobody took.
                return
            arrived_ns = self._clock.of_system(arrival.received_ns)
            back = self._session.trip.receive(arrival.data, arrived_ns, arrival.ttl)
            if back:
                self._session.take_answer(back)
                self._output.reflected(self._session, back)

    def _finish(self) -> None:
        """Say what was lost: of those that were sent, without what may still be on its way."""
        session, outcome = self._session, self._sent()
        self._take()
        skips = tuple(SkipRange(*skipped) for skipped in outcome.skipped)
        judged = session.due_before(self._clock.now_ns() - session.timeout_ns)
        for seq in session.end(min(outcome.next_seq, judged), skips):
            self._output.lost(session, seq)
        self._output.ended(session, outcome)
