"""Reads ``--json-stream`` of iperf3 3.17 and later: one JSON object a line.

The events are ``start``, ``interval`` (one element of the classic JSON's "intervals"), ``error``
and ``end``; others are not needed here. After an ``error`` the ``end`` is empty or has only one
side.

``Started`` is never emitted: the timestamp of "start" is taken when the control connection is made,
and the clock of the intervals starts several round trips later.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from benchctl.api import Direction, Event, Flow, Role
from benchctl_iperf3.parameters import Iperf3Parameters
from benchctl_iperf3.report import Interval, ReportParser, arrivals, without_rates
from benchctl_iperf3.values import NUMBERS, JsonObject, as_object, load, number, objects, string
from benchctl_iperf3.weigh import Final

_Fields = tuple[tuple[str, str, float], ...]

# (name in iperf3, metric, its units in one SI unit)
_SENT: _Fields = (
    ("bits_per_second", "sent_bps", 1),
    ("bytes", "bytes_sent", 1),
    ("packets", "packets_sent", 1),
    ("retransmits", "retransmits", 1),
    ("snd_cwnd", "cwnd_bytes", 1),
    ("snd_wnd", "peer_window_bytes", 1),
    ("rtt", "tcp_rtt_s", 1e6),
    ("rttvar", "tcp_rttvar_s", 1e6),
    ("pmtu", "path_mtu_bytes", 1),
    ("reorder", "reordering", 1),
)
_RECEIVED: _Fields = (
    ("bits_per_second", "throughput_bps", 1),
    ("bytes", "bytes_received", 1),
)
_ROUND_TRIPS: _Fields = (
    ("min_rtt", "min", 1e6),
    ("mean_rtt", "mean", 1e6),
    ("max_rtt", "max", 1e6),
)
_CPU: _Fields = (
    ("host_total", "cpu_client_ratio", 100),
    ("remote_total", "cpu_server_ratio", 100),
)
_CPU_OF_SERVER: _Fields = (("host_total", "cpu_server_ratio", 100),)
_NEVER_ZERO = {"tcp_rtt_s", "min", "mean", "max"}

_START_SETTINGS = (
    ("sndbuf_actual", "send_buffer_bytes"),
    ("rcvbuf_actual", "receive_buffer_bytes"),
    # Not tcp_mss_default: see faults.CONTROL_MSS.
    ("tcp_mss", "mss_bytes"),
)
_TEST_SETTINGS = (
    ("num_streams", "streams"),
    ("blksize", "length_bytes"),
    ("target_bitrate", "rate_bps"),
)


class JsonStream(ReportParser):
    """The parser for versions with ``--json-stream``; a server's only from its file."""

    def __init__(self, flow: Flow[Iperf3Parameters], role: Role = Role.CLIENT) -> None:
        super().__init__(flow, role)

    def report(self, text: str) -> Iterable[Event]:
        if not text.startswith("{"):
            self.remark(text)
            return ()
        return self.take(load(text))

    def take(self, document: JsonObject) -> Iterable[Event]:
        """Return the events of one object of the stream."""
        data = document.get("data")
        match document.get("event"):
            case "start":
                self._start(as_object(data))
            case "interval" if "protocol" in self.settings:  # else its clock has no start
                rows = [_interval(row) for row in objects(as_object(data), "streams")]
                if self.counts_idle_time(rows):
                    rows = [without_rates(row) for row in rows]
                return [event for row in rows for event in self.sample(row)]
            case "error":
                self.fail(string(document, "data"))
            case "end":
                self._end(as_object(data))
        return ()

    def end(self, exit_code: int) -> Iterable[Event]:
        return self.outcome(exit_code)

    def _start(self, data: JsonObject) -> None:
        for connection in objects(data, "connected"):
            self.stream(_socket(connection))
        test = as_object(data.get("test_start", {}))
        self.settings["version"] = string(data, "version").removeprefix("iperf ")
        self.settings["protocol"] = string(test, "protocol").lower()
        self.settings["dscp"] = int(number(test, "tos") or 0) >> 2
        for source, names in ((test, _TEST_SETTINGS), (data, _START_SETTINGS)):
            for name, setting in names:
                if value := number(source, name):
                    self.settings[setting] = int(value)
        if number(data, "sock_bufsize"):
            self.window_was_set()

    def _end(self, data: JsonObject) -> None:
        rows = objects(data, "streams")
        cpu = as_object(data.get("cpu_utilization_percent", {}))
        both = self.flow.direction is Direction.BOTH
        for direction in self.directions:
            # The sums of a single direction have no suffix, whichever direction it is.
            suffix = "_bidir_reverse" if both and direction is Direction.RECEIVE else ""
            sent = as_object(data.get(f"sum_sent{suffix}", {}))
            if self.role is Role.SERVER:
                sent = {}  # its zeros are not the client's count
            received = as_object(data.get(f"sum_received{suffix}", {}))
            sent_s, received_s = (number(row, "end") or 0.0 for row in (sent, received))
            final = Final(
                {**_metrics(sent, _SENT), **_metrics(received, _RECEIVED), **_arrivals(received)},
                sent_s,
                received_s,
                # Two clocks seldom agree to a microsecond, and such servers write six decimals.
                sent_s == received_s and _has_six_decimals(cpu, "remote_total"),
            )
            if direction is Direction.SEND:
                self.round_trips[direction] = _round_trips(rows)
            elif "packets_lost" in final.metrics:
                final.metrics["packets_reordered"] = _reordered(rows)
            self.finals[direction] = final
        # CPU time belongs to the hosts, not to a direction: it is reported once.
        shares = _CPU if self.role is Role.CLIENT else _CPU_OF_SERVER
        self.finals[self.directions[0]].metrics |= _metrics(cpu, shares)
        ends = [string(data, f"{end}_tcp_congestion") for end in ("sender", "receiver")]
        # In both directions, iperf3 refers to the second one here, in which the server sends.
        own, peer = reversed(ends) if both else ends
        self.congestion_control(own, peer)


