"""Round-trip times while other flows load the path, beside those of the idle path.

The difference is what bufferbloat adds ("latency under load", "working latency", "induced
latency"): idle phases before and after a load tell it from the length of the path, as in the RRUL
test (Realtime Response Under Load) of flent.
"""

from __future__ import annotations

from collections.abc import Sequence
from statistics import median
from typing import NamedTuple

from benchctl.analysis.flow.figures import FlowFold, distribution
from benchctl.run.record import Figures

# Fewer probes of a phase are no distribution.
LEAST_PROBES = 5


class Load(NamedTuple):
    """When a flow carried data, in Unix time.

    It measured from ``began``, its omitted part included, to ``ended``. At ``gone`` its client had
    ended: until then sockets may still send what they took before.
    """

    began: float
    ended: float
    gone: float


def loaded_figures(fold: FlowFold, second_0: float, loads: Sequence[Load]) -> Figures:
    """Return the round-trip times of a flow by phase, and their increase over the idle median.

    ``second_0`` is the flow's own, in Unix time; ``loads`` are those of the trial's flows that
    carry data. Probes count as loaded while all of them do. They count as idle if they were
    answered before any does, or sent after all are gone and the queue has drained. Nothing without
    both.
    """
    if not loads:
        return {}
    figures = {}
    first, all_sending = min(load.began for load in loads), max(load.began for load in loads)
    one_ended, gone = min(load.ended for load in loads), max(load.gone for load in loads)
    for (direction, name), series in fold.measured().items():
        if name != "rtt_s":
            continue
        probes = [
            (second_0 + start_s, rtt_s)
            for start_s, rtt_s in zip(series.starts_s, series.values, strict=True)
        ]
        loaded = [rtt_s for at, rtt_s in probes if all_sending <= at < one_ended]
        drained = _drained(probes, first, gone)
        idle = [rtt_s for at, rtt_s in probes if at + rtt_s <= first or at >= drained]
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


def _drained(probes: Sequence[tuple[float, float]], first: float, gone: float) -> float:
    """Return when nothing is queued any more of what was sent from ``first`` until ``gone``.

    The last byte leaves within the longest round trip under load. It has left, too, when the first
    probe that was sent behind it is answered, which may have waited longer than any before.
    """
    longest_s = max((rtt_s for at, rtt_s in probes if first <= at < gone), default=0.0)
    behind = [at + rtt_s for at, rtt_s in sorted(probes) if at >= gone]
    return max([gone + longest_s, *behind[:1]])
