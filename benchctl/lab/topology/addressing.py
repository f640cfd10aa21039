"""Computes addresses: one subnet for each segment, one address for each interface.

A segment takes the subnet of the addresses that were given on it, or the next free /24 of
10.0.0.0/8; its interfaces count up from .1 in the order of the links. With IPv6 it also has the /64
of its number. So the same file always gives the same addresses.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from ipaddress import IPv4Address, IPv4Interface, IPv4Network, IPv6Interface, IPv6Network

from benchctl.lab.topology.model import Interface, Topology
from benchctl.lab.topology.segments import segments

POOL = IPv4Network("10.0.0.0/8")
PREFIX = 24
# A unique local prefix (RFC 4193), whose random bits are the letters "bench": a lab is never joined
# to a network in which somebody else could have the same ones.
POOL6 = IPv6Network("fd62:656e:6368::/48")
PREFIX6 = 64


class AddressError(ValueError):
    """A given address is wrong, or an address is missing; ``end`` is its interface."""

    def __init__(self, end: Interface, what: str) -> None:
        super().__init__(what)
        self.end = end


def assign(topology: Topology) -> Topology:
    """Return the topology with an address at every end that is not a switch's port.

    Raises AddressError, or SwitchLoopError from `segments`.
    """
    groups = segments(topology)
    given = [_given_network(group) for group in groups]
    _check_given(groups)
    taken = [network for network in given if network]
    addresses: dict[tuple[str, str], IPv4Interface] = {}
    pool = POOL.subnets(new_prefix=PREFIX)
    for group, network in zip(groups, given, strict=True):
        chosen = network or next(
            subnet for subnet in pool if not any(subnet.overlaps(other) for other in taken)
        )
        used = {end.address.ip for end in group if end.address}
        free = (address for address in chosen.hosts() if address not in used)
        for end in group:
            if end.address:
                continue
            address = next(free, None)
            if address is None:
                raise AddressError(end, f"no address is left in {chosen}")
            addresses[end.node, end.device] = IPv4Interface((address, chosen.prefixlen))
    addresses6: dict[tuple[str, str], IPv6Interface] = {}
    if 6 in topology.ip_versions:
        for group, network6 in zip(groups, POOL6.subnets(new_prefix=PREFIX6), strict=False):
            for number, end in enumerate(group, 1):
                addresses6[end.node, end.device] = IPv6Interface((network6[number], PREFIX6))
    links = {}
    for name, link in topology.links.items():
        near, far = (
            replace(
                end,
                address=addresses.get((end.node, end.device), end.address),
                address6=addresses6.get((end.node, end.device)),
            )
            for end in link.ends
        )
        links[name] = replace(link, ends=(near, far))
    return replace(topology, links=links)


def _given_network(group: Sequence[Interface]) -> IPv4Network | None:
    network = None
    for end in group:
        if end.address is None:
            continue
        network = network or end.address.network
        if end.address.network != network:
            raise AddressError(
                end, f"{end.address} is not in {network}, the subnet of the same segment"
            )
    return network


def _check_given(groups: Sequence[Sequence[Interface]]) -> None:
    owners: dict[IPv4Address, Interface] = {}
    networks: dict[IPv4Network, int] = {}
    for number, group in enumerate(groups):
        for end in group:
            if end.address is None:
                continue
            address, network = end.address.ip, end.address.network
            if address in owners:
                raise AddressError(end, f"{address} is used twice, first by {owners[address].node}")
            if network.prefixlen < 31 and address in (network[0], network[-1]):
                raise AddressError(end, f"{end.address} is not an address for a host")
            for other, owner in networks.items():
                if owner != number and network.overlaps(other):
                    raise AddressError(end, f"{network} overlaps {other} of another segment")
            owners[address] = end
            networks[network] = number
