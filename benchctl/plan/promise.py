"""The theoretical values of the flows of a trial, from the topology and the flows' demands.

Delays are those of idle links. Throughput is the max-min fair share of concurrent flows as goodput,
limited by the flow's rate, by its window per round trip, and by random loss where the model of
Mathis holds; elsewhere it leaves loss out. If links change during a trial, it is the mean over the
time that each flow measures, without loss.
"""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from statistics import fmean

from msgspec import Struct

from benchctl.analysis.flow.laws import PathBounds
from benchctl.analysis.flow.losses import MODEL, mathis_bps, padhye_bps
from benchctl.api import Demand
from benchctl.lab.emulate.link import Change, SettingsSchedule
from benchctl.lab.topology.expect import (
    PING_PAYLOAD_BYTES,
    KernelBuffers,
    NetworkPath,
    PathDemand,
    fair_shares,
    is_fragmented,
    path,
    udp_payload_ratio,
)
from benchctl.lab.topology.model import LinkSettings, Topology
from benchctl.lab.topology.segments import Hop
from benchctl.metrics import Direction
from benchctl.plan.bound import BoundFlow
from benchctl.run.planned import PlannedFlow, Search

Promises = dict[str, dict[str, float]]
"""Expected value by direction and metric."""

LinkChange = tuple[str, Change]
"""A link's name and its change; times count from the trial's common start."""

# Times at which changing links are evaluated: a ramp takes a hundred steps of one per cent.
MOMENTS = 100

# What a datagram has to carry to be as long as a segment of TCP without options and data.
_BARE_BYTES = 12

# Congestion controls that halve their window, or nearly, at each loss event.
_MODELLED = ("reno", "cubic")


class _DirectedFlow(Struct, frozen=True):
    """One direction of a flow that carries data: its demand, and the payload's share of it."""

    flow: str
    direction: Direction
    demand: PathDemand
    payload_ratio: float
    fragmented: bool = False
    known: bool = True
    """Whether the share is that of the protocol; of others, TCP's stands in."""
    loss_ratio: float = 0.0
    """Of TCP, the share of packets that links lose at random on the way there."""
    lossy_bps: float | None = None
    """The payload rate that this loss allows; None if no model holds."""


def expected_values(
    flows: Sequence[BoundFlow],
    ends: Mapping[str, tuple[str, str]],
    topology: Topology,
    kernel: KernelBuffers,
    changes: Sequence[LinkChange] = (),
) -> dict[str, Promises]:
    """Return the expected values of each flow.

    ``ends`` gives the lab's names of a flow's two hosts. A flow that leaves the lab is not in it,
    and has no expected values.
    """
    inside = [flow for flow in flows if flow.plan.name in ends]
    if not changes:
        return _promises(inside, ends, topology, kernel, with_loss=True)
    spans = {flow.plan.name: _span(flow) for flow in inside}
    seen: dict[str, dict[str, dict[str, list[float]]]] = {
        name: defaultdict(lambda: defaultdict(list)) for name in spans
    }
    moments: dict[str, int] = dict.fromkeys(spans, 0)
    for at_s, active, then in _moments(inside, topology, changes):
        for name, promises in _promises(active, ends, then, kernel).items():
            if at_s < spans[name][1]:
                continue  # omitted
            moments[name] += 1
            for direction, metrics in promises.items():
                if "owd_s" in metrics:  # no delay is shorter, whatever the mean over the time is
                    metrics = {"owd_least_s": metrics["owd_s"], **metrics}
                for metric, value in metrics.items():
                    seen[name][direction][metric].append(value)
    return {
        name: {
            direction: {
                metric: min(values) if metric == "owd_least_s" else fmean(values)
                for metric, values in metrics.items()
                # A rate that is unlimited for a while has no bound.
                if metric != "throughput_bps" or len(values) == moments[name]
            }
            for direction, metrics in directions.items()
        }
        for name, directions in seen.items()
    }


