"""Turns the names of a profile into hosts, peers and ports."""

from __future__ import annotations

import errno
import itertools
import socket
from collections.abc import Collection, Mapping
from ipaddress import ip_address
from typing import Any

from benchctl.api import Demand, Flow, Role, Tool
from benchctl.backends import AnyBackend
from benchctl.errors import MissingError
from benchctl.metrics import Direction
from benchctl.profile.model import Profile
from benchctl.run.network import LOCAL, Host, Network, Outside, Peer, Way
from benchctl.run.trial import PlannedFlow

LOCAL_IPV6 = "::1"
# The kernel chooses one that is free.
_ANY = 0
_TRIES = 8


def outside_of(profile: Profile) -> Outside:
    """Return the network of a profile, without its lab."""
    return Outside(
        {LOCAL.name: LOCAL.address, **{name: one.address for name, one in profile.hosts.items()}},
        {name: Peer(server.host, server.port) for name, server in profile.servers.items()},
        {name: Way(way.device, way.address) for name, way in profile.interfaces.items()},
    )


def check_interfaces(network: Network) -> None:
    """Raise MissingError when the profile names a device that this machine does not have."""
    there = [name for _, name in socket.if_nameindex()]
    for name, way in network.interfaces.items():
        if way.device is not None and way.device not in there:
            raise MissingError(
                f'interface "{name}": this machine has no device "{way.device}"',
                f"available: {', '.join(there)}; choose one with --set "
                f"interfaces.{name}.device=NAME",
            )


def is_own(address: str) -> bool:
    """Return whether this machine can send from an address."""
    family = socket.AF_INET6 if ":" in address else socket.AF_INET
    try:
        with socket.socket(family, socket.SOCK_DGRAM) as sock:
            sock.bind(socket.getaddrinfo(address, 0, family, flags=socket.AI_NUMERICHOST)[0][4])
    except OSError as error:
        # A link-local address without its device is another error, and known to the tool.
        return error.errno not in (errno.EADDRNOTAVAIL, errno.EAFNOSUPPORT)
    return True


def address_of(host: Host, demand: Demand) -> str:
    """Return the address at which a flow reaches a host, of the IP version it asks for."""
    if host.address == LOCAL.address and demand.ip_version == 6:
        return LOCAL_IPV6
    return host.address


def ports_of(
    flow: PlannedFlow, backend: AnyBackend, network: Network, taken: Collection[int]
) -> list[int | None]:
    """Return the ports to try, in order: a peer's range, or one that is free on a host of ours.

    A tool whose server benchctl does not start finds it on the tool's own port. ``taken`` are ports
    that other flows of the trial have. Raises MissingError when none can be had.
    """
    default = backend.capabilities.default_port
    if default is None:
        return [None]
    host = network.target(flow.to)
    if host is None:
        low, high = network.peers[flow.to].ports or (default, default)
        return list(range(low, high + 1))
    if not backend.capabilities.needs_server:
        return [default]
    if not host.shares_ports:
        used = {*taken, *host.taken_ports}
        return [next(port for port in itertools.count(default) if port not in used)]
    address = address_of(host, backend.demand(backend.parameters.model_validate(flow.parameters)))
    for candidate in (default, *[_ANY] * _TRIES):
        port = _free_port(address, candidate)
        if port is not None and port not in taken:
            return [port]
    raise MissingError(
        f"flow {flow.name}: no free port at {address}, host {flow.to}",
        "a host must have an address of this machine; declare other machines under [servers]",
    )


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


def _is_here(address: str, network: Network) -> bool:
    """Return whether a peer's address is this machine's loopback, or a host of the lab."""
    if address in network.hosts or address == "localhost":
        return True
    try:
        return ip_address(address).is_loopback
    except ValueError:
        return False


def describe_flow(
    flow: PlannedFlow,
    backend: AnyBackend,
    network: Network,
    port: int | None,
    tools: Mapping[Role, Tool],
    role: Role,
    start_at_s: float | None = None,
) -> Flow[Any]:
    """Return a flow as its backend gets to know it, for the command of one end."""
    parameters = backend.parameters.model_validate(flow.parameters)
    way = network.way(flow)
    target = network.target(flow.to)
    address = (
        address_of(target, backend.demand(parameters)) if target else network.peers[flow.to].host
    )
    return Flow(
        params=parameters,
        direction=Direction(flow.direction),
        address=address,
        port=port,
        tool=tools[role],
        owns_server=target is not None and backend.capabilities.needs_server,
        one_clock=target is not None or _is_here(address, network),
        source_address=way.address,
        source_device=way.device,
        start_at_s=start_at_s,
    )
