"""How much a plan will send, as far as this can be known before the run."""

from __future__ import annotations

import math
from dataclasses import dataclass

from benchctl.engine.planning import Planned
from benchctl.units import format_size

# A larger plan is estimated from this many trials: people need the order of magnitude.
LOOKED_AT = 500


@dataclass(frozen=True, slots=True)
class Traffic:
    """Payload bytes of flows with a known amount, and whether there are other flows.

    Others send as much as the network carries in their time.
    """

    known_bytes: float
    open_ended: bool

    def __str__(self) -> str:
        known = format_size(self.known_bytes) if self.known_bytes else ""
        if not self.open_ended:
            return known or "none"
        return f"{known} and " * bool(known) + "what the network carries"


def expected_traffic(prepared: Planned) -> Traffic:
    """Return the traffic of all trials of a plan."""
    plan = prepared.plan
    count = min(len(plan), LOOKED_AT)
    known: list[float] = []
    open_ended = False
    for index in range(count):
        for flow in plan.trial(index * len(plan) // count).flows:
            sent = flow.traffic_bytes
            if sent is None or math.isinf(sent):
                open_ended = True
            else:
                known.append(sent)
    return Traffic(math.fsum(known) * len(plan) / count, open_ended)
