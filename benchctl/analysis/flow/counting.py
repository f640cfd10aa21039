"""What a host counted between two readings of its counters, and what makes figures doubtful.

The readings are those of `benchctl.hosts.sent.counters`.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping, Sequence
from typing import Any, NamedTuple

from benchctl.analysis.results import FlowReport, protocol_of
from benchctl.metrics import Direction
from benchctl.run.record import CpuUse, HostCounters, InterfaceCounters, RecordedFlow

BUSY_RATIO = 0.95
"""A processor with more is the limit, or nearly: what is left is the time between two tasks."""
STRAY_PER_S = 1.0
"""Frames of protocols that a host does not speak count as dropped when received (net/core/dev.c,
__netif_receive_skb_core): switches send such, as LLDP, by less than one a second."""


class Drop(NamedTuple):
    """A count of what a host itself drops, in words.

    It counts where a flow of this protocol has data or a server there: at its sender, its receiver,
    or its far end.
    """

    counter: str
    words: str
    protocol: str
    end: str


DROPS = (
    Drop("udp_receive_buffer_errors", "UDP datagrams at full receive buffers", "udp", "receiver"),
    Drop("udp_send_buffer_errors", "UDP datagrams at full send buffers", "udp", "sender"),
    Drop("tcp_segments_dropped", "TCP segments at full receive buffers", "tcp", "receiver"),
    Drop("tcp_connections_dropped", "TCP connections at full listen queues", "", "server"),
)
"""What hosts drop; beside that of their processors' input queues."""
_WORD = 1 << 32


def between(before: Mapping[str, Any], after: Mapping[str, Any]) -> HostCounters:
    """Return what was counted from one reading to a later one.

    An interface that came in between, or whose counters began anew, has what it counted since;
    one that went has none.
    """
    interfaces = {
        name: _grown(before["interfaces"].get(name, [0] * len(counts)), counts)
        for name, counts in after["interfaces"].items()
    }
    names = [name for name in after["counts"] if name in before["counts"]]
    old, new = ([reading["counts"][name] for name in names] for reading in (before, after))
    return HostCounters(
        after["time_s"] - before["time_s"],
        {name: InterfaceCounters(*grown) for name, grown in interfaces.items() if any(grown)},
        dict(zip(names, _grown(old, new), strict=True)),
        _cpu(before["cores"], after["cores"]),
    )


def drops(counted: HostCounters, host: str, flows: Sequence[FlowReport]) -> dict[str, int]:
    """Return what a host itself dropped, by where that was, in words.

    Only what can have been of the ``flows`` of its trial: of a protocol that they use at this end,
    and no more datagrams than they lost.
    """
    found = {}
    for drop in DROPS:
        own = [flow for flow in flows if host in _hosts_of(flow.flow, drop)]
        count = counted.counts.get(drop.counter, 0) if own else 0
        if drop.counter == "udp_receive_buffer_errors" and count:
            count = min(count, round(_lost_towards(host, own, count)))
        found[drop.words] = count
    for name, interface in counted.interfaces.items():
        stray = STRAY_PER_S * counted.lasted_s
        found[f"packets received by {name}"] = (
            interface.rx_dropped if interface.rx_dropped > stray else 0
        )
        found[f"packets to be sent by {name}"] = interface.tx_dropped
        found[f"packets with errors at {name}"] = interface.rx_errors + interface.tx_errors
    return {words: count for words, count in found.items() if count}


def is_busy(cpu: CpuUse) -> bool:
    """Return whether a processor of a host had hardly any time left."""
    return cpu.busiest_ratio > BUSY_RATIO


def _hosts_of(flow: RecordedFlow, drop: Drop) -> Collection[str]:
    """Return the hosts where a flow may be what a count is of."""
    if drop.end == "server":
        return [flow.target]
    if protocol_of(flow) not in ("", drop.protocol):
        return []
    return [ends[drop.end == "receiver"] for ends in _ends_of(flow, flow.direction)]


def _ends_of(flow: RecordedFlow, direction: str) -> list[tuple[str, str]]:
    """Return the hosts that send and receive in a direction: both do where it is not one way."""
    there, back = (flow.source, flow.target), (flow.target, flow.source)
    one_way = {str(Direction.SEND): [there], str(Direction.RECEIVE): [back]}
    return one_way.get(direction, [there, back])


def _lost_towards(host: str, flows: Sequence[FlowReport], otherwise: int) -> float:
    """Return how many datagrams flows lost on their way to a host; unknown is ``otherwise``."""
    lost = [
        figure.value
        for flow in flows
        for (direction, metric), figure in flow.figures.items()
        if metric == "packets_lost" and host in [to for _, to in _ends_of(flow.flow, direction)]
    ]
    return math.fsum(lost) if lost else otherwise


def _grown(before: Sequence[int], after: Sequence[int]) -> list[int]:
    """Return by how much counters grew; each may have 32 bits.

    If one fell that had not reached half of these, they began anew.
    """
    pairs = list(zip(before, after, strict=True))
    if any(new < old and not _WORD // 2 <= old < _WORD for old, new in pairs):
        return list(after)
    return [new - old if new >= old else new - old + _WORD for old, new in pairs]


def _cpu(before: Mapping[str, Sequence[int]], after: Mapping[str, Sequence[int]]) -> CpuUse | None:
    """Return how busy the processors were; None if too little time passed to tell."""
    used: dict[str, list[int]] = {}
    for name in before.keys() & after.keys():
        # That of waiting for the disk is no reliable count and may fall (proc(5)).
        grown = [max(0, new - old) for old, new in zip(before[name], after[name], strict=True)]
        if grown[0] + grown[1]:
            used[name] = grown
    if not used:
        return None
    busiest = max(used, key=lambda name: (_share(used[name]), -int(name)))
    busy, idle, softirq, steal = used[busiest]
    every = [sum(column) for column in zip(*used.values(), strict=True)]
    return CpuUse(
        len(used), _share(every), int(busiest), _share(used[busiest]),
        softirq / (busy + idle), steal / (busy + idle),
    )  # fmt: skip


def _share(ticks: Sequence[int]) -> float:
    return ticks[0] / (ticks[0] + ticks[1])
