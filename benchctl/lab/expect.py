"""What theory expects of a lab, from its topology alone.

The rules:

- a round trip takes the delays of both ways, plus the time that each link needs to send the
  probe's frame; nodes themselves take no time;
- a link's rate counts Ethernet frames with their header of 14 bytes, as the kernel's qdiscs do
  and as `link` does; what is left for payload is the goodput bound. A TCP segment of an established
  connection has 20 bytes of IPv4 header, 20 of TCP and 12 of timestamps (RFC 7323), which Linux
  sends unless told otherwise;
- flows at the same time get their max-min fair shares: all grow alike until a link is full; the
  flows on it stay where they are, and the rest grow on (progressive filling; Bertsekas and
  Gallager, Data Networks, section 6.5.2).

Acknowledgements, losses and what congestion control makes of them are not accounted for: measured
figures below the bound are for the reader to explain.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from benchctl.lab.model import ETHERNET_HEADER_BYTES, Interface, Topology
from benchctl.lab.routing import Forwarding
from benchctl.lab.segments import Hop

PING_PAYLOAD_BYTES = 56
"""What ping sends unless told otherwise."""
_IP_ICMP_BYTES = 20 + 8
UDP_HEADER_BYTES = 20 + 8
TCP_HEADER_BYTES = 20 + 20 + 12
"""Each with its IPv4 header; TCP with timestamps."""


@dataclass(frozen=True, slots=True)
class NetworkPath:
    """The links between two hosts, there and back; the two may differ."""

    there: tuple[Hop, ...]
    back: tuple[Hop, ...]

    @property
    def mtu(self) -> int:
        """The largest IP packet that passes unfragmented on the way there."""
        return min(hop.link.mtu for hop in self.there)

    @property
    def bottleneck(self) -> Hop:
        """The slowest link on the way there; the first of several."""
        return min(self.there, key=lambda hop: hop.settings.rate_bps)

    @property
    def reverse(self) -> NetworkPath:
        """The path of data that the far host sends."""
        return NetworkPath(self.back, self.there)

    def rtt_s(self, payload_bytes: int = PING_PAYLOAD_BYTES) -> float:
        """Return the round-trip time of an echo request with such a payload on idle links."""
        frame_bits = 8 * (payload_bytes + _IP_ICMP_BYTES + ETHERNET_HEADER_BYTES)
        return sum(
            hop.settings.delay_s + frame_bits / hop.settings.rate_bps
            for hop in (*self.there, *self.back)
        )

    def tcp_bps(self) -> float:
        """Return the goodput bound of one TCP connection alone, in bits per second."""
        return self.bottleneck.settings.rate_bps * tcp_payload_ratio(self.mtu)

    def udp_bps(self, payload_bytes: int) -> float:
        """Return the goodput bound of UDP datagrams with such a payload, alone."""
        return self.bottleneck.settings.rate_bps * udp_payload_ratio(payload_bytes)

    def bdp_bytes(self) -> float:
        """Return the bandwidth-delay product: bottleneck rate x base RTT (RFC 6349, section 3)."""
        return self.bottleneck.settings.rate_bps * self.rtt_s() / 8


@dataclass(frozen=True, slots=True)
class Demand:
    """One of several flows at the same time.

    ``hops`` are the links that its data takes; ``streams`` its parallel connections, each of which
    competes for itself; ``limit_bps`` what it sends at most, headers included.
    """

    hops: tuple[Hop, ...]
    streams: int = 1
    limit_bps: float = math.inf


def tcp_payload_ratio(mtu: int) -> float:
    """Return the part of a full frame that is TCP payload: 1448 of 1514 bytes at an MTU of 1500."""
    return (mtu - TCP_HEADER_BYTES) / (mtu + ETHERNET_HEADER_BYTES)


def udp_payload_ratio(payload_bytes: int) -> float:
    """Return the part of a frame with such a datagram that is payload; it must fit the MTU."""
    return payload_bytes / (payload_bytes + UDP_HEADER_BYTES + ETHERNET_HEADER_BYTES)


def path(topology: Topology, source: str, goal: str, interface: str | None = None) -> NetworkPath:
    """Return the path from one host to another, at the address by which the lab knows the goal.

    ``interface`` is the label or device of the source's interface that is bound, if any. Raises
    LookupError when the source has none of this name, or the two do not reach each other by it.
    """
    out = None if interface is None else _interface(topology, source, interface)
    target = topology.interfaces(goal)[0]
    forwarding = Forwarding(topology)
    there = forwarding.walk(source, target, out)
    back = forwarding.walk(goal, there[0].start, target) if there else None
    if not there or not back:
        by = f" by {interface}" if interface else ""
        raise LookupError(f"there is no path from {source} to {goal}{by}")
    return NetworkPath(there, back)


def _interface(topology: Topology, node: str, name: str) -> Interface:
    for end in topology.interfaces(node):
        if name in (end.label, end.device):
            return end
    raise LookupError(f"{node} has no interface {name}")


def fair_shares(demands: Sequence[Demand]) -> list[float]:
    """Return each flow's max-min fair share, in bits per second of frames, all streams together.

    Infinite for a flow that nothing limits.
    """
    shares = [0.0] * len(demands)
    capacity = {
        hop: hop.settings.rate_bps
        for demand in demands
        for hop in demand.hops
        if math.isfinite(hop.settings.rate_bps)
    }
    growing = set(range(len(demands)))
    while growing:
        # What every stream may still gain until some link is full, or some flow has all it wants.
        gains = {}
        for hop, left in capacity.items():
            streams = sum(demands[i].streams for i in growing if hop in demands[i].hops)
            if streams:
                gains[hop] = left / streams
        wishes = {i: (demands[i].limit_bps - shares[i]) / demands[i].streams for i in growing}
        gain = min([*gains.values(), *wishes.values()])
        if math.isinf(gain):
            for i in growing:
                shares[i] = math.inf
            break
        for i in growing:
            shares[i] += gain * demands[i].streams
            for hop in capacity.keys() & set(demands[i].hops):
                capacity[hop] -= gain * demands[i].streams
        full = {hop for hop, value in gains.items() if value == gain}
        growing = {
            i for i in growing if wishes[i] > gain and not full.intersection(demands[i].hops)
        }
    return shares
