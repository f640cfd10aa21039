"""Reads the text that iperf3 prints with ``-V -f k --forceflush`` (and ``--debug=1``).

It is the only format with live intervals before 3.17, and the only one in which a server reports
that it listens. With ``-f k`` iperf3 prints every digit of a rate, down to 1 kbit/s (below 100
kbit/s three digits); byte counts always have three digits and times two decimals. So the error of a
byte count is up to 0.5 %, unless it is known exactly: from the details (TCP), or as datagrams times
their length (UDP).
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterable, Mapping
from typing import Any

from benchctl.api import Direction, Event, Flow, Ready, Role, Summary, Warn
from benchctl_iperf3.details import Details
from benchctl_iperf3.errors import classify, ended
from benchctl_iperf3.parameters import Iperf3Parameters, ends_late, interval_s
from benchctl_iperf3.report import MAX_STREAMS, Interval, ReportParser, arrivals, without_rates
from benchctl_iperf3.table import TableRow, read_row
from benchctl_iperf3.values import JsonObject, number, objects
from benchctl_iperf3.weigh import Final, Weighed, judges_start, weigh_start

_ROUNDING = 0.006  # of a byte count of three digits

_N = r"(\d{1,15})"
_CONNECTED = re.compile(r"\[ *(\d{1,9})\] local .* connected to ")
_REORDERED = re.compile(r"\[SUM\].* sec +(\d{1,15}) datagrams received out-of-order$")
_CPU = re.compile(r"CPU Utilization: local/\w+ (\d{1,9}\.\d)% .* remote/\w+ (\d{1,9}\.\d)% ")
_CONGESTION = re.compile(r"(snd|rcv)_tcp_congestion (\S{1,32})$")
_WINDOW_SET = re.compile(r"(?:SND|RCV)BUF is \d+, expecting [1-9]")

_SETTINGS: tuple[tuple[re.Pattern[str], Callable[[re.Match[str]], Mapping[str, Any]]], ...] = (
    (re.compile(r"iperf (\d\S{0,30})$"), lambda m: {"version": m[1]}),
    # Not the one that "(default)" follows: see faults.CONTROL_MSS.
    (re.compile(rf" +TCP MSS: {_N}$"), lambda m: {"mss_bytes": int(m[1])} if int(m[1]) else {}),
    (re.compile(rf" +Target Bitrate: {_N}$"), lambda m: {"rate_bps": int(m[1])}),
    (re.compile(rf"SNDBUF is {_N},"), lambda m: {"send_buffer_bytes": int(m[1])}),
    (re.compile(rf"RCVBUF is {_N},"), lambda m: {"receive_buffer_bytes": int(m[1])}),
    (
        re.compile(rf"Starting Test: protocol: (\w+), {_N} streams, {_N} byte .* tos {_N}$"),
        lambda m: {
            "protocol": m[1].lower(),
            "streams": int(m[2]),
            "length_bytes": int(m[3]),
            "dscp": int(m[4]) >> 2,
        },
    ),
)


class TextReport(ReportParser):
    """The common output of client and server: streams, intervals and settings."""

    all_bytes = 0.99

    def __init__(self, flow: Flow[Iperf3Parameters], role: Role) -> None:
        super().__init__(flow, role)
        self.details = Details(MAX_STREAMS)
        self._udp = flow.params.protocol == "udp"

    def report(self, text: str) -> Iterable[Event]:
        if self.details.take(text):
            return ()
        if row := read_row(text):
            if row.mark in ("sender", "receiver"):
                self.final(row)
            elif row.socket is not None:
                interval = self._interval(row.socket, row)
                # Streams are printed one by one, so the last interval is known too late.
                several = self.flow.params.streams > 1 and ends_late(self.flow)
                if several or self.counts_idle_time([interval]):
                    interval = without_rates(interval)
                return self.sample(interval)
        elif match := _CONNECTED.match(text):
            self.stream(int(match[1]))
        else:
            return self.other(text)
        return ()

    def final(self, row: TableRow) -> None:
        """Take a line of the table for the whole run."""

    def other(self, text: str) -> Iterable[Event]:
        """Take a line that belongs to no table."""
        for pattern, settings in _SETTINGS:
            if match := pattern.match(text):
                self.settings.update(settings(match))
        if _WINDOW_SET.match(text):
            self.window_was_set()
        return ()

    def sends(self, row: TableRow) -> bool:
        """Return whether this end is the sender of a line's data."""
        if row.direction:
            return row.direction == "TX"
        return (self.flow.direction is Direction.SEND) is (self.role is Role.CLIENT)

    def _interval(self, socket: int, row: TableRow) -> Interval:
        sends = self.sends(row)
        metrics = self.sent(row) if sends else self.received(row)
        if detail := self.details.of(row.rate_bps):
            metrics["bytes_sent" if sends else "bytes_received"] = detail.bytes
            if sends and detail.rtt_s:
                metrics["tcp_rtt_s"] = detail.rtt_s
                metrics["cwnd_bytes"] = detail.cwnd_bytes
                self.settings["mss_bytes"] = detail.mss_bytes
        end_s = row.end_s
        if math.isclose(end_s, interval_s(self.flow), abs_tol=0.006):
            end_s = interval_s(self.flow)  # printed with two decimals
        return Interval(socket, row.start_s, end_s, sends, row.mark == "(omitted)", metrics)

    def sent(self, row: TableRow) -> dict[str, float]:
        """Return the sender's count of a line."""
        metrics = {"sent_bps": row.rate_bps, "bytes_sent": row.bytes}
        if self._udp:
            packets = row.count if row.packets is None else row.packets
            if packets is not None:
                metrics["packets_sent"] = packets
                metrics["bytes_sent"] = self._exact(packets, row.bytes)
        elif row.count is not None and row.count >= 0:
            metrics["retransmits"] = row.count
        if row.cwnd_bytes is not None:
            metrics["cwnd_bytes"] = row.cwnd_bytes
        return metrics

    def received(self, row: TableRow) -> dict[str, float]:
        """Return the receiver's count of a line."""
        metrics = {"throughput_bps": row.rate_bps, "bytes_received": row.bytes}
        if row.packets and row.lost is not None:
            metrics["bytes_received"] = self._exact(row.packets - row.lost, row.bytes)
            metrics |= arrivals(row.packets, row.lost, row.jitter_s)
        return metrics

    def _exact(self, packets: float, shown_bytes: float) -> float:
        """Return datagrams times length, unless duplicates or omitted ones change the sum."""
        exact = packets * (self.datagram_bytes or 0)
        return exact if math.isclose(exact, shown_bytes, rel_tol=_ROUNDING) else shown_bytes


