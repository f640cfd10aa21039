"""Addresses as a host of a fleet sees them: its own, and those of the other ends of flows."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Collection
from contextlib import suppress
from ipaddress import ip_address

from msgspec.structs import replace

from benchctl.api import Role
from benchctl.engine.trial.ends import EndSpec


def address_towards(server: str) -> tuple[str, ...]:
    """Return the address from which this host reaches a server; empty if there is no way now."""
    host, _, port = server.rpartition(":")
    try:
        found = socket.getaddrinfo(host.strip("[]"), int(port), type=socket.SOCK_DGRAM)
        with socket.socket(found[0][0], socket.SOCK_DGRAM) as probe:
            probe.connect(found[0][4])  # which looks for a route, and sends nothing
            return (str(probe.getsockname()[0]),)
    except OSError:
        return ()


def resolved(spec: EndSpec, found: Collection[str]) -> EndSpec:
    """Return an end whose other end is an address in place of a name, as it is resolved here."""
    if not found:
        return spec
    if spec.role is Role.CLIENT:
        return replace(spec, address=next(iter(found)))
    alike = (address for address in found if (":" in address) == (":" in spec.address))
    return replace(spec, peer=next(alike, next(iter(found))))


async def addresses_of(name: str) -> Collection[str]:
    """Return the addresses that a name has on this host; none if it is not known."""
    with suppress(ValueError):
        return [str(ip_address(name))]
    try:
        found = await asyncio.get_running_loop().getaddrinfo(name, None, type=socket.SOCK_STREAM)
    except (OSError, UnicodeError):
        return []
    return [*dict.fromkeys(str(place[0]) for *_, place in found)]
