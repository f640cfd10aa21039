"""Segments: the interfaces that cables and switches join.

Switches have no spanning tree in a lab, so they must not form a loop: then there is exactly one
path between any two interfaces of a segment.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from benchctl.lab.topology.model import Interface, Kind, Link, LinkSettings, Topology


@dataclass(frozen=True, slots=True)
class Hop:
    """One link, passed from ``link.ends[direction]`` to the other end."""

    link: Link
    direction: int

    @property
    def key(self) -> tuple[str, int]:
        """The link's name, and the direction."""
        return self.link.name, self.direction

    @property
    def settings(self) -> LinkSettings:
        """What this direction of the link does to frames."""
        return self.link.settings[self.direction]

    @property
    def capacity_bps(self) -> float:
        """Its maximum rate: 0 while it loses every frame."""
        return self.settings.rate_bps if self.settings.loss_ratio < 1 else 0.0

    @property
    def start(self) -> Interface:
        """The interface it leaves from."""
        return self.link.ends[self.direction]

    @property
    def end(self) -> Interface:
        """The interface it arrives at."""
        return self.link.ends[1 - self.direction]


class SwitchLoopError(ValueError):
    """Switches form a loop; ``link`` closes it."""

    def __init__(self, link: Link) -> None:
        super().__init__(f"link {link.name} closes a loop of switches")
        self.link = link


def segments(topology: Topology) -> list[tuple[Interface, ...]]:
    """Return the segments: the addressed interfaces of each, all in the order of the links.

    Raises SwitchLoopError.
    """
    root: dict[str, str] = {}

    def find(key: str) -> str:
        while key in root:
            key = root[key]
        return key

    def is_port(end: Interface) -> bool:
        return topology.nodes[end.node].kind is Kind.SWITCH

    def key_of(end: Interface) -> str:
        # All ports of a switch are one place; every other interface is a place of its own.
        return end.node if is_port(end) else f"{end.node}/{end.device}"

    ends = []
    for link in topology.links.values():
        near, far = (find(key_of(end)) for end in link.ends)
        if near == far:
            raise SwitchLoopError(link)
        root[far] = near
        ends += [end for end in link.ends if not is_port(end)]
    groups: dict[str, list[Interface]] = {}
    for end in ends:
        groups.setdefault(find(key_of(end)), []).append(end)
    return [tuple(group) for group in groups.values()]


def cables(topology: Topology, start: Interface, end: Interface) -> tuple[Hop, ...]:
    """Return the links between two interfaces of one segment, in the order they are passed.

    Raises LookupError when they are not on one segment.
    """
    first = next(link for link in topology.links_of(start.node) if start in link.ends)
    for path in onward(topology, Hop(first, first.ends.index(start))):
        if path[-1].end == end:
            return path
    raise LookupError(f"{start.node} {start.device} and {end.node} {end.device} are not joined")


def onward(topology: Topology, first: Hop) -> Iterator[tuple[Hop, ...]]:
    """Yield the ways through switches that begin with a link, to each interface at their ends."""
    stack: list[tuple[Hop, ...]] = [(first,)]
    while stack:
        path = stack.pop()
        here = path[-1].end.node
        if topology.nodes[here].kind is not Kind.SWITCH:
            yield path
            continue
        stack += [
            (*path, Hop(link, 0 if link.ends[0].node == here else 1))
            for link in topology.links_of(here)
            if link is not path[-1].link
        ]
