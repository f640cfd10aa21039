"""Shared by both formats of iperf3: streams, intervals, errors, the end.

Four properties of iperf3 must not affect the figures, whatever the format:

- the times of omitted intervals start at 0, and those of measured ones again at 0, unless the first
  also covers the last omitted one (see `faults`);
- when the server disconnects, the last interval is reported twice;
- an interval that a busy machine ends late is followed by a fragment, up to the time at which the
  next one begins, and the last interval may be a fragment: of a millisecond, with an absurd rate;
- exit code 0 means nothing: a run is valid if its end was reported, and if data arrived.
"""

from __future__ import annotations

import re
from abc import abstractmethod
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

from benchctl.api import (
    Channel,
    Direction,
    Effective,
    Event,
    Failure,
    FailureKind,
    Flow,
    LineParser,
    ParserError,
    Role,
    Sample,
    Summary,
    Warn,
)
from benchctl_iperf3.errors import (
    CLIENT_ENDED,
    SILENT,
    UDP_SILENT,
    UDP_SILENT_PEER,
    classify,
    ended,
)
from benchctl_iperf3.faults import NO_BIDIR
from benchctl_iperf3.parameters import Iperf3Parameters, ends_late, interval_s
from benchctl_iperf3.weigh import Final, weigh

MAX_STREAMS = 2 * 128  # -P has this limit, and --bidir doubles it
_MAX_WORDS = 500
# Enough for a mean beside which the first interval stands out.
_RATES_KEPT = 32

# The client reports the other settings.
_OF_EACH_END = ("version", "send_buffer_bytes", "receive_buffer_bytes", "mss_bytes")

_RATES = {"sent_bps": "bytes_sent", "throughput_bps": "bytes_received"}
_DATAGRAMS = {"packets_sent": "bytes_sent", "packets_received": "bytes_received"}
_COUNTS = (*_RATES.values(), *_DATAGRAMS, "packets_lost", "retransmits")

_FATAL = re.compile(r"(?:\S*/)?iperf3: ((?:error|interrupt|parameter error|SERVER ERROR) - .*)")
_WARNING = re.compile(r"warning: +(.*)", re.IGNORECASE)
_NAME = re.compile(r"^(\S*/)?iperf3: ")


class Interval(NamedTuple):
    """The tool's figures of one stream in one interval, by the tool's own clock.

    ``sends`` says whether this end is the sender.
    """

    socket: int
    start_s: float
    end_s: float
    sends: bool
    omitted: bool
    metrics: Mapping[str, float]


@dataclass(slots=True)
class StreamState:
    """One connection: its number, the direction of its data, and its last interval."""

    number: int
    sends: bool | None = None
    last: tuple[float, float, bool] | None = None
    fragment: Interval | None = None
    """The last interval, if it is too short for a rate."""


def arrivals(packets: float, lost: float, jitter_s: float) -> dict[str, float]:
    """Return the metrics of UDP that only the receiver knows, from the sequence numbers."""
    metrics = {"packets_received": packets - lost, "packets_lost": lost}
    if packets > lost:  # else nothing arrived, and the jitter is an old one
        metrics["jitter_rfc3550_s"] = jitter_s
    return metrics | loss(packets, lost)


def loss(packets: float, lost: float) -> dict[str, float]:
    """Return the share of lost packets, if there is one."""
    # A late packet was counted as lost before and is now subtracted. The count may be negative, and
    # then it is no share of this interval's packets.
    return {"loss_ratio": lost / packets} if lost >= 0 else {}


def first_measured(interval: Interval, follows: bool, length_bytes: float | None) -> Interval:
    """Return the first interval after the omitted part, corrected: see `faults.FIRST_INTERVAL`.

    Its bytes and segments are counted from there, but its length and its datagrams from the end of
    the reported interval that it ``follows``. So its rate is computed again, and its datagrams (of
    ``length_bytes``) by their bytes. The number of lost ones is unknown.
    """
    metrics = dict(interval.metrics)
    if length_bytes and (not follows or interval.start_s > interval.end_s / 100):
        for count, amount in _DATAGRAMS.items():
            if count in metrics and amount in metrics:
                metrics[count] = float(round(metrics[amount] / length_bytes))
                metrics[amount] = metrics[count] * length_bytes
        for name in ("packets_lost", "loss_ratio"):
            metrics.pop(name, None)
    if interval.start_s and interval.end_s > 0:
        for rate, amount in _RATES.items():
            if rate in metrics and amount in metrics:
                metrics[rate] = metrics[amount] * 8 / interval.end_s
    return interval._replace(start_s=0.0, metrics=metrics)


