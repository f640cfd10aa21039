"""The connections of a trace: which segments are whose.

A connection is known by its ends, until one of them opens another with the same ports.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable

from benchctl.packets.tcp import Connection
from benchctl.packets.wire.frames import ACK, SYN, Segment, reverse

MOST_CONNECTIONS = 200_000
"""Connections of a trace, which bounds memory: in a flood of SYNs, each packet is another."""
MOST_REQUESTS = 100
"""Lines of requests that are kept of a connection."""
MOST_REQUESTS_IN_ALL = 10_000
LONGEST_REQUEST = 2048
"""Bytes of a line that are kept."""
_METHODS = {b"GET ", b"POST", b"PUT ", b"HEAD", b"DELE", b"OPTI", b"PATC"}
_INITIALS = {method[0] for method in _METHODS}


ConnectionWatch = Callable[[int, Connection], None]
"""Called with each connection as it begins, and its number from 1 on: to set a half's ``seen``."""


def connections_of(
    segments: Iterable[Segment],
    watch: ConnectionWatch | None = None,
    unread: Counter[str] | None = None,
) -> list[Connection]:
    """Return the connections, in the order of their first segments.

    ``unread`` counts the segments of those beyond `MOST_CONNECTIONS`.
    """
    found: list[Connection] = []
    requests = 0
    known: dict[bytes, tuple[Connection, int]] = {}
    for (
        time_s, ends, wire, seq, ack, flags, window, length, ident, data, options_at, body, stop
    ) in segments:  # fmt: skip
        place = known.get(ends)
        if place is None or (flags & (SYN | ACK) == SYN and place[0].is_another(place[1], seq)):
            if len(found) >= MOST_CONNECTIONS:
                known.pop(ends, None)
                known.pop(reverse(ends), None)
                if unread is not None:
                    unread[f"TCP beyond {MOST_CONNECTIONS:,} connections"] += 1
                continue
            connection = Connection(ends, time_s)
            found.append(connection)
            if watch is not None:
                watch(len(found), connection)
            place = known[ends] = connection, 0
            known[reverse(ends)] = connection, 1
        connection, direction = place
        connection.feed(
            time_s, direction, wire, seq, ack, flags, window, length, ident,
            data[options_at : body if body < stop else stop], body > stop,
        )  # fmt: skip
        if length and stop > body and data[body] in _INITIALS and requests < MOST_REQUESTS_IN_ALL:
            kept = min(length, LONGEST_REQUEST, stop - body)
            requests += _request(connection, data[body : body + kept])
    for connection in found:
        connection.finish()
    return found


def _request(connection: Connection, data: bytes) -> bool:
    """Keep the request line that HTTP/1 data begin with, as far as it was captured.

    Returns whether there is one more.
    """
    if data[:4] not in _METHODS:
        return False
    line, _, _ = data.partition(b"\r\n")
    words = line.split(b" ")
    whole = len(line) < len(data)
    if len(words) < 2 or (whole and not words[-1].startswith(b"HTTP/")):
        return False
    if len(connection.requests) >= MOST_REQUESTS:
        return False
    connection.requests.append(line.decode(errors="backslashreplace") + "…" * (not whole))
    return True
