"""What theory expects of a lab, from its topology alone.

The rules:

- a round trip takes the delays of both ways, plus the time that each link needs to send the
  probe's frame; nodes themselves take no time;
- a one-way delay is the same of one way;
- a link's rate counts Ethernet frames with their header of 14 bytes, as the kernel's qdiscs do
  and as `link` does; what is left for payload is the goodput bound. A TCP segment has 20 bytes of
  IPv4 header, or 40 of IPv6 (RFC 8200, 3), and 20 of TCP, which the MSS leaves room for (RFC 879),
  and 12 of timestamps, which it does not (RFC 6691; tcp_mtu_to_mss in net/ipv4/tcp_output.c). Both
  ends must have them on (RFC 7323, 1.3), as Linux has in a new namespace whatever the machine has
  (tcp_sk_init in net/ipv4/tcp_ipv4.c);
- a datagram above the MTU travels in fragments, each with its own IP header and all but the last
  with a multiple of 8 bytes (RFC 791, 3.2); in IPv6 each also has a fragment header of 8 bytes
  (RFC 8200, 4.5). Linux learns the path's MTU, so they are of the narrowest link;
- a link that loses everything carries nothing; smaller losses take nothing of a share;
- flows at the same time get their max-min fair shares: all grow alike until a link is full; the
  flows on it stay where they are, and the rest grow on (progressive filling; Bertsekas and
  Gallager, Data Networks, section 6.5.2).

Acknowledgements, losses of full queues and what congestion control makes of them are not accounted
for: measured figures below the bound are for the reader to explain.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

from benchctl.lab.topology.model import ETHERNET_HEADER_BYTES, Interface, Topology
from benchctl.lab.topology.routing import Forwarding
from benchctl.lab.topology.segments import Hop

PING_PAYLOAD_BYTES = 56
"""The default payload of ping."""
_IP_BYTES = {4: 20, 6: 40}
_FRAGMENT_BYTES = {4: 0, 6: 8}
"""What a fragment has beside its IP header."""
_UDP_BYTES = 8
UDP_HEADER_BYTES = _IP_BYTES[4] + _UDP_BYTES
"""With its IPv4 header; ICMP has as many."""
_TCP_BYTES = 20
_TIMESTAMPS_BYTES = 12
"""With padding (TCPOLEN_TSTAMP_ALIGNED)."""
_TRAIN_BYTES = 65536
"""What TCP hands on in one piece at most (GSO_LEGACY_MAX_SIZE in include/linux/netdevice.h)."""
_DEFAULT_MSS = 536
"""TCP_MSS_DEFAULT in include/net/tcp.h."""


@dataclass(frozen=True, slots=True)
class HostBuffers:
    """How far the kernel lets the buffers of a host's TCP grow; infinite where only it knows.

    ``send_bytes`` is the last of net.ipv4.tcp_wmem, ``receive_bytes`` that of tcp_rmem, as the
    topology has them.
    """

    send_bytes: float = math.inf
    receive_bytes: float = math.inf


@dataclass(frozen=True, slots=True)
class NetworkPath:
    """The links between two hosts, there and back; the two may differ."""

    there: tuple[Hop, ...]
    back: tuple[Hop, ...]
    timestamps: bool = True
    """Whether TCP between the two has them."""
    near: HostBuffers = HostBuffers()
    far: HostBuffers = HostBuffers()
    ip_version: int = 4

    @property
    def mtu(self) -> int:
        """The largest IP packet that passes unfragmented on the way there."""
        return min(hop.link.mtu for hop in self.there)

    @property
    def bottleneck(self) -> Hop:
        """The slowest link on the way there; the first of several."""
        return min(self.there, key=lambda hop: hop.settings.rate_bps)

    @property
    def jitter_s(self) -> float:
        """How much earlier than its mean delay a packet may arrive."""
        return sum(hop.settings.jitter_s for hop in self.there)

    @property
    def reverse(self) -> NetworkPath:
        """The path of data that the far host sends."""
        return NetworkPath(
            self.back, self.there, self.timestamps, self.far, self.near, self.ip_version
        )

    def one_way_s(self, payload_bytes: int = PING_PAYLOAD_BYTES) -> float:
        """Return the delay of a datagram with such a payload on the way there, on idle links."""
        headers = _UDP_BYTES + _IP_BYTES[self.ip_version] + ETHERNET_HEADER_BYTES
        return _delay_s(self.there, payload_bytes + headers)

    def rtt_s(self, payload_bytes: int = PING_PAYLOAD_BYTES) -> float:
        """Return the round-trip time of an echo request with such a payload on idle links."""
        return self.one_way_s(payload_bytes) + self.reverse.one_way_s(payload_bytes)

    def segment_bytes(self, mss_bytes: float = math.inf) -> int:
        """Return the payload of a full TCP segment; ``mss_bytes`` is what TCP_MAXSEG was set to."""
        return segment_bytes(self.mtu, mss_bytes, self.timestamps, self.ip_version)

    def tcp_payload_ratio(self, mss_bytes: float = math.inf) -> float:
        """Return the part of a full frame of TCP that is payload."""
        return tcp_payload_ratio(self.mtu, mss_bytes, self.timestamps, self.ip_version)

    def tcp_rtt_s(self, mss_bytes: float = math.inf) -> float:
        """Return the round-trip time of a full TCP segment and its acknowledgement."""
        headers = ETHERNET_HEADER_BYTES + _tcp_header_bytes(self.timestamps, self.ip_version)
        segment = _delay_s(self.there, headers + self.segment_bytes(mss_bytes))
        return segment + _delay_s(self.back, headers)

    def windowed_bps(
        self,
        kernel: KernelBuffers,
        mss_bytes: float,
        send_bytes: float | None = None,
        receive_bytes: float | None = None,
    ) -> float:
        """Return what one connection sends at most with such buffers: its window each round trip.

        ``send_bytes`` and ``receive_bytes`` are the buffers asked for at the two ends. Without a
        request, the kernel lets buffers grow as far as the hosts allow. A send buffer keeps sent
        data until they are acknowledged. It takes another train of segments while it has any room
        (sk_stream_memory_free in include/net/sock.h). The memory that segments take besides their
        payload is not accounted for. RFC 6349, section 3.3.1. Nagle's algorithm allows one small
        segment under way (tcp_minshall_check in net/ipv4/tcp_output.c), so a window of any size
        can be filled. Infinite where the path takes no time.
        """
        payload = self.segment_bytes(mss_bytes)
        headers = ETHERNET_HEADER_BYTES + _tcp_header_bytes(self.timestamps, self.ip_version)
        frame = payload + headers
        sends, receives = self.near.send_bytes, self.far.receive_bytes
        if send_bytes is not None:
            sends = kernel.granted_bytes(send_bytes)
        if receive_bytes is not None:
            receives = kernel.granted_bytes(receive_bytes)
        rtt_s = self.tcp_rtt_s(mss_bytes)
        most = min(sends + _TRAIN_BYTES, kernel.window_bytes(receives, payload, frame))
        return most * 8 / rtt_s if rtt_s else math.inf

    def tcp_bps(self) -> float:
        """Return the goodput bound of one TCP connection alone, in bits per second."""
        return self.bottleneck.settings.rate_bps * self.tcp_payload_ratio()

    def bdp_bytes(self) -> float:
        """Return the bandwidth-delay product: bottleneck rate x base RTT (RFC 6349, section 3)."""
        return self.bottleneck.settings.rate_bps * self.rtt_s() / 8


@dataclass(frozen=True, slots=True)
class KernelBuffers:
    """What the kernel does to socket buffers: its version, and the most that it lets one ask for.

    ``buffer_most_bytes`` is the smaller of net.core.rmem_max and wmem_max, ``receive_most_bytes``
    the larger of rmem_max and the last of net.ipv4.tcp_rmem, here as Linux has it by itself.
    """

    version: tuple[int, int]
    buffer_most_bytes: float = math.inf
    receive_most_bytes: float = 6 * 2**20

    def granted_bytes(self, asked_bytes: float) -> float:
        """Return the buffer that a program gets.

        It is cut and then doubled (sk_setsockopt in net/core/sock.c), since a frame takes more
        memory than its payload.
        """
        return 2 * min(asked_bytes, self.buffer_most_bytes)

    def window_bytes(self, buffer_bytes: float, payload_bytes: int, frame_bytes: int) -> float:
        """Return the receive window of a buffer, when frames are full.

        Since Linux 6.6 the window is the buffer times the share of payload in the first full
        frame, in 256ths (tcp_measure_rcv_mss in net/ipv4/tcp_input.c). In older kernels it is half
        of the buffer. It is also half if no segment is larger than 536 bytes, the size that the
        kernel assumes at first (tcp_initialize_rcv_mss). The window is advertised in units of the
        window scale, rounded up (__tcp_select_window in net/ipv4/tcp_output.c). The scale allows
        for the largest possible window (tcp_select_initial_window, ibidem).
        """
        if math.isinf(buffer_bytes):
            return math.inf
        share = 128
        if self.version >= (6, 6) and payload_bytes > _DEFAULT_MSS:
            share = 256 * payload_bytes // _memory_bytes(frame_bytes)
        scale = min(14, max(0, math.floor(math.log2(self.receive_most_bytes)) - 15))
        unit_bytes = 1 << scale
        return math.ceil(buffer_bytes * share / 256 / unit_bytes) * unit_bytes


def _memory_bytes(frame_bytes: int) -> int:
    """Return what a frame takes of a buffer (SKB_TRUESIZE in include/linux/skbuff.h, 64 bit).

    Its head comes from a slab of a power of two, with 16 bytes of room before it and an skb_shared_
    info of 320 behind it, on cache lines; the sk_buff takes 256 more.
    """
    head_bytes = math.ceil((frame_bytes + 16) / 64) * 64 + 320
    return 256 + (1 << max(8, (head_bytes - 1).bit_length()))


@dataclass(frozen=True, slots=True)
class PathDemand:
    """One of several flows at the same time.

    ``hops`` are the links that its data takes; ``streams`` its parallel connections, each of which
    competes for itself; ``limit_bps`` what it sends at most, headers included.
    """

    hops: tuple[Hop, ...]
    streams: int = 1
    limit_bps: float = math.inf


def segment_bytes(
    mtu: int, mss_bytes: float = math.inf, timestamps: bool = True, ip_version: int = 4
) -> int:
    """Return the payload of a full TCP segment: 1448 bytes at an MTU of 1500 over IPv4."""
    mss = min(mtu - _IP_BYTES[ip_version] - _TCP_BYTES, mss_bytes)
    return int(mss) - timestamps * _TIMESTAMPS_BYTES


def tcp_payload_ratio(
    mtu: int, mss_bytes: float = math.inf, timestamps: bool = True, ip_version: int = 4
) -> float:
    """Return the part of a full frame that is TCP payload: 1448 of 1514 bytes at an MTU of 1500."""
    payload = segment_bytes(mtu, mss_bytes, timestamps, ip_version)
    headers = _tcp_header_bytes(timestamps, ip_version) + ETHERNET_HEADER_BYTES
    return payload / (payload + headers)


def is_fragmented(payload_bytes: int, mtu: int, ip_version: int = 4) -> bool:
    """Return whether a datagram with such a payload is more than one packet."""
    return payload_bytes + _UDP_BYTES > mtu - _IP_BYTES[ip_version]


def udp_payload_ratio(payload_bytes: int, mtu: int, ip_version: int = 4) -> float:
    """Return the part of a datagram's frames, one for each of its fragments, that is payload."""
    datagram = payload_bytes + _UDP_BYTES
    headers, fragments = _IP_BYTES[ip_version] + ETHERNET_HEADER_BYTES, 1
    if is_fragmented(payload_bytes, mtu, ip_version):
        headers += _FRAGMENT_BYTES[ip_version]
        fragments = math.ceil(datagram / ((mtu + ETHERNET_HEADER_BYTES - headers) // 8 * 8))
    return payload_bytes / (datagram + fragments * headers)


def _tcp_header_bytes(timestamps: bool, ip_version: int) -> int:
    return _IP_BYTES[ip_version] + _TCP_BYTES + timestamps * _TIMESTAMPS_BYTES


def _delay_s(hops: Sequence[Hop], frame_bytes: int) -> float:
    """Return how long a frame takes over idle links."""
    return sum(hop.settings.delay_s + 8 * frame_bytes / hop.settings.rate_bps for hop in hops)


def path(
    topology: Topology,
    source: str,
    goal: str,
    interface: str | None = None,
    ip_version: int | None = None,
) -> NetworkPath:
    """Return the path from one host to another, at the address by which the lab knows the goal.

    Over IPv4, unless the lab has IPv6 only or ``ip_version`` says otherwise.

    ``interface`` is the label or device of the source's interface that is bound, if any. Raises
    LookupError when the source has none of this name, or the two do not reach each other by it.
    """
    out = None if interface is None else _interface(topology, source, interface)
    target = topology.interfaces(goal)[0]
    ip_version = ip_version or topology.ip_versions[0]
    forwarding = Forwarding(topology, ip_version)
    there = forwarding.walk(source, target, out)
    back = forwarding.walk(goal, there[0].start, target) if there else None
    if not there or not back:
        by = f" by {interface}" if interface else ""
        raise LookupError(f"there is no path from {source} to {goal}{by}")
    return NetworkPath(
        there,
        back,
        all(_has_timestamps(topology, n) for n in (source, goal)),
        _buffers(topology, source),
        _buffers(topology, goal),
        ip_version,
    )


def _buffers(topology: Topology, node: str) -> HostBuffers:
    sysctl = topology.nodes[node].sysctl
    most = [sysctl.get(f"net.ipv4.tcp_{kind}", "").split()[2:] for kind in ("wmem", "rmem")]
    return HostBuffers(*(float(last[0]) if last else math.inf for last in most))


def _has_timestamps(topology: Topology, node: str) -> bool:
    return topology.nodes[node].sysctl.get("net.ipv4.tcp_timestamps", "1") != "0"


def _interface(topology: Topology, node: str, name: str) -> Interface:
    for end in topology.interfaces(node):
        if name in (end.label, end.device):
            return end
    raise LookupError(f"{node} has no interface {name}")


class Share(NamedTuple):
    """What a flow gets, in bits per second of frames, all streams together.

    ``full`` is the link that allows no more; None for a flow that has all it wants, or an infinite
    share because nothing limits it.
    """

    rate_bps: float
    full: Hop | None


def fair_shares(demands: Sequence[PathDemand]) -> list[Share]:
    """Return each flow's max-min fair share."""
    shares = [0.0] * len(demands)
    bottlenecks: dict[int, Hop] = {}
    capacity = {
        hop: hop.capacity_bps
        for demand in demands
        for hop in demand.hops
        if math.isfinite(hop.capacity_bps)
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
        growing = {i for i in growing if wishes[i] > gain}
        for i in growing:
            full = next((hop for hop in demands[i].hops if gains.get(hop) == gain), None)
            if full is not None:
                bottlenecks[i] = full
        growing -= bottlenecks.keys()
    return [Share(share, bottlenecks.get(i)) for i, share in enumerate(shares)]
