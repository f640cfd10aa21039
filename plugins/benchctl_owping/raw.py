"""Reads the packets of one session (``owping -R``): a sample for each.

A line is ``SEQ SENDTIME SSYNC SERR RECVTIME RSYNC RERR TTL``. Times are 32.32 fixed point seconds
since 1900 (RFC 4656, 4.1.2), from a clock that counts microseconds. A lost packet has a RECVTIME of
zero and its scheduled SENDTIME; its line is printed after the timeout. The lines are in the order
of arrival.

- Delays are never clamped: a negative one shows that the clocks differ.
- Samples are on the sender's clock, from the sending of the first packet that arrived. They have no
  length, since the receiver's clock may be completely different.
- A packet that the sender skipped after a stall longer than the timeout counts as lost, too: the
  raw lines do not show the difference (the summaries of ``-M`` do).
- A packet that arrives twice with another SENDTIME belongs to another session. Two sessions in one
  output are rejected, since they cannot be separated.
"""

from __future__ import annotations

import re
from array import array
from collections.abc import Iterable, Iterator

from benchctl.api import (
    Channel,
    Direction,
    Event,
    LineParser,
    ParserError,
    Sample,
    Started,
    Warn,
)
from benchctl_owping.complaints import Complaints, nothing_arrived, nothing_sent

# The Unix epoch in seconds of 1900 (RFC 868).
UNIX_EPOCH_S = 2_208_988_800

_ERROR = r"\d{1,12}(?:\.\d{1,12})?(?:e[+-]\d{1,2})?"
PACKET = re.compile(
    rf"(?P<seq>\d{{1,10}}) (?P<sent>\d{{1,20}}) (?P<ssync>[01]) (?P<serr>{_ERROR})"
    rf" (?P<received>\d{{1,20}}) (?P<rsync>[01]) (?P<rerr>{_ERROR}) (?P<ttl>\d{{1,3}})"
)


class RawParser(LineParser):
    """Parses one session of at most ``count`` packets."""

    # A line has 110 characters; the rest is for messages on stderr.
    max_line = 4096

    def __init__(self, count: int, direction: Direction) -> None:
        super().__init__()
        self._direction = direction
        self._complaints = Complaints()
        self._garbled = ""
        self._sent_at = array("Q", bytes(8 * count))
        self._zero = 0
        self._sent = self._received = 0

    def line(self, text: str, channel: Channel) -> Iterable[Event]:
        if channel is Channel.STDERR:
            self._complaints.add(text)
        elif match := PACKET.fullmatch(text):
            return self._packet(match)
        elif text and not text.startswith("Approximately "):
            self._garbled = self._garbled or text
        return ()

    def end(self, exit_code: int) -> Iterable[Event]:
        return [*self._finish(exit_code)]

    def _packet(self, match: re.Match[str]) -> Iterable[Event]:
        seq, sent, received = (int(match[name]) for name in ("seq", "sent", "received"))
        if seq >= len(self._sent_at):
            raise ParserError(f"packet {seq} of {len(self._sent_at)}")
        if not 0 < sent < 1 << 64 or received >= 1 << 64:
            raise ParserError(f"packet {seq} has a time that cannot be")
        if self._sent_at[seq] not in (0, sent):
            raise ParserError(f"packet {seq} comes from two sessions")
        events: list[Event] = []
        if not self._zero:
            self._zero = sent
            # On this host's clock, whichever end it is.
            local = received if received and self._direction is Direction.RECEIVE else sent
            events.append(Started(local / 2**32 - UNIX_EPOCH_S))
        if self._sent_at[seq]:
            if not received:
                raise ParserError(f"packet {seq} is lost twice, or lost and received")
            metrics = {"packets_duplicated": 1.0}
        else:
            self._sent_at[seq] = sent
            self._sent += 1
            metrics = {"packets_sent": 1.0}
            self._received += received > 0
            metrics |= _arrival(match) if received else {"packets_lost": 1.0}
        at_s = (sent - self._zero) / 2**32
        events.append(Sample(at_s, at_s, metrics, direction=self._direction))
        return events

    def _finish(self, exit_code: int) -> Iterator[Event]:
        if not self._sent:
            # When owampd is terminated, the session from it has no packets, and owping reports no
            # error.
            silent = exit_code == 0 and not self._complaints.texts
            yield nothing_sent(self._direction) if silent else self._complaints.failure(exit_code)
            return
        # When a signal cuts the output, its last line is incomplete.
        if self._garbled and exit_code >= 0:
            raise ParserError(f"owping -R does not print {self._garbled[:80]!r}")
        cause = self._complaints.cause()
        if not cause:
            yield from map(Warn, self._complaints.texts)
        if self._sent < len(self._sent_at):
            yield Warn(f"{self._sent} of {len(self._sent_at)} packets were sent")
        if cause or exit_code < 0:
            yield self._complaints.failure(exit_code)
        elif not self._received:
            yield nothing_arrived(self._direction, self._sent)


def _arrival(match: re.Match[str]) -> dict[str, float]:
    """Return the metrics of a packet that arrived for the first time."""
    metrics = {
        "packets_received": 1.0,
        "owd_s": (int(match["received"]) - int(match["sent"])) / 2**32,
        "hops": 255.0 - int(match["ttl"]),
    }
    synchronized = match["ssync"] == match["rsync"] == "1"
    metrics["clock_synchronized"] = float(synchronized)
    if synchronized:
        metrics["owd_error_s"] = float(match["serr"]) + float(match["rerr"])
    return metrics
