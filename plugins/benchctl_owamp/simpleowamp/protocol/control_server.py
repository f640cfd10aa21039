"""The server's end of a control connection (RFC 4656, section 3), without I/O.

    server = ControlServer(modes, passphrases, start_time)
    send server.greeting()
    for event in server.receive(octets): …     # octets from the client give events
    SetUp             → send server.start(), or start(Accept.TEMPORARY_LIMIT)
    SessionRequested  → send server.accept_session(port, sid), or refuse_session(accept)
    StartRequested    → the sessions start; send server.start_ack()
    Stopped           → send server.stop_sessions(what was sent), unless this end did it before
    FetchRequested    → send server.fetch_head(…), fetch_records(…) …, fetch_end(), or
                        refuse_fetch(accept)

Each event must be answered before the next is taken. Each method returns the octets to send, and
raises RuntimeError out of turn.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Mapping
from typing import Any, NamedTuple

from benchctl_standalone.errors import Problem

from .ciphers import BLOCK_BYTES, Keys, derive_key, open_token
from .control import RECORD_GROUP, Connection, Conversation, Reading, State
from .layouts import (
    ACCEPT_SESSION,
    FETCH_ACK,
    FETCH_SESSION,
    GREETING,
    RECORD,
    SERVER_START,
    SET_UP_RESPONSE,
    START_ACK,
    START_SESSIONS,
)
from .messages import (
    FETCH_SESSION_COMMAND,
    MODES,
    OPEN,
    REQUEST_SESSION_COMMAND,
    START_SESSIONS_COMMAND,
    STOP_SESSIONS_COMMAND,
    Accept,
    FetchRequested,
    SessionRequest,
    SessionRequested,
    SetUp,
    StartRequested,
    StoppedSession,
)
from .records import PacketRecord, SkipRange, pack_records, pack_skips

# The least that RFC 4656, section 3.1, allows. A client makes the server do as much for each try.
LEAST_COUNT = 1024


class _Client(NamedTuple):
    """The answer that the protocol demands for a client's choice, and its keys and stream."""

    accept: Accept
    keys: Keys | None = None
    iv: bytes = b""


