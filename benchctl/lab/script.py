"""What a lab is built of, as the lines that ``ip -batch`` and ``tc -batch`` take. Pure.

Each function returns the lines for one network namespace. A namespace that a cable leads to is
named by ``place``, a function from a node to a path (ip-link(8): ``netns`` takes a name or a
path).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from itertools import count

from benchctl.lab.model import ETHERNET_HEADER_BYTES, Kind, Node, Settings, Topology
from benchctl.lab.routing import interface_tables
from benchctl.lab.segments import segments

BRIDGE = "switch"
"""The device that joins the ports of a switch."""

LOOPBACK = "link set lo up"

# tbf's timer comes late by up to so much; time lost up to this is made good, at the price of bursts
# of as much.
_BURST_S = 1e-3
# Frames on their way are not in the link model's queue, so netem, which holds them, must not run
# full before the real queue does: a second of full frames at 10 Gbit/s.
_FLYING_FRAMES = 825_000

EVERY_KIND = Settings(rate_bps=1e6, delay_s=1e-3, jitter_s=1e-4, loss_ratio=0.01)
"""Settings that need every discipline; to find out whether a kernel has them."""

Place = Callable[[str], str]


def cables(topology: Topology, emulated: Mapping[str, tuple[str, str]], place: Place) -> list[str]:
    """Lay all cables: from node to node, or from each node to a device of an emulator here.

    ``emulated`` maps links to the emulator's devices.
    """
    # Every device gets a number of its own. A cable whose two ends have the same number, each in
    # its own namespace, looks to the kernel like no cable, and then the news that it is up may
    # wait for a second (linkwatch_urgent_event in net/core/link_watch.c).
    numbers = count(1001)
    lines = []
    for link in topology.links.values():
        ends = [
            f"index {next(numbers)} name {end.device} address {end.mac} mtu {link.mtu} "
            f"netns {place(end.node)}"
            for end in link.ends
        ]
        if link.name not in emulated:
            lines.append(f"link add {ends[0]} type veth peer {ends[1]}")
            continue
        for device, end in zip(emulated[link.name], ends, strict=True):
            near = f"index {next(numbers)} name {device} mtu {link.mtu}"
            lines += [f"link add {near} type veth peer {end}", f"link set {device} up"]
    return lines


def node(topology: Topology, node: Node) -> list[str]:
    """Configure a node whose cables are laid: devices, addresses, neighbours, routes."""
    lines = [LOOPBACK]
    ends = topology.interfaces(node.name)
    if node.kind is Kind.SWITCH:
        lines += [f"link add {BRIDGE} type bridge", f"link set {BRIDGE} up"]
        return lines + [f"link set {end.device} master {BRIDGE} up" for end in ends]
    for end in ends:
        lines.append(f"link set {end.device} up")
        lines.append(f"addr add {end.address} dev {end.device}")
    for segment in segments(topology):
        for end in segment:
            if end.node == node.name:
                # Known for ever: no frame is spent, or lost, on asking who has an address.
                lines += [
                    f"neigh add {other.ip} lladdr {other.mac} dev {end.device} nud permanent"
                    for other in segment
                    if other is not end
                ]
    for table, end in interface_tables(topology, node):
        lines.append(f"rule add from {end.ip} table {table} priority {table}")
        lines.append(f"rule add oif {end.device} table {table} priority {table}")
    for route in node.routes:
        # onlink: a next hop is a neighbour, whatever other route there is to its network.
        way = f"via {route.via} onlink" if route.via else "scope link"
        where = f" table {route.table}" if route.table else ""
        window = f" initcwnd {route.initcwnd}" if route.initcwnd else ""
        # The kernel has made the route to a device's own network already.
        lines.append(f"route replace {route.network} dev {route.device} {way}{where}{window}")
    return lines


def disciplines(device: str, settings: Settings, mtu: int) -> list[str]:
    """Let the kernel emulate the direction that leaves a device; lines for tc.

    netem delays and loses frames and hands them to tbf, which lets them out at the rate, from a
    queue of packets (pfifo). Against the order of `link`, delay and loss come before the queue:
    round-trip times, the rate and what the queue drops are the same, and a lost frame takes none
    of the link's time. See tc-netem(8), tc-tbf(8), tc-pfifo(8).
    """
    lines = []
    parent = "root"
    if settings.delay_s or settings.jitter_s or settings.loss_ratio:
        lines.append(
            f"{parent} handle 1: netem limit {_FLYING_FRAMES} delay {_us(settings.delay_s)} "
            f"{_us(settings.jitter_s)} loss {settings.loss_ratio:.6%}"
        )
        parent = "parent 1:1"
    if math.isfinite(settings.rate_bps):
        frame_bytes = mtu + ETHERNET_HEADER_BYTES
        burst_bytes = frame_bytes + math.ceil(settings.rate_bps / 8 * _BURST_S)
        # tbf's own queue counts bytes; the one that counts packets takes its place.
        limit_bytes = settings.queue_packets * frame_bytes
        lines.append(
            f"{parent} handle 2: tbf rate {round(settings.rate_bps)}bit burst {burst_bytes} "
            f"limit {limit_bytes}"
        )
        lines.append(f"parent 2:1 handle 3: pfifo limit {settings.queue_packets}")
    return [f"qdisc replace dev {device} {line}" for line in lines]


def _us(duration_s: float) -> str:
    return f"{round(duration_s * 1e6)}us"