def joined(fragment: Interval, interval: Interval) -> Interval:
    """Return two intervals, one behind the other, as one; what is no count is that of its end."""
    before, after = fragment.metrics, interval.metrics
    metrics = {**before, **after}
    for name in _COUNTS:
        if name in metrics:
            metrics[name] = before.get(name, 0.0) + after.get(name, 0.0)
    length_s = interval.end_s - fragment.start_s
    for rate, amount in _RATES.items():
        if rate in metrics:
            del metrics[rate]
            if rate in after and amount in metrics and length_s > 0:
                metrics[rate] = metrics[amount] * 8 / length_s
    if "loss_ratio" in metrics:
        del metrics["loss_ratio"]
        lost = metrics["packets_lost"]
        metrics |= loss(metrics["packets_received"] + lost, lost)
    return interval._replace(start_s=fragment.start_s, metrics=metrics)


def without_rates(interval: Interval) -> Interval:
    """Return an interval without its rates, which include time in which nothing was sent."""
    metrics = {name: value for name, value in interval.metrics.items() if name not in _RATES}
    return interval._replace(metrics=metrics)


class ReportParser(LineParser):
    """Base of the parsers: takes intervals and errors, and yields samples and the end."""

    all_bytes = 1.0
    """The share of a transfer's bytes that counts as complete; less if they are rounded."""

    def __init__(self, flow: Flow[Iperf3Parameters], role: Role) -> None:
        super().__init__()
        self.flow = flow
        self.role = role
        self.streams: dict[int, StreamState] = {}
        self.settings: dict[str, Any] = {}
        """What was in force: ``version``, ``protocol``, ``streams``, ``length_bytes``,
        ``rate_bps`` of a stream, ``dscp``, ``mss_bytes``, ``send_buffer_bytes``,
        ``receive_buffer_bytes``, ``window_bytes`` where a window was asked for,
        ``congestion_control`` of the end that sends and ``peer_congestion_control``."""
        self.finals: dict[Direction, Final] = {}
        """The tool's figures for the whole run by direction, kept until the end."""
        self.round_trips: dict[Direction, Mapping[str, Mapping[str, float]]] = {}
        """The round-trip times of the whole run, if the tool reports them."""
        self.failure: Failure | None = None
        self.rates: dict[tuple[float, float], float] = {}
        """What arrived here in each of the first measured intervals, of all streams."""
        self.words = ""
        """The first words that belong to no format."""
        self._seen: dict[str, Any] = {}
        self._reported: dict[str, Any] = {}
        self._least_s = interval_s(flow) / 10
        self._bytes = dict.fromkeys(Direction, 0.0)
        self._has_received = False

    @property
    def directions(self) -> tuple[Direction, ...]:
        """The directions of this flow's data."""
        if self.flow.direction is Direction.BOTH:
            return (Direction.SEND, Direction.RECEIVE)
        return (self.flow.direction,)

    @property
    def datagram_bytes(self) -> float | None:
        """Length of every datagram of this flow; None for TCP."""
        if self.flow.params.protocol != "udp":
            return None
        length: float | None = self.settings.get("length_bytes", self.flow.params.length)
        return length

    @abstractmethod
    def report(self, text: str) -> Iterable[Event]:
        """Return the events of one line of stdout."""

    def line(self, text: str, channel: Channel) -> Iterable[Event]:
        return self.report(text) if channel is Channel.STDOUT else self._complaint(text)

    def stream(self, socket: int) -> StreamState:
        """Return the stream of a socket; streams are numbered as they connect."""
        if socket not in self.streams:
            if len(self.streams) == MAX_STREAMS:
                raise ParserError(f"iperf3 reports more than {MAX_STREAMS} streams")
            self.streams[socket] = StreamState(len(self.streams))
        return self.streams[socket]

    def direction(self, sends: bool) -> Direction:
        """Return the direction of data that this end sends, or receives."""
        return Direction.SEND if sends is (self.role is Role.CLIENT) else Direction.RECEIVE

    def sample(self, interval: Interval) -> Iterable[Event]:
        """Return the sample of an interval, or nothing if the interval is not valid."""
        stream = self.stream(interval.socket)
        stream.sends = interval.sends
        key = (interval.start_s, interval.end_s, interval.omitted)
        last, stream.last = stream.last, key
        if key == last:
            return ()
        if self.flow.params.omit and not interval.omitted and (last is None or last[2]):
            interval = first_measured(interval, last is not None, self.datagram_bytes)
        if interval.end_s < interval.start_s:
            raise ParserError(f"an interval from {interval.start_s} to {interval.end_s}")
        before, stream.fragment = stream.fragment, None
        if before and before.omitted is interval.omitted and before.end_s <= interval.start_s:
            interval = joined(before, interval)
        # A short transfer may end within a fragment, which is then its only interval.
        if interval.end_s - interval.start_s < self._least_s and last is not None:
            stream.fragment = interval
            return ()
        self._has_received |= interval.metrics.get("bytes_received", 0.0) > 0
        sample = self._sample_of(stream, interval)
        if not sample.omitted and "throughput_bps" in sample.metrics:
            span, rate = (sample.start_s, sample.end_s), sample.metrics["throughput_bps"]
            if span in self.rates or len(self.rates) < _RATES_KEPT:
                self.rates[span] = self.rates.get(span, 0.0) + rate
        return (sample,) if self.settings == self._seen else (*self.effective(), sample)

    def _sample_of(self, stream: StreamState, interval: Interval) -> Sample:
        start_s, end_s = interval.start_s, interval.end_s
        if interval.omitted:
            start_s, end_s = (min(t - self.flow.params.omit, 0.0) for t in (start_s, end_s))
        return Sample(
            start_s, end_s, interval.metrics, stream.number,
            self.direction(interval.sends), interval.omitted,
        )  # fmt: skip

    def counts_idle_time(self, intervals: Sequence[Interval]) -> bool:
        """Return whether the last byte was sent in this interval, given all its streams.

        The sender was idle for an unknown part of it: see `faults.LATE_END`.
        """
        if not ends_late(self.flow):
            return False
        for interval in intervals:
            if not interval.omitted:
                amounts = (interval.metrics.get(name, 0.0) for name in _RATES.values())
                self._bytes[self.direction(interval.sends)] += sum(amounts)
        wanted = (self.flow.params.bytes or 0.0) * self.all_bytes
        return any(self._bytes[self.direction(interval.sends)] >= wanted for interval in intervals)

    def effective(self) -> Iterable[Event]:
        """Return all known settings, if there are more than were reported before."""
        known = self._seen = dict(self.settings)
        if self.role is Role.SERVER:
            known = {f"server_{name}": known[name] for name in _OF_EACH_END if name in known}
        if known != self._reported:
            self._reported = known
            yield Effective(known)

    def window_was_set(self) -> None:
        """Note that the buffers are as requested, not autotuned by the kernel."""
        receives = self.flow.direction is Direction.RECEIVE
        buffer = "receive_buffer_bytes" if receives else "send_buffer_bytes"
        if buffer in self.settings:
            self.settings["window_bytes"] = self.settings[buffer]

    def congestion_control(self, own: str, peer: str) -> None:
        """Take the settings of the sender (in both directions: the client), and of the receiver."""
        for name, value in (("congestion_control", own), ("peer_congestion_control", peer)):
            if value:
                self.settings.setdefault(name, value)

    def fail(self, message: str) -> None:
        """Take an error; the first one is the cause, later ones are its consequences."""
        self.failure = self.failure or classify(message[:_MAX_WORDS])

    def remark(self, text: str) -> None:
        """Keep the first lines that belong to no format: they may explain a failure."""
        self.words = self.words or _NAME.sub("", text.strip())[:_MAX_WORDS]

    def _complaint(self, text: str) -> Iterable[Event]:
        if match := _FATAL.match(text):
            self.fail(match[1])
        elif match := _WARNING.match(text):
            yield Warn(match[1])
        else:
            self.remark(text)

    def last_fragments(self) -> Iterable[Event]:
        """Return the samples of what each stream counted after its last interval.

        With two decimals, such a fragment may have no length.
        """
        for stream in self.streams.values():
            last = stream.fragment
            if last and any(last.metrics.get(name) for name in _COUNTS):
                yield self._sample_of(stream, without_rates(last))

    def outcome(self, exit_code: int) -> Iterable[Event]:
        """Return the client's last events: its figures, or the reason why there are none."""
        yield from self.effective()
        yield from self.last_fragments()
        if failure := self.failure or self._without_result(exit_code):
            yield self._explained(failure)
            return
        for direction, final in self.finals.items():
            length = self.settings.get("length_bytes", self.flow.params.length)
            found = weigh(final, self.flow, direction, length, self.rates)
            yield from map(Warn, found.warnings)
            yield Summary(
                {**final.metrics, **self.round_trips.get(direction, {})},
                direction,
                found.broken,
                found.instead,
                found.resolution,
            )
        if self.words:
            yield Warn(self.words)
        if exit_code:
            yield Warn(f"iperf3 reported its result and then ended with {ended(exit_code)}")

    def _explained(self, failure: Failure) -> Failure:
        """Return a failure with the context of the flow added to the tool's message."""
        if CLIENT_ENDED in failure.message and not self.streams:
            if self.flow.params.protocol != "udp":
                return SILENT
            return UDP_SILENT if self.flow.owns_server else UDP_SILENT_PEER
        if self.flow.direction is Direction.BOTH and self.streams and not self._has_received:
            hint = f"perhaps {NO_BIDIR.message}: use two flows, or a newer server"
            return replace(failure, kind=FailureKind.REFUSED, hint=hint)
        return failure

    def _without_result(self, exit_code: int) -> Failure | None:
        finals = [self.finals.get(direction, Final()) for direction in self.directions]
        received = [final.metrics.get("throughput_bps") for final in finals]
        if None in received:
            return classify(self.words or f"no result ({ended(exit_code)})")
        if 0 in received:
            hint = "a firewall may let the control connection through but not the data"
            if self.flow.params.protocol != "udp":
                hint += "; or less than one block arrived: set a shorter length"
            return Failure(FailureKind.TOOL, "moved no data: the receiver counted 0 bytes", hint)
        return None