class TextClient(TextReport):
    """The client's parser for versions without ``--json-stream``."""

    def __init__(self, flow: Flow[Iperf3Parameters]) -> None:
        super().__init__(flow, Role.CLIENT)
        self._cpu: tuple[float, float] | None = None
        self._reordered = 0.0

    def final(self, row: TableRow) -> None:
        # Lines of the sum come last, and so replace those of the streams.
        final = self.finals.setdefault(self.direction(self.sends(row)), Final())
        if row.mark == "sender":
            final.metrics |= self.sent(row)
            final.sent_s = row.end_s
        else:
            final.metrics |= self.received(row)
            final.received_s = row.end_s

    def other(self, text: str) -> Iterable[Event]:
        if match := _CONGESTION.match(text):
            own, peer = (match[2], "") if match[1] == "snd" else ("", match[2])
            self.congestion_control(own, peer)
        elif match := _CPU.match(text):
            self._cpu = self._cpu or (float(match[1]) / 100, float(match[2]) / 100)
        elif match := _REORDERED.match(text):
            self._reordered += float(match[1])
        return super().other(text)

    def end(self, exit_code: int) -> Iterable[Event]:
        arrived = self.finals.get(Direction.RECEIVE, Final()).metrics
        if "packets_lost" in arrived:
            # iperf3 prints this line only if there were any.
            arrived["packets_reordered"] = self._reordered
        self._add_results()
        if self._cpu and self.directions[0] in self.finals:
            client, server = self._cpu
            self.finals[self.directions[0]].metrics |= {
                "cpu_client_ratio": client,
                "cpu_server_ratio": server,
            }
        return self.outcome(exit_code)

    def _add_results(self) -> None:
        """Replace rounded figures of the tables by the results that the two ends exchanged."""
        own, peer = (self.details.results.get(f"{what}_results") for what in ("send", "get"))
        if own is None or peer is None:
            return
        self._cpu = _cpu_ratio(own), _cpu_ratio(peer)
        streams = tuple(self.streams.values())
        ours, theirs = objects(own, "streams"), objects(peer, "streams")
        if not len(streams) == len(ours) == len(theirs):
            return
        for direction, final in self.finals.items():
            final.untimed = "end_time" not in theirs[0]
            ends = [  # (sender, receiver)
                (here, there) if stream.sends else (there, here)
                for stream, here, there in zip(streams, ours, theirs, strict=True)
                if self.direction(stream.sends is True) is direction
            ]
            final.metrics["bytes_sent"] = sum(number(sender, "bytes") or 0.0 for sender, _ in ends)
            final.metrics["bytes_received"] = sum(number(end, "bytes") or 0.0 for _, end in ends)


def _cpu_ratio(results: JsonObject) -> float:
    return (number(results, "cpu_util_total") or 0.0) / 100


# Known only to the receiver.
_OF_ARRIVALS = ("packets_received", "packets_lost", "loss_ratio", "jitter_rfc3550_s")


class TextServer(TextReport):
    """The server's parser, for every version.

    The server measures what arrived. If the client's report of that is wrong, it is dropped, and
    the server's own last line counts.

    The client decides the outcome of the flow. The server's errors after it was ready become
    warnings: they mostly repeat what happened to the client. Its termination is no warning, since
    benchctl ended it.
    """

    def __init__(self, flow: Flow[Iperf3Parameters]) -> None:
        super().__init__(flow, Role.SERVER)
        self._ready = False
        self._arrived: dict[str, float] = {}
        self._rate_bps = self._lasted_s = 0.0

    def final(self, row: TableRow) -> None:
        if row.mark == "receiver" and not self.sends(row):
            received = self.received(row)
            self._arrived = {name: received[name] for name in _OF_ARRIVALS if name in received}
            self._rate_bps, self._lasted_s = row.rate_bps, row.end_s

    def other(self, text: str) -> Iterable[Event]:
        if text.startswith("Server listening on ") and not self._ready:
            self._ready = True
            return (Ready(),)
        return super().other(text)

    def end(self, exit_code: int) -> Iterable[Event]:
        yield from self.effective()
        yield from self.last_fragments()
        if self._lasted_s:
            yield from self._summary()
        if not self._ready:
            yield self.failure or classify(self.words or f"never listened ({ended(exit_code)})")
        elif self.failure and not self.failure.message.startswith("the server has terminated"):
            yield Warn(f"the server said: {self.failure.message}")

    def _summary(self) -> Iterable[Event]:
        found = Weighed()
        if judges_start(self.flow):
            self._arrived["throughput_bps"] = self._rate_bps
            found = weigh_start(self.flow, self._rate_bps, self._lasted_s, self.rates)
        if self._arrived:
            yield Summary(
                self._arrived, Direction.SEND, found.broken, found.instead, found.resolution
            )
