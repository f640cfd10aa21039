"""What a trace says, as data: its connections, what each sender waited for, the rest.

These entries are printed as JSON, kept in the store, and text is made of them, so all say the same.
"""

from __future__ import annotations

from collections.abc import Sequence
from statistics import fmean
from typing import Any

from benchctl.analysis.statistics import quantile
from benchctl.packets.both import TracePair
from benchctl.packets.pairing import Crossing
from benchctl.packets.sender.retransmissions import Retransmissions, Why
from benchctl.packets.sender.sending import HalfConnection
from benchctl.packets.sender.waiting import Waiting
from benchctl.packets.tcp import Connection, ZeroWindow
from benchctl.packets.trace import Trace
from benchctl.packets.wire.frames import Exchange, names_of
from benchctl.run.packets import (
    ConnectionFound,
    CrossingFound,
    ExchangeFound,
    PairFound,
    RetransmissionsFound,
    SpreadFound,
    WayFound,
    ZeroWindowFound,
)

TraceEntry = dict[str, Any]
MOST_LOSSES = 1000
"""Losses whose place is listed, for each direction; all of them are counted."""


def trace_entry(trace: Trace) -> TraceEntry:
    """Return what is known of the file as a whole."""
    capture, frames = trace.capture, trace.frames
    return {
        "kind": "trace",
        "file": str(capture.path),
        "format": capture.form,
        "began_time": None if capture.began_ns is None else capture.began_ns / 1e9,
        "duration_s": frames.last_s,
        "packets": capture.packets,
        "bytes": frames.bytes_count,
        "connections": len(trace.connections),
        "one_way": sum(connection.one_way for connection in trace.connections),
        "link_types": sorted(frames.links),
        "dropped": capture.dropped,
        "backwards": frames.backwards,
        "tunnels": dict(sorted(frames.tunnels.items())),
        "unread": dict(sorted(frames.unread.items())),
        "faults": capture.faults,
    }


def connection_entry(number: int, connection: Connection) -> ConnectionFound:
    """Return what is known of a connection; times are seconds since the trace began."""
    names = names_of(connection.ends)
    opener, reset_by = connection.opener, connection.reset_by
    duration_s = connection.last_s - connection.began_s
    half, other = connection.halves
    one_way = connection.one_way
    return {
        "kind": "connection",
        "number": number,
        "ends": names,
        "opened_by": None if opener is None else names[opener],
        "began_s": connection.began_s,
        "duration_s": duration_s,
        "ending": connection.ending.value,
        "reset_by": None if reset_by is None else names[reset_by],
        "one_way": one_way,
        "requests": connection.requests,
        "directions": (
            _half_entry(names[0], half, duration_s, one_way=one_way),
            _half_entry(names[1], other, duration_s, one_way=one_way),
        ),
        "zero_windows": [_shut_entry(names, shut) for shut in connection.shuts],
    }


def pair_entry(
    pair: TracePair, *, one_clock: bool, clock_error_s: float | None = None
) -> PairFound:
    """Return what two traces of a connection say together; times are those of the first.

    Delays are true with ``one_clock``. With two clocks they have their offset in them, or, if that
    is known and taken out, are wrong by ``clock_error_s`` at most.
    """
    names = names_of(pair.connections[0].ends)

    def crossed(direction: int) -> CrossingFound:
        shift_s = 0.0 if direction == pair.near else pair.shift_s
        return _crossing_entry(names[direction], pair.crossings[direction], shift_s)

    return {
        "kind": "pair",
        "numbers": pair.numbers,
        "ends": names,
        "one_clock": one_clock,
        "clock_error_s": clock_error_s,
        "directions": (crossed(0), crossed(1)),
        "zero_windows": [
            {
                "closed_by": names[1 - direction],
                "at_sender": _shut_entry(names, ours) if ours else None,
                "at_receiver": _shut_entry(names, theirs) if theirs else None,
            }
            for direction, ours, theirs in pair.shuts
        ],
    }


def _crossing_entry(name: str, crossing: Crossing, shift_s: float) -> CrossingFound:
    left = crossing.left
    first = left.numbers[0] if left.numbers else 0
    return {
        "from": name,
        "left": len(left.times_s),
        "came": len(crossing.came.times_s),
        "lost": len(crossing.lost),
        "lost_bytes": sum(left.sizes[number] for number in crossing.lost),
        "doubled": crossing.doubled,
        "overtaken": crossing.overtaken,
        "unseen": crossing.unseen,
        "unknown": crossing.unknown,
        "owd_s": _spread(crossing.delays_s),
        "losses": [
            {
                "left_s": left.times_s[number] + shift_s,
                "sequence": (left.numbers[number] - first) & 0xFFFFFFFF,
                "bytes": left.sizes[number],
            }
            for number in crossing.lost[:MOST_LOSSES]
        ],
    }


