"""A host: a place where commands run."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True)
class Way:
    """A way out of a host: a device, a source address, or both."""

    device: str | None = None
    address: str | None = None


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
