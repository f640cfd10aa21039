"""The client's end of a control connection (RFC 4656, section 3), without I/O.

In the order of a measurement:

    client = ControlClient()
    for event in client.receive(octets): …     # octets from the server give events
    Greeting          → send client.set_up("open")
    ServerStarted     → send client.request_session(request), one at a time
    SessionAccepted   → the next request_session, or client.start_sessions()
    SessionsStarted   → the sessions run; send client.stop_sessions(what was sent) at their end
    Stopped           → send client.fetch_session(sid) for each that the server received
    FetchStarted, FetchedSession, PacketRecord …, FetchEnded

Each method returns the octets to send, and raises RuntimeError out of turn. A server that says no
says so in ``accept`` of its event.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable
from typing import Any

from benchctl_standalone.errors import Problem

from .ciphers import BLOCK_BYTES, Keys, derive_key, seal_token
from .control import (
    MAX_SKIPS,
    RECORD_GROUP,
    Connection,
    Conversation,
    Reading,
    State,
    limited,
)
from .layouts import (
    ACCEPT_SESSION,
    FETCH_ACK,
    FETCH_SESSION,
    GREETING,
    KEY_ID_BYTES,
    RECORD,
    SERVER_START,
    SET_UP_RESPONSE,
    SKIP_RANGE,
    START_ACK,
    START_SESSIONS,
)
from .messages import (
    ALL_PACKETS,
    FETCH_SESSION_COMMAND,
    MODES,
    OPEN,
    START_SESSIONS_COMMAND,
    STOP_SESSIONS_COMMAND,
    Accept,
    FetchedSession,
    FetchEnded,
    FetchStarted,
    Greeting,
    ServerStarted,
    SessionAccepted,
    SessionRequest,
    SessionsStarted,
    StoppedSession,
    accept_of,
)
from .records import unpack_records, unpack_skips

# A server that asks for more rounds of the key's derivation asks for more than a second of work.
_MAX_COUNT = 1 << 20


class ControlClient(Connection):
    """A control connection to a server; ``random`` returns so many random octets."""

    def __init__(self, random: Callable[[int], bytes] = os.urandom) -> None:
        self._random = random
        self._greeting: dict[str, Any] = {}
        self._chosen: tuple[Keys | None, bytes] = None, bytes(BLOCK_BYTES)
        super().__init__()

    # What the client says.

    def set_up(self, mode: str = "open", user: str = "", passphrase: bytes = b"") -> bytes:
        """Return Set-Up-Response, which chooses a mode of `MODES`.

        Raises Problem if the server does not offer it, or it needs what is not there.
        """
        self._say("Set-Up-Response")
        offered = self._greeting["modes"]
        if not MODES[mode] & offered:
            names = [name for name, bit in MODES.items() if bit & offered]
            hint = f"it offers {' and '.join(names)}" if names else "it takes no measurements now"
            raise Problem("refused", f"the server does not offer the mode {mode}", hint)
        if MODES[mode] == OPEN:
            return SET_UP_RESPONSE.pack(mode=OPEN)
        key_id = user.encode()
        if len(key_id) > KEY_ID_BYTES:
            raise Problem("parameter", f"a user's name of more than {KEY_ID_BYTES} octets")
        keys, iv = Keys(self._random(16), self._random(32)), self._random(BLOCK_BYTES)
        challenge, salt = self._greeting["challenge"], self._greeting["salt"]
        count = limited(self._greeting["count"], _MAX_COUNT, "rounds of key derivation")
        token = seal_token(derive_key(passphrase, salt, max(count, 1)), challenge, keys)
        self._chosen = keys, iv
        return SET_UP_RESPONSE.pack(mode=MODES[mode], key_id=key_id, token=token, client_iv=iv)

    def request_session(self, request: SessionRequest) -> bytes:
        """Return Request-Session; only after the answer may the next one follow."""
        self._say("Request-Session")
        return self._write(*request.pack())

    def start_sessions(self) -> bytes:
        """Return Start-Sessions."""
        self._say("Start-Sessions")
        return self._write_message(START_SESSIONS, command=START_SESSIONS_COMMAND)

    def stop_sessions(self, sent: Iterable[StoppedSession], accept: int = Accept.OK) -> bytes:
        """Return Stop-Sessions, with each session that this end sent in."""
        self._say("the client's Stop-Sessions")
        return self._write_stop(sent, accept)

    def fetch_session(self, sid: bytes, begin_seq: int = 0, end_seq: int = ALL_PACKETS) -> bytes:
        """Return Fetch-Session, for the records from one sequence number to another."""
        self._say("Fetch-Session")
        return self._write_message(
            FETCH_SESSION, command=FETCH_SESSION_COMMAND, sid=sid, begin_seq=begin_seq,
            end_seq=end_seq,
        )  # fmt: skip

    # What the server says.

    def _conversation(self) -> Conversation:
        self._greeting = GREETING.unpack((yield GREETING.size))
        self._heard("Server Greeting")
        yield Greeting(self._greeting["modes"])
        yield from self._read_server_start()
        while self.state is not State.OVER:
            head = yield from self._read_text(BLOCK_BYTES)
            reader = self._readers().get(self.state)
            if reader is None:
                raise Problem("peer", f"the server speaks out of turn: {self.state.value}")
            yield from reader(head)

    def _readers(self) -> dict[State, Callable[[bytes], Reading]]:
        """Return what reads the server's next message, in each state that has one."""
        return {
            State.REQUESTED: self._read_accept_session,
            State.STARTING: self._read_start_ack,
            State.RUNNING: self._read_server_stop,
            State.CLIENT_STOPPED: self._read_server_stop,
            State.FETCHING: self._read_fetch,
        }

    def _read_server_start(self) -> Reading:
        # The last block is the first that is encrypted, unless the server refuses.
        clear = yield SERVER_START.size - BLOCK_BYTES
        fields = SERVER_START.unpack(clear + bytes(BLOCK_BYTES))
        accept = accept_of(fields["accept"])
        self._heard("Server-Start" if accept == Accept.OK else "Server-Start, refused")
        keys, iv = self._chosen
        if keys is not None and accept == Accept.OK:
            self._protect(keys, iv, fields["server_iv"])
        text = yield from self._read_text(BLOCK_BYTES)
        yield ServerStarted(accept, SERVER_START.unpack(clear + text)["start_time"])

    def _read_accept_session(self, head: bytes) -> Reading:
        fields = yield from self._read_message(ACCEPT_SESSION, head)
        self._heard("Accept-Session")
        yield SessionAccepted(accept_of(fields["accept"]), fields["port"], fields["sid"])

    def _read_start_ack(self, head: bytes) -> Reading:
        accept = accept_of((yield from self._read_message(START_ACK, head))["accept"])
        self._heard("Start-Ack" if accept == Accept.OK else "Start-Ack, refused")
        yield SessionsStarted(accept)

    def _read_server_stop(self, head: bytes) -> Reading:
        if head[0] != STOP_SESSIONS_COMMAND:
            raise Problem("peer", f"the command {head[0]} where only Stop-Sessions may come")
        stopped = yield from self._read_stop(head)
        self._heard("the server's Stop-Sessions")
        yield stopped

    def _read_fetch(self, head: bytes) -> Reading:
        ack = yield from self._read_message(FETCH_ACK, head)
        accept, left = accept_of(ack["accept"]), ack["record_count"]
        self._heard("Fetch-Ack" if accept == Accept.OK else "Fetch-Ack, refused")
        yield FetchStarted(accept, bool(ack["finished"]), ack["next_seq"], left)
        if accept != Accept.OK:
            return
        request = yield from self._read_request(b"")
        skips_size = SKIP_RANGE.size * limited(ack["skip_count"], MAX_SKIPS, "skip ranges")
        skips = unpack_skips((yield from self._read_text(skips_size)))
        yield from self._read_digest()
        yield FetchedSession(request, skips)
        while left:
            count = min(left, RECORD_GROUP)
            left -= count
            records = unpack_records((yield from self._read_text(count * RECORD.size)))
            for record in records:  # noqa: UP028 - a tuple takes nothing that is sent
                yield record
        yield from self._read_digest()
        self._heard("the end of the records")
        yield FetchEnded()
