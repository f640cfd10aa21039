"""Shared by both ends: streams, intervals and totals, settings.

A table has no mark for the line of the whole run: it is the second line of a stream that begins at
0. Columns say who counted (`rows.Side`), so a flow in both directions needs no more than that.
Sums over streams are not read: they end with the stream that ended first, add up both directions,
and have a UDP receiver's losses where a sender has its errors.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any, TypeVar

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
)
from benchctl_iperf2.complaints import classify, is_final, lacks_answer
from benchctl_iperf2.parameters import Iperf2Parameters
from benchctl_iperf2.rows import Delays, Row, Side, read_row

SUMS = ("SUM", "FD")
"""How the labels of sums begin."""
MAX_STREAMS = 2 * 128  # -P has this limit here, and both directions double it
K = TypeVar("K")
V = TypeVar("V")
_ROUNDING_S = 0.006  # of a time with two decimals
_MOST_WORDS = 300
# Time after the last write that counts as part of the transfer, as a share of it.
_LATE = 0.05

_N = r"(\d{1,15})"
_SIZE = r"(\d{1,15}(?:\.\d{1,6})?) ([KMGT]?)Byte"
_SCALE = {"": 1, "K": 2**10, "M": 2**20, "G": 2**30, "T": 2**40}
_BUFFER = re.compile(rf"(?:TCP window|UDP buffer) size: +{_SIZE}(.*)")
_LENGTH = re.compile(rf"(?:Write buffer size: +{_SIZE}|Sending {_N} byte datagrams)")
_TOS = re.compile(r"TOS set to 0x([0-9a-f]{1,8})\b")
_CONGESTION = re.compile(r"TCP congestion control set to ([A-Za-z0-9_]{1,32})$")
_CONNECTED = re.compile(r"\[[^\]]{1,80}\] local \S{1,200} port \d{1,9} connected with ")
_MSS = re.compile(rf"\(icwnd/mss/irtt=\d{{1,9}}/{_N}/\d{{1,12}}\)")
_PEER = re.compile(r"\(peer (\d[\w.-]{1,30})\)")
_RELAYED = re.compile(r"\[[^\]]{1,80}\] Server Report:")
_SENT = re.compile(rf"\[([^\]]{{1,80}})\] Sent {_N} datagrams")
_REORDERED = re.compile(
    rf"\[([^\]]{{1,80}})\] *(\d[\d.]*)- *(\d[\d.]*) sec +{_N} datagrams received out-of-order"
)


@dataclass(slots=True)
class Stream:
    """One stream, as one end counted it."""

    number: int
    direction: Direction
    side: Side
    last_s: float = 0.0
    rows: int = 0
    total: Row | None = None


class Report(LineParser):
    """Base of the parsers of both ends."""

    max_line = 1 << 16

    def __init__(self, flow: Flow[Iperf2Parameters], role: Role, interval_s: float | None) -> None:
        """``interval_s`` is None for a report without intervals."""
        super().__init__()
        self.flow = flow
        self.role = role
        self.streams: dict[tuple[Side, str], Stream] = {}
        self.relayed: dict[str, Row] = {}
        """What a UDP server reports of each stream, where the client prints it."""
        self.settings: dict[str, Any] = {}
        self.failure: Failure | None = None
        self.is_connected = False
        self.has_received = False
        """Whether this end has counted data that arrived."""
        self.is_unanswered = False
        """Whether the client waited in vain for a UDP server's report."""
        self.words = ""
        """The first words on stderr that are no known complaint."""
        self.late: dict[str, tuple[float, float]] = {}
        """Datagrams that came after a later one, by label: the end of the row, their number."""
        self._interval_s = interval_s
        self._reported: dict[str, Any] = {}
        self._is_relayed = False

    # --- lines ----------------------------------------------------------------------------

    def line(self, text: str, channel: Channel) -> Iterable[Event]:
        if channel is Channel.STDERR:
            return self._complaint(text)
        if row := read_row(text):
            return self.row(row)
        if match := _REORDERED.match(text):
            if float(match[2]) == 0:
                _keep(self.late, match[1].replace(" ", ""), (float(match[3]), float(match[4])))
        elif _RELAYED.match(text):
            self._is_relayed = True
        else:
            return self.other(text)
        return ()

    def other(self, text: str) -> Iterable[Event]:
        """Take a line of stdout that belongs to no table."""
        if match := _BUFFER.match(text):
            if "(default)" not in match[3]:  # else the kernel's, before or after it grew
                self.settings["window_bytes"] = _size(match[1], match[2])
        elif match := _LENGTH.match(text):
            size = int(match[3]) if match[3] else _size(match[1], match[2])
            self.settings["length_bytes"] = size
        elif match := _TOS.match(text):
            self.settings["dscp"] = int(match[1], 16) >> 2 & 0x3F
        elif match := _CONGESTION.match(text):
            self.settings["congestion_control"] = match[1]
        elif _CONNECTED.match(text):
            self.is_connected = True
            if match := _MSS.search(text):
                self.settings["mss_bytes"] = int(match[1])
            if match := _PEER.search(text):
                self.settings["peer_version"] = match[1]
        return ()

    def _complaint(self, text: str) -> Iterator[Event]:
        failure = classify(text)
        if failure is not None:
            self.failure = self.failure or failure
            # The first one of an end counts.
            if is_final(failure):
                yield failure
        elif lacks_answer(text):
            self.is_unanswered = True
        else:
            self.words = self.words or text.strip()[:_MOST_WORDS]

    # --- rows -----------------------------------------------------------------------------

    def row(self, row: Row) -> Iterator[Event]:
        """Take a line of a table."""
        relayed, self._is_relayed = self._is_relayed, False
        if row.label.startswith(SUMS):
            return
        if relayed:
            _keep(self.relayed, row.label, row)
        else:
            stream = self._stream(row)
            self.has_received |= stream.side is Side.RECEIVER and row.bytes > 0
            stream.rows += 1
            if row.start_s == 0 and stream.rows > 1:
                stream.total = row
                return
            if row.start_s == 0 and not self._is_interval(row.end_s):
                stream.total = row  # it ended within the first interval, or there are none
            if row.end_s > row.start_s >= stream.last_s - _ROUNDING_S:
                stream.last_s = row.end_s
                yield from self.effective()
                yield self._sample(stream, row)

    def _is_interval(self, length_s: float) -> bool:
        interval_s = self._interval_s
        return interval_s is not None and math.isclose(length_s, interval_s, abs_tol=_ROUNDING_S)

    def _stream(self, row: Row) -> Stream:
        side = row.side if row.side is not Side.UNKNOWN else self._side(row.label)
        stream = self.streams.get((side, row.label))
        if stream is None:
            here = side is Side.SENDER
            direction = Direction.SEND if here is (self.role is Role.CLIENT) else Direction.RECEIVE
            number = sum(known.direction is direction for known in self.streams.values())
            stream = Stream(number, direction, side)
            _keep(self.streams, (side, row.label), stream)
        return stream

    def _side(self, label: str) -> Side:
        """Return who counted a row whose columns do not say."""
        ahead = not label.startswith("*")
        if self.flow.direction is not Direction.BOTH:
            ahead = self.flow.direction is Direction.SEND
        return Side.SENDER if ahead is (self.role is Role.CLIENT) else Side.RECEIVER

    def _sample(self, stream: Stream, row: Row) -> Sample:
        metrics = self.counted(stream.side, row)
        if row.delays is not None and self.flow.params.trip_times:
            metrics[f"interval_{self.delay_name}"] = row.delays.mean_s
        crumb = self._interval_s is not None and row.end_s - row.start_s < self._interval_s / 10
        waits = stream.side is Side.SENDER and self._is_after_the_data(row.start_s)
        if waits or (crumb and stream.rows > 1):
            metrics.pop("sent_bps", None)
            metrics.pop("throughput_bps", None)
        return Sample(row.start_s, row.end_s, metrics, stream.number, stream.direction)

    def counted(self, side: Side, row: Row) -> dict[str, float]:
        """Return the metrics of a row."""
        rate, amount = ("sent_bps", "bytes_sent")
        if side is Side.RECEIVER:
            rate, amount = ("throughput_bps", "bytes_received")
        metrics = {rate: row.rate_bps, amount: row.bytes, **row.columns}
        if row.bytes and not row.rate_bps:
            del metrics[rate]  # of less than a millisecond iperf gives none
        length = self.flow.params.length
        is_udp = self.flow.params.protocol == "udp"
        if side is Side.SENDER and is_udp and length and row.is_exact:
            # iperf's own count leaves out the last datagram, or counts it twice.
            metrics["packets_sent"] = float(math.ceil(row.bytes / length))
        return metrics

    def _is_after_the_data(self, time_s: float) -> bool:
        """Return whether a sender only waits from a time on."""
        duration_s = self.flow.params.duration
        return duration_s is not None and time_s > duration_s - _ROUNDING_S

    @property
    def delay_name(self) -> str:
        """The metric of the delays in this flow's tables."""
        return "owd_s" if self.flow.params.protocol == "udp" else "write_to_read_s"

    # --- the whole run --------------------------------------------------------------------

    def at_server(self, failure: Failure) -> Failure:
        """Return a failure whose message names the server, if that was not reached."""
        if failure.kind is not FailureKind.UNREACHABLE:
            return failure
        host, port = self.flow.address, self.flow.port
        where = f"[{host}]:{port}" if ":" in host else f"{host}:{port}"
        return replace(failure, message=f"{where}: {failure.message}")

    @property
    def directions(self) -> tuple[Direction, ...]:
        """The directions of this flow's data."""
        if self.flow.direction is Direction.BOTH:
            return (Direction.SEND, Direction.RECEIVE)
        return (self.flow.direction,)

    def totals(self, direction: Direction) -> dict[str, Row]:
        """Return the lines of the whole run of a direction's streams, by label."""
        return {
            label: stream.total
            for (_, label), stream in self.streams.items()
            if stream.direction is direction and stream.total is not None
        }

    def waited_s(self, direction: Direction) -> float:
        """Return for how long a sender's figures include a wait for the other end's close.

        0 if that is short enough to be part of the transfer, or unknown.
        """
        duration_s, rows = self.flow.params.duration, self.totals(direction)
        sends = (direction is Direction.SEND) is (self.role is Role.CLIENT)
        if not sends or not rows or duration_s is None or self.flow.params.protocol == "udp":
            return 0.0
        late_s = max(row.end_s for row in rows.values()) - duration_s
        return late_s if late_s > _LATE * duration_s else 0.0

    def figures(self, direction: Direction) -> dict[str, float | Mapping[str, float]]:
        """Return this end's figures of a direction; empty if it has none."""
        rows = self.totals(direction)
        if not rows:
            return {}
        sends = (direction is Direction.SEND) is (self.role is Role.CLIENT)
        return self._figures(rows, Side.SENDER if sends else Side.RECEIVER)

    def received(self, rows: Mapping[str, Row]) -> dict[str, float | Mapping[str, float]]:
        """Return the figures of rows that a receiver counted."""
        return self._figures(rows, Side.RECEIVER)

    def _figures(
        self, rows: Mapping[str, Row], side: Side
    ) -> dict[str, float | Mapping[str, float]]:
        metrics = {
            name: value
            for name, value in self.counted(side, self._whole(rows)).items()
            if name not in _LAST_READ
        }
        found: dict[str, float | Mapping[str, float]] = {**metrics}
        received, lost = metrics.get("packets_received"), metrics.get("packets_lost")
        if received is not None and lost is not None:
            late = (self.late.get(row.label, (0.0, 0.0)) for row in rows.values())
            ends_s = {row.end_s for row in rows.values()}
            found["packets_reordered"] = sum(count for end_s, count in late if end_s in ends_s)
            if received + lost > 0:
                found["loss_ratio"] = lost / (received + lost)
        delays = _together([row.delays for row in rows.values() if row.delays])
        if delays is not None and self.flow.params.trip_times:
            spread = {"mean": delays.mean_s, "min": delays.min_s, "max": delays.max_s}
            found[self.delay_name] = spread
        return found

    def _whole(self, rows: Mapping[str, Row]) -> Row:
        """Return all streams of a direction as one row."""
        [first, *others] = rows.values()
        if not others:
            return first
        columns = {
            name: sum(row.columns.get(name, 0.0) for row in rows.values()) for name in first.columns
        }
        if "jitter_rfc3550_s" in columns:
            columns["jitter_rfc3550_s"] /= len(rows)
        end_s = max(row.end_s for row in rows.values())
        amount = sum(row.bytes for row in rows.values())
        rate_bps = sum(row.rate_bps for row in rows.values())
        is_exact = all(row.is_exact for row in rows.values())
        return Row("SUM", 0.0, end_s, amount, rate_bps, first.side, columns, None, is_exact)

    def effective(self) -> Iterable[Event]:
        """Return all known settings, if there are more than were reported before."""
        known = self.settings
        if self.role is Role.SERVER:
            known = {f"server_{name}": value for name, value in known.items()}
        if known != self._reported:
            self._reported = dict(known)
            yield Effective(self._reported)


# What was read once at the end of a run is no figure of it.
_LAST_READ = ("tcp_rtt_s", "tcp_rttvar_s", "cwnd_bytes")


def _together(all_delays: list[Delays]) -> Delays | None:
    count = sum(delay.count for delay in all_delays)
    if not count:
        return None
    return Delays(
        sum(delay.mean_s * delay.count for delay in all_delays) / count,
        min(delay.min_s for delay in all_delays),
        max(delay.max_s for delay in all_delays),
        count,
    )


def _keep(known: dict[K, V], key: K, value: V) -> None:
    if key not in known and len(known) == MAX_STREAMS:
        raise ParserError(f"iperf reports more than {MAX_STREAMS} streams")
    known[key] = value


def _size(amount: str, scale: str) -> int:
    return round(float(amount) * _SCALE[scale])
