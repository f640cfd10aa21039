"""What the messages of a control connection mean, and the values of their fields."""

from __future__ import annotations

from enum import IntEnum
from ipaddress import IPv4Address, IPv6Address, ip_address
from typing import Any, NamedTuple

from benchctl_standalone.errors import Problem

from .layouts import REQUEST_SESSION, SLOT
from .records import SkipRange
from .schedule import EXPONENTIAL, FIXED, Slot

OPEN, AUTHENTICATED, ENCRYPTED = 1, 2, 4
MODES = {"open": OPEN, "authenticated": AUTHENTICATED, "encrypted": ENCRYPTED}

REQUEST_SESSION_COMMAND, START_SESSIONS_COMMAND = 1, 2
STOP_SESSIONS_COMMAND, FETCH_SESSION_COMMAND = 3, 4

ALL_PACKETS = 0xFFFFFFFF
"""The last sequence number of a fetch that asks for a whole session (RFC 4656, section 3.9)."""


class Accept(IntEnum):
    """What a server answers (RFC 4656, section 3.3)."""

    OK = 0
    REFUSED = 1
    INTERNAL_ERROR = 2
    UNSUPPORTED = 3
    PERMANENT_LIMIT = 4
    TEMPORARY_LIMIT = 5


_ACCEPT_WORDS: dict[int, str] = {
    Accept.OK: "accepted",
    Accept.REFUSED: "refused, without a reason",
    Accept.INTERNAL_ERROR: "an internal error of the server",
    Accept.UNSUPPORTED: "the server does not support what was asked",
    Accept.PERMANENT_LIMIT: "more than the server ever allows",
    Accept.TEMPORARY_LIMIT: "more than the server allows at present",
}


def accept_of(code: int) -> Accept | int:
    """Return a code as `Accept`; the codes above 5 are reserved, and stay numbers."""
    return Accept(code) if code in _ACCEPT_WORDS else code


def accept_words(accept: int) -> str:
    """Return an answer in words. A reserved code means a refusal."""
    return _ACCEPT_WORDS.get(accept, f"refused, with the unknown code {accept}")


class SessionRequest(NamedTuple):
    """Request-Session (RFC 4656, section 3.5). ``timestamps`` converts its times."""

    conf_sender: bool
    """The server is to send."""
    conf_receiver: bool
    """The server is to receive."""
    packet_count: int
    slots: tuple[Slot, ...]
    sender_address: str
    sender_port: int
    receiver_address: str
    receiver_port: int
    start_time: int
    timeout: int
    """How long after it was due a packet may arrive, in units of 2^-32 s."""
    padding_bytes: int = 0
    type_p: int = 0
    sid: bytes = bytes(16)
    """From the receiver's end: zeros if the server is to receive, and then chooses it."""

    @property
    def dscp(self) -> int | None:
        """The DSCP to send with; None if the descriptor has another form."""
        return self.type_p >> 24 if self.type_p >> 30 == 0 else None

    def pack(self) -> list[bytes]:
        """Return the message's two parts, each without its HMAC."""
        sender, receiver = ip_address(self.sender_address), ip_address(self.receiver_address)
        if sender.version != receiver.version:
            raise Problem("parameter", "one address is of IPv4 and the other of IPv6")
        head = REQUEST_SESSION.pack(
            command=REQUEST_SESSION_COMMAND,
            ip_version=sender.version,
            conf_sender=self.conf_sender,
            conf_receiver=self.conf_receiver,
            slot_count=len(self.slots),
            packet_count=self.packet_count,
            sender_port=self.sender_port,
            receiver_port=self.receiver_port,
            sender_address=sender.packed,
            receiver_address=receiver.packed,
            sid=self.sid,
            padding_bytes=self.padding_bytes,
            start_time=self.start_time,
            timeout=self.timeout,
            type_p=self.type_p,
        )
        slots = (SLOT.pack_row(slot) for slot in self.slots)
        return [head[:-16], b"".join(slots)]

    @classmethod
    def unpack(cls, head: bytes, slots: bytes) -> SessionRequest:
        """Return the request of a message's two parts.

        Raises Problem for an unknown version of IP. Any value but 0 of the two fields that ask
        the server to take part means yes.
        """
        fields = REQUEST_SESSION.unpack(head)
        version = fields["ip_version"] & 15
        if version not in (4, 6):
            raise Problem("peer", f"a session for the unknown version {version} of IP")
        kind, octets = (IPv4Address, 4) if version == 4 else (IPv6Address, 16)
        return cls(
            conf_sender=bool(fields["conf_sender"]),
            conf_receiver=bool(fields["conf_receiver"]),
            packet_count=fields["packet_count"],
            slots=tuple(map(Slot._make, SLOT.unpack_rows(slots))),
            sender_address=str(kind(fields["sender_address"][:octets])),
            sender_port=fields["sender_port"],
            receiver_address=str(kind(fields["receiver_address"][:octets])),
            receiver_port=fields["receiver_port"],
            start_time=fields["start_time"],
            timeout=fields["timeout"],
            padding_bytes=fields["padding_bytes"],
            type_p=fields["type_p"],
            sid=fields["sid"],
        )

    def refusal(self) -> Accept:
        """Return the answer to what this tool's server never does; OK if it may.

        Exactly one end must be the server's, DSCP is the only descriptor it knows, and packets
        need a schedule with some time in it.
        """
        known = all(slot.slot_type in (EXPONENTIAL, FIXED) for slot in self.slots)
        if self.conf_sender == self.conf_receiver or self.dscp is None or not known:
            return Accept.UNSUPPORTED
        if not self.packet_count or not any(slot.parameter for slot in self.slots):
            return Accept.REFUSED
        return Accept.OK


