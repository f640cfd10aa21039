"""Computes static routes: the shortest path from every node to every subnet.

Shortest is fewest hops, then least delay, then first in the file; hosts do not forward. A host with
several interfaces has a routing table for each of them besides the main one, so that packets from
an interface's address, or bound to the interface, leave by it, whichever interface is nearest to
the destination.
"""

from __future__ import annotations

import heapq
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from ipaddress import IPv4Network, IPv6Network, ip_address
from itertools import count

from benchctl.lab.topology.model import Interface, Kind, Node, Route, Topology
from benchctl.lab.topology.segments import Hop, cables, segments

# Above the tables that Linux reserves (0, 253 to 255), and easy to recognize.
_FIRST_TABLE = 1001


@dataclass(frozen=True, slots=True)
class _Edge:
    """From an interface to a router's on the same segment."""

    out: Interface
    via: Interface
    delay_s: float


def route(topology: Topology) -> Topology:
    """Return the topology with all routes: the given and the computed ones.

    A given route replaces the computed one for the same network and table.
    """
    edges = _edges(topology)
    nodes = {}
    for name, node in topology.nodes.items():
        found = []
        for version in topology.ip_versions:
            found += _routes(topology, edges, node, topology.interfaces(name), 0, version)
            for table, end in interface_tables(topology, node):
                found += _routes(topology, edges, node, [end], table, version)
        given = {(route.network, route.table) for route in node.routes}
        kept = [route for route in found if (route.network, route.table) not in given]
        nodes[name] = replace(node, routes=(*kept, *node.routes))
    return replace(topology, nodes=nodes)


def interface_tables(topology: Topology, node: Node) -> list[tuple[int, Interface]]:
    """Return the numbers of a node's tables besides the main one, with their interfaces."""
    ends = topology.interfaces(node.name)
    if node.kind is not Kind.HOST or len(ends) < 2:
        return []
    return list(enumerate(ends, _FIRST_TABLE))


class Forwarding:
    """Routes packets of one IP version through a topology: longest prefix first, as the kernel."""

    def __init__(self, topology: Topology, ip_version: int = 4) -> None:
        self._topology = topology
        self._version = ip_version
        self._at: dict[int, Interface] = {}
        # Prefix length, network, device, next address or None, by node and table.
        self._tables: dict[tuple[str, int], list[tuple[int, int, Interface, int | None]]] = {}
        devices: dict[tuple[str, str], Interface] = {}
        for link in topology.links.values():
            for end in link.ends:
                devices[end.node, end.device] = end
                if end.has_address:
                    self._at[self._number(end)] = end
                    self._add(end.node, 0, end.at(ip_version).network, end, None)
        for name, node in topology.nodes.items():
            for each in node.routes:
                if each.network.version == ip_version:
                    via = int(ip_address(each.via)) if each.via else None
                    self._add(name, each.table, each.network, devices[name, each.device], via)
        for table in self._tables.values():
            table.sort(key=lambda entry: -entry[0])

    def walk(
        self, start: str, goal: Interface, out: Interface | None = None
    ) -> tuple[Hop, ...] | None:
        """Return the links that a packet passes from a node to an address.

        ``out`` is the interface whose address the packet is bound to, if any. None if a node on the
        way has no route, or the routes form a loop.
        """
        own = interface_tables(self._topology, self._topology.nodes[start])
        table = next((number for number, end in own if end == out), 0)
        hops: tuple[Hop, ...] = ()
        here, seen = start, set()
        while here != goal.node:
            step = self._step(here, self._number(goal), table)
            if here in seen or step is None:
                return None
            seen.add(here)
            hops += cables(self._topology, *step)
            here, table = step[1].node, 0
        return hops

    def reaching(self, goal: Interface) -> set[str]:
        """Return the nodes whose packets to an address arrive."""
        next_node = {
            name: step[1].node
            for name in self._topology.nodes
            if (step := self._step(name, self._number(goal), 0))
        }
        reaching = {goal.node}
        for name in self._topology.nodes:
            path: list[str] = []
            while name not in reaching and name in next_node and name not in path:
                path.append(name)
                name = next_node[name]
            if name in reaching:
                reaching.update(path)
        return reaching

    def alike(self, goals: Iterable[Interface]) -> list[list[Interface]]:
        """Return the addresses in groups to which every node has the same routes.

        An address of a node that is a next hop is a group by itself.
        """
        entries = [entry for table in self._tables.values() for entry in table]
        networks = {(length, network) for length, network, _, _ in entries}
        next_hops = {via for *_, via in entries}
        lengths = {length for length, _ in networks}
        bits = 128 if self._version == 6 else 32
        groups: dict[object, list[Interface]] = {}
        for goal in goals:
            number = self._number(goal)
            around = {(length, number >> (bits - length) << (bits - length)) for length in lengths}
            own = {self._number(end) for end in self._topology.interfaces(goal.node)}
            key = number if own & next_hops else frozenset(around & networks)
            groups.setdefault(key, []).append(goal)
        return list(groups.values())

    def _number(self, end: Interface) -> int:
        return int(end.at(self._version).ip)

    def _add(
        self,
        node: str,
        table: int,
        network: IPv4Network | IPv6Network,
        out: Interface,
        via: int | None,
    ) -> None:
        entry = (network.prefixlen, int(network.network_address), out, via)
        self._tables.setdefault((node, table), []).append(entry)

    def _step(self, node: str, goal: int, table: int) -> tuple[Interface, Interface] | None:
        """Return the interface a packet leaves by, and the one of the next node it comes to."""
        bits = 128 if self._version == 6 else 32
        for length, network, out, via in self._tables.get((node, table), ()):
            if (goal ^ network) >> (bits - length) == 0:
                end = self._at.get(goal if via is None else via)
                return (out, end) if end else None
        return None


