"""The addresses of this machine that others may reach."""

from __future__ import annotations

import socket
import struct
import sys
from collections.abc import Iterator
from contextlib import suppress
from fcntl import ioctl
from ipaddress import ip_address
from pathlib import Path

# include/uapi/linux/sockios.h: the answer is a struct ifreq, with a sockaddr behind the name.
_SIOCGIFADDR = 0x8915


def own_addresses() -> list[str]:
    """Return the addresses of this machine that others may reach, those of default routes first.

    Its name if there is none. Loopback and link-local addresses are left out.
    """
    found = [*_routed(), *_of_interfaces()]
    usable = [
        address
        for address in map(ip_address, found)
        if not (address.is_loopback or address.is_link_local)
    ]
    return [str(address) for address in dict.fromkeys(usable)] or [socket.gethostname()]


def _routed() -> Iterator[str]:
    """Yield the source addresses of default routes; connecting a UDP socket sends nothing."""
    # Documentation addresses (RFC 5737, RFC 3849), which are routed like any other.
    for family, far in ((socket.AF_INET, "192.0.2.1"), (socket.AF_INET6, "2001:db8::1")):
        with suppress(OSError), socket.socket(family, socket.SOCK_DGRAM) as sock:
            sock.connect((far, 9))
            yield str(sock.getsockname()[0])


def _of_interfaces() -> Iterator[str]:
    """Yield the first IPv4 address of each interface, and the IPv6 addresses; Linux only."""
    if sys.platform != "linux":
        return
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as sock:
        for _, name in socket.if_nameindex():
            with suppress(OSError):  # it has none
                request = struct.pack("256s", name.encode())
                yield socket.inet_ntoa(ioctl(sock, _SIOCGIFADDR, request)[20:24])
    with suppress(OSError):  # a kernel without IPv6
        for line in Path("/proc/net/if_inet6").read_text().splitlines():
            yield socket.inet_ntop(socket.AF_INET6, bytes.fromhex(line.split()[0]))