def _interval(row: JsonObject) -> Interval:
    sends = row.get("sender") is True
    return Interval(
        _socket(row),
        number(row, "start") or 0.0,
        number(row, "end") or 0.0,
        sends,
        row.get("omitted") is True,
        _metrics(row, _SENT) if sends else {**_metrics(row, _RECEIVED), **_arrivals(row)},
    )


def _socket(row: JsonObject) -> int:
    return int(number(row, "socket") or 0)


def _metrics(row: JsonObject, fields: _Fields) -> dict[str, float]:
    """Return the metrics of a row without the unknown ones.

    Unknown is -1, which some versions print without its sign, or an RTT of zero.
    """
    metrics = {}
    for name, metric, units in fields:
        if name in row:
            value: Any = row[name]
            if type(value) not in NUMBERS:
                number(row, name)  # unknown, unless it raises
            elif 0 < value < 2**63 or (value == 0 and metric not in _NEVER_ZERO):
                metrics[metric] = value / units
    return metrics


def _has_six_decimals(row: JsonObject, name: str) -> bool:
    value = number(row, name)
    return value is not None and value == round(value, 6) != round(value, 4)


def _arrivals(row: JsonObject) -> dict[str, float]:
    packets, lost = number(row, "packets"), number(row, "lost_packets")
    if not packets or lost is None:
        return {}
    return arrivals(packets, lost, (number(row, "jitter_ms") or 0.0) / 1e3)


def _round_trips(rows: Iterable[JsonObject]) -> dict[str, Mapping[str, float]]:
    """Return the least, mean and largest RTT of the streams that this end sends."""
    senders = [as_object(row.get("sender", {})) for row in rows]
    round_trips = [_metrics(row, _ROUND_TRIPS) for row in senders if row.get("sender") is True]
    round_trips = [times for times in round_trips if len(times) == len(_ROUND_TRIPS)]
    if not round_trips:
        return {}
    return {
        "tcp_rtt_s": {
            "min": min(times["min"] for times in round_trips),
            "mean": sum(times["mean"] for times in round_trips) / len(round_trips),
            "max": max(times["max"] for times in round_trips),
        }
    }


def _reordered(rows: Iterable[JsonObject]) -> float:
    """Return the packets out of order on the streams that this end receives."""
    ends = [as_object(row.get("udp", {})) for row in rows]
    return sum(number(end, "out_of_order") or 0.0 for end in ends if end.get("sender") is False)
