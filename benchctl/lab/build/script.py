"""The commands and files of a lab, as text: lines for ``ip -batch``, and files of host names. Pure.

`cables`, `node` and `network` return the lines for one network namespace. ``place`` maps a node to
the path of its namespace (ip-link(8): ``netns`` takes a name or a path).
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import count

from benchctl.lab.topology.model import Interface, Kind, Node, Topology
from benchctl.lab.topology.routing import interface_tables
from benchctl.lab.topology.segments import Hop, onward

BRIDGE = "switch"
"""The device that joins the ports of a switch."""

LOOPBACK = "link set lo up"

Ends = tuple[str, str]
"""The devices at the two ends of a cable or a link."""

WHOLE_FRAMES = "gro_max_size 1"
"""Of a device: GRO merges nothing."""

_Place = Callable[[str], str]


def cables(
    topology: Topology, emulated: Mapping[str, Ends], place: _Place, ordered: bool = False
) -> list[str]:
    """Create all cables: from node to node, or from each node to a device of an emulator here.

    ``emulated`` maps links to the emulator's devices; with ``ordered`` their cables are for
    `devices.set_offloads` to deliver in order.
    """
    whole = f"{WHOLE_FRAMES} " if ordered else ""
    # Every device gets a unique number. If the two ends of a cable have the same number, each in
    # its own namespace, the kernel does not recognize a cable, and may report it up a second late
    # (linkwatch_urgent_event in net/core/link_watch.c).
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
            lines += [
                f"link add {near} {whole}type veth peer {whole}{end}", f"link set {device} up",
            ]  # fmt: skip
    return lines


def node(node: Node, ends: Sequence[Interface]) -> list[str]:
    """Configure the devices of a node whose cables are laid."""
    if node.kind is not Kind.SWITCH:
        return [LOOPBACK, *(f"link set {end.device} up" for end in ends)]
    lines = [LOOPBACK, f"link add {BRIDGE} type bridge", f"link set {BRIDGE} up"]
    return lines + [f"link set {end.device} master {BRIDGE} up" for end in ends]


def network(topology: Topology, node: Node, version: int) -> list[str]:
    """Configure a host or router whose devices are up: addresses and routes.

    The lines are for ``ip -4`` or ``ip -6``, by the IP version.
    """
    lines = []
    # Nobody else has the address of IPv6, so it can be used at once.
    checked = " nodad" if version == 6 else ""
    for end in topology.interfaces(node.name):
        lines.append(f"addr add {end.at(version)} dev {end.device}{checked}")
    for table, end in interface_tables(topology, node):
        lines.append(f"rule add from {end.at(version).ip} table {table} priority {table}")
        lines.append(f"rule add oif {end.device} table {table} priority {table}")
    # The metric of the route that the kernel adds for an address of IPv6 (IP6_RT_PRIO_ADDRCONF in
    # include/net/ip6_route.h), which this one replaces.
    linked = "metric 256" if version == 6 else "scope link"
    for route in node.routes:
        if route.network.version != version:
            continue
        # onlink: a next hop is a neighbour, whatever other route there is to its network.
        next_hop = f"via {route.via} onlink" if route.via else linked
        where = f" table {route.table}" if route.table else ""
        window = f" initcwnd {route.initcwnd}" if route.initcwnd else ""
        # The kernel has added the route to a device's own network already.
        lines.append(f"route replace {route.network} dev {route.device} {next_hop}{where}{window}")
    return lines


def neighbours(topology: Topology, node: Node) -> Iterator[tuple[str, Interface]]:
    """Yield the devices of a node, each with the interfaces of others on its segment."""
    for link in topology.links_of(node.name):
        for direction, end in enumerate(link.ends):
            if end.node == node.name:
                for path in onward(topology, Hop(link, direction)):
                    yield end.device, path[-1].end


def hosts_file(topology: Topology) -> str:
    """Return /etc/hosts: every node's name and aliases at the addresses of its first interface.

    Names in a lab resolve from this file and from nowhere else, so an alias such as
    ``speedtest.example.net`` reaches the lab's host and never the real one.
    """
    lines = ["127.0.0.1 localhost", "::1 localhost"]
    for node in topology.nodes.values():
        for version in topology.ip_versions:
            if address := topology.known_at(node.name, version):
                lines.append(" ".join([address, node.name, *node.aliases]))
    return "\n".join(lines) + "\n"


def nsswitch_file(text: str) -> str:
    """Return a machine's /etc/nsswitch.conf with host names taken from files alone."""
    others = re.sub(r"^\s*hosts:.*\n?", "", text, flags=re.M)
    return f"{others.rstrip()}\nhosts: files\n".lstrip()
