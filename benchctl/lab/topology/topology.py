"""From a topology file to a validated `Topology`: every error names file, line and element."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import replace
from functools import partial
from ipaddress import (
    IPv4Address,
    IPv4Interface,
    IPv4Network,
    IPv6Address,
    IPv6Interface,
    IPv6Network,
    ip_address,
    ip_network,
)
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from benchctl.errors import nearest
from benchctl.lab.topology import ssh_service
from benchctl.lab.topology.addressing import AddressError, assign
from benchctl.lab.topology.model import (
    Interface,
    Kind,
    Link,
    LinkSettings,
    Node,
    Route,
    Service,
    Topology,
)
from benchctl.lab.topology.routing import Forwarding, interface_tables, route
from benchctl.lab.topology.schema import (
    DirectionTable,
    LinkTable,
    RouterTable,
    RouteTable,
    ServiceTable,
    SwitchTable,
    TopologyFile,
    TopologyHostTable,
)
from benchctl.lab.topology.segments import SwitchLoopError, segments
from benchctl.toml.source import Key, TomlSource, merge, read_toml
from benchctl.toml.table import explain, names_in
from benchctl.units import quoted

_KINDS = {"hosts": Kind.HOST, "routers": Kind.ROUTER, "switches": Kind.SWITCH}
_NAME = re.compile(r"[A-Za-z0-9]([A-Za-z0-9_-]*[A-Za-z0-9])?\Z")
# A network device's name has at most 15 characters (IFNAMSIZ in linux/if.h).
_LABEL = re.compile(r"[A-Za-z][A-Za-z0-9_-]{0,14}\Z")
_TAKEN_DEVICES = ("lo", "switch")


def load_topology(path: Path, settings: Mapping[str, Any] | None = None) -> Topology:
    """Read and check a topology file.

    ``settings`` replace values of the file, by dotted name: ``{"links.core.loss": "2%"}``.
    Raises ProfileError.
    """
    return build_topology(read_toml(path), settings or {})


def build_topology(source: TomlSource, settings: Mapping[str, Any]) -> Topology:
    """Check the data of a topology file, with values replaced as in `load_topology`.

    Raises ProfileError.
    """
    data = source.data
    for name, value in settings.items():
        key = tuple(name.split("."))
        if key[0] in ("links", *_KINDS) and len(key) > 1 and key[1] not in data.get(key[0], {}):
            known = data.get(key[0], {})
            raise source.error(key[:2], "no such element", nearest(key[1], known))
        for part in reversed(key):
            value = {part: value}
        data = merge(data, value)
    try:
        tables = TopologyFile.model_validate(data)
    except ValidationError as error:
        raise source.error(*explain(error, data, partial(names_in, TopologyFile))) from None
    return _Builder(source, tables).build()


class _Builder:
    """Turns well-formed tables into a topology, or reports their errors."""

    def __init__(self, source: TomlSource, tables: TopologyFile) -> None:
        self._source = source
        self._tables = tables
        self._elements: dict[str, tuple[Key, RouterTable | SwitchTable]] = {}
        self._ports: dict[str, list[str]] = {}
        self._count = 0

    def build(self) -> Topology:
        nodes = {name: self._node(name, key, table) for name, key, table in self._named()}
        self._check_aliases()
        links = {name: self._link(name, table) for name, table in self._tables.links.items()}
        local = self._tables.local or next(iter(self._tables.hosts))
        if local not in self._tables.hosts:
            raise self._source.error(
                ("local",), f"no host {quoted(local)}", nearest(local, self._tables.hosts)
            )
        topology = Topology(
            name=self._source.path.stem,
            nodes=nodes,
            links=links,
            local=local,
            title=self._tables.title,
            emulator=self._tables.emulator,
            seed=self._tables.seed,
            ip_versions=self._ip_versions(),
            path=self._source.path,
        )
        try:
            topology = assign(topology)
        except SwitchLoopError as error:
            key = ("links", error.link.name)
            raise self._source.error(key, "closes a loop of switches", "remove one link") from None
        except AddressError as error:
            raise self._source.error(self._address_key(topology, error.end), str(error)) from None
        routed = route(self._with_given_routes(topology))
        self._check_paths(topology, routed)
        return routed

    def _ip_versions(self) -> tuple[int, ...]:
        has = {4: self._tables.ipv4, 6: self._tables.ipv6}
        if not any(has.values()):
            raise self._source.error(("ipv4",), "the lab has no IP version", "set ipv6 = true")
        for name, table in self._tables.links.items():
            for node, addresses in table.addresses.items():
                for address in addresses:
                    if not has[address.version]:
                        key = ("links", name, "addresses", node)
                        hint = f"set ipv{address.version} = true"
                        raise self._source.error(key, f"this lab has no IPv{address.version}", hint)
        return tuple(version for version, there in has.items() if there)

    def _named(self) -> Iterable[tuple[str, Key, RouterTable | SwitchTable]]:
        """Return every node's name, key and table, once its name is valid."""
        for group in _KINDS:
            for name, table in getattr(self._tables, group).items():
                key: Key = (group, name)
                if not _NAME.match(name):
                    raise self._source.error(
                        key,
                        "names consist of letters, digits, - and _, and begin and end with a "
                        "letter or digit",
                    )
                if name in self._elements:
                    other = self._source.line(self._elements[name][0])
                    raise self._source.error(key, f"this name is already used, in line {other}")
                self._elements[name] = (key, table)
                yield name, key, table

    def _node(self, name: str, key: Key, table: RouterTable | SwitchTable) -> Node:
        kind = _KINDS[str(key[0])]
        if isinstance(table, SwitchTable):
            return Node(name, kind)
        sysctl = {}
        for where, values in (((), self._tables.sysctl), (key, table.sysctl)):
            for setting, value in values.items():
                full = setting if "." in setting else f"net.ipv4.{setting}"
                if not re.fullmatch(r"net(\.[A-Za-z0-9_-]+)+", full):
                    raise self._source.error(
                        (*where, "sysctl", setting), "not a setting of a network namespace",
                        "write tcp_sack, or in full net.ipv4.tcp_sack",
                    )  # fmt: skip
                if not str(value).replace("\t", " ").isprintable():  # the kernel writes tabs
                    raise self._source.error(
                        (*where, "sysctl", setting), "has a line break or a control character"
                    )
                sysctl[full] = str(value)
        if not isinstance(table, TopologyHostTable):
            return Node(name, kind, sysctl=sysctl)
        services = tuple(service for each in table.services for service in _services(each))
        if any(service.ordinary for service in services):
            sysctl = {**ssh_service.SYSCTL, **sysctl}
        return Node(name, kind, tuple(table.aliases), sysctl, table.initcwnd, services)

    def _check_aliases(self) -> None:
        taken = dict.fromkeys(self._elements, "a node")
        for name, (key, table) in self._elements.items():
            for alias in table.aliases if isinstance(table, TopologyHostTable) else ():
                where = (*key, "aliases")
                if not all(_NAME.match(part) for part in alias.split(".")):
                    raise self._source.error(where, f"{quoted(alias)} is not a host name")
                if alias in taken:
                    raise self._source.error(where, f"{quoted(alias)} also names {taken[alias]}")
                taken[alias] = name

    def _link(self, name: str, table: LinkTable) -> Link:
        key: Key = ("links", name)
        near, far = (self._end(key, text, table) for text in table.between)
        if near.node == far.node:
            raise self._source.error((*key, "between"), f"joins {near.node} to itself")
        for node in (*table.toward, *table.addresses):
            if node not in (near.node, far.node):
                group = "toward" if node in table.toward else "addresses"
                raise self._source.error(
                    (*key, group, node), f"the link does not go to {quoted(node)}",
                    nearest(node, (near.node, far.node)),
                )  # fmt: skip
        return Link(
            name,
            (near, far),
            (self._settings(key, table, far.node), self._settings(key, table, near.node)),
            table.mtu,
        )

    def _end(self, key: Key, text: str, table: LinkTable) -> Interface:
        node, colon, label = text.partition(":")
        if node not in self._elements:
            raise self._source.error(
                (*key, "between"), f"no node {quoted(node)}", nearest(node, self._elements)
            )
        if colon and (not _LABEL.match(label) or label in _TAKEN_DEVICES):
            raise self._source.error(
                (*key, "between"), f"{quoted(label)} is not a valid interface name",
                "use up to 15 letters, digits, - and _, beginning with a letter; not lo or switch",
            )  # fmt: skip
        devices = self._ports.setdefault(node, [])
        device = label or f"eth{len(devices)}"
        if device in devices:
            raise self._source.error((*key, "between"), f"{node} has an interface {device} already")
        devices.append(device)
        self._count += 1
        # Locally administered (IEEE 802, bit 1 of the first octet), and the same in every run.
        mac = "02:00:00:" + self._count.to_bytes(3).hex(":")
        given = table.addresses.get(node, ())
        if given and self._elements[node][0][0] == "switches":
            raise self._source.error((*key, "addresses", node), "a switch has no address")
        address = next(
            (interface for interface in given if isinstance(interface, IPv4Interface)), None
        )
        address6 = next(
            (interface for interface in given if isinstance(interface, IPv6Interface)), None
        )
        return Interface(node, device, mac, label, address, address6)

    def _settings(self, key: Key, table: LinkTable, toward: str) -> LinkSettings:
        """Return the settings of the direction toward a node."""
        own = table.toward.get(toward, DirectionTable())
        names = {
            "rate": "rate_bps", "delay": "delay_s", "jitter": "jitter_s", "loss": "loss_ratio",
            "queue": "queue_packets",
        }  # fmt: skip
        given = {
            field: value
            for name, field in names.items()
            for value in [
                getattr(own, name) if getattr(own, name) is not None else getattr(table, name)
            ]
            if value is not None
        }
        settings = LinkSettings(**given)
        if settings.jitter_s > settings.delay_s:
            where = (*key, "toward", toward) if own.jitter or own.delay else key
            raise self._source.error(
                (*where, "jitter"), "the jitter is greater than the delay",
                "a frame cannot arrive before it was sent",
            )  # fmt: skip
        return settings

    def _address_key(self, topology: Topology, end: Interface) -> Key:
        link = next(
            link.name
            for link in topology.links.values()
            for other in link.ends
            if (other.node, other.device) == (end.node, end.device)
        )
        return ("links", link, "addresses", end.node) if end.has_address else ("links", link)

    def _with_given_routes(self, topology: Topology) -> Topology:
        nodes = {}
        for name, node in topology.nodes.items():
            key, table = self._elements[name]
            routes: list[Route] = []
            for index, given in enumerate(table.routes if isinstance(table, RouterTable) else ()):
                routes += self._given(topology, node, (*key, "routes", index), given)
            nodes[name] = replace(node, routes=tuple(routes))
        return replace(topology, nodes=nodes)

    def _given(self, topology: Topology, node: Node, key: Key, given: RouteTable) -> list[Route]:
        """Return a given route, once for every address of its destination and every table."""
        neighbours = [
            (out, via)
            for segment in segments(topology)
            for out in segment
            if out.node == node.name
            for via in segment
            if via.node != node.name
        ]
        hop = _address(given.via)
        steps = [
            (out, via)
            for out, via in neighbours
            if given.via == via.node or hop in [via.at(v).ip for v in topology.ip_versions]
        ]
        if not steps:
            raise self._source.error(
                (*key, "via"), f"{quoted(given.via)} is not a neighbour of {node.name}",
                nearest(given.via, {via.node for _, via in neighbours}),
            )  # fmt: skip
        out, via = steps[0]
        goals = self._goals(topology, key, given)
        reached = [goal for goal in goals if hop is None or hop.version == goal.version]
        if not reached:
            raise self._source.error(
                (*key, "to"), f"{quoted(given.to)} is of another IP version than its next hop"
            )
        numbers = [number for number, end in interface_tables(topology, node) if end == out]
        initcwnd = given.initcwnd or node.initcwnd
        return [
            Route(goal, out.device, str(via.at(goal.version).ip), initcwnd, table)
            for goal in reached
            for table in (0, *numbers)
        ]

    def _goals(
        self, topology: Topology, key: Key, given: RouteTable
    ) -> list[IPv4Network | IPv6Network]:
        versions = topology.ip_versions
        if given.to == "default":
            return [ip_network("::/0" if version == 6 else "0.0.0.0/0") for version in versions]
        if given.to in topology.nodes:
            ends = [end for end in topology.interfaces(given.to) if end.has_address]
            return [ip_network(end.at(version).ip) for version in versions for end in ends]
        try:
            network = ip_network(given.to)
        except ValueError as error:
            hint = nearest(given.to, self._elements)
            raise self._source.error(
                (*key, "to"), f"neither a node nor a network: {error}",
                hint or 'write a network as "10.0.3.0/24"',
            ) from None  # fmt: skip
        if network.version not in versions:
            version = network.version
            hint = f"set ipv{version} = true"
            raise self._source.error((*key, "to"), f"this lab has no IPv{version}", hint)
        return [network]

    def _check_paths(self, topology: Topology, routed: Topology) -> None:
        """Check that each host has a link, and that given routes leave no pair without a path."""
        for name in topology.hosts:
            if len(topology.nodes) > 1 and not topology.interfaces(name):
                raise self._source.error(("hosts", name), "no link leads to it")
        if not any(table.routes for table in (*self._tables.hosts.values(),
                                              *self._tables.routers.values())):  # fmt: skip
            return
        computed = route(topology)
        for version in topology.ip_versions:
            may, does = Forwarding(computed, version), Forwarding(routed, version)
            groups = does.alike(topology.interfaces(name)[0] for name in topology.hosts)
            # Two of each group: who reaches the first reaches all, and it reaches what the second
            # shows.
            for goal in (goal for group in groups for goal in group[:2]):
                lost = may.reaching(goal) - does.reaching(goal)
                for start in (name for name in topology.hosts if name in lost):
                    raise self._source.error(
                        ("hosts", start), f"there is no path from {start} to {goal.node}",
                        "the given routes lead elsewhere, or in a circle",
                    )  # fmt: skip


def _address(text: str) -> IPv4Address | IPv6Address | None:
    """Return an address that is written so; None for a name."""
    try:
        return ip_address(text)
    except ValueError:
        return None


def _services(table: ServiceTable) -> list[Service]:
    if table.iperf3:
        low, high = table.iperf3
        return [
            Service(("iperf3", "--server", "--port", str(port)), (port,))
            for port in range(low, high + 1)
        ]
    if table.ssh:
        low, high = table.ssh
        return [ssh_service.server(port) for port in range(low, high + 1)]
    low, high = table.ports or (1, 0)
    return [Service(tuple(table.command or ()), tuple(range(low, high + 1)))]
