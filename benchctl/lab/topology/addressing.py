"""Computes addresses: one subnet for each segment, one address for each interface.

A segment takes the subnet of the addresses that were given on it, or the next free /24 of
10.0.0.0/8, or a larger one if it has more interfaces than that. Its interfaces count up from .1 in
the order of the links. With IPv6 it also has the /64 of its number. So the same file always gives
the same addresses.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from ipaddress import (
    IPv4Interface,
    IPv4Network,
    IPv6Interface,
    IPv6Network,
    ip_interface,
)
from typing import Any

from benchctl.lab.topology.model import Interface, Topology
from benchctl.lab.topology.segments import segments

POOL = IPv4Network("10.0.0.0/8")
PREFIX = 24
# A unique local prefix (RFC 4193), whose random bits are the letters "bench": a lab is never joined
# to a network in which somebody else could have the same ones.
POOL6 = IPv6Network("fd62:656e:6368::/48")
PREFIX6 = 64

_Address = IPv4Interface | IPv6Interface
_Subnet = IPv4Network | IPv6Network
_FIELDS = {4: "address", 6: "address6"}


class AddressError(ValueError):
    """A given address is wrong, or an address is missing; ``end`` is its interface."""

    def __init__(self, end: Interface, what: str) -> None:
        super().__init__(what)
        self.end = end


def assign(topology: Topology) -> Topology:
    """Return the topology with addresses at every end that is not a switch's port.

    Raises AddressError, or SwitchLoopError from `segments`.
    """
    groups = segments(topology)
    found: dict[tuple[str, str], dict[str, Any]] = {}
    for version in topology.ip_versions:
        for end, address in _assigned(groups, version):
            found.setdefault((end.node, end.device), {})[_FIELDS[version]] = address
    links = {}
    for name, link in topology.links.items():
        near, far = (replace(end, **found.get((end.node, end.device), {})) for end in link.ends)
        links[name] = replace(link, ends=(near, far))
    return replace(topology, links=links)


def _assigned(
    groups: Sequence[Sequence[Interface]], version: int
) -> Iterator[tuple[Interface, _Address]]:
    """Yield the addresses of one IP version, also the given ones. Raises AddressError."""
    given = [_given_network(group, version) for group in groups]
    _check_given(groups, version)
    for group, chosen in zip(groups, _networks(groups, given, version), strict=True):
        used = {own.ip for end in group if (own := _given(end, version))}
        free = (address for address in chosen.hosts() if address not in used)
        for end in group:
            own = _given(end, version)
            if own is None:
                if (address := next(free, None)) is None:
                    raise AddressError(end, f"no address is left in {chosen}")
                own = ip_interface((address, chosen.prefixlen))
            yield end, own


def _networks(
    groups: Sequence[Sequence[Interface]], given: Sequence[_Subnet | None], version: int
) -> Iterator[_Subnet]:
    """Yield the subnet of each segment. Raises AddressError if none is left."""
    taken: list[_Subnet] = [network for network in given if network]

    def next_of(pool: Iterator[_Subnet]) -> _Subnet | None:
        return next((subnet for subnet in pool if not any(map(subnet.overlaps, taken))), None)

    if version == 6:
        pool6 = POOL6.subnets(new_prefix=PREFIX6)
        for group, network in zip(groups, given, strict=True):
            numbered = next_of(pool6)
            if (own := network or numbered) is None:
                raise AddressError(group[0], f"no subnet is left in {POOL6}")
            yield own
        return
    pool = POOL.subnets(new_prefix=PREFIX)
    for group, network in zip(groups, given, strict=True):
        if network is not None:
            yield network
            continue
        # The first and the last address of a subnet are no host's.
        prefix = min(PREFIX, 32 - (len(group) + 1).bit_length())
        chosen = next_of(pool if prefix == PREFIX else POOL.subnets(new_prefix=prefix))
        if chosen is None:
            raise AddressError(group[0], f"no subnet of {len(group)} addresses is left in {POOL}")
        if prefix != PREFIX:
            taken.append(chosen)
        yield chosen


def _given(end: Interface, version: int) -> _Address | None:
    own: _Address | None = getattr(end, _FIELDS[version])
    return own


def _given_network(group: Sequence[Interface], version: int) -> _Subnet | None:
    network = None
    for end in group:
        own = _given(end, version)
        if own is None:
            continue
        network = network or own.network
        if own.network != network:
            raise AddressError(end, f"{own} is not in {network}, the subnet of the same segment")
    return network


def _check_given(groups: Sequence[Sequence[Interface]], version: int) -> None:
    owners: dict[Any, Interface] = {}
    networks: dict[Any, int] = {}
    for number, group in enumerate(groups):
        for end in group:
            own = _given(end, version)
            if own is None:
                continue
            address, network = own.ip, own.network
            if address in owners:
                raise AddressError(end, f"{address} is used twice, first by {owners[address].node}")
            if network.prefixlen < network.max_prefixlen - 1 and address in (
                network[0], network[-1] if version == 4 else None,
            ):  # fmt: skip
                raise AddressError(end, f"{own} is not an address for a host")
            for other, owner in networks.items():
                if owner != number and network.overlaps(other):
                    raise AddressError(end, f"{network} overlaps {other} of another segment")
            owners[address] = end
            networks[network] = number
