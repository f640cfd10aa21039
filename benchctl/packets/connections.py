"""The connections of a trace: which segments are whose.

A connection is known by its ends, until one of them opens another with the same ports.
"""

from __future__ import annotations

from collections.abc import Iterable

from benchctl.packets.frames import ACK, SYN, Segment, reverse
from benchctl.packets.tcp import Connection

MOST_REQUESTS = 100
"""Lines of requests that are kept of a connection."""
_METHODS = {b"GET ", b"POST", b"PUT ", b"HEAD", b"DELE", b"OPTI", b"PATC"}


def connections_of(segments: Iterable[Segment]) -> list[Connection]:
    """Return the connections, in the order of their first segments."""
    found: list[Connection] = []
    known: dict[bytes, tuple[Connection, int]] = {}
    for (
        time_s, ends, wire, seq, ack, flags, window, length, ident, data, options_at, body, stop
    ) in segments:  # fmt: skip
        place = known.get(ends)
        if place is None or (flags & (SYN | ACK) == SYN and place[0].is_another(place[1], seq)):
            connection = Connection(ends, time_s)
            found.append(connection)
            place = known[ends] = connection, 0
            known[reverse(ends)] = connection, 1
        connection, way = place
        connection.feed(
            time_s, way, wire, seq, ack, flags, window, length, ident,
            data[options_at : body if body < stop else stop],
        )  # fmt: skip
        if length and data[body : body + 4] in _METHODS and stop > body:
            _request(connection, data[body : min(body + length, stop)])
    for connection in found:
        connection.finish()
    return found


def _request(connection: Connection, data: bytes) -> None:
    """Keep the request line that HTTP/1 data begin with, as far as it was captured."""
    line, _, _ = data.partition(b"\r\n")
    words = line.split(b" ")
    whole = len(line) < len(data)
    if len(words) < 2 or (whole and not words[-1].startswith(b"HTTP/")):
        return
    if len(connection.requests) < MOST_REQUESTS:
        connection.requests.append(line.decode(errors="backslashreplace") + "…" * (not whole))
