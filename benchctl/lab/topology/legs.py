"""Chooses the pairs of nodes between which links are measured, and what is promised there."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace

from benchctl.errors import LabError
from benchctl.lab.topology.model import (
    ETHERNET_HEADER_BYTES,
    Interface,
    Link,
    LinkSettings,
    Topology,
)
from benchctl.lab.topology.segments import Hop, cables, onward


@dataclass(frozen=True, slots=True)
class LinkPath:
    """One direction between two neighbours on a segment; ``hops`` are its emulated links.

    There is more than one if switches prevent measuring one alone.
    """

    source: Interface
    target: Interface
    hops: tuple[Hop, ...]

    @property
    def links(self) -> tuple[str, ...]:
        """The names of the links."""
        return tuple(hop.link.name for hop in self.hops)

    @property
    def name(self) -> str:
        """Its name for people: ``link far, r to b``."""
        return f"link {', '.join(self.links)}, {self.source.node} to {self.target.node}"

    @property
    def delay_s(self) -> float:
        """The delay of all links."""
        return sum(hop.settings.delay_s for hop in self.hops)

    @property
    def jitter_s(self) -> float:
        """The maximum deviation of the delay, to either side."""
        return sum(hop.settings.jitter_s for hop in self.hops)

    @property
    def loss_ratio(self) -> float:
        """The probability of a loss on any of the links."""
        return 1 - math.prod(1 - hop.settings.loss_ratio for hop in self.hops)

    @property
    def rate_bps(self) -> float:
        """The rate of the slowest link."""
        return min(hop.settings.rate_bps for hop in self.hops)

    @property
    def frame_bytes(self) -> int:
        """The size of the largest frame."""
        return min(hop.link.mtu for hop in self.hops) + ETHERNET_HEADER_BYTES

    def having(self, how: Callable[[LinkSettings], LinkSettings]) -> LinkPath:
        """Return the leg with other settings on each link."""
        hops = (
            Hop(replace(hop.link, settings=(how(there), how(back))), hop.direction)
            for hop in self.hops
            for there, back in [hop.link.settings]
        )
        return replace(self, hops=tuple(hops))

    def sending_s(self, frame_bytes: float) -> float:
        """Return the time that the links need to send such a frame, one after the other."""
        return sum(8 * frame_bytes / hop.settings.rate_bps for hop in self.hops)


@dataclass(frozen=True, slots=True)
class Pair:
    """Two neighbours, and both directions between them."""

    there: LinkPath
    back: LinkPath

    @property
    def legs(self) -> tuple[LinkPath, LinkPath]:
        """Both directions."""
        return self.there, self.back


def pair_of(topology: Topology, link: Link) -> Pair:
    """Return the best pair of neighbours to measure an emulated link.

    It has the fewest other emulated links between them. Raises LabError if there is none.
    """
    places: dict[tuple[str, str], int] = {}
    for each in topology.links.values():
        for end in each.ends:
            places[end.node, end.device] = len(places)

    def rank(path: tuple[Hop, ...]) -> tuple[int, int]:
        end = path[-1].end
        return sum(not hop.link.ideal for hop in path), places[end.node, end.device]

    paths = [min(onward(topology, Hop(link, i)), key=rank, default=None) for i in (0, 1)]
    nearest = [path[-1].end for path in paths if path]
    if len(nearest) < 2:
        raise LabError(
            f"link {link.name} cannot be measured: no pair of hosts or routers uses it",
            "connect a host or a router to it",
        )
    start, end = sorted(nearest, key=lambda end: places[end.node, end.device])
    return Pair(
        _leg(start, end, cables(topology, start, end)),
        _leg(end, start, cables(topology, end, start)),
    )


def pairs_of(topology: Topology, links: Iterable[str]) -> list[Pair]:
    """Return the pairs that measure some links; bare cables are left out. Raises LabError."""
    pairs: list[Pair] = []
    for name in links:
        link = topology.links[name]
        if not link.ideal and not any(name in pair.there.links for pair in pairs):
            pairs.append(pair_of(topology, link))
    return pairs


def rounds(topology: Topology, loads: Mapping[Hop, float]) -> list[dict[LinkPath, float]]:
    """Return which legs to load at the same time, with the bits per second of each.

    ``loads`` are links, each in one direction. Legs that share one are in different rounds. So are
    its two directions: behind data, TCP's acknowledgements are too late to keep the other one busy.
    Links without a rate promise none and are left out.
    """
    legs: dict[LinkPath, float] = {}
    for hop, load_bps in loads.items():
        if not math.isfinite(hop.settings.rate_bps) or any(hop in leg.hops for leg in legs):
            continue
        leg = next(leg for leg in pair_of(topology, hop.link).legs if hop in leg.hops)
        legs[leg] = min(load_bps, leg.rate_bps)
    found: list[dict[LinkPath, float]] = []
    for leg, load_bps in legs.items():
        free = (
            candidate
            for candidate in found
            if not any(set(leg.links) & set(other.links) for other in candidate)
        )
        chosen = next(free, None)
        if chosen is None:
            found.append(chosen := {})
        chosen[leg] = load_bps
    return found


def _leg(start: Interface, end: Interface, hops: Iterable[Hop]) -> LinkPath:
    return LinkPath(start, end, tuple(hop for hop in hops if not hop.link.ideal))
