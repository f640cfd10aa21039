"""Counters of links during a measurement, and whether its figures are valid.

An emulator with too little processor time delivers frames late or loses them. That is no property
of the topology, so figures measured then are not valid for this lab. The rule, for each direction
of a link:

- **No frame is lost by the emulator.** The topology promised no such loss, and one is enough for
  TCP to halve its window: over 22 ms, Reno keeps 100 Mbit/s full only below 4 losses in 100,000
  (Mathis et al., "The Macroscopic Behavior of the TCP Congestion Avoidance Algorithm", 1997).
- **At most one frame in 200 is late** (delivered more than 1 ms after it was due), and **none by
  more than 20 ms.** So the error of a mean delay is at most 100 us, that of the 95th percentile
  over a path of ten directions is 0, and no interval of 100 ms, as the tools report them, loses
  more than a fifth of its time. What a link delivers together after such a stall fits in the next
  queue if that holds a round trip of 20 ms, as all of the portfolio do. docs/evidence/lab.md has
  figures of trials with stalls of 4 to 78 ms.

What an emulator does not count breaks no rule.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any

from benchctl.lab.emulate.messages import DirectionCounters
from benchctl.lab.topology.segments import Hop
from benchctl.units import format_count, format_duration

LATE_RATIO = 1 / 200
LATE_MOST_NS = 20_000_000
MOST_SHOWN = 5
"""Of hundreds of links that a busy machine delays, as many are named."""

_SINCE_EVER = ("arrived", "delivered", "dropped", "lost", "late", "missed", "refused")


@dataclass(frozen=True, slots=True)
class Carried:
    """Counters of one direction of a link, from node to node, over some time."""

    link: str
    source: str
    target: str
    counters: DirectionCounters

    @property
    def own_losses(self) -> int:
        """How many frames the emulator itself lost."""
        return (self.counters.missed or 0) + (self.counters.refused or 0)

    @property
    def strain(self) -> str:
        """Why the emulator makes the figures invalid; empty if they are valid."""
        counted, found = self.counters, []
        if self.own_losses:
            found.append(f"{_frames(self.own_losses)} lost by the emulator")
        late, worst_ns = counted.late or 0, counted.late_max_ns or 0
        if late > LATE_RATIO * counted.delivered or worst_ns > LATE_MOST_NS:
            worst = format_duration(worst_ns / 1e9)
            found.append(f"{late} of {_frames(counted.delivered)} late, by up to {worst}")
        name = f"link {self.link}, {self.source} to {self.target}"
        return f"{name}: {'; '.join(found)}" if found else ""

    def as_entry(self) -> dict[str, Any]:
        """Return it as the store keeps it: counts of frames, the worst lateness in seconds."""
        counts = asdict(self.counters)
        late_max_ns = counts.pop("late_max_ns")
        late_max_s = None if late_max_ns is None else late_max_ns / 1e9
        ends = {"link": self.link, "from": self.source, "to": self.target}
        return {**ends, **counts, "late_max_s": late_max_s, "kept": not self.strain}


def strains_of(links: Sequence[Carried]) -> list[str]:
    """Return why emulators make figures invalid: the worst links in words, the others by number."""
    strained = [link for link in links if link.strain]
    strained.sort(key=lambda link: (link.own_losses, link.counters.late_max_ns or 0), reverse=True)
    found = [link.strain for link in strained[:MOST_SHOWN]]
    if more := len(strained) - len(found):
        found.append(f"{format_count(more, 'more direction')} of links")
    return found


def carried(
    before: Mapping[Hop, DirectionCounters], after: Mapping[Hop, DirectionCounters]
) -> list[Carried]:
    """Return the counters of links, each in one direction, between two queries."""
    return [
        Carried(hop.link.name, hop.start.node, hop.end.node, between(before[hop], counters))
        for hop, counters in after.items()
    ]


def between(before: DirectionCounters, after: DirectionCounters) -> DirectionCounters:
    """Return the counts between two queries; maxima are of that time anyway."""
    earlier, later = asdict(before), asdict(after)
    grown: dict[str, Any] = {
        name: None if later[name] is None else later[name] - earlier[name] for name in _SINCE_EVER
    }
    return replace(after, **grown)


def _frames(count: int) -> str:
    return f"{count} frame{'s' if count != 1 else ''}"
