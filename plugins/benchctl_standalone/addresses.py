"""Identifies clients by address, and checks the networks that a server accepts; no I/O.

Addresses are those of Python's sockets: ``(host, port)``, for IPv6 followed by flow and scope.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

Network = Any
"""An `ipaddress` network. That module is imported on demand: clients never need it."""


def parse_network(text: str) -> Network:
    """Read ``192.0.2.0/24``, ``2001:db8::/32`` or one address. Raises ValueError."""
    import ipaddress

    try:
        network = ipaddress.ip_network(text)
    except ValueError as error:
        raise ValueError(f"{error}; a network is 192.0.2.0/24 or 2001:db8::/32") from None
    mapped = getattr(network.network_address, "ipv4_mapped", None)
    if mapped is not None and network.prefixlen >= 96:
        return ipaddress.ip_network((mapped, network.prefixlen - 96))
    return network


def allows(networks: Sequence[Network], address: Any) -> bool:
    """Whether an address is in one of the networks; without any, every address is allowed."""
    return not networks or any(_ip(address) in network for network in networks)


def same_host(address: Any, other: Any) -> bool:
    """Whether two socket addresses are of one host, whatever their ports."""
    return bool(_ip(address) == _ip(other))


def origin_of(address: Any) -> bytes:
    """Return what counts as one client: an IPv4 address, or the /64 of an IPv6 address.

    A host chooses freely within its /64 (RFC 4291, 2.5.1). Link-local hosts share theirs, so each
    is its own.
    """
    ip = _ip(address)
    if ip.version == 6 and not ip.is_link_local:
        return bytes(ip.packed[:8])
    return str(ip).encode()


def _ip(address: Any) -> Any:
    """Return an `ipaddress` object: IPv4 mapped into IPv6 is IPv4, a scope is part of it."""
    import ipaddress

    # The resolver may have put the scope into the text, too.
    host = address[0].partition("%")[0]
    scope = address[3] if len(address) > 3 else 0
    ip = ipaddress.ip_address(f"{host}%{scope}" if scope else host)
    return getattr(ip, "ipv4_mapped", None) or ip
