"""Reads what owping printed into a file, for ``benchctl import``: its text, ``-M`` or ``-R``.

The text has one section for each direction, the one to the server first; with ``-v`` its header
stands twice, before the packets and before the figures. Its figures have three digits, and its
times neither a zone nor a date line: they are taken as those of this machine.
"""

from __future__ import annotations

import re
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from benchctl.api import (
    Direction,
    Event,
    Failure,
    FailureKind,
    ParserError,
    Recording,
    Started,
    Summary,
    Warn,
)
from benchctl_owping.complaints import nothing_arrived, nothing_sent
from benchctl_owping.figures import spread
from benchctl_owping.machine import MachineParser
from benchctl_owping.raw import PACKET, UNIX_EPOCH_S, RawParser

_HEADER = re.compile(
    r"^--- owping statistics from \[(?P<source>[^\]]{0,255})\]:\d{1,5}"
    r" to \[(?P<target>[^\]]{0,255})\]:(?P<port>\d{1,5}) ---$",
    re.MULTILINE,
)
_SUMMARY = re.compile(r"^SUMMARY\t", re.MULTILINE)
_KEY = re.compile(r"^(?P<key>[A-Z_]{1,32})\t(?P<value>[^\t\n]{0,300})$", re.MULTILINE)
_N = r"-?\d{1,12}(?:\.\d{1,12})?(?:e[+-]?\d{1,2})?|-?nan"
_SID = re.compile(r"^SID:\t([0-9a-f]{32})$", re.MULTILINE)
_FIRST = re.compile(r"^first:\t(\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d)\.(\d{1,4})$", re.MULTILINE)
_PACKETS = re.compile(
    r"^(\d{1,10}) sent, (\d{1,10}) lost \(.*\), (\d{1,10}) duplicates$", re.MULTILINE
)
_DELAY = re.compile(
    rf"^one-way delay min/median/max = ({_N})/({_N})/({_N}) (\w\w?), "
    rf"\((?:unsync|err=({_N}) (\w\w?))\)$",
    re.MULTILINE,
)
_JITTER = re.compile(rf"^one-way jitter = ({_N}) (\w\w?) \(P95-P50\)$", re.MULTILINE)
# If the hops vary, only the fewest and the most are printed: that is no distribution.
_HOPS = re.compile(r"^hops = (\d{1,3}) \(consistently\)$", re.MULTILINE)
_REORDERED = re.compile(r"^(?:(no) |1-)reordering(?: = (\d{1,3}(?:\.\d{1,9})?)%)?$", re.MULTILINE)
_UNITS = {"s": 1.0, "ms": 1e-3, "us": 1e-6, "ns": 1e-9}
_NTP_SECOND = 2**32


@dataclass(frozen=True, slots=True)
class _Session:
    """The section of one session, in whichever form."""

    source: str
    target: str
    port: int | None
    started_time: float | None
    events: Sequence[Event] = field(default_factory=list)


def recorded(data: bytes, most_packets: int) -> Sequence[Recording] | None:
    """Return the measurements in a file; None if owping did not write it. Raises ParserError."""
    text = data.decode("utf-8", "replace").replace("\r\n", "\n")
    if _HEADER.search(text):
        return [*_pairs([*_sections(text)])]
    if _SUMMARY.search(text) and "SESSION_PACKET_COUNT\t" in text:
        return [_machine(text, most_packets)]
    if any(PACKET.fullmatch(line) for line in text.split("\n", 3)[:3]):
        return [_raw(text, most_packets)]
    return None


def _pairs(sessions: Sequence[_Session]) -> Iterator[Recording]:
    """Yield a measurement for each session, or for two of which one is the way back."""
    waiting = [*sessions]
    while waiting:
        session = waiting.pop(0)
        back = waiting[0] if waiting else None
        if back is not None and (back.source, back.target) == (session.target, session.source):
            waiting.pop(0)
            events = [*session.events, *_of_direction(back.events, Direction.RECEIVE)]
            direction = Direction.BOTH
        else:
            events, direction = [*session.events], Direction.SEND
        if any(isinstance(event, Summary) and "owd_s" in event.metrics for event in events):
            events.append(Warn("owping's text has no mean delay: the median stands for it"))
        yield Recording(
            events,
            direction,
            {},
            session.source,
            session.target,
            session.port,
            session.started_time,
        )


def _of_direction(events: Sequence[Event], direction: Direction) -> Iterator[Event]:
    for event in events:
        yield Summary(event.metrics, direction) if isinstance(event, Summary) else event


