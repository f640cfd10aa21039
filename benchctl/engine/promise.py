"""What theory expects of the flows of a trial, from the topology alone.

Round-trip times are those of idle links. Throughput is the max-min fair share of flows at the same
time as goodput, no more than the flow itself asks for: its rate, or its window per round trip
(RFC 6349, section 3).
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from benchctl.backends import AnyBackend, Registry
from benchctl.lab.expect import (
    PING_PAYLOAD_BYTES,
    Demand,
    NetworkPath,
    fair_shares,
    path,
    tcp_payload_ratio,
    udp_payload_ratio,
)
from benchctl.lab.model import Topology
from benchctl.lab.segments import Hop
from benchctl.metrics import Direction
from benchctl.profile.bind import FlowPlan

Promises = dict[str, dict[str, float]]
"""Expected value by direction and metric."""


@dataclass(frozen=True, slots=True)
class _Leg:
    """One direction of a flow that fills what it gets: the demand, and the payload's part of it."""

    flow: str
    direction: Direction
    demand: Demand
    payload_ratio: float


def promises(
    flows: Sequence[FlowPlan],
    ends: Mapping[str, tuple[str, str]],
    topology: Topology,
    registry: Registry,
) -> dict[str, Promises]:
    """Return what is expected of each flow.

    ``ends`` gives the lab's own names of a flow's two hosts; a flow that leaves the lab is not in
    it, and nothing is expected of it.
    """
    expected: dict[str, Promises] = {}
    legs: list[_Leg] = []
    for flow, backend, parameters, way in _ways(flows, ends, topology, registry):
        expected[flow.name] = _delays(flow, backend, parameters, way)
        legs += _legs(flow, backend, parameters, way)
    for leg, share_bps in zip(legs, fair_shares([leg.demand for leg in legs]), strict=True):
        if math.isfinite(share_bps):
            metrics = expected[leg.flow].setdefault(str(leg.direction), {})
            metrics["throughput_bps"] = share_bps * leg.payload_ratio
    return expected


def loads_of(
    flows: Sequence[FlowPlan],
    ends: Mapping[str, tuple[str, str]],
    topology: Topology,
    registry: Registry,
) -> dict[Hop, float]:
    """Return how many bits per second of frames the flows together bring onto each link."""
    ways = _ways(flows, ends, topology, registry)
    demands = [leg.demand for way in ways for leg in _legs(*way)]
    loads: dict[Hop, float] = {}
    for demand, share_bps in zip(demands, fair_shares(demands), strict=True):
        for hop in demand.hops:
            loads[hop] = loads.get(hop, 0.0) + share_bps
    return loads


def _ways(
    flows: Sequence[FlowPlan],
    ends: Mapping[str, tuple[str, str]],
    topology: Topology,
    registry: Registry,
) -> Iterator[tuple[FlowPlan, AnyBackend, Any, NetworkPath]]:
    """Yield the flows within a lab, each with its backend, its parameters and its path."""
    for flow in flows:
        if flow.name in ends:
            backend = registry.load(flow.backend)
            parameters = backend.parameters.model_validate(flow.parameters)
            yield flow, backend, parameters, path(topology, *ends[flow.name], flow.interface)


def _delays(flow: FlowPlan, backend: AnyBackend, parameters: Any, way: NetworkPath) -> Promises:
    payload = PING_PAYLOAD_BYTES
    if backend.capabilities.headline == "rtt_s":
        payload = int(getattr(parameters, "length", payload))
    rtt_s = way.rtt_s(payload)
    if flow.direction is Direction.BOTH:
        return {str(d): {"rtt_s": rtt_s} for d in (Direction.SEND, Direction.RECEIVE)}
    return {str(flow.direction): {"rtt_s": rtt_s}}


def _legs(flow: FlowPlan, backend: AnyBackend, parameters: Any, way: NetworkPath) -> list[_Leg]:
    if backend.capabilities.headline != "throughput_bps":
        return []  # probes take next to nothing
    udp = getattr(parameters, "protocol", "tcp") == "udp"
    length = getattr(parameters, "length", None)
    ratio = udp_payload_ratio(int(length)) if udp and length else tcp_payload_ratio(way.mtu)
    streams = getattr(parameters, "streams", 1)
    wanted_bps = _wanted_bps(parameters, way, streams)
    demand = Demand(way.there, streams, wanted_bps / ratio)
    send = _Leg(flow.name, Direction.SEND, demand, ratio)
    receive = _Leg(flow.name, Direction.RECEIVE, replace(demand, hops=way.back), ratio)
    match flow.direction:
        case Direction.SEND:
            return [send]
        case Direction.RECEIVE:
            return [receive]
        case _:
            return [send, receive]


def _wanted_bps(parameters: Any, way: NetworkPath, streams: int) -> float:
    """Return the payload rate that a flow asks for at most: ``rate`` and ``window`` are a stream's.

    A number of bytes ends a flow and does not slow it.
    """
    limits = [math.inf]
    rate_bps = getattr(parameters, "rate", None)
    if rate_bps is not None:
        limits.append(streams * rate_bps)
    window_bytes = getattr(parameters, "window", None)
    rtt_s = way.rtt_s()
    if window_bytes is not None and rtt_s > 0:
        limits.append(streams * window_bytes * 8 / rtt_s)
    return min(limits)
