"""A trial that has ended, with the figures and events of its flows."""

from __future__ import annotations

from collections.abc import Sequence

from msgspec import Struct

from benchctl.run.record import Figures, FlowEvent, RecordedFlow, Trial

# A sender that misses its rate by more did not do what was requested.
MISSED = 0.01


def asked_bps(flow: RecordedFlow, parameter: str = "rate") -> float | None:
    """Return the requested rate of a flow, all streams together; None without one."""
    rate_bps = flow.requested.get(parameter)
    if not isinstance(rate_bps, int | float):
        return None  # unlimited, or not known to this backend
    total_bps: float = rate_bps * flow.requested.get("streams", 1)
    return total_bps


class FlowReport(Struct, frozen=True):
    """One flow of a trial, by its last attempt.

    ``intervals`` are those of its rate, as far as they were counted.
    """

    flow: RecordedFlow
    figures: Figures
    events: Sequence[FlowEvent] = ()
    intervals: int = 0


class TrialReport(Struct, frozen=True):
    """A trial that has ended, and its flows."""

    trial: Trial
    flows: Sequence[FlowReport]
