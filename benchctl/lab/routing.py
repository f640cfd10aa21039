"""Static routes worked out: the shortest path from every node to every subnet.

Shortest is fewest hops, then least delay, then first in the file; hosts do not forward. A host
with several interfaces has a table of routes for each of them beside the main one, so that what
is sent from an interface's address, or bound to the interface, leaves by it, whichever interface
is nearest to the goal.
"""

from __future__ import annotations

import heapq
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from ipaddress import IPv4Address, IPv4Network
from itertools import count

from benchctl.lab.model import Interface, Kind, Node, Route, Topology
from benchctl.lab.segments import Hop, cables, segments

# Above the tables that Linux reserves (0, 253 to 255), and easy to tell from them.
_FIRST_TABLE = 1001


@dataclass(frozen=True, slots=True)
class _Edge:
    """From an interface to one of another node on the same segment."""

    out: Interface
    via: Interface
    delay_s: float


def route(topology: Topology) -> Topology:
    """Return the topology with all routes, in place of those that were only given.

    A route that was given replaces the one worked out for the same network and table.
    """
    edges = _edges(topology)
    nodes = {}
    for name, node in topology.nodes.items():
        found = _routes(topology, edges, node, topology.interfaces(name), 0)
        for table, end in interface_tables(topology, node):
            found += _routes(topology, edges, node, [end], table)
        given = {(route.network, route.table) for route in node.routes}
        kept = [route for route in found if (route.network, route.table) not in given]
        nodes[name] = replace(node, routes=(*kept, *node.routes))
    return replace(topology, nodes=nodes)


def interface_tables(topology: Topology, node: Node) -> list[tuple[int, Interface]]:
    """Return the numbers of a node's tables beside the main one, with their interfaces."""
    ends = topology.interfaces(node.name)
    if node.kind is not Kind.HOST or len(ends) < 2:
        return []
    return list(enumerate(ends, _FIRST_TABLE))


def walk(
    topology: Topology, start: str, goal: Interface, out: Interface | None = None
) -> tuple[Hop, ...] | None:
    """Return the links that a packet passes from a node to an address, by the nodes' routes.

    ``out`` is the interface whose address the packet comes from, where it was bound to one. None
    when a node on the way has no route, or the packet goes round in circles.
    """
    assert goal.address is not None, "a packet goes to an address"
    ends = {
        end.address.ip: end for link in topology.links.values() for end in link.ends if end.address
    }
    own = interface_tables(topology, topology.nodes[start])
    table = next((number for number, end in own if end == out), 0)
    hops: tuple[Hop, ...] = ()
    here, seen = start, set()
    while here != goal.node:
        step = _lookup(topology, here, goal.address.ip, table)
        if here in seen or step is None:
            return None
        seen.add(here)
        leaving, next_ip = step
        if next_ip not in ends:
            return None
        hops += cables(topology, leaving, ends[next_ip])
        here, table = ends[next_ip].node, 0
    return hops


def _lookup(
    topology: Topology, node: str, goal: IPv4Address, table: int
) -> tuple[Interface, IPv4Address] | None:
    """Return the interface and the next address that a node's routes choose for a goal."""
    interfaces = topology.interfaces(node)
    found: list[tuple[int, Interface, IPv4Address]] = []
    for end in interfaces:
        if end.address and goal in end.address.network and not table:
            found.append((end.address.network.prefixlen, end, goal))
    for route in topology.nodes[node].routes:
        if route.table == table and goal in route.network:
            end = next(end for end in interfaces if end.device == route.device)
            next_ip = IPv4Address(route.via) if route.via else goal
            found.append((route.network.prefixlen, end, next_ip))
    if not found:
        return None
    _, end, next_ip = max(found, key=lambda item: item[0])
    return end, next_ip


def _edges(topology: Topology) -> Mapping[str, list[_Edge]]:
    edges: dict[str, list[_Edge]] = {name: [] for name in topology.nodes}
    for segment in segments(topology):
        for out in segment:
            for via in segment:
                if via.node != out.node:
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
) -> list[Route]:
    """Return the routes of one table: those of a node that may only leave by ``outs``."""
    routes: dict[IPv4Network, Route] = {}
    for out in outs:
        # The kernel itself makes this one in the main table; a window there needs a new one.
        if out.address and (table or node.initcwnd):
            network = out.address.network
            routes[network] = Route(network, out.device, None, node.initcwnd, table)
    own = {out.address.network for out in outs if out.address}
    order = count()
    # Hops, delay, order of discovery; the router reached, and the first step that leads there.
    heap: list[tuple[int, float, int, str, _Edge]] = []
    for edge in edges[node.name]:
        if edge.out in outs:
            heapq.heappush(heap, (1, edge.delay_s, next(order), edge.via.node, edge))
    settled = {node.name}
    while heap:
        hops, delay_s, _, here, first = heapq.heappop(heap)
        if here in settled or topology.nodes[here].kind is not Kind.ROUTER:
            continue
        settled.add(here)
        for end in topology.interfaces(here):
            assert end.address is not None, "a router has addresses"
            network = end.address.network
            if network not in own:
                routes.setdefault(
                    network, Route(network, first.out.device, first.via.ip, node.initcwnd, table)
                )
        for edge in edges[here]:
            heapq.heappush(
                heap, (hops + 1, delay_s + edge.delay_s, next(order), edge.via.node, first)
            )
    return list(routes.values())