def type_p_of(dscp: int) -> int:
    """Return the Type-P descriptor that asks for a DSCP (RFC 4656, section 3.5)."""
    return dscp << 24


def make_sid(receiver_address: str, time: int, random: bytes) -> bytes:
    """Return a session id: the receiver's address, the time, and 4 random octets (section 3.5).

    Of an IPv6 address it has the last 4 octets.
    """
    return ip_address(receiver_address).packed[-4:] + time.to_bytes(8, "big") + random[:4]


class StoppedSession(NamedTuple):
    """What the sender of a session says when it stops (RFC 4656, section 3.8)."""

    sid: bytes
    next_seq: int
    """The first sequence number that is neither sent nor skipped."""
    skips: tuple[SkipRange, ...] = ()


# The events of both ends.


class Stopped(NamedTuple):
    """The peer has stopped the sessions: those it sent in, and whether all went well."""

    accept: int
    sessions: tuple[StoppedSession, ...]


# The client's events.


class Greeting(NamedTuple):
    """The server offers modes, a sum of `MODES`; call `set_up`."""

    modes: int


class ServerStarted(NamedTuple):
    """The server takes the connection, or not; its start time is when it began to run."""

    accept: int
    start_time: int


class SessionAccepted(NamedTuple):
    """The server takes a session, or not. The port is that of its end."""

    accept: int
    port: int
    sid: bytes


class SessionsStarted(NamedTuple):
    """The server has started all sessions, or not."""

    accept: int


class FetchStarted(NamedTuple):
    """The server gives out a session, or not; if it does, the rest follows until `FetchEnded`."""

    accept: int
    finished: bool
    """The session ended in order; if not, the last packets' fate isn't known."""
    next_seq: int
    record_count: int


class FetchedSession(NamedTuple):
    """The session that is fetched: as it was requested, and what its sender skipped."""

    request: SessionRequest
    skips: tuple[SkipRange, ...]


class FetchEnded(NamedTuple):
    """All records have come as `PacketRecord`s, and nobody has altered them."""


# The server's events; each must be answered before the next one is taken.


class SetUp(NamedTuple):
    """The client chose a mode; answer with `start`.

    ``accept`` is the answer that the protocol demands, and `Accept.OK` if the choice is free.
    """

    mode: int
    user: str
    accept: Accept


class SessionRequested(NamedTuple):
    """Answer with `accept_session`, or with `refuse_session`; see `SessionRequest.refusal`."""

    request: Any
    """A `SessionRequest`, of TWAMP a `TwoWayRequest`."""


class StartRequested(NamedTuple):
    """Answer with `start_sessions`."""


class FetchRequested(NamedTuple):
    """Answer with `refuse_fetch`, or with `fetch_head`, `fetch_records` and `fetch_end`."""

    sid: bytes
    begin_seq: int
    end_seq: int
