"""One control connection of a server: what its client asks, and the answers."""

from __future__ import annotations

import math
import socket
import time
from collections.abc import Iterator
from typing import Any

from benchctl_standalone.addresses import origin_of
from benchctl_standalone.errors import Problem
from benchctl_standalone.hub import Hub, HubConnection

from ..protocol.control import State
from ..protocol.control_server import ControlServer
from ..protocol.messages import (
    Accept,
    FetchRequested,
    SessionRequested,
    SetUp,
    StartRequested,
    Stopped,
)
from ..protocol.timestamps import from_interval
from .sessions import Incoming, Outgoing, Requester, Session, Sessions, Stage

# A client chooses its mode at once.
GREETING_S = 10.0
# What waits to be sent to a client that does not read; more is made when it has.
_UNSENT_BYTES = 1 << 18
# Groups of records that are made before others are served.
_GROUPS_A_STEP = 4
# What a client may say before it has read the answer to what it said before.
_UNREAD_BYTES = 1 << 18


class ControlPeer(HubConnection):
    """A control connection; ``talk`` is its protocol, without I/O."""

    def __init__(
        self,
        sock: socket.socket,
        address: Any,
        hub: Hub,
        sessions: Sessions,
        talk: ControlServer,
        idle_s: float,
    ) -> None:
        super().__init__(sock, origin_of(address), time.monotonic() + GREETING_S)
        self._address = address
        self._hub = hub
        self._sessions = sessions
        self._talk = talk
        self._idle_s = idle_s
        self._mode = 0
        self._open: list[Session] = []
        self._events: Iterator[Any] = iter(())
        self._records: Iterator[bytes] | None = None
        self._unsent = bytearray(talk.greeting())
        self._unread = 0
        self._stop_s = math.inf
        self._ends = False

    @property
    def waits(self) -> bool:
        return not self._open

    def greet(self, offers: bool) -> None:
        """Say hello; without an offer the client is asked to go."""
        self._ends = not offers
        self._flush()

    def on_readable(self, buffer: memoryview) -> None:
        size = self.sock.recv_into(buffer)
        self._unread += size
        if not size or self._unread > _UNREAD_BYTES:
            self._leave()
            return
        self._events = self._talk.receive(bytes(buffer[:size]))
        self._proceed()

    def on_writable(self) -> None:
        self._flush()
        self._proceed()

    def on_broken(self) -> None:
        self._leave()

    def on_deadline(self) -> None:
        if time.monotonic() >= self._stop_s:
            self._say_stop()
            self._flush()
            self._proceed()
        else:
            self._leave()

    def _leave(self) -> None:
        self._hub.remove(self)
        for session in self._open:
            self._sessions.drop(session)
        self._open.clear()

    def _proceed(self) -> None:
        """Handle what the client asks, as far as each answer is known."""
        try:
            while self._may_go_on():
                event = next(self._events, None)
                if event is None:
                    self._unread = 0
                    break
                self._handle(event)
        except Problem:
            # It does not speak the protocol: there is nothing that it would understand.
            self._leave()
            return
        self._wait_again()
        self._flush()

    def _may_go_on(self) -> bool:
        return not self._records and self._talk.state is not State.CLIENT_STOPPED

    def _wait_again(self) -> None:
        """Work out until when the client must speak, or this end has to."""
        running = [session for session in self._open if session.stage is Stage.RUNNING]
        latest_s = max((session.end_s for session in running), default=0.0)
        self.deadline_s = max(time.monotonic(), latest_s) + self._idle_s
        if self._talk.state in (State.RUNNING, State.CLIENT_STOPPED):
            self.deadline_s = min(self.deadline_s, self._stop_s)

    def _handle(self, event: Any) -> None:
        if isinstance(event, SetUp):
            self._mode = event.mode
            self._unsent += self._talk.start()
            self._ends = self._talk.state is State.OVER
        elif isinstance(event, SessionRequested):
            self._open_session(event)
        elif isinstance(event, StartRequested):
            self._unsent += self._talk.start_ack()
            self._stop_s = math.inf
            for session in self._open:
                self._sessions.start(session, self._client(), self._on_sent)
        elif isinstance(event, Stopped):
            self._take_stop(event)
        elif isinstance(event, FetchRequested):
            self._fetch(event)

    def _client(self) -> Requester:
        local = self.sock.getsockname()
        return Requester(self.origin, local, self._address, self._mode, self._talk.keys)

    def _open_session(self, event: SessionRequested) -> None:
        opened = self._sessions.open(self._client(), event.request)
        if isinstance(opened, Accept):
            self._unsent += self._talk.refuse_session(opened)
        else:
            self._open.append(opened)
            self._unsent += self._talk.accept_session(opened.port, opened.request.sid)

    def _on_sent(self) -> None:
        """All packets of a session have left this end, or it was stopped."""
        outgoing = [session for session in self._open if isinstance(session, Outgoing)]
        if self not in self._hub.peers or any(session.stopped is None for session in outgoing):
            return
        if self._talk.state is State.CLIENT_STOPPED:
            self._say_stop()
        else:
            # The last packets may take as long as the timeout to arrive, and those that the client
            # sends may have a longer schedule: it says itself when they are through.
            wait_s = max(from_interval(session.request.timeout) for session in outgoing) / 1e9
            theirs_s = [each.end_s for each in self._open if isinstance(each, Incoming)]
            self._stop_s = max([time.monotonic() + wait_s, *theirs_s])
        self._hub.turn(self, self._proceed)

    def _take_stop(self, event: Stopped) -> None:
        """End the client's own sessions; this end answers when it has stopped its own."""
        said = {stopped.sid: stopped for stopped in event.sessions}
        for session in self._open:
            if isinstance(session, Incoming):
                self._sessions.finish(session, said.get(session.request.sid))
            elif session.stopped is None:
                self._sessions.stop(session)
        self._end_sessions()
        if self._talk.state is State.CLIENT_STOPPED and not self._sending():
            self._say_stop()

    def _sending(self) -> bool:
        return any(isinstance(s, Outgoing) and s.stopped is None for s in self._open)

    def _say_stop(self) -> None:
        sent = [s.stopped for s in self._open if isinstance(s, Outgoing) and s.stopped]
        self._stop_s = math.inf
        self._unsent += self._talk.stop_sessions(sent)
        self._end_sessions()

    def _end_sessions(self) -> None:
        """Forget the sessions once both ends have stopped."""
        if self._talk.state is State.READY:
            self._open.clear()

    def _fetch(self, event: FetchRequested) -> None:
        kept = self._sessions.shelf.get(event.sid, self.origin)
        if kept is None:
            self._unsent += self._talk.refuse_fetch(Accept.REFUSED)
            return
        first, last = event.begin_seq, event.end_seq
        self._unsent += self._talk.fetch_head(
            kept.request,
            kept.record_count(first, last),
            finished=kept.finished,
            next_seq=kept.next_seq,
            skips=kept.skips,
        )
        self._records = map(self._talk.fetch_records, kept.groups(first, last))

    def _flush(self) -> None:
        """Send what is to be sent, and make more of it while the client reads."""
        for _ in range(_GROUPS_A_STEP):
            if self._records and len(self._unsent) < _UNSENT_BYTES:
                more = next(self._records, None)
                if more is None:
                    self._records = None
                    self._unsent += self._talk.fetch_end()
                else:
                    self._unsent += more
            if self._unsent:
                try:
                    sent = self.sock.send(self._unsent)
                except BlockingIOError:
                    break
                del self._unsent[:sent]
        if self._ends and not self._unsent:
            self._leave()
        elif self in self._hub.peers:
            self._hub.watch_writing(self, bool(self._unsent or self._records))
