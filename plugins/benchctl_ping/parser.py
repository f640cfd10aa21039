"""Reads ping's output: a sample for each reply, and its statistics as the summary.

**Time.** iputils timestamps a line (``-D``) with the wall clock when it prints it, right after the
reply has arrived. So a sample ends at its timestamp and starts one round-trip time earlier.
Sequence number times interval is inaccurate: ping waits at least the interval, and is late by some
milliseconds each time. It is used only without timestamps (BSD). A step of the clock during the run
moves the samples after it, but not their round-trip times.

**Counting.** Each reply is a packet sent and received. Which probes were lost is known only at the
end, since a reply may be late: then every unbroken run of unanswered probes becomes one sample.
Sums over the samples equal the summary. The sequence number has 16 bits; the lines about probes not
answered yet extend it over long outages.

**Round-trip times.** Before version 20240905 iputils prints three digits of each, so whole
milliseconds from 100 ms on, but its last line is exact to the microsecond. So min, mean and max are
taken from there, and the median and the 95th percentile from the replies. The last line counts
duplicates, too: if there were any, all figures come from the replies.

**Memory** is nine bytes for each requested probe, and a bounded number of texts.
"""

from __future__ import annotations

import re
from array import array
from collections.abc import Callable, Iterable, Iterator, Sequence
from statistics import quantiles

from benchctl.api import (
    Channel,
    Direction,
    Effective,
    Event,
    Failure,
    FailureKind,
    LineParser,
    ParserError,
    Sample,
    Started,
    Summary,
    Warn,
)
from benchctl_ping.causes import failure_of, no_reply

# Maximum number of different error texts to report; of more, the first ones represent all.
MOST_TEXTS = 16

_NUMBER = r"\d{1,12}(?:\.\d{1,9})?"
_SEQ = r"icmp_seq[= ](?P<seq>\d{1,9})"
_STAMP = rf"(?:\[(?P<stamp>{_NUMBER})\] )?"

_HEADER = re.compile(
    r"PING .*?\((?P<address>[^()]+)\).*?(?P<length>\d{1,9})(?:\(\d{1,9}\))?(?: data)? bytes"
)
_REPLY = re.compile(
    rf"{_STAMP}\d{{1,9}} bytes from .+?: {_SEQ}(?: ident=\d{{1,9}})?(?: ttl=(?P<ttl>\d{{1,3}}))?"
    rf"(?: time=(?P<ms>{_NUMBER}) ms)?(?P<marks>.*)"
)
_SILENCE = re.compile(rf"{_STAMP}(?:no answer yet|Request timeout) for {_SEQ}")
_ERROR = re.compile(
    rf"{_STAMP}(?:From (?P<router>.+?):? {_SEQ}|\d{{1,9}} bytes from (?P<bsd_router>.+?):)"
    r" (?P<what>[A-Za-z].*)"
)
_CORRUPT = re.compile(r"wrong data byte")
_TOTALS = re.compile(
    r"(?P<sent>\d{1,12}) packets transmitted, (?P<received>\d{1,12}) (?:packets )?received"
    r"(?P<others>.*)"
)
_TIMES = re.compile(
    r"(?:rtt|round-trip) min/avg/max/(?:mdev|stddev) = "
    rf"({_NUMBER})/({_NUMBER})/({_NUMBER})/({_NUMBER}) ms"
)