def bottlenecks(
    flows: Sequence[BoundFlow],
    ends: Mapping[str, tuple[str, str]],
    topology: Topology,
    kernel: KernelBuffers,
    changes: Sequence[LinkChange] = (),
) -> dict[str, dict[str, str]]:
    """Return the link that the expected throughput of each flow and direction is a share of.

    Empty where the flow's own rate or window allows no more. If links change during a trial, it is
    the one that is the bottleneck for most of the time.
    """
    inside = [flow for flow in flows if flow.plan.name in ends]
    seen: dict[str, dict[str, Counter[str]]] = {}
    for _, active, then in _moments(inside, topology, changes):
        legs = [
            leg for routed in _routed_flows(active, ends, then) for leg in _legs(*routed, kernel)
        ]
        for leg, (_, full) in zip(legs, fair_shares([leg.demand for leg in legs]), strict=True):
            counts = seen.setdefault(leg.flow, {}).setdefault(str(leg.direction), Counter())
            counts["" if full is None else full.link.name] += 1
    return {
        flow: {direction: counts.most_common(1)[0][0] for direction, counts in directions.items()}
        for flow, directions in seen.items()
    }


def bounds(
    flows: Sequence[BoundFlow],
    ends: Mapping[str, tuple[str, str]],
    topology: Topology,
    changes: Sequence[LinkChange] = (),
) -> dict[str, dict[str, PathBounds]]:
    """Return what the links allow each flow at most, by direction, at any time of the trial.

    Links that ramp are at their extremes at the ends of the ramp.
    """
    starts_ns = [(change.at_ns or 0, change.over_ns) for _, change in changes]
    times_ns = {0, *(at for start, over in starts_ns for at in (start, start + over))}
    found: dict[str, dict[str, PathBounds]] = {}
    for at_ns in sorted(times_ns):
        then = _at(topology, changes, at_ns / 1e9)
        for flow, _, flow_path in _routed_flows(flows, ends, then):
            if not all(hop.capacity_bps for hop in (*flow_path.there, *flow_path.back)):
                continue  # nothing arrives
            rtt_s = flow_path.rtt_s(0) - flow_path.jitter_s - flow_path.reverse.jitter_s
            own = found.setdefault(flow.name, {})
            rates = {str(Direction.ROUND_TRIP): math.inf} | {
                str(direction): one_way.bottleneck.settings.rate_bps
                for direction, one_way in _directions(flow, flow_path)
            }
            for direction, rate_bps in rates.items():
                last = own.get(direction, PathBounds(0.0, math.inf))
                own[direction] = PathBounds(max(last.link_bps, rate_bps), min(last.rtt_s, rtt_s))
    return found


def _moments(
    flows: Sequence[BoundFlow], topology: Topology, changes: Sequence[LinkChange]
) -> Iterator[tuple[float, Sequence[BoundFlow], Topology]]:
    """Yield times of a trial with the flows that run then, and the topology as it is then.

    If no link changes, one stands for all, and all flows run at the same time.
    """
    if not changes:
        yield 0.0, flows, topology
        return
    spans = [_span(flow) for flow in flows]
    end_s = max((ends_s for *_, ends_s in spans), default=0.0)
    for step in range(MOMENTS):
        at_s = (step + 0.5) * end_s / MOMENTS
        active = [
            flow
            for flow, (begins_s, _, ends_s) in zip(flows, spans, strict=True)
            if begins_s <= at_s < ends_s
        ]
        yield at_s, active, _at(topology, changes, at_s)


def _span(flow: BoundFlow) -> tuple[float, float, float]:
    """Return when a flow begins, when it begins to count, and when it ends."""
    begins_s = flow.plan.delay_s
    ends_s = begins_s + flow.duration_s
    return begins_s, begins_s + flow.demand.omitted_s, ends_s


def _at(topology: Topology, changes: Sequence[LinkChange], at_s: float) -> Topology:
    """Return the topology with its links as they are at a time of the trial."""

    def then(settings: LinkSettings, name: str) -> LinkSettings:
        course = SettingsSchedule(settings)
        for changed, change in changes:
            if changed == name:
                course.add(change, 0)
        course.advance(round(at_s * 1e9))
        return course.settings

    links = dict(topology.links)
    for name in {name for name, _ in changes}:
        there, back = links[name].settings
        links[name] = replace(links[name], settings=(then(there, name), then(back, name)))
    return replace(topology, links=links)


