"""What both ends of a control connection do: the two streams, reading, Stop-Sessions. No I/O.

A conversation is a generator. It yields the number of octets that it needs next and is sent them,
or it yields an event. So it reads like the protocol, and how the stream is cut can't matter. The
iterator that `receive` returns runs it: take its events one by one, and answer each that asks for
an answer before the next. Anything that the protocol does not allow raises Problem, after which
the connection can only be closed. Memory is bounded: by what the caller reads at a time, and by
the limits below.
"""

from __future__ import annotations

from collections.abc import Generator, Iterable, Iterator
from contextlib import suppress
from enum import Enum
from typing import Any, Union

from benchctl_standalone.errors import Problem

from .ciphers import BLOCK_BYTES, Digest, Keys, cbc
from .layouts import (
    HMAC,
    REQUEST_SESSION,
    SESSION_DESCRIPTION,
    SKIP_RANGE,
    SLOT,
    STOP_SESSIONS,
    Layout,
)
from .messages import STOP_SESSIONS_COMMAND, SessionRequest, Stopped, StoppedSession
from .records import pack_skips, unpack_skips

# owping makes one slot for each interval of a comma-separated list.
MAX_SLOTS = 1024
MAX_SESSIONS = 1024
# A sender that is held up again and again in a session of 100,000 packets stays below it.
MAX_SKIPS = 1 << 14
RECORD_GROUP = BLOCK_BYTES  # so many records fill whole blocks

Step = Union[int, object]  # octets that are needed, or an event
Conversation = Generator[Step, bytes, None]
Reading = Generator[Step, bytes, Any]


class State(Enum):
    """Where a connection is; both ends are always in the same state, but for what is under way."""

    NEW = "no greeting yet"
    OFFERED = "the server has offered its modes"
    CHOSEN = "the client has chosen a mode"
    READY = "the client may ask"
    REQUESTED = "a session is requested"
    STARTING = "the sessions are to start"
    RUNNING = "the sessions run"
    CLIENT_STOPPED = "the client has stopped its sessions"
    SERVER_STOPPED = "the server has stopped its sessions"
    FETCHING = "a session is to be fetched"
    FETCHED = "a session's records are on their way"
    OVER = "nothing may follow"


# What each message leads to, whoever sends it. Any other message is against the protocol.
MESSAGES: dict[State, dict[str, State]] = {
    State.NEW: {"Server Greeting": State.OFFERED},
    State.OFFERED: {"Set-Up-Response": State.CHOSEN},
    State.CHOSEN: {"Server-Start": State.READY, "Server-Start, refused": State.OVER},
    State.READY: {
        "Request-Session": State.REQUESTED,
        "Start-Sessions": State.STARTING,
        "Fetch-Session": State.FETCHING,
    },
    State.REQUESTED: {"Accept-Session": State.READY},
    State.STARTING: {"Start-Ack": State.RUNNING, "Start-Ack, refused": State.READY},
    State.RUNNING: {
        "the client's Stop-Sessions": State.CLIENT_STOPPED,
        "the server's Stop-Sessions": State.SERVER_STOPPED,
    },
    State.CLIENT_STOPPED: {"the server's Stop-Sessions": State.READY},
    State.SERVER_STOPPED: {"the client's Stop-Sessions": State.READY},
    State.FETCHING: {"Fetch-Ack": State.FETCHED, "Fetch-Ack, refused": State.READY},
    State.FETCHED: {"the end of the records": State.READY},
    State.OVER: {},
}
_AT_REST = (State.NEW, State.OFFERED, State.READY, State.OVER)


