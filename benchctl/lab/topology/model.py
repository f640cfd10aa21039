"""What a lab is made of: nodes, links, and what each direction of a link promises.

Plain frozen data, shared by the pure modules and by the process that builds the lab. Everything
is in SI base units. A `Topology` from `topology.load_topology` is complete: every interface has a
name, a hardware address and, unless it is a switch's port, an address; every node has its routes.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from functools import cached_property
from ipaddress import IPv4Interface, IPv4Network, IPv6Interface, IPv6Network
from pathlib import Path

ETHERNET_HEADER_BYTES = 14
"""Bytes of a frame besides its IP packet, as AF_PACKET and the kernel's qdiscs count them."""


class Emulator(StrEnum):
    """Which program delays and drops packets."""

    AUTO = "auto"
    """The kernel if it passes a self-test, else benchctl."""
    KERNEL = "kernel"
    USER = "user"


class Kind(StrEnum):
    """What a node does with packets for other nodes."""

    HOST = "host"
    """Drops them."""
    ROUTER = "router"
    """Forwards them by address."""
    SWITCH = "switch"
    """Forwards frames by hardware address; has no address of its own."""


@dataclass(frozen=True, slots=True)
class LinkSettings:
    """What one direction of a link does to frames, in this order.

    A frame waits in a queue of at most ``queue_packets`` (without the one being sent) and is
    dropped if the queue is full. It is sent at ``rate_bps``, which counts whole Ethernet frames
    without preamble, checksum and gap, as the kernel's qdiscs do. It is lost in transit with the
    probability ``loss_ratio``. It arrives ``delay_s`` after its last bit was sent, plus or minus a
    uniform ``jitter_s``. Frames keep their order if there is no jitter.
    """

    rate_bps: float = math.inf
    delay_s: float = 0.0
    jitter_s: float = 0.0
    loss_ratio: float = 0.0
    # The default of Linux for a network device (txqueuelen) and netem (limit).
    queue_packets: int = 1000

    @property
    def ideal(self) -> bool:
        """Whether it passes all frames at once."""
        return math.isinf(self.rate_bps) and not (self.delay_s or self.jitter_s or self.loss_ratio)


@dataclass(frozen=True, slots=True)
class Interface:
    """One end of a link: the network device ``device`` of ``node``.

    ``label`` is the name in the file (wired, wireless), or empty. ``address`` and ``address6`` are
    None at a switch, and in a lab without that IP version.
    """

    node: str
    device: str
    mac: str
    label: str = ""
    address: IPv4Interface | None = None
    address6: IPv6Interface | None = None

    @property
    def has_address(self) -> bool:
        """Whether it is not a switch's port."""
        return bool(self.address or self.address6)

    @property
    def ip_version(self) -> int:
        """IPv4, unless the lab has IPv6 only."""
        return 4 if self.address else 6

    @property
    def ip(self) -> str:
        """The address of that version as text, without its prefix length."""
        return str(self.at(self.ip_version).ip)

    def at(self, ip_version: int) -> IPv4Interface | IPv6Interface:
        """Return the address of an IP version that the lab has."""
        address = self.address6 if ip_version == 6 else self.address
        assert address is not None, f"{self.node} {self.device} has no IPv{ip_version} address"
        return address


@dataclass(frozen=True, slots=True)
class Link:
    """A cable between two nodes; ``settings[i]`` is the direction that leaves ``ends[i]``."""

    name: str
    ends: tuple[Interface, Interface]
    settings: tuple[LinkSettings, LinkSettings] = (LinkSettings(), LinkSettings())
    mtu: int = 1500

    @property
    def ideal(self) -> bool:
        """Whether the link is a bare cable in both directions, without an emulator."""
        return all(settings.ideal for settings in self.settings)


@dataclass(frozen=True, slots=True)
class Route:
    """The next hop to a network.

    ``via`` is None for a network that the device itself is on. ``initcwnd`` is the initial
    congestion window in segments, or None for the kernel's own (10, RFC 6928). ``table`` is 0 for
    the main table, else that of the interface with this number (see `routing`).
    """

    network: IPv4Network | IPv6Network
    device: str
    via: str | None = None
    initcwnd: int | None = None
    table: int = 0


@dataclass(frozen=True, slots=True)
class Service:
    """A command that runs on a host as long as the lab exists.

    The lab is ready once all ``ports`` (TCP) have a listener. One that is ``ordinary`` runs as
    the user who logs in by SSH.
    """

    argv: tuple[str, ...]
    ports: tuple[int, ...] = ()
    ordinary: bool = False


@dataclass(frozen=True, slots=True)
class Node:
    """A host, router or switch.

    ``sysctl`` maps full dotted names to values. ``aliases`` are additional names inside the lab.
    ``routes`` are all its routes, given and computed; ``initcwnd`` is the initial window of the
    computed ones.
    """

    name: str
    kind: Kind
    aliases: tuple[str, ...] = ()
    sysctl: Mapping[str, str] = field(default_factory=dict)
    initcwnd: int | None = None
    services: tuple[Service, ...] = ()
    routes: tuple[Route, ...] = ()


@dataclass(frozen=True)  # without slots, which leave cached properties no place
class Topology:
    """A whole lab.

    ``local`` is the host that represents this machine if a profile names none.
    """

    name: str
    nodes: Mapping[str, Node]
    links: Mapping[str, Link]
    local: str = ""
    title: str = ""
    emulator: Emulator = Emulator.AUTO
    seed: int = 1
    ip_versions: tuple[int, ...] = (4,)
    path: Path | None = None

    @property
    def hosts(self) -> list[str]:
        """The names of the hosts, in the order of the file."""
        return [node.name for node in self.nodes.values() if node.kind is Kind.HOST]

    def interfaces(self, node: str) -> list[Interface]:
        """Return the interfaces of a node, in the order of the links."""
        return [end for link in self.links_of(node) for end in link.ends if end.node == node]

    def known_at(self, node: str, ip_version: int | None = None) -> str:
        """Return the address by which others know a node: that of its first interface.

        Of IPv4, unless the lab has IPv6 only. Empty for a switch, and in an IP version that the lab
        does not have.
        """
        ip_version = ip_version or self.ip_versions[0]
        ends = [end for end in self.interfaces(node) if end.has_address]
        known = ends and ip_version in self.ip_versions
        return str(ends[0].at(ip_version).ip) if known else ""

    def links_of(self, node: str) -> list[Link]:
        """Return the links of a node, in the order of the file."""
        return self._links_by_node.get(node, [])

    @cached_property
    def _links_by_node(self) -> Mapping[str, list[Link]]:
        links: dict[str, list[Link]] = {}
        for link in self.links.values():
            for end in link.ends:
                links.setdefault(end.node, []).append(link)
        return links