def _promises(
    flows: Sequence[BoundFlow],
    ends: Mapping[str, tuple[str, str]],
    topology: Topology,
    kernel: KernelBuffers,
    *,
    with_loss: bool = False,
) -> dict[str, Promises]:
    expected: dict[str, Promises] = {}
    legs: list[_DirectedFlow] = []
    for flow, demand, flow_path in _routed_flows(flows, ends, topology):
        expected[flow.name] = _delays(flow, demand, flow_path)
        legs += _legs(flow, demand, flow_path, kernel)
    for leg, (share_bps, _) in zip(legs, fair_shares([leg.demand for leg in legs]), strict=True):
        cut = leg.fragmented and share_bps < leg.demand.limit_bps * (1 - 1e-9)
        # A datagram that loses one fragment is lost, so an overload predicts nothing.
        if math.isfinite(share_bps) and not cut and leg.known:
            metrics = expected[leg.flow].setdefault(str(leg.direction), {})
            metrics["throughput_bps"] = payload_bps = share_bps * leg.payload_ratio
            if leg.loss_ratio and (not with_loss or leg.lossy_bps is None):
                metrics["loss_left_out_ratio"] = leg.loss_ratio
            elif leg.lossy_bps is not None and leg.lossy_bps < payload_bps:
                metrics.update(share_bps=payload_bps, throughput_bps=leg.lossy_bps)
    return expected


def loads_of(
    flows: Sequence[BoundFlow],
    ends: Mapping[str, tuple[str, str]],
    topology: Topology,
    kernel: KernelBuffers,
) -> dict[Hop, float]:
    """Return the rate of frames that the flows together offer to each link, in bit/s."""
    routed_flows = _routed_flows(flows, ends, topology)
    demands = [leg.demand for routed in routed_flows for leg in _legs(*routed, kernel)]
    loads: dict[Hop, float] = {}
    for demand, (share_bps, _) in zip(demands, fair_shares(demands), strict=True):
        for hop in demand.hops:
            loads[hop] = loads.get(hop, 0.0) + share_bps
    return loads


def overflow_s(
    search: Search,
    flows: Sequence[BoundFlow],
    ends: Mapping[str, tuple[str, str]],
    topology: Topology,
) -> float:
    """Return how long an excess of the precision of a search takes to overflow a queue.

    That of the slowest link of a searched flow, which its datagrams fill; the longest of several,
    0 if nothing limits them.
    """
    times = [0.0]
    for flow, demand, flow_path in _routed_flows(flows, ends, topology):
        for _, one_way in _directions(flow, flow_path) if flow.name in search.sets else ():
            if demand.payload_bytes:
                link = one_way.bottleneck.settings
                payload = int(demand.payload_bytes)
                ratio = udp_payload_ratio(payload, one_way.mtu, one_way.ip_version)
                frame_bits = 8 * payload / ratio
                excess_bps = search.precision * link.rate_bps
                times.append(link.queue_packets * frame_bits / excess_bps)
    return max(times)


def _routed_flows(
    flows: Sequence[BoundFlow],
    ends: Mapping[str, tuple[str, str]],
    topology: Topology,
) -> Iterator[tuple[PlannedFlow, Demand, NetworkPath]]:
    """Yield the flows within a lab, each with its demand and its path."""
    for flow in flows:
        if flow.plan.name in ends:
            yield flow.plan, flow.demand, way_of(flow, ends, topology)


def way_of(flow: BoundFlow, ends: Mapping[str, tuple[str, str]], topology: Topology) -> NetworkPath:
    """Return the path of a flow within a lab, over IPv4 unless it asks for IPv6, or must use it."""
    version = flow.demand.ip_version
    return path(topology, *ends[flow.plan.name], flow.plan.interface, version)


