"""Turns the names of a profile into hosts, peers and ports."""

from __future__ import annotations

import socket
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from benchctl.api import Direction, Flow, Role, Tool
from benchctl.backends import AnyBackend
from benchctl.errors import MissingError
from benchctl.hosts.host import LOCAL, Host, Way
from benchctl.profile.bind import FlowPlan
from benchctl.profile.model import Profile

LOCAL_IPV6 = "::1"
_EPHEMERAL = 0


@dataclass(frozen=True, slots=True)
class Peer:
    """A server that somebody else runs: where it is, and the ports it may listen on."""

    host: str
    ports: tuple[int, int] | None


@dataclass(frozen=True, slots=True)
class Network:
    """Every host, peer and interface that the flows of a run may name.

    A peer goes before a host of the same name, so that a server of the profile stays the one that
    somebody else runs where a host of the lab is called like it.
    """

    hosts: Mapping[str, Host]
    peers: Mapping[str, Peer] = field(default_factory=dict)
    interfaces: Mapping[str, Way] = field(default_factory=dict)

    def way(self, flow: FlowPlan) -> Way:
        """Return the way out that a flow names; one of its own host goes before the profile's."""
        if flow.interface is None:
            return Way()
        own = self.hosts[flow.source].interfaces
        return own.get(flow.interface) or self.interfaces[flow.interface]


def network_of(profile: Profile) -> Network:
    """Return the network of a profile that names no lab."""
    hosts = {name: Host(name, host.address) for name, host in profile.hosts.items()}
    return Network(
        {LOCAL.name: LOCAL, **hosts},
        {name: Peer(server.host, server.port) for name, server in profile.servers.items()},
        {name: Way(way.device, way.address) for name, way in profile.interfaces.items()},
    )


def to_settings(network: Network) -> dict[str, Any]:
    """Write what `from_settings` reads: the parts that a profile gives, as JSON-like data."""
    return {
        "hosts": {name: host.address for name, host in network.hosts.items()},
        "peers": {name: [peer.host, peer.ports] for name, peer in network.peers.items()},
        "interfaces": {name: [way.device, way.address] for name, way in network.interfaces.items()},
    }


def from_settings(data: Mapping[str, Any]) -> Network:
    """Read what `to_settings` wrote."""
    return Network(
        {name: Host(name, address) for name, address in data["hosts"].items()},
        {
            name: Peer(host, tuple(ports) if ports else None)
            for name, (host, ports) in data["peers"].items()
        },
        {name: Way(device, address) for name, (device, address) in data["interfaces"].items()},
    )


def check_interfaces(network: Network) -> None:
    """Raise MissingError when the profile names a device that this machine does not have."""
    there = [name for _, name in socket.if_nameindex()]
    for name, way in network.interfaces.items():
        if way.device is not None and way.device not in there:
            raise MissingError(
                f'interface "{name}": this machine has no device "{way.device}"',
                f"it has: {', '.join(there)}; set another with --set interfaces.{name}.device=NAME",
            )


def address_of(host: Host, parameters: Any) -> str:
    """Return the address at which a flow reaches a host, of the IP version it asks for."""
    version = getattr(parameters, "ip_version", None)
    if host.address == LOCAL.address and str(version) == "6":
        return LOCAL_IPV6
    return host.address


def ports_of(
    flow: FlowPlan, backend: AnyBackend, network: Network, address: str, taken: set[int]
) -> list[int | None]:
    """Return the ports to try, in order: a peer's range, or free ones of a host of ours."""
    default = backend.capabilities.default_port
    if default is None:
        return [None]
    if flow.to in network.peers:
        low, high = network.peers[flow.to].ports or (default, default)
        return list(range(low, high + 1))
    if not network.hosts[flow.to].shares_ports:
        ports = [port for port in range(default, default + 256) if port not in taken]
        return list(ports[:16])
    ports = []
    for candidate in (default, *[_EPHEMERAL] * 8):
        port = _free_port(address, candidate)
        if port is not None and port not in taken:
            ports.append(port)
    return list(ports)


def _free_port(address: str, candidate: int) -> int | None:
    """Return a port free for TCP and UDP on an address of this machine, or None."""
    family = socket.AF_INET6 if ":" in address else socket.AF_INET
    try:
        with (
            socket.socket(family, socket.SOCK_STREAM) as tcp,
            socket.socket(family, socket.SOCK_DGRAM) as udp,
        ):
            tcp.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            tcp.bind((address, candidate))
            port: int = tcp.getsockname()[1]
            udp.bind((address, port))
    except OSError:
        return None
    return port


def describe_flow(
    flow: FlowPlan,
    backend: AnyBackend,
    network: Network,
    port: int | None,
    tools: Mapping[Role, Tool],
    role: Role,
    start_at_s: float | None = None,
) -> Flow[Any]:
    """Return a flow as its backend gets to know it, for the command of one end."""
    parameters = backend.parameters.model_validate(flow.parameters)
    owns = flow.to not in network.peers
    way = network.way(flow)
    address = (
        address_of(network.hosts[flow.to], parameters) if owns else network.peers[flow.to].host
    )
    return Flow(
        params=parameters,
        direction=Direction(flow.direction),
        address=address,
        port=port,
        tool=tools[role],
        owns_server=owns and backend.capabilities.needs_server,
        source_address=way.address,
        source_device=way.device,
        start_at_s=start_at_s,
    )
