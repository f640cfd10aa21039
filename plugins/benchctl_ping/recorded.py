"""Reads what ping printed into a file, for ``benchctl import``: one measurement for each ping.

Its own parser reads it. How many probes there were, and how often, is in the statistics; when it
was is known only with ``-D``.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from benchctl.api import (
    Direction,
    Event,
    Failure,
    FailureKind,
    ParserError,
    Recording,
    Started,
    write_size,
)
from benchctl_ping.parser import PingParser

_BEGIN = re.compile(r"^PING (?P<target>[^\s(]{1,255}) .*\bbytes\b", re.MULTILINE)
_LENGTH = re.compile(r"(?P<bsd>: )?(?P<length>\d{1,5})(?:\(\d{1,5}\))?(?: data)? bytes")
_SENT = re.compile(r"^(\d{1,9}) packets transmitted.*?(?:time (\d{1,12})ms)?$", re.MULTILINE)
# The default of every ping.
_INTERVAL_S = 1.0
# The lengths that the backend can ask for.
_LENGTHS = range(16, 65508)


def recorded(data: bytes, most_probes: int) -> Sequence[Recording] | None:
    """Return the pings in a file; None if there is none. Raises ParserError."""
    text = data.decode("utf-8", "replace")
    begins = [match.start() for match in _BEGIN.finditer(text)]
    if not begins:
        return None
    ends = [*begins[1:], len(text)]
    return [
        _recording(text[begin:end], most_probes) for begin, end in zip(begins, ends, strict=True)
    ]


def _recording(text: str, most_probes: int) -> Recording:
    begin = _BEGIN.match(text)
    assert begin is not None
    statistics = _SENT.search(text)
    count, interval_s = text.count("\n"), _INTERVAL_S
    if statistics is not None:
        count = int(statistics[1])
        if statistics[2] and count > 1:
            interval_s = int(statistics[2]) / 1e3 / (count - 1)
    if count > most_probes:
        raise ParserError(f"{count} probes are more than {most_probes}")
    header = begin[0]
    size = _LENGTH.search(header, begin.end("target"))
    # iputils counts its probes from 1, the others from 0.
    parser = PingParser(count, interval_s, first_seq=0 if size and size["bsd"] else 1)
    events = [*_events(parser, text, complete=statistics is not None)]
    started = next((event.epoch_s for event in events if isinstance(event, Started)), None)
    length = int(size["length"]) if size else 0
    return Recording(
        events,
        Direction.ROUND_TRIP,
        {"length": write_size(length)} if length in _LENGTHS else {},
        target=begin["target"],
        started_time=started,
    )


def _events(parser: PingParser, text: str, *, complete: bool) -> Iterator[Event]:
    yield from parser.feed(text.encode())
    if complete:
        yield from parser.close(0)
    else:
        yield Failure(FailureKind.TOOL, "the file ends before ping's statistics")
