"""Reads what an iperf 2 client printed into a file, for ``benchctl import``.

Its own parser reads it. A file says what was connected to what, and how much arrived; of the
options it has those that change a line of the settings.
"""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Any

from benchctl.api import (
    Direction,
    Flow,
    ParserError,
    Recording,
    Tool,
    write_rate,
    write_size,
)
from benchctl_iperf2.client import ClientReport
from benchctl_iperf2.parameters import Iperf2Parameters
from benchctl_iperf2.report import SUMS
from benchctl_iperf2.rows import read_row

_CLIENT = re.compile(r"^Client connecting to (\S{1,255}), (TCP|UDP) port (\d{1,5})\b", re.MULTILINE)
_SERVER = re.compile(r"^Server listening on (?:TCP|UDP) port \d", re.MULTILINE)
_CONNECTED = re.compile(
    r"^\[([^\]\n]{1,80})\] local (\S{1,200}) port \d{1,5} connected with \S{1,200} port \d+(.*)$",
    re.MULTILINE,
)
_GAP = re.compile(
    r"^Sending (\d{1,5}) byte datagrams, IPG target: (\d{1,12}\.\d{1,4}) us", re.MULTILINE
)
_STARTED = re.compile(r" on (\d{4}-\d\d-\d\d \d\d:\d\d:\d\d) \((?:UTC|GMT)\)")
_MOST_STREAMS = 128
_PARSED = ("protocol", "streams", "length", "trip_times")
_WINDOW = re.compile(
    r"^(?:TCP window|UDP buffer) size: .*requested +(\d{1,12}(?:\.\d{1,6})?) ([KMG]?)Byte",
    re.MULTILINE,
)
_SCALE = {"": 1, "K": 2**10, "M": 2**20, "G": 2**30}


def recorded(data: bytes) -> Sequence[Recording] | None:
    """Return the measurements in a file; None if iperf 2 did not write it. Raises ParserError."""
    text = data.decode("utf-8", "replace").replace("\r\n", "\n")
    begins = [match.start() for match in _CLIENT.finditer(text)]
    if not begins:
        if _SERVER.search(text) and "/sec" in text:
            raise ParserError("a server's output does not tell its clients apart; import theirs")
        return None
    ends = [*begins[1:], len(text)]
    return [_recording(text[begin:end]) for begin, end in zip(begins, ends, strict=True)]


def _recording(text: str) -> Recording:
    client = _CLIENT.match(text)
    assert client is not None
    connected = _CONNECTED.findall(text)
    tags = connected[0][2] if connected else ""
    direction = _direction(tags)
    streams = max(1, len({label for label, _, _ in connected if "*" not in label}))
    if streams > _MOST_STREAMS:
        raise ParserError(f"{streams} streams are more than {_MOST_STREAMS}")
    protocol = client[2].lower()
    asked: dict[str, Any] = {"protocol": protocol, "streams": streams}
    if gap := _GAP.search(text):
        length = int(gap[1])
        asked["length"] = write_size(length)
        if float(gap[2]) > 0:
            asked["rate"] = write_rate(float(round(length * 8e6 / float(gap[2]))))
    if window := _WINDOW.search(text):
        asked["window"] = write_size(float(window[1]) * _SCALE[window[2]])
    if "(trip-times)" in tags:
        asked["trip_times"] = True
    # The parser needs no duration, which a file does not have.
    known = {"bytes": f"{streams}B", **{name: asked[name] for name in _PARSED if name in asked}}
    try:
        params = Iperf2Parameters.model_validate(known)
        started = _STARTED.search(tags)
        began = datetime.fromisoformat(started[1]).replace(tzinfo=UTC) if started else None
    except ValueError:
        raise ParserError("settings or a time that iperf cannot have") from None
    flow = Flow(params, direction, client[1], int(client[3]), Tool("unknown"))
    parser = ClientReport(flow, _interval_s(text))
    events = [*parser.feed(text.encode()), *parser.close(0)]
    if dscp := parser.settings.get("dscp"):
        asked["dscp"] = dscp
    return Recording(
        events,
        direction,
        asked,
        connected[0][1].partition("%")[0] if connected else "",
        client[1],
        int(client[3]) if 0 < int(client[3]) < 65536 else None,
        began.timestamp() if began else None,
    )


def _direction(tags: str) -> Direction:
    if "(full-duplex)" in tags:
        return Direction.BOTH
    return Direction.RECEIVE if "(reverse)" in tags else Direction.SEND


def _interval_s(text: str) -> float | None:
    """Return the length of the intervals: of the first, if another one begins at its end."""
    ends: dict[str, float] = {}
    for line in text.splitlines():
        row = read_row(line)
        if row is None or row.label.startswith(SUMS):
            continue
        first_s = ends.setdefault(row.label, row.end_s)
        if row.start_s > 0 and math.isclose(row.start_s, first_s, abs_tol=0.006):
            return first_s
    return None
