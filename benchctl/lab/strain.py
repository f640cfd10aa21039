"""What the links carried while something was measured, and whether its figures can bear it.

An emulator that gets too little of the processor delivers frames late or loses them by itself.
That is no property of the topology, so nothing that was measured then is a figure of this lab. The
rule, for each direction of a link:

- **No frame is lost by the emulator.** It is a loss that no topology promised, and one is enough
  for TCP to halve its window: over 22 ms, Reno keeps 100 Mbit/s full only below 4 losses in 100,000
  (Mathis et al., "The Macroscopic Behavior of the TCP Congestion Avoidance Algorithm", 1997).
- **At most one frame in 200 is late** (delivered more than 1 ms after it was due), and **none by
  more than 10 ms.** So a mean delay is off by 50 us at most, the 95th percentile over a path of ten
  directions by nothing, and no interval of 100 ms, which is what the tools report by, misses more
  than a tenth of its time.

What an emulator does not count breaks no rule.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, replace
from typing import Any

from benchctl.lab.messages import DirectionCounters
from benchctl.lab.segments import Hop
from benchctl.units import format_duration

LATE_RATIO = 1 / 200
LATE_MOST_NS = 10_000_000

_SINCE_EVER = ("arrived", "delivered", "dropped", "lost", "late", "missed", "refused")


@dataclass(frozen=True, slots=True)
class Carried:
    """What one direction of a link, from node to node, carried in a time."""

    link: str
    source: str
    target: str
    counters: DirectionCounters

    @property
    def strain(self) -> str:
        """What the emulator did that the figures cannot bear; empty where they can."""
        counted, found = self.counters, []
        own = (counted.missed or 0) + (counted.refused or 0)
        if own:
            found.append(f"{_frames(own)} lost by the emulator")
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


def carried(
    before: Mapping[Hop, DirectionCounters], after: Mapping[Hop, DirectionCounters]
) -> list[Carried]:
    """Return what links carried, each in one direction, between two askings."""
    return [
        Carried(hop.link.name, hop.start.node, hop.end.node, between(before[hop], counters))
        for hop, counters in after.items()
    ]


def between(before: DirectionCounters, after: DirectionCounters) -> DirectionCounters:
    """Return what was counted between two askings; the greatest values are of that time anyway."""
    earlier, later = asdict(before), asdict(after)
    grown: dict[str, Any] = {
        name: None if later[name] is None else later[name] - earlier[name] for name in _SINCE_EVER
    }
    return replace(after, **grown)


def _frames(count: int) -> str:
    return f"{count} frame{'s' if count != 1 else ''}"
