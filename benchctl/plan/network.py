"""The network of a lab as the flows of a run see it: names, both ends of a flow, addresses."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING

from msgspec.structs import replace

from benchctl.run.planned import (
    LOCAL,
    DeclaredNetwork,
    Host,
    HostInterface,
    Network,
    PlannedFlow,
    SshTarget,
)

if TYPE_CHECKING:
    from benchctl.lab.topology.model import Topology


def names_of(topology: Topology) -> dict[str, str]:
    """Return every name of each host of a lab, mapped to the host's own name.

    A profile's ``local`` is the host that represents this machine.
    """
    own = {name: name for name in topology.hosts}
    aliases = {alias: name for name in own for alias in topology.nodes[name].aliases}
    return {LOCAL.name: topology.local} | own | aliases


def ends_of(
    outside: DeclaredNetwork, topology: Topology, flows: Iterable[PlannedFlow]
) -> dict[str, tuple[str, str]]:
    """Return the lab's names of the two hosts of each flow that stays in the lab."""
    found = {}
    names = names_of(topology)
    for flow in flows:
        peer = outside.peers.get(flow.to)
        source, target = names.get(flow.source), names.get(peer.host if peer else flow.to)
        if source and target and source != target:
            found[flow.name] = (source, target)
    return found


def planned_network(outside: DeclaredNetwork, topology: Topology) -> Network:
    """Return the network of a lab that is not built yet, to compute commands."""
    nodes = {}
    for name in topology.hosts:
        ends = [end for end in topology.interfaces(name) if end.has_address]
        interfaces = {end.label or end.device: HostInterface(end.device, end.ip) for end in ends}
        nodes[name] = Host(
            name,
            topology.known_at(name),
            interfaces=interfaces,
            shares_ports=False,
            address6=topology.known_at(name, 6),
        )
    return inside(outside, topology, nodes)


def inside(outside: DeclaredNetwork, topology: Topology, nodes: Mapping[str, Host]) -> Network:
    """Return the network of a lab: its hosts under all their names, without our interfaces."""
    hosts = {}
    for known, name in names_of(topology).items():
        services = topology.nodes[name].services
        taken = frozenset(port for service in services for port in service.ports)
        hosts[known] = replace(nodes[name], taken_ports=taken)
    by_ssh = {
        name: _by_ssh(host, hosts.get(name), hosts[LOCAL.name])
        for name, host in outside.remote.items()
    }
    return Network({**hosts, **by_ssh}, outside.peers)


def _by_ssh(host: Host, node: Host | None, start: Host) -> Host:
    """Return a host that ``ssh`` reaches from another host of the lab.

    What the profile does not say of it is that of the lab's host of the same name.
    """
    if not isinstance(host.reach, SshTarget):
        return host
    host = replace(host, reach=host.reach._replace(over=start.prefix))
    if node is None:
        return host
    return replace(
        host,
        address=host.address or node.address,
        address6=host.address6 or node.address6,
        interfaces={**node.interfaces, **host.interfaces},
        taken_ports=node.taken_ports,
    )
