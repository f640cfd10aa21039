"""A trial that has ended, with the figures and events of its flows."""

from __future__ import annotations

from collections.abc import Sequence

from msgspec import Struct

from benchctl.run.record import Figures, FlowEvent, RecordedFlow, Trial, counting

NOT_KEPT_UP = "the emulator did not keep up"
"""Why figures are not valid that were measured while a lab did not keep to its links."""
NOT_VALID_HERE = f"not valid for this lab: {NOT_KEPT_UP}"

# A sender that misses its rate by more did not do what was requested.
MISSED = 0.01


def asked_bps(flow: RecordedFlow, parameter: str = "rate") -> float | None:
    """Return the requested rate of a flow, all streams together; None without one."""
    rate_bps = flow.requested.get(parameter)
    if not isinstance(rate_bps, int | float):
        return None  # unlimited, or not known to this backend
    total_bps: float = rate_bps * flow.requested.get("streams", 1)
    return total_bps


def protocol_of(flow: RecordedFlow) -> str:
    """Return the protocol of a flow's data, such as tcp or udp; empty if it is not known."""
    return flow.protocol or str(flow.requested.get("protocol", ""))


def fewest_packets(figures: Figures) -> float:
    """Return how many packets arrived in the direction with the fewest."""
    counts = (each.value for (_, name), each in figures.items() if name == "packets_received")
    return min(counts, default=0.0)


class FlowReport(Struct, frozen=True):
    """One flow of a trial, by its last attempt.

    ``reported`` are all its figures, also those that break a law. ``intervals`` are those of its
    rate, as far as they were counted.
    """

    flow: RecordedFlow
    reported: Figures
    events: Sequence[FlowEvent] = ()
    intervals: int = 0

    @property
    def figures(self) -> Figures:
        """Its figures that count."""
        return counting(self.reported)


class TrialReport(Struct, frozen=True):
    """A trial that has ended, and its flows."""

    trial: Trial
    flows: Sequence[FlowReport]
