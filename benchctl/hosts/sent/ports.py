"""Addresses of a machine, and ports that no program uses. Runs on remote hosts, with Python 3.9."""

from __future__ import annotations

import errno
import socket
from collections.abc import Iterator
from itertools import islice

# No machine uses so many in a row.
_LOOKED_AT = 100
# The first on which an ordinary user may listen (ip_unprivileged_port_start in ip(7)).
_UNPRIVILEGED = 1024


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


def first_free(address: str, first: int, count: int, last: int | None = None) -> list[int]:
    """Return the first few of `free_ports`."""
    return list(islice(free_ports(address, first, last), count))


def free_ports(address: str, first: int, last: int | None = None) -> Iterator[int]:
    """Return a port and the next ones that are free for TCP and UDP at an address of this machine.

    With ``last``, those up to it are looked at, else some that every user may listen on.

    The kernel gives none of these to connections; one of its own choice it could give to another's
    before the server listens.
    """
    return (port for port in candidates(first, last) if _is_free(address, port))


def candidates(first: int, last: int | None = None) -> list[int]:
    """Return the ports that `free_ports` looks at, in this order."""
    low = max(first + 1, _UNPRIVILEGED)
    next_ones = range(low, min(low + _LOOKED_AT, 1 << 16))
    return [first, *(next_ones if last is None else range(first + 1, last + 1))]


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
