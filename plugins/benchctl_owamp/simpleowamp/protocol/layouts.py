"""The messages and packets of OWAMP, TWAMP and STAMP as tables, beside the RFC sections of each.

A table both writes and reads its bytes. Fields that must be zero (MBZ) are written as zeros and
ignored when read, as the RFCs ask. Lengths are octets.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from struct import Struct
from typing import Any

# The kinds of fields, as `struct` writes them in network order.
U8, U16, U32, U64 = "B", "H", "I", "Q"
BLOCK = "16s"


def octets(count: int) -> str:
    """Return the kind of a field of so many octets."""
    return f"{count}s"


def zeros(count: int) -> tuple[str, str]:
    """Return the row of octets that must be zero, or that have no meaning."""
    return "", f"{count}x"


class Layout:
    """One message: its name, where it is defined, and its rows of (field, kind)."""

    def __init__(self, name: str, section: str, *rows: tuple[str, str]) -> None:
        self.name = name
        self.section = section
        self.rows = rows
        self._struct = Struct("!" + "".join(kind for _, kind in rows))
        self.fields = tuple(field for field, _ in rows if field)
        self._absent = {field: b"" if kind[-1] == "s" else 0 for field, kind in rows if field}
        self.size = self._struct.size

    def __repr__(self) -> str:
        return f"<{self.name}, {self.size} octets, {self.section}>"

    def pack(self, **values: Any) -> bytes:
        """Return the message; fields that are not given are zero.

        Raises KeyError for a field that the layout hasn't, struct.error for a value out of range.
        """
        if unknown := values.keys() - self._absent.keys():
            raise KeyError(f"{self.name} has no {', '.join(sorted(unknown))}")
        return self._struct.pack(*{**self._absent, **values}.values())

    def unpack(self, data: bytes, offset: int = 0) -> dict[str, Any]:
        """Return the fields of the message that begins at an offset.

        Raises struct.error if the data ends before the message does.
        """
        return dict(zip(self.fields, self._struct.unpack_from(data, offset)))

    def pack_row(self, values: Iterable[Any]) -> bytes:
        """Return the message of values in the order of its fields."""
        return self._struct.pack(*values)

    def unpack_rows(self, data: bytes) -> Iterator[tuple[Any, ...]]:
        """Yield the values of each of some messages that follow each other, in order.

        Raises struct.error if the data ends within a message.
        """
        return self._struct.iter_unpack(data)


KEY_ID_BYTES = 80

_RFC = "RFC 4656, section "

GREETING = Layout(
    "Server Greeting", _RFC + "3.1",
    zeros(12),
    ("modes", U32),
    ("challenge", BLOCK),
    ("salt", BLOCK),
    ("count", U32),
    zeros(12),
)  # fmt: skip
SET_UP_RESPONSE = Layout(
    "Set-Up-Response", _RFC + "3.1",
    ("mode", U32),
    ("key_id", octets(KEY_ID_BYTES)),
    ("token", octets(64)),
    ("client_iv", BLOCK),
)  # fmt: skip
SERVER_START = Layout(
    "Server-Start", _RFC + "3.1",
    zeros(15),
    ("accept", U8),
    ("server_iv", BLOCK),
    ("start_time", U64),
    zeros(8),
)  # fmt: skip
REQUEST_SESSION = Layout(
    "Request-Session", _RFC + "3.5",
    ("command", U8),
    ("ip_version", U8),  # the upper four bits must be zero
    ("conf_sender", U8),
    ("conf_receiver", U8),
    ("slot_count", U32),
    ("packet_count", U32),
    ("sender_port", U16),
    ("receiver_port", U16),
    ("sender_address", BLOCK),  # IPv4: the first four octets
    ("receiver_address", BLOCK),
    ("sid", BLOCK),
    ("padding_bytes", U32),
    ("start_time", U64),
    ("timeout", U64),
    ("type_p", U32),
    zeros(8),
    ("hmac", BLOCK),
)  # fmt: skip
SLOT = Layout(
    "Schedule Slot Description", _RFC + "3.5",
    ("slot_type", U8),
    zeros(7),
    ("parameter", U64),
)  # fmt: skip
HMAC = Layout("HMAC", _RFC + "3.2", ("hmac", BLOCK))
ACCEPT_SESSION = Layout(
    "Accept-Session", _RFC + "3.5",
    ("accept", U8),
    zeros(1),
    ("port", U16),
    ("sid", BLOCK),
    zeros(12),
    ("hmac", BLOCK),
)  # fmt: skip
START_SESSIONS = Layout(
    "Start-Sessions", _RFC + "3.7",
    ("command", U8),
    zeros(15),
    ("hmac", BLOCK),
)  # fmt: skip
START_ACK = Layout(
    "Start-Ack", _RFC + "3.7",
    ("accept", U8),
    zeros(15),
    ("hmac", BLOCK),
)  # fmt: skip
STOP_SESSIONS = Layout(
    "Stop-Sessions", _RFC + "3.8",
    ("command", U8),
    ("accept", U8),
    zeros(2),
    ("session_count", U32),
    zeros(8),
)  # fmt: skip
SESSION_DESCRIPTION = Layout(
    "Session Description Record", _RFC + "3.8",
    ("sid", BLOCK),
    ("next_seq", U32),
    ("skip_count", U32),
)  # fmt: skip
SKIP_RANGE = Layout(
    "Skip Range", _RFC + "3.8",
    ("first_seq", U32),
    ("last_seq", U32),
)  # fmt: skip
FETCH_SESSION = Layout(
    "Fetch-Session", _RFC + "3.9",
    ("command", U8),
    zeros(7),
    ("begin_seq", U32),
    ("end_seq", U32),
    ("sid", BLOCK),
    ("hmac", BLOCK),
)  # fmt: skip
FETCH_ACK = Layout(
    "Fetch-Ack", _RFC + "3.9",
    ("accept", U8),
    ("finished", U8),
    zeros(2),
    ("next_seq", U32),
    ("skip_count", U32),
    ("record_count", U32),
    ("hmac", BLOCK),
)  # fmt: skip
RECORD = Layout(
    "Packet Record", _RFC + "3.9",
    ("seq", U32),
    ("send_error", U16),
    ("receive_error", U16),
    ("send_time", U64),
    ("receive_time", U64),
    ("ttl", U8),
)  # fmt: skip
TEST = Layout(
    "OWAMP-Test, unauthenticated", _RFC + "4.1.2",
    ("seq", U32),
    ("time", U64),
    ("error", U16),
)  # fmt: skip
TEST_SECURE = Layout(
    "OWAMP-Test, authenticated and encrypted", _RFC + "4.1.2",
    ("seq", U32),
    zeros(12),
    ("time", U64),
    ("error", U16),
    zeros(6),
    ("hmac", BLOCK),
)  # fmt: skip

REQUEST_TW_SESSION = Layout(
    "Request-TW-Session", "RFC 5357, section 3.5",
    ("command", U8),
    ("ip_version", U8),  # the upper four bits must be zero
    ("conf_sender", U8),  # this and the next three must be 0
    ("conf_receiver", U8),
    ("slot_count", U32),
    ("packet_count", U32),
    ("sender_port", U16),
    ("receiver_port", U16),
    ("sender_address", BLOCK),  # zero: that of the control connection
    ("receiver_address", BLOCK),
    ("sid", BLOCK),
    ("padding_bytes", U32),
    ("start_time", U64),
    ("timeout", U64),
    ("type_p", U32),
    zeros(8),
    ("hmac", BLOCK),
)  # fmt: skip
STOP_TW_SESSIONS = Layout(
    "Stop-Sessions of TWAMP", "RFC 5357, section 3.8",
    ("command", U8),
    ("accept", U8),
    zeros(2),
    ("session_count", U32),
    zeros(8),
    ("hmac", BLOCK),
)  # fmt: skip
REFLECTED = Layout(
    "TWAMP-Test answer, unauthenticated", "RFC 5357, section 4.2.1",
    ("seq", U32),
    ("time", U64),
    ("error", U16),
    zeros(2),
    ("received_time", U64),
    ("sender_seq", U32),
    ("sender_time", U64),
    ("sender_error", U16),
    zeros(2),
    ("sender_ttl", U8),
)  # fmt: skip
REFLECTED_SECURE = Layout(
    "TWAMP-Test answer, authenticated and encrypted", "RFC 5357, section 4.2.1",
    ("seq", U32),
    zeros(12),
    ("time", U64),
    ("error", U16),
    zeros(6),
    ("received_time", U64),
    zeros(8),
    ("sender_seq", U32),
    zeros(12),
    ("sender_time", U64),
    ("sender_error", U16),
    zeros(6),
    ("sender_ttl", U8),
    zeros(15),
    ("hmac", BLOCK),
)  # fmt: skip
STAMP = Layout(
    "STAMP-Test, unauthenticated", "RFC 8762, section 4.2.1",
    ("seq", U32),
    ("time", U64),
    ("error", U16),
    ("ssid", U16),  # RFC 8972, section 3; zero before
    zeros(28),
)  # fmt: skip
STAMP_SECURE = Layout(
    "STAMP-Test, authenticated", "RFC 8762, section 4.2.2",
    ("seq", U32),
    zeros(12),
    ("time", U64),
    ("error", U16),
    ("ssid", U16),
    zeros(68),
    ("hmac", BLOCK),
)  # fmt: skip
STAMP_REFLECTED = Layout(
    "STAMP-Test answer, unauthenticated", "RFC 8762, section 4.3.1",
    ("seq", U32),
    ("time", U64),
    ("error", U16),
    ("ssid", U16),
    ("received_time", U64),
    ("sender_seq", U32),
    ("sender_time", U64),
    ("sender_error", U16),
    zeros(2),
    ("sender_ttl", U8),
    zeros(3),
)  # fmt: skip
STAMP_REFLECTED_SECURE = Layout(
    "STAMP-Test answer, authenticated", "RFC 8762, section 4.3.2",
    ("seq", U32),
    zeros(12),
    ("time", U64),
    ("error", U16),
    ("ssid", U16),
    zeros(4),
    ("received_time", U64),
    zeros(8),
    ("sender_seq", U32),
    zeros(12),
    ("sender_time", U64),
    ("sender_error", U16),
    zeros(6),
    ("sender_ttl", U8),
    zeros(15),
    ("hmac", BLOCK),
)  # fmt: skip