def exchange_entry(exchange: Exchange) -> ExchangeFound:
    """Return what is known of the traffic of another protocol, one way."""
    names = names_of(exchange.ends)
    return {
        "kind": "exchange",
        "protocol": exchange.protocol,
        "from": names[0],
        "to": names[1],
        "began_s": exchange.first_s,
        "duration_s": exchange.last_s - exchange.first_s,
        "packets": exchange.packets,
        "bytes": exchange.bytes_count,
        "rate_bps": exchange.rate_bps,
    }


def _half_entry(name: str, half: HalfConnection, duration_s: float, *, one_way: bool) -> WayFound:
    # Without the answers, nothing is known of what its sender waited for, and what was in flight.
    waiting, retransmissions = None if one_way else half.waiting, half.retransmissions
    return {
        "from": name,
        "packets": half.packets,
        "frame_bytes": half.frame_bytes,
        "data_packets": half.data_segments,
        "data_bytes": half.data_bytes,
        "unique_bytes": half.unique_bytes,
        "throughput_bps": _rate_bps(half.unique_bytes, _between_s(half)),
        "throughput_tcptrace_bps": _rate_bps(half.unique_bytes, duration_s),
        "throughput_wireshark_bps": _rate_bps(half.frame_bytes, duration_s),
        "mss_bytes": half.mss_bytes,
        "window_scale": half.scale,
        "window_scaling": half.announced_scale,
        "sack_permitted": half.sack_permitted,
        "timestamps": half.timestamps,
        "initial_window_bytes": waiting.initial_bytes if waiting else None,
        "initial_window_segments": _segments(waiting) if waiting else None,
        "handshake_rtt_s": half.handshake_s,
        "rtt_s": _spread(half.rtt_s),
        "retransmissions": _retransmissions_entry(retransmissions),
        "out_of_order": half.out_of_order,
        "duplicated": half.doubled,
        "duplicate_acks": half.duplicate_acks,
        "triple_duplicate_acks": half.triple_acks,
        "sack_acks": half.sack_acks,
        "sack_blocks": half.sack_blocks,
        "dsack_blocks": half.dsacks,
        "flight_max_bytes": waiting.flight_bytes if waiting else None,
        "window_min_bytes": half.window_least_bytes,
        "window_max_bytes": half.window_most_bytes,
        "window_full": _full_count(half, waiting),
        "keep_alives": half.keep_alives,
        "absent_bytes": half.absent_bytes,
        "unseen_bytes": half.unseen_bytes,
        "waiting_s": waiting.lasted_s if waiting else None,
        "waits": {
            cause.value: {
                "total_s": share.total_s,
                "count": share.count,
                "longest_s": share.longest_s,
                "longest_at_s": share.longest_at_s,
            }
            for cause, share in (waiting.shares.items() if waiting else ())
        },
    }


def _full_count(half: HalfConnection, waiting: Waiting | None) -> int | None:
    if half.waiting is None:
        return 0
    return None if half.shift is None or waiting is None else waiting.full_count


def _between_s(half: HalfConnection) -> float:
    if half.first_data_s is None or half.last_data_s is None:
        return 0.0
    return half.last_data_s - half.first_data_s


def _rate_bps(size_bytes: int, lasted_s: float) -> float | None:
    return size_bytes * 8 / lasted_s if size_bytes and lasted_s > 0 else None


def _segments(waiting: Waiting) -> int:
    return -(-(waiting.initial_bytes or 0) // waiting.segment_bytes)


def _spread(values: Sequence[float]) -> SpreadFound | None:
    if not values:
        return None
    ordered = sorted(values)
    return {
        "samples": len(ordered),
        "min": ordered[0],
        "mean": fmean(ordered),
        "median": quantile(ordered, 0.5),
        "p95": quantile(ordered, 0.95),
        "max": ordered[-1],
    }


def _retransmissions_entry(retransmissions: Retransmissions | None) -> RetransmissionsFound:
    found = retransmissions or Retransmissions()
    return {
        "count": found.count(),
        "bytes": sum(found.ends) - sum(found.starts),
        "fast": found.count(Why.FAST),
        "timeout": found.count(Why.TIMEOUT),
        "probe": found.count(Why.PROBE),
        "other": found.count(Why.OTHER),
        "spurious": found.count(needless=True),
    }


def _shut_entry(names: tuple[str, str], shut: ZeroWindow) -> ZeroWindowFound:
    return {
        "closed_by": names[1 - shut.direction],
        "began_s": shut.begin_s,
        "ended_s": shut.end_s,
        "duration_s": None if shut.end_s is None else shut.end_s - shut.begin_s,
        "acks": shut.acks,
        "probes": shut.probes,
        "window_full_s": shut.full_s,
        "unread_s": shut.unread_s,
        "pause_s": shut.pause_s,
    }