class PingParser(LineParser):
    """Parses one ping of at most ``count`` probes, whose first has the number ``first_seq``."""

    # No line of ping is nearly as long; it bounds the text that a pattern may search.
    max_line = 4096

    def __init__(self, count: int, interval_s: float, first_seq: int) -> None:
        super().__init__()
        self._answered = bytearray(count)
        self._rtts_s = array("d")
        self._interval_s = interval_s
        self._first_seq = first_seq
        self._latest = 0
        self._zero_s: float | None = None
        self._errors = 0
        self._warned: list[str] = []
        self._complaints: list[str] = []
        self._totals: re.Match[str] | None = None
        self._times: re.Match[str] | None = None

    def line(self, text: str, channel: Channel) -> Iterable[Event]:
        if channel is Channel.STDERR:
            _remember(text.strip().removeprefix("ping: "), self._complaints)
            return ()
        for pattern, read in _LINES:
            if match := pattern.match(text):
                return read(self, match)
        return ()

    def end(self, exit_code: int) -> Iterable[Event]:
        if self._totals is None:
            return [failure_of(self._complaints, exit_code)]
        return [*self._finish(self._totals)]

    def _header(self, match: re.Match[str]) -> Iterable[Event]:
        length, count = int(match["length"]), len(self._answered)
        settings = {"address": match["address"], "length_bytes": length, "count": count}
        return [Effective(settings)]

    def _reply(self, match: re.Match[str]) -> Iterable[Event]:
        index = self._index(match["seq"])
        rtt_s = float(match["ms"]) / 1000 if match["ms"] else 0.0
        events, end_s = self._clock(match["stamp"], index * self._interval_s + rtt_s)
        for mark in re.findall(r"\([^()]{1,40}\)", match["marks"]):
            if mark != "(DUP!)":
                events += self._warn_once(f"ping marks a reply: {mark}")
        if not 0 <= index < len(self._answered):
            return [*events, *self._warn_once("a reply came to a probe that was not sent")]
        if "(BAD CHECKSUM!)" in match["marks"]:
            return events
        if self._answered[index] or "(DUP!)" in match["marks"]:
            metrics = {"packets_duplicated": 1.0}
        else:
            self._answered[index] = 1
            metrics = {"packets_sent": 1.0, "packets_received": 1.0}
            if match["ms"]:
                metrics["rtt_s"] = rtt_s
                self._rtts_s.append(rtt_s)
            if match["ttl"]:
                metrics["ttl"] = float(match["ttl"])
        return [*events, _sample(end_s - rtt_s, end_s, metrics)]

    def _silence(self, match: re.Match[str]) -> Iterable[Event]:
        # It is printed when the next probe is due.
        index = self._index(match["seq"])
        return self._clock(match["stamp"], (index + 1) * self._interval_s)[0]

    def _error(self, match: re.Match[str]) -> Iterable[Event]:
        if not match["what"].startswith("Redirect"):
            self._errors += 1
        router = match["router"] or match["bsd_router"]
        return self._warn_once(f"{router} answers: {match['what']}")

    def _corrupt(self, match: re.Match[str]) -> Iterable[Event]:
        return self._warn_once("a reply carried other data than was sent")

    def _keep_totals(self, match: re.Match[str]) -> Iterable[Event]:
        self._totals = match
        return ()

    def _keep_times(self, match: re.Match[str]) -> Iterable[Event]:
        self._times = match
        return ()

    def _index(self, seq: str) -> int:
        """Return how many probes were due before this one, from its number of 16 bits."""
        step = (int(seq) - self._first_seq - self._latest + 0x8000) % 0x10000 - 0x8000
        index = self._latest + step
        self._latest = max(self._latest, index)
        return index

    def _clock(self, stamp: str | None, nominal_s: float) -> tuple[list[Event], float]:
        """Return when a line was printed, in seconds after the first probe.

        The first timestamp also gives the start: then `Started` is among the events.
        """
        if stamp is None:
            return [], nominal_s
        stamp_s = float(stamp)
        if self._zero_s is None:
            self._zero_s = stamp_s - nominal_s
            return [Started(self._zero_s)], nominal_s
        return [], stamp_s - self._zero_s

    def _warn_once(self, text: str) -> list[Event]:
        return [Warn(text)] if _remember(text, self._warned) else []

    def _finish(self, totals: re.Match[str]) -> Iterator[Event]:
        sent, received, others = int(totals["sent"]), int(totals["received"]), totals["others"]
        # BSD counts replies after the timeout as received, but does not show them.
        received -= _count(r"(\d{1,12}) packets out of wait time", others)
        if not 0 <= received <= sent <= len(self._answered):
            raise ParserError("the statistics of ping contradict what it was asked to do")
        pace_s = self._interval_s
        elapsed_ms = _count(r"time (\d{1,12})ms", others)
        if elapsed_ms and sent > 1:
            # The time is that of the last probe's sending.
            pace_s = elapsed_ms / 1000 / (sent - 1)
            yield Effective({"interval_s": round(pace_s, 6)})
        # Without a line for each reply (ping -q) the lost ones are unknown.
        if self._answered.count(1) == received:
            yield from self._lost(sent, pace_s)
        for text in self._complaints:
            yield from self._warn_once(text)
        errors = max(self._errors, _count(r"\+(\d{1,12}) errors", others))
        duplicated = _count(r"\+(\d{1,12}) duplicates", others)
        metrics: dict[str, float | dict[str, float]] = {
            "packets_sent": float(sent),
            "packets_received": float(received),
            "packets_lost": float(sent - received),
            "packets_duplicated": float(duplicated),
            "packets_in_error": float(errors),
        }
        if sent:
            metrics["loss_ratio"] = (sent - received) / sent
        if self._times:
            least, mean, most, deviation = (float(ms) / 1000 for ms in self._times.groups())
            rtt_s = {"min": least, "mean": mean, "max": most}
            if len(self._rtts_s) == received and not duplicated:
                rtt_s |= _percentiles(self._rtts_s, least, most)
            metrics["rtt_s"] = rtt_s
            metrics["rtt_mdev_s"] = deviation
        yield Summary(metrics, Direction.ROUND_TRIP)
        if not sent:
            yield Failure(FailureKind.TOOL, "ping ended before it sent a probe")
        elif not received:
            yield no_reply(sent, errors, self._warned)

    def _lost(self, sent: int, pace_s: float) -> Iterator[Event]:
        """Yield a sample for each run of probes without a reply."""
        start = self._answered.find(0, 0, sent)
        while start >= 0:
            stop = self._answered.find(1, start, sent)
            if stop < 0:
                stop = sent
            lost = float(stop - start)
            metrics = {"packets_sent": lost, "packets_lost": lost}
            yield _sample(start * pace_s, stop * pace_s, metrics)
            start = self._answered.find(0, stop, sent)