def _sections(text: str) -> Iterator[_Session]:
    """Yield the sections of the text, each session once."""
    headers = [*_HEADER.finditer(text)]
    ends = [*(header.start() for header in headers[1:]), len(text)]
    found: dict[object, _Session] = {}
    for number, (header, end) in enumerate(zip(headers, ends, strict=True)):
        part = text[header.end() : end]
        sid = _SID.search(part)
        found[sid[1] if sid else number] = _Session(
            header["source"], header["target"], int(header["port"]) or None, _first(part),
            [*_text_events(part)],
        )  # fmt: skip
    yield from found.values()


def _first(part: str) -> float | None:
    match = _FIRST.search(part)
    if match is None:
        return None
    try:
        second = time.mktime(time.strptime(match[1], "%Y-%m-%dT%H:%M:%S"))
    except (ValueError, OverflowError):
        raise ParserError(f"no time: {match[1]}") from None
    return second + int(match[2]) / 1e3  # owping prints .1000 where it rounds up


def _text_events(part: str) -> Iterator[Event]:
    """Yield the events of a section, as of a session that sends."""
    packets, delay = _PACKETS.search(part), _DELAY.search(part)
    if packets is None:
        yield Failure(FailureKind.TOOL, "the file ends before owping's figures")
        return
    sent, lost, twice = (int(packets[n]) for n in (1, 2, 3))
    if not sent:
        yield nothing_sent(Direction.SEND)
        return
    if lost > sent:
        raise ParserError(f"{lost} of {sent} packets lost")
    metrics: dict[str, float | Mapping[str, float]] = {
        "packets_sent": float(sent),
        "packets_received": float(sent - lost),
        "packets_lost": float(lost),
        "packets_duplicated": float(twice),
        "loss_ratio": lost / sent,
    }
    if delay is not None and sent > lost:
        unit = _unit(delay[4])
        names = zip(("min", "median", "max"), (delay[1], delay[2], delay[3]), strict=True)
        delays = {name: float(value) * unit for name, value in names if "nan" not in value}
        if "median" in delays:
            metrics["owd_s"] = delays
        metrics["clock_synchronized"] = float(delay[5] is not None)
        if delay[5] is not None:
            metrics["owd_error_s"] = float(delay[5]) * _unit(delay[6])
    if (jitter := _JITTER.search(part)) and "nan" not in jitter[1]:
        metrics["pdv_p95_p50_s"] = float(jitter[1]) * _unit(jitter[2])
    if hops := _HOPS.search(part):
        metrics["hops"] = spread({float(hops[1]): 1})
    if reordered := _REORDERED.search(part):
        if reordered[1]:
            metrics |= {"packets_reordered": 0.0, "packets_1_reordered": 0.0}
        elif reordered[2]:
            share = float(reordered[2]) / 100
            metrics["packets_1_reordered"] = float(round(share * (sent - lost)))
    yield Summary(metrics, Direction.SEND)
    if sent == lost:
        yield nothing_arrived(Direction.SEND, sent)


def _unit(name: str) -> float:
    if name not in _UNITS:
        raise ParserError(f"an unknown unit: {name}")
    return _UNITS[name]


def _machine(text: str, most_packets: int) -> Recording:
    """Return the measurement of the summaries that ``-M`` prints."""
    begins = [match.start() for match in _SUMMARY.finditer(text)]
    keys = [
        {match["key"]: match["value"] for match in _KEY.finditer(text, begin, end)}
        for begin, end in zip(begins, [*begins[1:], len(text)], strict=True)
    ]
    if len(keys) > 2:
        raise ParserError("the summaries of more than one measurement; one file for each")
    first = keys[0]
    directions = (Direction.SEND, Direction.RECEIVE)[: len(keys)]
    parser = MachineParser(_count(first.get("SESSION_PACKET_COUNT", ""), most_packets), directions)
    events = [*parser.feed(text.encode()), *parser.close(0)]
    return Recording(
        events,
        Direction.BOTH if len(keys) > 1 else Direction.SEND,
        {},
        first.get("FROM_HOST", ""),
        first.get("TO_HOST", ""),
        started_time=_ntp(first.get("START_TIME", "")),
    )


def _raw(text: str, most_packets: int) -> Recording:
    """Return the measurement of the packets that ``-R`` prints, of one direction."""
    last = max(int(line.partition(" ")[0]) for line in text.split("\n") if PACKET.fullmatch(line))
    parser = RawParser(_count(str(last + 1), most_packets), Direction.SEND)
    events = [*parser.feed(text.encode()), *parser.close(0)]
    started = next((event.epoch_s for event in events if isinstance(event, Started)), None)
    return Recording(events, Direction.SEND, started_time=started)


def _ntp(text: str) -> float | None:
    return int(text) / _NTP_SECOND - UNIX_EPOCH_S if text.isdecimal() and len(text) <= 20 else None


def _count(text: str, most_packets: int) -> int:
    if not text.isdecimal() or len(text) > 10 or not 0 < int(text) <= most_packets:
        raise ParserError(f"{text} packets; at most {most_packets} can be read")
    return int(text)
