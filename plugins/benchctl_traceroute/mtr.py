"""Reads ``mtr --raw``: each probe, and each answer.

The lines (ui/raw.c of mtr 0.88 to 0.96): ``x HOP SEQ`` when a probe is sent, ``h HOP ADDRESS``
when another address answers than before, ``p HOP MICROSECONDS SEQ`` for an answer. Hops count from
0. What mtr does not say, by its source (ui/net.c, ui/select.c):

- **when** it sent a probe. Probes of a round are an interval apart that it divides by the number of
  hops, and by ten in the first round;
- **that a probe is lost**. It ends a time after the last probe; what has no answer then is lost;
- **that an answer is an error**: a router that reports the destination as unreachable looks like
  one more hop, up to the last;
- **where the destination is**. A round ends when the destination has answered at its last hop or
  before, or after the most hops; the backend asks for no other end. The first round goes on until
  the destination's answer is there: its last probes reach the destination, too;
- **that it sent a TCP probe twice**: the kernel does, a second after the first SYN (RFC 6298, 2.1;
  TCP_TIMEOUT_INIT of Linux). An answer after that is to a probe that was lost, or its answer was;
- **that a name is unknown**, but on stderr: it then ends with 0.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Iterator

from benchctl.api import Channel, Event, LineParser, ParserError
from benchctl_traceroute.causes import failure_of, remember
from benchctl_traceroute.trace import Trace

# Hops by which mtr divides the interval before it knows how many there are.
FIRST_SHARE = 10
# When the kernel sends a SYN again.
RESENT_S = 1.0

_SENT = re.compile(r"x (\d{1,3}) (\d{1,5})")
_HOST = re.compile(r"h (\d{1,3}) (\S{1,64})")
_ANSWER = re.compile(r"p (\d{1,3}) (\d{1,9}) (\d{1,5})")
_OTHER = re.compile(r"[dm] \d{1,3} .*")


class MtrParser(LineParser):
    """Parses one mtr to a host, of at most ``count`` rounds of ``most_hops``."""

    # No line of mtr is nearly as long; it bounds the text that a pattern may search.
    max_line = 4096

    def __init__(
        self, host: str, count: int, most_hops: int, interval_s: float, timeout_s: float,
        *, tcp: bool = False,
    ) -> None:  # fmt: skip
        super().__init__()
        self._trace = Trace(host, count * most_hops)
        self._longest_s = RESENT_S if tcp else math.inf
        self._most_hops = most_hops
        self._interval_s = interval_s
        self._timeout_s = timeout_s
        self._round, self._last, self._due_s = 0, -1, 0.0
        self._share = FIRST_SHARE
        self._hosts: dict[int, str] = {}
        """Who answered last, by hop."""
        self._open: dict[int, int] = {}
        """Probes without an answer, by their numbers."""
        self._complaints: list[str] = []

    def line(self, text: str, channel: Channel) -> Iterable[Event]:
        if channel is Channel.STDERR:
            remember(text, self._complaints)
        elif match := _SENT.fullmatch(text):
            return self._sent(self._hop(match[1]), int(match[2]))
        elif match := _HOST.fullmatch(text):
            self._hosts[self._hop(match[1])] = match[2]
        elif match := _ANSWER.fullmatch(text):
            return self._answer(self._hop(match[1]), int(match[2]) / 1e6, int(match[3]))
        elif not _OTHER.fullmatch(text):
            raise ParserError(f"not a line of mtr --raw: {text[:80]!r}")
        return ()

    def end(self, exit_code: int) -> Iterable[Event]:
        if not self._trace.sent:
            yield failure_of("mtr", self._complaints, exit_code)
            return
        if exit_code > 0:
            yield failure_of("mtr", self._complaints, exit_code)
        if not self._trace.has_goal:
            yield from self._aim()
        known_s = self._trace.last_sent_s - self._timeout_s
        yield from self._trace.end(known_s) if exit_code else self._trace.end()

    def _hop(self, text: str) -> int:
        hop = int(text)
        if hop >= self._most_hops:
            raise ParserError(f"hop {hop}, of at most {self._most_hops}")
        return hop

    def _sent(self, hop: int, number: int) -> Iterator[Event]:
        if hop <= self._last:
            yield from self._end_round()
        if self._trace.sent:
            self._due_s += self._interval_s / self._share
        self._last = hop
        self._open[number] = self._trace.send(self._round, hop + 1, self._due_s)

    def _answer(self, hop: int, rtt_s: float, number: int) -> Iterable[Event]:
        probe = self._open.pop(number, None)
        if probe is None or hop not in self._hosts:
            raise ParserError(f"an answer to no probe: hop {hop}, number {number}")
        if rtt_s >= self._longest_s:
            return ()
        return self._trace.answer(probe, self._hosts[hop], rtt_s)

    def _end_round(self) -> Iterator[Event]:
        self._round += 1
        if not self._trace.has_goal:
            yield from self._aim()
        near = (hop for hop, host in self._hosts.items() if self._trace.is_goal(host))
        self._share = 1 + min(near, default=self._last)

    def _aim(self) -> Iterator[Event]:
        """Take who answered at the end of a round for the destination."""
        if self._last < self._most_hops - 1 and self._last in self._hosts:
            yield from self._trace.aim(self._hosts[self._last])