def _edges(topology: Topology) -> Mapping[str, list[_Edge]]:
    edges: dict[str, list[_Edge]] = {name: [] for name in topology.nodes}
    for segment in segments(topology):
        for out in segment:
            for via in segment:
                if via.node != out.node and topology.nodes[via.node].kind is Kind.ROUTER:
                    hops = cables(topology, out, via)
                    delay_s = sum(hop.settings.delay_s for hop in hops)
                    edges[out.node].append(_Edge(out, via, delay_s))
    return edges


def _routes(
    topology: Topology,
    edges: Mapping[str, list[_Edge]],
    node: Node,
    outs: Sequence[Interface],
    table: int,
    version: int,
) -> list[Route]:
    """Return the routes of one table: those of a node that may only leave by ``outs``."""
    routes: dict[IPv4Network | IPv6Network, Route] = {}
    for out in outs:
        # The kernel adds this one to the main table by itself; a window there needs a new one.
        if out.has_address and (table or node.initcwnd):
            network = out.at(version).network
            routes.setdefault(network, Route(network, out.device, None, node.initcwnd, table))
    own = {out.at(version).network for out in outs if out.has_address}
    order = count()
    # Hops, delay, order of discovery; the router reached, and the first hop to it.
    heap: list[tuple[int, float, int, str, _Edge]] = []
    for edge in edges[node.name]:
        if edge.out in outs:
            heapq.heappush(heap, (1, edge.delay_s, next(order), edge.via.node, edge))
    settled = {node.name}
    while heap:
        hops, delay_s, _, here, first = heapq.heappop(heap)
        if here in settled:
            continue
        settled.add(here)
        for end in topology.interfaces(here):
            network = end.at(version).network
            if network not in own:
                via = str(first.via.at(version).ip)
                routes.setdefault(
                    network, Route(network, first.out.device, via, node.initcwnd, table)
                )
        for edge in edges[here]:
            heapq.heappush(
                heap, (hops + 1, delay_s + edge.delay_s, next(order), edge.via.node, first)
            )
    return list(routes.values())
