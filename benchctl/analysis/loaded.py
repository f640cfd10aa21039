"""Round-trip times while other flows load the path, beside those of the idle path.

The difference is what bufferbloat adds ("latency under load", "working latency", "induced
latency"): idle phases before and after a load tell it from the length of the path, as in the RRUL
test (Realtime Response Under Load) of flent.
"""

from __future__ import annotations

from collections.abc import Sequence
from statistics import median

from benchctl.analysis.figures import FlowFold, distribution
from benchctl.run.record import Figures

# Fewer probes of a phase are no distribution.
LEAST_PROBES = 5

Period = tuple[float, float]
"""When something began and ended, in Unix time."""


def loaded_figures(fold: FlowFold, second_0: float, loads: Sequence[Period]) -> Figures:
    """Return the round-trip times of a flow by phase, and their increase over the idle median.

    ``second_0`` is the flow's own, in Unix time; ``loads`` are the spans of the trial's flows that
    carry data. Probes count as loaded while all of them do, and as idle before any does and after
    all have ended and the queue has drained. Nothing without both.
    """
    if not loads:
        return {}
    figures = {}
    for (direction, name), series in fold.measured().items():
        if name != "rtt_s":
            continue
        probes = [
            (second_0 + start_s, rtt_s)
            for start_s, rtt_s in zip(series.starts_s, series.values, strict=True)
        ]
        first, all_sending = min(loads)[0], max(begin for begin, _ in loads)
        one_ended, last = min(end for _, end in loads), max(end for _, end in loads)
        loaded = [rtt_s for at, rtt_s in probes if all_sending <= at < one_ended]
        # What the last byte queued behind is gone after the longest round trip.
        drained = last + max(loaded, default=0.0)
        idle = [rtt_s for at, rtt_s in probes if at < first or at >= drained]
        if min(len(idle), len(loaded)) < LEAST_PROBES:
            continue
        base_s = median(idle)
        for metric, values in (
            ("rtt_idle_s", idle),
            ("rtt_under_load_s", loaded),
            ("rtt_increase_s", [rtt_s - base_s for rtt_s in loaded]),
        ):
            figures[direction, metric] = distribution(values)
    return figures
