"""Opens the sockets of streams: several have the address of their control connection."""

from __future__ import annotations

import errno
import socket
import sys
from typing import Any

from benchctl_standalone.errors import Problem, describe_os_error
from benchctl_standalone.sockets import (
    Prepare,
    Target,
    address_text,
    bound,
    connect_to,
    listener,
    resolve,
)

# If a port that the system chose for TCP is in use for UDP, the system chooses again.
_PORT_TRIES = 20

# Help for a client that finds another program on the server's port.
NOT_OURS = (
    "check that simpleperf listens on this address and port, and accepts this client"
    " (--allow, --key-file)"
)


def bind_again(
    control: socket.socket, kind: int, target: Target, source_port: int, prepare: Prepare
) -> socket.socket:
    """Return another socket (SOCK_STREAM or SOCK_DGRAM) with its address. Raises Problem."""
    host, _, *scope = control.getsockname()
    local = (target.source, source_port) if target.source else (host, source_port, *scope)
    try:
        return bound(control.family, kind, target.device, local, prepare)
    except OSError as error:
        reason = describe_os_error(error)
        raise Problem("unreachable", f"a stream from {address_text(local)}: {reason}") from error


def connect_again(sock: socket.socket, control: socket.socket, target: Target) -> None:
    """Connect a socket of `bind_again` to the remote address of another. Raises Problem."""
    address = control.getpeername()
    try:
        connect_to(sock, address, target)
    except OSError as error:
        reason = describe_os_error(error)
        raise Problem("unreachable", f"a stream to {address_text(address)}: {reason}") from error


def listen(target: Target) -> tuple[socket.socket, socket.socket | None]:
    """Return a listening TCP socket and a UDP socket at one address, port 0 for any free port.

    The UDP socket is None if another program has that port. Raises Problem.
    """
    family, _, _, _, address = resolve(target.host, target.port, target.family, socket.AI_PASSIVE)[
        0
    ]
    for _ in range(_PORT_TRIES):
        door = listener(family, address)
        try:
            return door, datagram_socket(family, door.getsockname())
        except OSError as error:
            if error.errno != errno.EADDRINUSE or target.port:
                return door, None
            door.close()
    raise Problem("tool", "no port is free for both TCP and UDP")


def join_datagrams(local: Any, remote: Any) -> socket.socket:
    """Return a UDP socket at a local address that others share, for one remote only.

    ``local`` and ``remote`` are socket addresses of one family. Raises OSError.
    """
    family = socket.AF_INET6 if ":" in local[0] else socket.AF_INET
    sock = datagram_socket(family, local)
    try:
        sock.connect(remote)
    except OSError:
        sock.close()
        raise
    return sock


def datagram_socket(family: int, local: Any) -> socket.socket:
    """Return a UDP socket bound to an address that others may share. Raises OSError.

    Linux prefers the socket that is connected to a datagram's sender to one that is only bound. The
    BSDs need SO_REUSEPORT to share the address, which on Linux would distribute the datagrams.
    """
    sock = socket.socket(family, socket.SOCK_DGRAM)
    try:
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        if not sys.platform.startswith("linux"):
            sock.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)
        if family == socket.AF_INET6:  # The address may be a mapped IPv4 address.
            sock.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 0)
        sock.bind(local)
    except OSError:
        sock.close()
        raise
    return sock