def _delays(flow: PlannedFlow, demand: Demand, flow_path: NetworkPath) -> Promises:
    if not all(hop.capacity_bps for hop in (*flow_path.there, *flow_path.back)):
        return {}  # nothing arrives
    payload = int(demand.payload_bytes or PING_PAYLOAD_BYTES)
    promises: Promises = {}
    for direction, one_way in _directions(flow, flow_path):
        delay_s = one_way.one_way_s(payload)
        promises[str(direction)] = {"rtt_s": flow_path.rtt_s(payload), "owd_s": delay_s}
        least_s = delay_s if demand.payload_bytes else one_way.one_way_s(_BARE_BYTES)
        if one_way.jitter_s or least_s < delay_s:
            promises[str(direction)]["owd_least_s"] = least_s - one_way.jitter_s
    # Probes of both directions may be sent back.
    if not promises or (flow.direction is Direction.BOTH and not demand.rate_bps):
        promises[str(Direction.ROUND_TRIP)] = {"rtt_s": flow_path.rtt_s(payload)}
    return promises


def _directions(flow: PlannedFlow, flow_path: NetworkPath) -> list[tuple[Direction, NetworkPath]]:
    """Return the directions in which a flow sends data, with their paths; none for a round trip."""
    both = ((Direction.SEND, flow_path), (Direction.RECEIVE, flow_path.reverse))
    return [each for each in both if flow.direction in (each[0], Direction.BOTH)]


def _legs(
    flow: PlannedFlow, demand: Demand, flow_path: NetworkPath, kernel: KernelBuffers
) -> list[_DirectedFlow]:
    if not demand.rate_bps:
        return []
    legs = []
    for direction, one_way in _directions(flow, flow_path):
        rate_bps, fragmented, lost, lossy_bps = demand.rate_bps, False, 0.0, None
        if demand.payload_bytes:
            datagram = (int(demand.payload_bytes), one_way.mtu, one_way.ip_version)
            fragmented, ratio = is_fragmented(*datagram), udp_payload_ratio(*datagram)
        else:
            ratio = one_way.tcp_payload_ratio(demand.mss_bytes)
        # A UDP buffer is not a window.
        if demand.protocol == "tcp":
            ends = (demand.client_window_bytes, demand.server_window_bytes)
            sends, receives = ends if direction is Direction.SEND else reversed(ends)
            windowed_bps = one_way.windowed_bps(kernel, demand.mss_bytes, sends, receives)
            rate_bps = min(rate_bps, windowed_bps)
            lost = 1 - math.prod(1 - hop.settings.loss_ratio for hop in one_way.there)
            control = str(flow.parameters.get("congestion_control") or "")
            model_bps = _lossy_bps(one_way, lost, demand.mss_bytes, control)
            lossy_bps = None if model_bps is None else demand.streams * model_bps
        wanted = PathDemand(one_way.there, demand.streams, demand.streams * rate_bps / ratio)
        known = bool(demand.payload_bytes) or demand.protocol == "tcp"
        legs.append(
            _DirectedFlow(flow.name, direction, wanted, ratio, fragmented, known, lost, lossy_bps)
        )
    return legs


def _lossy_bps(
    one_way: NetworkPath, loss_ratio: float, mss_bytes: float, control: str
) -> float | None:
    """Return the payload rate that one connection reaches at most with random loss.

    The rate is that of Mathis, with the round trip of idle links. None without loss, and where no
    model holds. With timeouts for much of the time, the rate depends on how a system repairs
    losses. CUBIC may be above Reno (its mean window of RFC 9438, section 5.1, with C = 0.4 and
    beta = 0.7). Any other congestion control has no model here.
    """
    rtt_s, segment = one_way.tcp_rtt_s(mss_bytes), one_way.segment_bytes(mss_bytes)
    if not (0 < loss_ratio < 1 and rtt_s and control in _MODELLED):
        return None
    reno_bps = mathis_bps(rtt_s, loss_ratio, segment)
    cubic_bps = 1.054 * (rtt_s / loss_ratio) ** 0.75 * segment * 8 / rtt_s
    if control == "cubic" and cubic_bps > reno_bps:
        return None
    timely = padhye_bps(rtt_s, loss_ratio, segment) >= reno_bps / MODEL
    return reno_bps if timely else None
