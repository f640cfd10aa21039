"""Opens TCP sockets, and explains in plain words if one cannot be opened; drops of UDP sockets."""

from __future__ import annotations

import errno
import resource
import socket
import struct
from typing import Any, Callable, NamedTuple

from .errors import Problem, describe_os_error
from .kernel import Kernel

_BACKLOG = 1024
# struct of SO_MEMINFO (linux/sock_diag.h): the last member counts dropped packets.
_MEMINFO = struct.Struct("@9I")
_DROPS = 8

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
    for family, kind, _, _, address in resolve(target.host, target.port, target.family):
        sock = None
        try:
            sock = bound(family, kind, target.device, local, prepare)
            connect_to(sock, address, target)
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


def bound(
    family: int, kind: int, device: str | None, local: Any, prepare: Prepare | None
) -> socket.socket:
    """Return a socket with the options and the local address. Raises OSError, Problem."""
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


def connect_to(sock: socket.socket, address: Any, target: Target) -> None:
    """Connect within the time of the target. Raises OSError."""
    sock.settimeout(target.timeout_s)
    sock.connect(address)
    sock.settimeout(None)


def resolve(host: str, port: int, family: int, flags: int = 0) -> list[Any]:
    """Return the addresses of a name, as `socket.getaddrinfo` does. Raises Problem."""
    try:
        return socket.getaddrinfo(host, port, family, socket.SOCK_STREAM, 0, flags)
    except socket.gaierror as error:
        # Some systems have no specific error for an address of another family.
        other_family = error.errno == getattr(socket, "EAI_ADDRFAMILY", None)
        hint = "the address is of another IP version" if other_family else ""
        kind = "parameter" if other_family else "unreachable"
        raise Problem(kind, f"{host}: {error.strerror}", hint) from error


def listener(family: int, address: Any) -> socket.socket:
    """Return a listening TCP socket at an address. Raises Problem."""
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


def set_option(sock: socket.socket, level: int, option: int, value: int | bytes, what: str) -> None:
    """Set an option; ``what`` names it to the user. Raises Problem."""
    try:
        sock.setsockopt(level, option, value)
    except OSError as error:
        raise Problem("parameter", f"{what}: {describe_os_error(error)}") from error


def bind_device(sock: socket.socket, device: str) -> None:
    """Restrict a socket to one network device. Raises Problem."""
    if Kernel.BIND_DEVICE is None:
        raise Problem("parameter", "this system cannot bind to a device; bind to its address")
    set_option(sock, socket.SOL_SOCKET, Kernel.BIND_DEVICE, device.encode(), f"device {device}")


def allow_files(count: int) -> int:
    """Raise the limit of open files to a count, as far as possible; returns the new limit."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft == resource.RLIM_INFINITY or soft >= count:
        return count
    allowed = count if hard == resource.RLIM_INFINITY else min(count, hard)
    resource.setrlimit(resource.RLIMIT_NOFILE, (allowed, hard))
    return allowed


def dropped_packets(sock: socket.socket) -> int | None:
    """Return how many packets the kernel dropped at a UDP socket; None where it does not say."""
    if Kernel.MEMINFO is None:
        return None
    memory = sock.getsockopt(socket.SOL_SOCKET, Kernel.MEMINFO, _MEMINFO.size)
    return int(_MEMINFO.unpack(memory)[_DROPS])