class Connection:
    """One end of a control connection. Subclasses say what it is about in `_conversation`."""

    _messages = MESSAGES

    def __init__(self) -> None:
        self.state = State.NEW
        self.keys: Keys | None = None
        """The session keys, for `ciphers.TestCipher`; None in the open mode."""
        self._buffer = bytearray()
        self._encryptor: Any = None
        self._decryptor: Any = None
        self._sent, self._received = Digest(None), Digest(None)
        self._talk = self._conversation()
        self._needed: Step | None = next(self._talk)

    def receive(self, data: bytes) -> Iterator[Any]:
        """Take the next octets of the stream, cut anywhere; returns the events they complete.

        Raises Problem, while events are taken, for what the protocol does not allow.
        """
        self._buffer += data
        return self._events()

    @property
    def at_rest(self) -> bool:
        """Whether the peer may close the connection here: it is in the middle of nothing."""
        return not self._buffer and self.state in _AT_REST

    def _events(self) -> Iterator[Any]:
        while True:
            data = b""
            if self._needed is None:
                if self._buffer:
                    raise Problem("peer", "octets after the end of the conversation")
                return
            if isinstance(self._needed, int):
                if len(self._buffer) < self._needed:
                    return
                data = bytes(self._buffer[: self._needed])
                del self._buffer[: self._needed]
            self._needed, talk = None, self._talk
            with suppress(StopIteration):
                self._needed = talk.send(data)
            if not isinstance(self._needed, int) and self._needed is not None:
                yield self._needed

    def _conversation(self) -> Conversation:
        raise NotImplementedError

    def _following(self, message: str) -> State:
        """Return the state that a message of the peer leads to. Raises Problem if there is none."""
        following = self._messages[self.state].get(message)
        if following is None:
            raise Problem("peer", f"{message} where {self.state.value}")
        return following

    def _heard(self, message: str) -> None:
        """Go to the state that a message of the peer leads to. Raises Problem if there is none."""
        self.state = self._following(message)

    def _say(self, message: str) -> None:
        """Go to the state that a message of this end leads to."""
        following = self._messages[self.state].get(message)
        if following is None:
            raise RuntimeError(f"{message} where {self.state.value}")
        self.state = following

    # The streams.

    def _protect(self, keys: Keys, writes_iv: bytes, reads_iv: bytes) -> None:
        """Encrypt everything from here on."""
        self.keys = keys
        self._encryptor = cbc(keys.aes, writes_iv).encryptor()
        self._decryptor = cbc(keys.aes, reads_iv).decryptor()
        self._sent, self._received = Digest(keys), Digest(keys)

    def _write(self, *parts: bytes) -> bytes:
        """Return the octets of parts, each with its HMAC."""
        return b"".join(self._write_text(part) + self._write_digest() for part in parts)

    def _write_text(self, text: bytes) -> bytes:
        """Return the octets of text whose HMAC comes later; zeros fill its last block."""
        text += bytes(-len(text) % BLOCK_BYTES)
        self._sent.add(text)
        return self._encrypt(text)

    def _write_digest(self) -> bytes:
        return self._encrypt(self._sent.take())

    def _encrypt(self, text: bytes) -> bytes:
        return text if self._encryptor is None else bytes(self._encryptor.update(text))

    def _write_message(self, layout: Layout, **values: Any) -> bytes:
        """Return the octets of a message that ends with its HMAC."""
        return self._write(layout.pack(**values)[:-BLOCK_BYTES])

    def _read_text(self, size: int) -> Reading:
        """Read text whose HMAC comes later, with the zeros that fill its last block."""
        text = yield from self._decrypt(size + -size % BLOCK_BYTES)
        self._received.add(text)
        return text[:size]

    def _read_digest(self) -> Reading:
        self._received.check((yield from self._decrypt(HMAC.size)))

    def _decrypt(self, size: int) -> Reading:
        if not size:
            return b""
        data = yield size
        return data if self._decryptor is None else bytes(self._decryptor.update(data))

    def _read_message(self, layout: Layout, head: bytes = b"") -> Reading:
        """Read a message, of which the caller may have read the head, and check its HMAC."""
        size = layout.size - BLOCK_BYTES - len(head)
        text = head + (yield from self._read_text(size))
        yield from self._read_digest()
        return layout.unpack(text + bytes(BLOCK_BYTES))

    # What both ends may say.

    def _read_request(self, head: bytes) -> Reading:
        """Read the two parts of Request-Session, which a fetched session begins with, too."""
        head += yield from self._read_text(REQUEST_SESSION.size - BLOCK_BYTES - len(head))
        yield from self._read_digest()
        head += bytes(BLOCK_BYTES)
        count = limited(REQUEST_SESSION.unpack(head)["slot_count"], MAX_SLOTS, "schedule slots")
        slots = yield from self._read_text(count * SLOT.size)
        yield from self._read_digest()
        return SessionRequest.unpack(head, slots)

    def _write_stop(self, sessions: Iterable[StoppedSession], accept: int) -> bytes:
        sessions = tuple(sessions)
        text = STOP_SESSIONS.pack(
            command=STOP_SESSIONS_COMMAND, accept=accept, session_count=len(sessions)
        )
        for sid, next_seq, skips in sessions:
            text += SESSION_DESCRIPTION.pack(sid=sid, next_seq=next_seq, skip_count=len(skips))
            text += pack_skips(skips)
            text += bytes(-len(text) % BLOCK_BYTES)
        return self._write(text)

    def _read_stop(self, head: bytes) -> Reading:
        fields = STOP_SESSIONS.unpack(head)
        sessions, left = [], MAX_SKIPS
        for _ in range(limited(fields["session_count"], MAX_SESSIONS, "sessions")):
            # Two blocks have the description, and the first range of skipped packets.
            text = yield from self._read_text(2 * BLOCK_BYTES)
            session = SESSION_DESCRIPTION.unpack(text)
            count = limited(session["skip_count"], left, "skip ranges")
            left -= count
            skips_size = SKIP_RANGE.size * count
            text = text[SESSION_DESCRIPTION.size :]
            text += yield from self._read_text(max(0, skips_size - len(text)))
            skips = unpack_skips(text[:skips_size])
            sessions.append(StoppedSession(session["sid"], session["next_seq"], skips))
        yield from self._read_digest()
        return Stopped(fields["accept"], tuple(sessions))


def limited(count: int, limit: int, what: str) -> int:
    """Return a count. Raises Problem if it is above its limit."""
    if count > limit:
        raise Problem("peer", f"a message with {count} {what}; at most {limit} are taken")
    return count
