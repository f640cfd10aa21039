"""TWAMP-Control where it differs from OWAMP-Control (RFC 5357, section 3), without I/O.

Both ends are used like `ControlClient` and `ControlServer`. A session has two ways, so its request
names no schedule; only the client stops sessions, without an answer; and nothing can be fetched.
"""

from __future__ import annotations

from collections.abc import Callable
from ipaddress import IPv4Address, IPv6Address, ip_address
from typing import Any, NamedTuple

from benchctl_standalone.errors import Problem

from .control import MESSAGES, Reading, State
from .control_client import ControlClient
from .control_server import ControlServer
from .layouts import REQUEST_TW_SESSION, STOP_TW_SESSIONS
from .messages import (
    START_SESSIONS_COMMAND,
    STOP_SESSIONS_COMMAND,
    Accept,
    SessionRequested,
    Stopped,
)

REQUEST_TW_SESSION_COMMAND = 5

TWAMP_MESSAGES = {
    **MESSAGES,
    State.READY: {"Request-Session": State.REQUESTED, "Start-Sessions": State.STARTING},
    State.RUNNING: {"the client's Stop-Sessions": State.READY},
}


class TwoWayRequest(NamedTuple):
    """Request-TW-Session (RFC 5357, section 3.5). An address of zeros is the connection's own."""

    sender_address: str
    sender_port: int
    receiver_address: str
    receiver_port: int
    start_time: int
    timeout: int
    """How long the reflector goes on after Stop-Sessions, in units of 2^-32 s."""
    padding_bytes: int
    type_p: int = 0
    sid: bytes = bytes(16)
    """Zeros: the server chooses it."""
    one_way: bool = False
    """It asks for what only a one-way session has."""

    @property
    def slots(self) -> tuple[()]:
        """No schedule, and below no number of packets: only the client knows them."""
        return ()

    @property
    def packet_count(self) -> int:
        return 0

    @property
    def dscp(self) -> int | None:
        """The DSCP to answer with; None if the descriptor has another form."""
        return self.type_p >> 24 if self.type_p >> 30 == 0 else None

    def pack(self) -> bytes:
        """Return the message without its HMAC."""
        sender, receiver = ip_address(self.sender_address), ip_address(self.receiver_address)
        fields = self._asdict()
        del fields["one_way"]
        fields["sender_address"], fields["receiver_address"] = sender.packed, receiver.packed
        command = REQUEST_TW_SESSION_COMMAND
        return REQUEST_TW_SESSION.pack(command=command, ip_version=sender.version, **fields)[:-16]

    @classmethod
    def unpack(cls, message: dict[str, Any]) -> TwoWayRequest:
        """Return the request of a message's fields. Raises Problem for an unknown version of IP."""
        version = message["ip_version"] & 15
        if version not in (4, 6):
            raise Problem("peer", f"a session for the unknown version {version} of IP")
        kind, octets = (IPv4Address, 4) if version == 4 else (IPv6Address, 16)
        ends = "sender_address", "receiver_address"
        addresses = {end: str(kind(message[end][:octets])) for end in ends}
        never = "conf_sender", "conf_receiver", "slot_count", "packet_count"
        fields = {**message, **addresses, "one_way": any(message[field] for field in never)}
        return cls(**{field: fields[field] for field in cls._fields})

    def refusal(self) -> Accept:
        """Return the answer to what this tool's server never does; OK if it may."""
        return Accept.UNSUPPORTED if self.one_way or self.dscp is None else Accept.OK


class TwampClient(ControlClient):
    """A control connection to a server of TWAMP."""

    _messages = TWAMP_MESSAGES

    def request_two_way(self, request: TwoWayRequest) -> bytes:
        """Return Request-TW-Session; only after the answer may the next one follow."""
        self._say("Request-Session")
        return self._write(request.pack())

    def stop_two_way(self, session_count: int, accept: int = Accept.OK) -> bytes:
        """Return Stop-Sessions for all sessions (RFC 5357, section 3.8)."""
        self._say("the client's Stop-Sessions")
        return self._write_message(
            STOP_TW_SESSIONS,
            command=STOP_SESSIONS_COMMAND,
            accept=accept,
            session_count=session_count,
        )


class TwampServer(ControlServer):
    """A control connection from a client of TWAMP; nothing answers `Stopped`."""

    _messages = TWAMP_MESSAGES

    def _readers(self) -> dict[int, Callable[[bytes], Reading]]:
        return {
            REQUEST_TW_SESSION_COMMAND: self._read_two_way,
            START_SESSIONS_COMMAND: self._read_start_sessions,
            STOP_SESSIONS_COMMAND: self._read_two_way_stop,
        }

    def _read_two_way(self, head: bytes) -> Reading:
        self._heard("Request-Session")
        yield SessionRequested(
            TwoWayRequest.unpack((yield from self._read_message(REQUEST_TW_SESSION, head)))
        )

    def _read_two_way_stop(self, head: bytes) -> Reading:
        self._following("the client's Stop-Sessions")
        fields = yield from self._read_message(STOP_TW_SESSIONS, head)
        self._heard("the client's Stop-Sessions")
        yield Stopped(fields["accept"], ())
