"""The network of this machine as flows need it: devices, addresses and free ports."""

from __future__ import annotations

import errno
import itertools
import socket
from collections.abc import Collection, Iterator, Sequence

from benchctl.errors import MissingError
from benchctl.plan.bound import BoundFlow
from benchctl.run.planned import Network

# Another program may take a port between this look and the start of the server, which then moves to
# the next one at once.
_OFFERED = 3
# No machine uses so many in a row.
_LOOKED_AT = 100
# The first on which an ordinary user may listen (ip_unprivileged_port_start in ip(7)).
_UNPRIVILEGED = 1024


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


def ports_of(flow: BoundFlow, network: Network, taken: Collection[int]) -> Sequence[int | None]:
    """Return the ports to try, in order: a peer's range, or the first free ones of our host.

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
    free = (port for port in free_ports(address, default) if port not in taken)
    if not (offered := list(itertools.islice(free, _OFFERED))):
        raise MissingError(
            f"flow {flow.plan.name}: no free port at {address}, host {flow.plan.to}",
            "a host must have an address of this machine; declare other machines under [servers]",
        )
    return offered


def free_ports(address: str, first: int) -> Iterator[int]:
    """Yield a port and the next ones that are free for TCP and UDP at an address of this machine.

    The kernel gives none of these to connections; one of its own choice it could give to another's
    before the server listens.
    """
    low = max(first + 1, _UNPRIVILEGED)
    for port in (first, *range(low, min(low + _LOOKED_AT, 1 << 16))):
        if _is_free(address, port):
            yield port


def _is_free(address: str, port: int) -> bool:
    family = socket.AF_INET6 if ":" in address else socket.AF_INET
    try:
        with (
            socket.socket(family, socket.SOCK_STREAM) as tcp,
            socket.socket(family, socket.SOCK_DGRAM) as udp,
        ):
            tcp.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            tcp.bind((address, port))
            udp.bind((address, port))
    except OSError:
        return False
    return True
