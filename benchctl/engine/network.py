"""The network of this machine as flows need it: devices, addresses and free ports."""

from __future__ import annotations

import errno
import itertools
import socket
from collections.abc import Collection

from benchctl.errors import MissingError
from benchctl.plan.bound import BoundFlow
from benchctl.run.planned import Network

# The kernel chooses a free one.
_ANY = 0
_TRIES = 8


def check_interfaces(network: Network) -> None:
    """Raise MissingError if the profile names a device that this machine does not have."""
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
        # A link-local address without its device is another error, which the tool reports.
        return error.errno not in (errno.EADDRNOTAVAIL, errno.EAFNOSUPPORT)
    return True


def ports_of(flow: BoundFlow, network: Network, taken: Collection[int]) -> list[int | None]:
    """Return the ports to try, in order: a peer's range, or a free port of our host.

    A tool whose server benchctl does not start uses the tool's default port. ``taken`` are ports of
    other flows of the trial. Raises MissingError if no port is available.
    """
    default = flow.backend.capabilities.default_port
    if default is None:
        return [None]
    host = network.target(flow.plan.to)
    if host is None:
        low, high = network.peers[flow.plan.to].ports or (default, default)
        return list(range(low, high + 1))
    if not flow.backend.capabilities.needs_server:
        return [default]
    if not host.shares_ports:
        used = {*taken, *host.taken_ports}
        return [next(port for port in itertools.count(default) if port not in used)]
    address = flow.address_at(host)
    for candidate in (default, *[_ANY] * _TRIES):
        port = _free_port(address, candidate)
        if port is not None and port not in taken:
            return [port]
    raise MissingError(
        f"flow {flow.plan.name}: no free port at {address}, host {flow.plan.to}",
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