def _percentiles(rtts_s: Sequence[float], least: float, most: float) -> dict[str, float]:
    """Return the median and the 95th percentile of replies, limited by exact bounds."""
    if len(rtts_s) < 2:
        return {"median": least, "p95": most}
    twentieths = quantiles(rtts_s, n=20, method="inclusive")
    median, p95 = (min(max(value, least), most) for value in (twentieths[9], twentieths[18]))
    return {"median": median, "p95": p95}


def _sample(start_s: float, end_s: float, metrics: dict[str, float]) -> Sample:
    # Timestamps have microseconds; the rest is a rounding error of Unix time as a float.
    return Sample(round(start_s, 6), round(end_s, 6), metrics, direction=Direction.ROUND_TRIP)


def _remember(text: str, texts: list[str]) -> bool:
    """Add a new text; a bounded number is kept."""
    new = bool(text) and text not in texts and len(texts) < MOST_TEXTS
    if new:
        texts.append(text)
    return new


def _count(pattern: str, text: str) -> int:
    found = re.search(pattern, text)
    return int(found[1]) if found else 0


# The formats of lines; the first pattern that matches reads the line, and other lines are ignored.
_LINES: tuple[tuple[re.Pattern[str], Callable[[PingParser, re.Match[str]], Iterable[Event]]], ...]
_LINES = (
    (_REPLY, PingParser._reply),
    (_SILENCE, PingParser._silence),
    (_ERROR, PingParser._error),
    (_CORRUPT, PingParser._corrupt),
    (_HEADER, PingParser._header),
    (_TOTALS, PingParser._keep_totals),
    (_TIMES, PingParser._keep_times),
)
