"""Opens sockets, and explains in plain words if one cannot be opened."""

from __future__ import annotations

import errno
import socket
import sys
from typing import Any, Callable, NamedTuple

from .errors import Problem, describe_os_error
from .options import bind_device

# If a port that the system chose for TCP is in use for UDP, the system chooses again.
_PORT_TRIES = 20
_BACKLOG = 1024

# Help for a client that finds another program on the server's port.
NOT_OURS = (
    "check that simpleperf listens on this address and port, and accepts this client"
    " (--allow, --key-file)"
)

Prepare = Callable[[socket.socket], None]


class Target(NamedTuple):
    """The address of a server, and the address from which a client connects.

    ``family`` is 0 for any, or one of the AF constants. ``source_port`` is that of the first
    stream; the next ones count up from it, and 0 lets the system choose.
    """

    host: str
    port: int
    family: int = 0
    source: str | None = None
    source_port: int = 0
    device: str | None = None
    timeout_s: float = 10.0


def address_text(address: Any) -> str:
    """Format a socket address as ``host:port``, with brackets around an IPv6 address."""
    host, port = address[:2]
    return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"


def connect(target: Target, source_port: int = 0, prepare: Prepare | None = None) -> socket.socket:
    """Connect by TCP; returns a blocking socket. ``prepare`` sets options before. Raises Problem.

    All addresses of the name are tried, in the resolver's order.
    """
    problem = Problem("unreachable", f"{target.host}: no address")
    local = (target.source or "", source_port) if target.source or source_port else None
    for family, kind, _, _, address in _resolve(target.host, target.port, target.family):
        sock = None
        try:
            sock = _bound(family, kind, target.device, local, prepare)
            _connect(sock, address, target)
            return sock
        except OSError as error:
            if sock:
                sock.close()
            reason = "timed out" if isinstance(error, socket.timeout) else describe_os_error(error)
            where = address_text(address)
            if address[0] != target.host:
                where = f"{target.host} ({where})"
            problem = Problem("unreachable", f"{where}: {reason}")
    raise problem


def plain_address(address: Any) -> tuple[str, int]:
    """Return host and port of a socket address, with IPv4 as such on an IPv6 socket, too."""
    return address[0].removeprefix("::ffff:"), address[1]


def bind_again(
    control: socket.socket, kind: int, target: Target, source_port: int, prepare: Prepare
) -> socket.socket:
    """Return another socket (SOCK_STREAM or SOCK_DGRAM) with its address. Raises Problem."""
    host, _, *scope = control.getsockname()
    local = (target.source, source_port) if target.source else (host, source_port, *scope)
    try:
        return _bound(control.family, kind, target.device, local, prepare)
    except OSError as error:
        reason = describe_os_error(error)
        raise Problem("unreachable", f"a stream from {address_text(local)}: {reason}") from error


def connect_again(sock: socket.socket, control: socket.socket, target: Target) -> None:
    """Connect a socket of `bind_again` to the remote address of another. Raises Problem."""
    address = control.getpeername()
    try:
        _connect(sock, address, target)
    except OSError as error:
        reason = describe_os_error(error)
        raise Problem("unreachable", f"a stream to {address_text(address)}: {reason}") from error


def _bound(
    family: int, kind: int, device: str | None, local: Any, prepare: Prepare | None
) -> socket.socket:
    sock = socket.socket(family, kind)
    try:
        if device:
            bind_device(sock, device)
        if local:
            sock.bind(local)
        if prepare:
            prepare(sock)
    except (OSError, Problem):
        sock.close()
        raise
    return sock


def _connect(sock: socket.socket, address: Any, target: Target) -> None:
    sock.settimeout(target.timeout_s)
    sock.connect(address)
    sock.settimeout(None)


def _resolve(host: str, port: int, family: int, flags: int = 0) -> list[Any]:
    try:
        return socket.getaddrinfo(host, port, family, socket.SOCK_STREAM, 0, flags)
    except socket.gaierror as error:
        # Some systems have no specific error for an address of another family.
        other_family = error.errno == getattr(socket, "EAI_ADDRFAMILY", None)
        hint = "the address is of another IP version" if other_family else ""
        kind = "parameter" if other_family else "unreachable"
        raise Problem(kind, f"{host}: {error.strerror}", hint) from error


def listen(target: Target) -> tuple[socket.socket, socket.socket | None]:
    """Return a listening TCP socket and a UDP socket at one address, port 0 for any free port.

    The UDP socket is None if another program has that port. Raises Problem.
    """
    family, _, _, _, address = _resolve(target.host, target.port, target.family, socket.AI_PASSIVE)[
        0
    ]
    for _ in range(_PORT_TRIES):
        listener = _listener(family, address)
        try:
            return listener, datagram_socket(family, listener.getsockname())
        except OSError as error:
            if error.errno != errno.EADDRINUSE or target.port:
                return listener, None
            listener.close()
    raise Problem("tool", "no port is free for both TCP and UDP")


def _listener(family: int, address: Any) -> socket.socket:
    sock = socket.socket(family, socket.SOCK_STREAM)
    try:
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        if family == socket.AF_INET6 and address[0] == "::":
            sock.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 0)
        sock.bind(address)
        sock.listen(_BACKLOG)
    except OSError as error:
        sock.close()
        kind = "busy" if error.errno == errno.EADDRINUSE else "tool"
        reason = f"cannot listen on {address_text(address)}: {describe_os_error(error)}"
        raise Problem(kind, reason) from error
    return sock


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
