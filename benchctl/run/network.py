"""Where flows run and where they go: hosts, peers, ways out, and the network they make."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import NamedTuple

from benchctl.errors import MissingError
from benchctl.run.trial import PlannedFlow


class Way(NamedTuple):
    """A way out of a host: a device, a source address, or both."""

    device: str | None = None
    address: str | None = None


class Peer(NamedTuple):
    """A server that somebody else runs: where it is, and the ports it may listen on."""

    host: str
    ports: tuple[int, int] | None


@dataclass(frozen=True, slots=True)
class Host:
    """A place where commands run.

    ``address`` is where the other end of a flow reaches it. ``prefix`` are the words before a
    command that make it run there; empty for this machine. ``interfaces`` are its named ways out.
    ``shares_ports`` says that other programs of this machine may listen there too, so that a free
    port has to be looked for; where none can, ``taken_ports`` are those that something has.
    """

    name: str
    address: str
    prefix: tuple[str, ...] = ()
    interfaces: Mapping[str, Way] = field(default_factory=dict)
    shares_ports: bool = True
    taken_ports: frozenset[int] = frozenset()


LOCAL = Host("local", "127.0.0.1")


@dataclass(frozen=True, slots=True)
class Network:
    """Every host, peer and interface that the flows of a run may name.

    A peer goes before a host of the same name, so that a server of the profile stays the one that
    somebody else runs where a host of the lab is called like it.
    """

    hosts: Mapping[str, Host]
    peers: Mapping[str, Peer] = field(default_factory=dict)
    interfaces: Mapping[str, Way] = field(default_factory=dict)

    def target(self, to: str) -> Host | None:
        """Return the host at the far end of a flow; None for a server that somebody else runs."""
        return None if to in self.peers else self.hosts[to]

    def way(self, flow: PlannedFlow) -> Way:
        """Return the way out that a flow names; one of its own host goes before the profile's.

        Raises MissingError when its host has none of this name.
        """
        if flow.interface is None:
            return Way()
        ways = {**self.interfaces, **self.hosts[flow.source].interfaces}
        if flow.interface not in ways:
            known = ", ".join(ways) or "none"
            raise MissingError(
                f'flow {flow.name}: host {flow.source} has no interface "{flow.interface}"',
                f"available: {known}",
            )
        return ways[flow.interface]


@dataclass(frozen=True, slots=True)
class Outside:
    """The network as a profile gives it, without a lab; ``hosts`` are addresses by name."""

    hosts: Mapping[str, str]
    peers: Mapping[str, Peer] = field(default_factory=dict)
    interfaces: Mapping[str, Way] = field(default_factory=dict)

    @property
    def network(self) -> Network:
        """The network that flows see where there is no lab."""
        hosts = {name: Host(name, address) for name, address in self.hosts.items()}
        return Network(hosts, self.peers, self.interfaces)
