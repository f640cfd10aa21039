"""Where flows run and where they go: hosts, peers, interfaces, and their network."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import NamedTuple

from benchctl.errors import MissingError
from benchctl.run.trial import PlannedFlow


class Way(NamedTuple):
    """An interface of a host: a device, a source address, or both."""

    device: str | None = None
    address: str | None = None


class Peer(NamedTuple):
    """A server that somebody else runs: its address, and the ports it may listen on."""

    host: str
    ports: tuple[int, int] | None


@dataclass(frozen=True, slots=True)
class Host:
    """A place where commands run.

    The other end of a flow reaches it at ``address``. The words of ``prefix`` go before a command
    to run it there; empty for this machine. ``interfaces`` are its named interfaces.
    ``shares_ports`` means that other programs of this machine may listen there, so that a free port
    has to be found. ``taken_ports`` are known to be in use if that is not possible.
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

    A peer takes precedence over a host of the same name: a server of the profile stays one that
    somebody else runs, even if a host of the lab has its name.
    """

    hosts: Mapping[str, Host]
    peers: Mapping[str, Peer] = field(default_factory=dict)
    interfaces: Mapping[str, Way] = field(default_factory=dict)

    def target(self, to: str) -> Host | None:
        """Return the host at the far end of a flow; None for a server that somebody else runs."""
        return None if to in self.peers else self.hosts[to]

    def way(self, flow: PlannedFlow) -> Way:
        """Return a flow's interface; its own host's takes precedence over the profile's.

        Raises MissingError if its host has none of this name.
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
    """The network given by a profile without a lab; ``hosts`` maps names to addresses."""

    hosts: Mapping[str, str]
    peers: Mapping[str, Peer] = field(default_factory=dict)
    interfaces: Mapping[str, Way] = field(default_factory=dict)

    @property
    def network(self) -> Network:
        """The network that flows use without a lab."""
        hosts = {name: Host(name, address) for name, address in self.hosts.items()}
        return Network(hosts, self.peers, self.interfaces)
