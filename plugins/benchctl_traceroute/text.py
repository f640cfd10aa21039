"""Reads what traceroute prints for people, of Linux and of the BSD family (FreeBSD, macOS).

Both print a line for each hop: its number, then for each probe an address (if it is another one
than before), a round-trip time, and a mark such as ``!H`` if the answer is an error, or a star if
there is none. BSD begins a line without a number for another address, and has its header on stderr.

Linux must send one probe at a time (``-N 1``). Where several are on their way, it puts an answer to
a later probe in the place of one without an answer (check_expired in traceroute.c), and a loss at
the destination is not to be seen.

No time of sending is printed. A probe is due when the one before has its answer or has waited in
vain, and at the earliest ``pace_s`` after it.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import pairwise

from benchctl.api import Channel, Effective, Event, LineParser, ParserError
from benchctl_traceroute.causes import failure_of, remember
from benchctl_traceroute.trace import Trace

_HEADER = re.compile(
    r"traceroute6? to .{1,300}? \((?P<address>[0-9A-Fa-f:.%\w]{1,64})\)(?: from \S{1,80})?,"
    r" (?P<hops>\d{1,3}) hops max(?:, (?P<length>\d{1,6}) byte packets)?"
)
_HOP = re.compile(r" {0,2}(\d{1,3}) (.*)")
_TIME = re.compile(r"\d{1,9}(?:\.\d{1,6})?")
# FreeBSD's word on stdout about a probe that the kernel refused; stderr says why.
_REFUSED = re.compile(r"traceroute6?: wrote .{1,300}? chars, ret=-?\d{1,9}")
_MARKS = {
    "!N": "network unreachable", "!H": "host unreachable", "!P": "protocol unreachable",
    "!S": "source route failed", "!U": "network unknown", "!W": "host unknown",
    "!I": "source host isolated", "!A": "network prohibited", "!Z": "host prohibited",
    "!Q": "network unreachable for this type of service",
    "!T": "host unreachable for this type of service", "!X": "administratively prohibited",
    "!V": "host precedence violation", "!C": "precedence cutoff",
}  # fmt: skip


@dataclass(slots=True)
class _Reply:
    """What a line says of one probe; nobody answered if there is no address."""

    address: str = ""
    rtt_s: float = 0.0
    error: str = ""


class TextParser(LineParser):
    """Parses one traceroute to a host, of ``count`` probes to each of at most ``most_hops``."""

    # Ten probes with addresses and names; it bounds the text that a pattern may search.
    max_line = 65536

    def __init__(
        self, host: str, count: int, most_hops: int, pace_s: float, timeout_s: float
    ) -> None:
        super().__init__()
        self._trace = Trace(host, count * most_hops)
        self._count = count
        self._most_hops = most_hops
        self._pace_s = pace_s
        self._timeout_s = timeout_s
        self._hop = self._round = 0
        self._address = ""
        self._due_s = 0.0
        self._complaints: list[str] = []

    def line(self, text: str, channel: Channel) -> Iterable[Event]:
        if match := _HEADER.match(text):
            return self._header(match)
        if channel is Channel.STDERR:
            remember(text, self._complaints)
            return ()
        text = _REFUSED.sub("", text)
        if match := _HOP.fullmatch(text):
            hop = int(match[1])
            if hop != self._hop + 1 or hop > self._most_hops:
                raise ParserError(f"hop {hop} after hop {self._hop}, of at most {self._most_hops}")
            self._hop, self._round, self._address = hop, 0, ""
            return self._replies(match[2])
        if self._hop and text.startswith(" "):
            return self._replies(text)
        if text.strip():
            raise ParserError(f"not a line of traceroute: {text[:80]!r}")
        return ()

    def end(self, exit_code: int) -> Iterable[Event]:
        if not self._trace.sent or exit_code > 0:
            yield failure_of("traceroute", self._complaints, exit_code)
        if self._trace.sent:
            yield from self._trace.end()

    def _header(self, match: re.Match[str]) -> Iterator[Event]:
        settings: dict[str, str | int] = {"address": match["address"]}
        if match["length"]:
            settings["packet_bytes"] = int(match["length"])
        yield Effective(settings)
        if not self._trace.has_goal:
            yield from self._trace.aim(match["address"])

    def _replies(self, text: str) -> Iterator[Event]:
        replies: list[_Reply] = []
        for word, following in pairwise((*text.split(), "")):
            if word == "*":
                replies.append(_Reply())
            elif word.startswith("!"):
                if replies and word != "!":
                    replies[-1].error = _meaning(word)
            elif following == "ms" and _TIME.fullmatch(word):
                if not self._address:
                    raise ParserError(f"an answer from nobody: {text[:80]!r}")
                replies.append(_Reply(self._address, float(word) / 1e3))
            elif word != "ms" and following:  # else the line was cut
                self._address = word.strip("()")
        for reply in replies:
            yield from self._probe(reply)

    def _probe(self, reply: _Reply) -> Iterator[Event]:
        if self._round >= self._count:
            raise ParserError(f"more than {self._count} probes to hop {self._hop}")
        probe = self._trace.send(self._round, self._hop, self._due_s)
        self._round += 1
        waited_s = reply.rtt_s if reply.address else self._timeout_s
        self._due_s += max(self._pace_s, waited_s)
        if reply.address:
            yield from self._trace.answer(probe, reply.address, reply.rtt_s, reply.error)


def _meaning(mark: str) -> str:
    if mark.startswith("!F"):
        return f"fragmentation needed ({mark})"
    return f"{_MARKS.get(mark, 'unreachable')} ({mark})"
