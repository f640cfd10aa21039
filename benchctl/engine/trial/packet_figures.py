"""What the packets of a flow say, found when its attempt has ended and before the next one begins.

So nothing is measured meanwhile. It runs in a thread, which ends soon after the user asks to stop.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import groupby
from pathlib import Path
from statistics import fmean
from types import MappingProxyType
from typing import Any, NamedTuple

from msgspec.structs import replace

from benchctl.analysis.flow.limiting import STREAM_SHARE
from benchctl.analysis.statistics import quantile
from benchctl.api import Role
from benchctl.engine.trial.flow import FlowAttempt
from benchctl.errors import UsageError
from benchctl.hosts.clocks import ClockSpan
from benchctl.metrics import Direction
from benchctl.packets.both import TracePair, TracePlace, pairs_of
from benchctl.packets.findings import connection_entry, exchange_entry, pair_entry
from benchctl.packets.pairing import Passages
from benchctl.packets.tcp import Connection
from benchctl.packets.trace import StoppedError, Trace, read_trace
from benchctl.packets.wire.frames import names_of
from benchctl.run.packets import ExchangeFound, PairFound
from benchctl.run.record import Figure, RecordedPackets
from benchctl.store.record import Recorder

TCP = "tcp"
MOST_CONNECTIONS = 100
"""Connections of a flow that are kept, the largest: no tool opens more streams by default."""
SAMPLES = 500
"""Of a series, as many as a plot can show; at least a millisecond each."""
_LEAST_S = 0.001
_OF_WINDOWS = ("cwnd_estimated_bytes", "flight_bytes")


class OneWayPackets(NamedTuple):
    """The packets that crossed from one end of a flow to the other: Unix times, and delays."""

    left: list[float]
    delays_s: list[float]
    lost: int
    doubled: int
    overtaken: int

    @property
    def figures(self) -> Mapping[str, Figure]:
        """What is known of them all, by metric."""
        came = len(self.delays_s)
        counts = {
            "packets_sent": came + self.lost,
            "packets_received": came,
            "packets_lost": self.lost,
            "packets_duplicated": self.doubled,
            "packets_reordered": self.overtaken,
            "loss_ratio": self.lost / (came + self.lost) if came + self.lost else 0.0,
        }
        figures = {name: Figure(float(count), "samples") for name, count in counts.items()}
        if self.delays_s:
            figures["owd_s"] = _spread(self.delays_s)
        return figures

    def series(self, second_0: float) -> Iterator[tuple[float, float, float]]:
        """Yield the beginning and the end of intervals, and the mean delay of what left in each.

        In seconds since a Unix time. An interval in which nothing left is none.
        """
        pairs = sorted(zip(self.left, self.delays_s, strict=True))
        if not pairs:
            return
        began = pairs[0][0]
        step_s = max(_LEAST_S, (pairs[-1][0] - began) / SAMPLES)
        for number, some in groupby(pairs, lambda pair: int((pair[0] - began) / step_s)):
            start_s = began - second_0 + number * step_s
            yield start_s, start_s + step_s, fmean([delay_s for _, delay_s in some])


class StreamWindow(NamedTuple):
    """What one stream had in flight, and what its congestion window seems to be, in an interval.

    ``host`` is where it was recorded, ``to`` the address of its receiver; times are Unix times.
    """

    host: str
    to: str
    stream: int
    start: float
    end: float
    metrics: Mapping[str, float]


class CaptureAnalysis(NamedTuple):
    """What the packets of a flow say: of each end, of both together, and of each way."""

    captures: Sequence[RecordedPackets]
    paired: Sequence[PairFound]
    crossed: Mapping[str, OneWayPackets]
    """By the address of the end that they went to."""
    windows: Sequence[StreamWindow]
    """Of every stream at every place that was recorded."""


def analyze_captures(
    captures: Sequence[RecordedPackets],
    folder: Path,
    *,
    port: int | None = None,
    protocol: str = TCP,
    one_clock: bool,
    stop: Callable[[], bool],
    clocks: Mapping[str, ClockSpan | None] = MappingProxyType({}),
) -> CaptureAnalysis | None:
    """Read the files of a flow's packets, which are in a folder; None if asked to stop.

    Other flows between the same hosts are in the same files: if the server's ``port`` has
    connections, the flow has no others. What cannot be read has no findings. A flow of another
    ``protocol`` than TCP has exchanges, too. ``clocks`` are those of its hosts, None if unknown.
    Without them there are no figures of delays, unless both ends have one clock.
    """
    places, analyzed, windows = [], [], list[StreamWindow]()
    try:
        for packets in captures:
            passages = Passages()
            try:
                trace = read_trace(folder / packets.file, _record, passages, stop)
            except UsageError:
                analyzed.append(packets)
                continue
            began_s, clock = (trace.capture.began_ns or 0) / 1e9, clocks.get(packets.host)
            ahead_s = began_s - clock.ours(began_s) if clock and began_s else 0.0
            passages.without_drift(clock.drift if clock else 0.0)
            places.append(TracePlace(trace, passages, ahead_s))
            own, began = _own(trace, port, protocol), began_s - ahead_s
            windows += _windows(packets.host, [trace.connections[n - 1] for n in own], began)
            found = [connection_entry(n, trace.connections[n - 1]) for n in own]
            found.sort(key=_frame_bytes, reverse=True)
            others = () if protocol == TCP else _exchanges(trace, port, protocol)
            analyzed.append(
                replace(
                    packets,
                    began_time=began,
                    findings=tuple(found[:MOST_CONNECTIONS]),
                    exchanges=tuple(others[:MOST_CONNECTIONS]),
                )
            )
    except StoppedError:
        return None
    pairs = list(pairs_of(places[0], places[1], whole=True)) if len(places) == 2 else []
    if places:
        own = _own(places[0].trace, port, protocol)
        pairs = [pair for pair in pairs if pair.numbers[0] in own]
    pairs.sort(key=lambda pair: pair.connections[0].frame_bytes, reverse=True)
    known = [clocks.get(packets.host) for packets in captures]
    error_s = None if one_clock or None in known else sum(span.error_s for span in known if span)
    entries = [
        pair_entry(pair, one_clock=one_clock, clock_error_s=error_s)
        for pair in pairs[:MOST_CONNECTIONS]
    ]
    crossed = _crossed(places, pairs) if one_clock or error_s is not None else {}
    return CaptureAnalysis(analyzed, entries, crossed, windows)


def _own(trace: Trace, port: int | None, protocol: str) -> list[int]:
    """Return the numbers of a flow's connections: those of its server's port, else all.

    A flow of another protocol whose server has no port has none: nothing controls it.
    """
    names = {n: names_of(connection.ends) for n, connection in enumerate(trace.connections, 1)}
    if port is None and protocol != TCP:
        return []
    own = [n for n, ends in names.items() if any(end.endswith(f":{port}") for end in ends)]
    return own or [*names]


def _exchanges(trace: Trace, port: int | None, protocol: str) -> list[ExchangeFound]:
    """Return what a flow exchanged by another protocol than TCP, the most first.

    That is what came from its server's port or went to it, and fragments, which have none; without
    such, everything.
    """
    found = [*map(exchange_entry, trace.frames.exchanges.values())]
    names = {protocol.upper(), "QUIC"} if protocol == "udp" else {protocol.upper()}
    found = [
        exchange for exchange in found if exchange["protocol"].partition(" fragments")[0] in names
    ] or found
    ends = f":{port}"
    own = [
        exchange
        for exchange in found
        if exchange["from"].endswith(ends) or exchange["to"].endswith(ends)
    ]
    if own:
        own += [exchange for exchange in found if exchange["protocol"].endswith(" fragments")]
    return sorted(own or found, key=lambda exchange: exchange["bytes"], reverse=True)


def _record(_: int, connection: Connection) -> None:
    connection.record()


async def keep_analysis(flow: FlowAttempt, recorder: Recorder, stop: asyncio.Event) -> None:
    """Find what the packets of a flow say, if it has any, and write that behind its result."""
    setup, result, flow_id = flow.setup, flow.result, flow.recording.flow_id
    folder = recorder.path.parent
    if not any((folder / capture.file).exists() for capture in result.captures):
        return
    found = await asyncio.to_thread(
        analyze_captures, result.captures, folder,
        port=setup.port, protocol=setup.flow.demand.protocol,
        one_clock=setup.one_clock, stop=stop.is_set,
        clocks={} if setup.one_clock else flow.captured_by,
    )  # fmt: skip
    if found is None:
        return
    recorder.update_flow(flow_id, captures=found.captures, paired=found.paired)
    if setup.flow.demand.protocol != TCP:
        return  # the connections that were found control it, or are those of others
    plan = setup.flow.plan
    address = setup.flow.address_in(setup.network)
    of_direction = {Direction.SEND: found.crossed.get(address)}
    of_direction[Direction.RECEIVE] = next(
        (packets for to, packets in found.crossed.items() if to != address), None
    )
    for direction, crossed in of_direction.items():
        if plan.direction not in (direction, Direction.BOTH) or result.second_0 is None:
            continue
        begins, role = result.second_0, Role.SERVER
        if crossed is not None:
            recorder.add_figures(
                flow_id, {(direction, name): figure for name, figure in crossed.figures.items()}
            )
            for start_s, end_s, owd_s in crossed.series(begins):
                recorder.add_sample(
                    flow_id, role, 0, direction, start_s, end_s, end_s, False, {"owd_s": owd_s}
                )
        values: dict[str, list[float]] = {}
        for host, to, stream, start, end, metrics in found.windows:
            # In the view of the one who sends.
            sends = direction is Direction.SEND
            if (host == plan.source) is sends and (to == address) is sends:
                for name, value in metrics.items():
                    values.setdefault(name, []).append(value)
                start_s, end_s = start - begins, end - begins
                recorder.add_sample(
                    flow_id, role, stream, direction, start_s, end_s, end_s, False, metrics
                )
        recorder.add_figures(
            flow_id, {(direction, name): _spread(some) for name, some in values.items()}
        )


def _spread(values: Sequence[float]) -> Figure:
    ordered = sorted(values)
    spread = {
        "min": ordered[0], "median": quantile(ordered, 0.5), "p95": quantile(ordered, 0.95),
        "max": ordered[-1],
    }  # fmt: skip
    return Figure(fmean(ordered), "samples", spread)


def _frame_bytes(entry: Mapping[str, Any]) -> int:
    return sum(direction["frame_bytes"] for direction in entry["directions"])


def _windows(host: str, connections: Sequence[Connection], began: float) -> Iterator[StreamWindow]:
    """Yield the windows of the streams of a trace, which began at a Unix time.

    Connections with much less data than others control the measurement, and are no streams.
    """
    ends = [(connection, direction) for connection in connections for direction in (0, 1)]
    most_bytes: Counter[str] = Counter()
    for connection, direction in ends:
        to = _receiver(connection, direction)
        most_bytes[to] = max(most_bytes[to], connection.halves[direction].data_bytes)
    streams: Counter[str] = Counter()
    for connection, direction in ends:
        to = _receiver(connection, direction)
        if (
            connection.timeline is None
            or connection.halves[direction].data_bytes < STREAM_SHARE * most_bytes[to]
        ):
            continue
        for start_s, end_s, known in connection.timeline.intervals(direction):
            if metrics := {name: known[name] for name in _OF_WINDOWS if name in known}:
                yield StreamWindow(host, to, streams[to], began + start_s, began + end_s, metrics)
        streams[to] += 1


def _receiver(connection: Connection, direction: int) -> str:
    """Return the address that the data of one way go to."""
    return names_of(connection.ends)[1 - direction].rpartition(":")[0].strip("[]")


def _crossed(places: Sequence[TracePlace], pairs: Sequence[TracePair]) -> dict[str, OneWayPackets]:
    found: dict[str, OneWayPackets] = {}
    for pair in pairs:
        for direction, crossing in enumerate(pair.crossings):
            place = places[0 if direction == pair.near else 1]
            began = (place.trace.capture.began_ns or 0) / 1e9 - place.ahead_s
            to = _receiver(pair.connections[0], direction)
            before = found.get(to, OneWayPackets([], [], 0, 0, 0))
            found[to] = OneWayPackets(
                before.left + [began + time_s for time_s in crossing.times_s],
                before.delays_s + list(crossing.delays_s),
                before.lost + len(crossing.lost),
                before.doubled + crossing.doubled,
                before.overtaken + crossing.overtaken,
            )
    return found
