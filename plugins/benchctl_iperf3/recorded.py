"""Reads what iperf3 wrote with ``-J`` or ``--json-stream`` to a file, for ``benchctl import``.

A classic report is the same events as a stream's, so `JsonStream` reads both. What a report says of
its own settings becomes the parameters of the flow; an error in it is a failure, whatever iperf3's
exit code was.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

from pydantic import ValidationError

from benchctl.api import (
    Direction,
    Event,
    Flow,
    ParserError,
    Recording,
    Role,
    Warn,
    write_duration,
    write_rate,
    write_size,
)
from benchctl_iperf3.documents import Document, documents, without_nan
from benchctl_iperf3.parameters import LEAST_INTERVAL_S, TCP_BLOCK_BYTES, Iperf3Parameters
from benchctl_iperf3.stream import JsonStream
from benchctl_iperf3.values import JsonObject, as_object, number, objects, string
from benchctl_iperf3.version import tool_of

_STREAM = re.compile(rb'\s*\{\s*"event"\s*:\s*"(?:start|error)"')
_LONGEST_INTERVAL_S = 60.0
# The words of a foreign line that a note repeats.
_QUOTED = 120


@dataclass(slots=True)
class _Report:
    """One report: its parts as ``-J`` names them."""

    start: JsonObject = field(default_factory=dict)
    intervals: list[JsonObject] = field(default_factory=list)
    end: JsonObject = field(default_factory=dict)
    error: str = ""
    is_whole: bool = True
    copies: int = 1


def recorded(data: bytes) -> Sequence[Recording] | None:
    """Return the measurements in a file; None if iperf3 did not write it. Raises ParserError."""
    classic = b"{" in data and b'"start"' in data and b'"connected"' in data
    if not classic and not _STREAM.match(data):
        return None
    text, numbers = without_nan(data.decode("utf-8", "replace"))
    faults = []
    if numbers:
        faults.append(f"{numbers} values of the file are no numbers (nan, inf), and unknown")
    reports = []
    for report in _reports(text):
        if isinstance(report, str):
            faults.append(f"skipped text that is no JSON: {report[:_QUOTED]}")
        else:
            reports.append(report)
    # What is said of the whole file stands with its first measurement.
    return [
        _recording(report, () if number else faults)
        for number, report in enumerate(_each_once(reports))
    ]


def _reports(text: str) -> Iterator[_Report | str]:
    streamed: _Report | None = None
    for document in documents(text):
        if isinstance(document, str):
            yield document
            continue
        event = document.value.get("event")
        if event is None:
            yield _classic(document)
        elif event == "start" or streamed is None:
            if streamed is not None:
                yield streamed
            streamed = _Report(is_whole=False)
        if streamed is not None and event is not None:
            _take(streamed, document.value)
    if streamed is not None:
        yield streamed


def _classic(document: Document) -> _Report:
    value = document.value
    return _Report(
        as_object(value.get("start", {})),
        [*objects(value, "intervals")],
        as_object(value.get("end", {})) if document.is_whole else {},
        string(value, "error"),
        document.is_whole,
    )


def _take(report: _Report, document: JsonObject) -> None:
    match document["event"]:
        case "start":
            report.start = as_object(document.get("data"))
        case "interval":
            report.intervals.append(as_object(document.get("data")))
        case "error":
            report.error = report.error or string(document, "data")
        case "end":
            report.end = as_object(document.get("data"))
            report.is_whole = True


def _each_once(reports: Sequence[_Report]) -> list[_Report]:
    """Return reports without the copies of others; of two copies, the longer one."""
    found: dict[object, _Report] = {}
    for position, report in enumerate(reports):
        # The cookie is random for each test; one that never connected has none.
        key = string(report.start, "cookie") or position
        other = found.get(key)
        if other is not None:
            longer = len(report.intervals) >= len(other.intervals) and report.is_whole
            report, report.copies = (report if longer else other), other.copies + 1
        found[key] = report
    return [*found.values()]


def _recording(report: _Report, faults: Sequence[str]) -> Recording:
    start = report.start
    test = as_object(start.get("test_start", {}))
    is_server = "accepted_connection" in start
    role = Role.SERVER if is_server else Role.CLIENT
    direction = _direction(report, test)
    if is_server and direction is not Direction.SEND:
        raise ParserError("a server's report of what it sent has no result; import its client's")
    parameters = _parameters(report, test) if test else {}
    ends = _ends(start, is_server)
    tool = tool_of(string(start, "version"))
    given = {name: value for name, value in parameters.items() if value is not None}
    try:
        params = Iperf3Parameters.model_validate({**given, "interval": _interval(report)})
    except ValidationError as error:
        first = error.errors(include_url=False)[0]
        where = ".".join(map(str, first["loc"]))
        raise ParserError(f"settings that iperf3 cannot have: {where}: {first['msg']}") from None
    flow = Flow(params, direction, ends["target"], ends["port"], tool)
    parser = JsonStream(flow, role)
    if report.error:
        parser.fail(report.error)
    elif not report.is_whole:
        parser.fail(f"the file ends too early, after {len(report.intervals)} intervals")
    if report.copies > 1:
        faults = [*faults, f"the file has this report {report.copies} times"]
    if is_server:
        faults = [*faults, "the server's report: the sender's own figures are unknown"]
    return Recording(
        [*map(Warn, faults), *_events(parser, report)],
        direction,
        parameters,
        ends["source"],
        ends["target"],
        ends["port"],
        _started(start),
        {**_facts(start), "iperf3": tool.version},
    )


def _events(parser: JsonStream, report: _Report) -> Iterator[Event]:
    if "test_start" in report.start:
        yield from parser.take({"event": "start", "data": report.start})
    for interval in report.intervals:
        yield from parser.take({"event": "interval", "data": interval})
    if report.end:
        yield from parser.take({"event": "end", "data": report.end})
    yield from parser.close(0)


def _direction(report: _Report, test: JsonObject) -> Direction:
    # Before 3.17 only the figures show that both directions were measured.
    both = test.get("bidir") or "sum_sent_bidir_reverse" in report.end
    if both or any("sum_bidir_reverse" in interval for interval in report.intervals[:1]):
        return Direction.BOTH
    return Direction.RECEIVE if test.get("reverse") else Direction.SEND


def _parameters(report: _Report, test: JsonObject) -> dict[str, Any]:
    """Return what was asked for, as a profile writes it; None if only a whole report has it."""
    protocol = string(test, "protocol").lower()
    length, amount = number(test, "blksize") or 0.0, number(test, "bytes") or 0.0
    amount = amount or (number(test, "blocks") or 0.0) * length
    asked: dict[str, Any] = {"protocol": protocol}
    if amount:
        asked["bytes"] = write_size(amount)
    elif seconds := number(test, "duration"):
        asked["duration"] = write_duration(seconds)
    if omit := number(test, "omit"):
        asked["omit"] = write_duration(omit)
    asked["streams"] = int(number(test, "num_streams") or 1)
    rate = number(test, "target_bitrate")
    if rate or (rate is not None and protocol == "udp"):
        asked["rate"] = write_rate(rate or math.inf)
    if length and (protocol != "tcp" or length != TCP_BLOCK_BYTES):
        asked["length"] = write_size(length)
    if window := number(report.start, "sock_bufsize"):
        asked["window"] = write_size(window)
    if mss := number(report.start, "tcp_mss"):
        asked["mss"] = write_size(mss)
    if protocol == "tcp":
        asked["congestion_control"] = string(report.end, "sender_tcp_congestion") or None
    if dscp := int(number(test, "tos") or 0) >> 2:
        asked["dscp"] = dscp
    return asked


def _interval(report: _Report) -> str:
    """Return the length of most intervals, which only new versions report."""
    lengths = [
        (number(row, "end") or 0.0) - (number(row, "start") or 0.0)
        for interval in report.intervals[:3]
        for row in objects(interval, "streams")
    ]
    longest_s = min(max([*lengths, LEAST_INTERVAL_S]), _LONGEST_INTERVAL_S)
    return write_duration(round(longest_s, 1))


def _ends(start: JsonObject, is_server: bool) -> dict[str, Any]:
    connected = next(iter(objects(start, "connected")), {})
    # A name stays while addresses change.
    here = _facts(start).get("hostname") or string(connected, "local_host")
    if is_server:
        source = string(as_object(start["accepted_connection"]), "host")
        return {"source": source, "target": here, "port": _port(connected, "local_port")}
    to = as_object(start.get("connecting_to", {}))
    return {"source": here, "target": string(to, "host"), "port": _port(to, "port")}


def _port(row: JsonObject, name: str) -> int | None:
    port = number(row, name)
    return int(port) if port is not None and 0 < port < 65536 else None


def _started(start: JsonObject) -> float | None:
    times = as_object(start.get("timestamp", {}))
    milliseconds = number(times, "timemillisecs")
    return milliseconds / 1e3 if milliseconds else number(times, "timesecs")


def _facts(start: JsonObject) -> dict[str, str]:
    """Return what the report says of its host: the words of ``uname -a``, in part."""
    words = string(start, "system_info").split()
    names = dict(zip(("system", "hostname", "kernel"), words, strict=False))
    return {**names, "machine": words[-1]} if len(words) > 3 else names
