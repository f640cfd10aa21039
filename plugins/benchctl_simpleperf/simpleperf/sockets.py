"""Opens sockets, and says in plain words why one cannot be opened."""

from __future__ import annotations

import errno
import socket
from typing import Any

from .errors import Problem, describe_os_error

__all__ = ["address_text", "connect", "listen"]

# A peer that does not answer the connection request in this time is taken for unreachable.
CONNECT_TIMEOUT_S = 10.0


def address_text(address: tuple[str, int] | tuple[str, int, int, int]) -> str:
    """Show a socket address as ``host:port``, with brackets round an IPv6 address."""
    host, port = address[:2]
    return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"


def _resolve(host: str, port: int, family: int, kind: int, flags: int = 0) -> list[Any]:
    try:
        return socket.getaddrinfo(host, port, family, kind, 0, flags)
    except socket.gaierror as error:
        raise Problem("unreachable", f"{host}: {error.strerror}") from error


def connect(
    host: str, port: int, family: int = 0, source: tuple[str, int] | None = None
) -> socket.socket:
    """Connect by TCP; returns a blocking socket. Raises Problem."""
    problem = Problem("unreachable", f"{host}: no address")
    for found_family, kind, protocol, _, address in _resolve(
        host, port, family, socket.SOCK_STREAM
    ):
        sock = socket.socket(found_family, kind, protocol)
        try:
            sock.settimeout(CONNECT_TIMEOUT_S)
            if source:
                sock.bind(source)
            sock.connect(address)
        except OSError as error:
            sock.close()
            reason = "timed out" if isinstance(error, socket.timeout) else describe_os_error(error)
            problem = Problem("unreachable", f"{address_text(address)}: {reason}")
        else:
            sock.settimeout(None)
            return sock
    raise problem


def listen(host: str, port: int, family: int = 0) -> socket.socket:
    """Return a non-blocking listening TCP socket. Raises Problem."""
    found_family, kind, protocol, _, address = _resolve(
        host, port, family, socket.SOCK_STREAM, socket.AI_PASSIVE
    )[0]
    sock = socket.socket(found_family, kind, protocol)
    try:
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        if found_family == socket.AF_INET6 and host == "::":
            sock.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 0)
        sock.bind(address)
        sock.listen(1024)
    except OSError as error:
        sock.close()
        kind_of_problem = "busy" if error.errno == errno.EADDRINUSE else "tool"
        raise Problem(
            kind_of_problem, f"cannot listen on {address_text(address)}: {describe_os_error(error)}"
        ) from error
    sock.setblocking(False)
    return sock