class ControlServer(Connection):
    """A control connection from a client.

    ``modes`` is a sum of `MODES`, ``passphrases`` has each user's, ``start_time`` is the timestamp
    at which the server began, ``random`` returns so many random octets, and ``count`` is the number
    of rounds in which keys are derived from passphrases.
    """

    def __init__(
        self,
        modes: int,
        passphrases: Mapping[str, bytes],
        start_time: int,
        random: Callable[[int], bytes] = os.urandom,
        count: int = LEAST_COUNT,
    ) -> None:
        self._modes, self._passphrases, self._start_time = modes, passphrases, start_time
        self._random, self._count = random, count
        self._challenge, self._salt = random(BLOCK_BYTES), random(BLOCK_BYTES)
        self._client = _Client(Accept.REFUSED)
        self._records = b""
        super().__init__()

    # What the server says.

    def greeting(self) -> bytes:
        """Return Server Greeting, which offers the modes; without any the client must go."""
        self._say("Server Greeting")
        return GREETING.pack(
            modes=self._modes, challenge=self._challenge, salt=self._salt, count=self._count
        )

    def start(self, accept: Accept = Accept.OK) -> bytes:
        """Return Server-Start; what `SetUp` says must be refused is refused in any case."""
        demanded, keys, client_iv = self._client
        accept = demanded or accept
        self._say("Server-Start, refused" if accept else "Server-Start")
        iv = self._random(BLOCK_BYTES)
        start_time = 0 if accept else self._start_time
        message = SERVER_START.pack(accept=accept, server_iv=iv, start_time=start_time)
        if keys is not None and not accept:
            self._protect(keys, iv, client_iv)
        return message[:-BLOCK_BYTES] + self._write_text(message[-BLOCK_BYTES:])

    def accept_session(self, port: int, sid: bytes) -> bytes:
        """Return Accept-Session, with the port of the server's end and the session's id."""
        return self._answer_session(Accept.OK, port, sid)

    def refuse_session(self, accept: Accept) -> bytes:
        """Return Accept-Session that says why not."""
        return self._answer_session(accept, 0, b"")

    def _answer_session(self, accept: Accept, port: int, sid: bytes) -> bytes:
        self._say("Accept-Session")
        return self._write_message(ACCEPT_SESSION, accept=accept, port=port, sid=sid)

    def start_ack(self, accept: Accept = Accept.OK) -> bytes:
        """Return Start-Ack: all sessions start, or none."""
        self._say("Start-Ack, refused" if accept else "Start-Ack")
        return self._write_message(START_ACK, accept=accept)

    def stop_sessions(self, sent: Iterable[StoppedSession], accept: int = Accept.OK) -> bytes:
        """Return Stop-Sessions, with each session that this end sent in."""
        self._say("the server's Stop-Sessions")
        return self._write_stop(sent, accept)

    def refuse_fetch(self, accept: Accept) -> bytes:
        """Return Fetch-Ack that says why not."""
        self._say("Fetch-Ack, refused")
        return self._write_message(FETCH_ACK, accept=accept)

    def fetch_head(
        self,
        request: SessionRequest,
        record_count: int,
        *,
        finished: bool,
        next_seq: int = 0,
        skips: Iterable[SkipRange] = (),
    ) -> bytes:
        """Return Fetch-Ack, the session as it was requested, and its skipped packets.

        Of a session that has not finished nobody knows the last two.
        """
        self._say("Fetch-Ack")
        self._records = b""
        skips = tuple(skips)
        ack = self._write_message(
            FETCH_ACK, accept=Accept.OK, finished=finished, next_seq=next_seq,
            skip_count=len(skips), record_count=record_count,
        )  # fmt: skip
        return ack + self._write(*request.pack(), pack_skips(skips))

    def fetch_records(self, records: Iterable[PacketRecord]) -> bytes:
        """Return the octets of some of the records; the last incomplete block is kept."""
        if self.state is not State.FETCHED:
            raise RuntimeError(f"records where {self.state.value}")
        self._records += pack_records(records)
        whole = len(self._records) // (RECORD_GROUP * RECORD.size) * (RECORD_GROUP * RECORD.size)
        ready, self._records = self._records[:whole], self._records[whole:]
        return self._write_text(ready)

    def fetch_end(self) -> bytes:
        """Return the last octets of the records."""
        self._say("the end of the records")
        return self._write_text(self._records) + self._write_digest()

    # What the client says.

    def _conversation(self) -> Conversation:
        choice = SET_UP_RESPONSE.unpack((yield SET_UP_RESPONSE.size))
        self._heard("Set-Up-Response")
        user = choice["key_id"].partition(b"\0")[0].decode("utf-8", "replace")
        self._client = self._judge(user, choice)
        yield SetUp(choice["mode"], user, self._client.accept)
        while self.state is not State.OVER:
            head = yield from self._read_text(BLOCK_BYTES)
            reader = self._readers().get(head[0])
            if reader is None:
                raise Problem("peer", f"the unknown command {head[0]}")
            yield from reader(head)

    def _judge(self, user: str, choice: Mapping[str, Any]) -> _Client:
        """Return what the protocol demands for a client's choice, and its keys."""
        mode = choice["mode"]
        if mode not in MODES.values() or not mode & self._modes:
            return _Client(Accept.UNSUPPORTED)
        if mode == OPEN:
            return _Client(Accept.OK)
        # For an unknown user it takes as long, so the answer doesn't say which users there are.
        passphrase = self._passphrases.get(user) or self._random(BLOCK_BYTES)
        key = derive_key(passphrase, self._salt, self._count)
        keys = open_token(key, self._challenge, choice["token"])
        return _Client(Accept.OK if keys else Accept.REFUSED, keys, choice["client_iv"])

    def _readers(self) -> dict[int, Callable[[bytes], Reading]]:
        """Return what reads each command."""
        return {
            REQUEST_SESSION_COMMAND: self._read_request_session,
            START_SESSIONS_COMMAND: self._read_start_sessions,
            STOP_SESSIONS_COMMAND: self._read_client_stop,
            FETCH_SESSION_COMMAND: self._read_fetch_session,
        }

    def _read_request_session(self, head: bytes) -> Reading:
        self._heard("Request-Session")
        request = yield from self._read_request(head)
        yield SessionRequested(request)

    def _read_start_sessions(self, head: bytes) -> Reading:
        self._heard("Start-Sessions")
        yield from self._read_message(START_SESSIONS, head)
        yield StartRequested()

    def _read_client_stop(self, head: bytes) -> Reading:
        self._following("the client's Stop-Sessions")
        stopped = yield from self._read_stop(head)
        # Not before: until it is whole, this end reads on, and may stop first.
        self._heard("the client's Stop-Sessions")
        yield stopped

    def _read_fetch_session(self, head: bytes) -> Reading:
        self._heard("Fetch-Session")
        fields = yield from self._read_message(FETCH_SESSION, head)
        yield FetchRequested(fields["sid"], fields["begin_seq"], fields["end_seq"])
