"""The clocks of the two ends as the packets of a flow show them: their offset, drift and steps.

A one-way delay is a difference of two clocks. What a queue adds is positive and in one direction;
what a clock adds has the opposite sign in the other direction. So half of the difference of both
directions' least delays is the offset of the clocks, if the path is symmetric (in a lab: if it is
as the topology says), and slopes of opposite sign are a drift.

Nothing is removed from the delays: `owd_offset_removed_s` stands beside `owd_s`.
"""

from __future__ import annotations

import math
from bisect import bisect_right
from collections.abc import Mapping, Sequence

from msgspec import Struct

from benchctl.analysis.clocks.clocks import RECEIVE, SEND, are_apart, promised_of
from benchctl.analysis.clocks.floor import DelayAt, lower_bound_line
from benchctl.analysis.clocks.levels import DelayStep, levels_of, steps_of
from benchctl.analysis.flow.figures import FlowFold, distribution
from benchctl.analysis.statistics import quantile
from benchctl.run.record import Figure, Figures, FlowEvent, Happening

# Two minutes at ten packets a second, less what an exponential schedule and some loss take away.
LEAST_SPAN_S, LEAST_PACKETS = 0.9 * 120, 900
# In how many parts of the time the line has to be close to the delays, and how close.
PARTS, CLOSE = 6, 0.2
# A slope is sure to this many times what a quarter of the least delays are above the line by.
SURE = 4.0

ProbedDelays = Mapping[str, Sequence[DelayAt]]
"""The delays of each direction, by the time of sending."""


class ClockFit(Struct, frozen=True):
    """What the packets of both directions show.

    ``drift`` is what the other clock gains in each second, None if it is not known. ``offsets`` are
    those of the other clock at second 0, one more than the ``steps`` of each direction, the times
    at which the clocks stepped.
    """

    drift: float | None
    steps: Mapping[str, Sequence[float]]
    offsets: Sequence[float]

    def offset_at(self, direction: str, time_s: float) -> float:
        """Return the offset of the other clock when a packet of a direction was sent."""
        place = bisect_right(self.steps.get(direction, ()), time_s)
        return self.offsets[place] + (self.drift or 0.0) * time_s


def probed_delays(fold: FlowFold) -> ProbedDelays:
    """Return the delays of a flow's packets by direction; none of a flow without."""
    return {
        direction: list(zip(series.starts_s, series.values, strict=True))
        for (direction, metric), series in fold.measured().items()
        if metric == "owd_s" and series.starts_s == series.ends_s
    }


def clock_figures(
    fold: FlowFold, expected: Mapping[str, Mapping[str, float]], *, one_clock: bool
) -> Figures:
    """Return what is known of the clocks, and the delays without it; nothing if they are one.

    ``expected`` are the theoretical figures of a lab, by direction; ``one_clock`` says that both
    ends are on one machine. Then only a delay that cannot be shows that the clocks differ.
    """
    known = fold.figures()
    delays = {
        direction: known[direction, "owd_s"]
        for direction in (SEND, RECEIVE)
        if (direction, "owd_s") in known
    }
    least = {
        direction: figure.spread["min"]
        for direction, figure in delays.items()
        if "min" in figure.spread
    }
    promised = promised_of(expected)
    if not are_apart(least, promised) and (one_clock or promised):
        return {}
    probed = probed_delays(fold)
    steps = {direction: steps_of(points) for direction, points in probed.items()}
    drift = drift_of(probed, steps)
    figures: dict[tuple[str, str], Figure] = {}
    if drift is not None:
        for direction in probed:
            sign = -1 if direction == RECEIVE and len(probed) > 1 else 1
            figures[direction, "clock_drift_ratio"] = Figure(sign * drift, "samples")
    if len(least) < 2:
        return figures
    asymmetry_s = (promised.get(SEND, 0.0) - promised.get(RECEIVE, 0.0)) / 2
    fit = ClockFit(None, {}, [(least[SEND] - least[RECEIVE]) / 2 - asymmetry_s])
    if len(probed) == 2:
        fit = fit_of(probed, drift, clock_steps(steps), asymmetry_s)
    for direction, sign in ((SEND, 1), (RECEIVE, -1)):
        origin = delays[direction].origin
        figures[direction, "clock_offset_s"] = Figure(sign * fit.offsets[0], origin)
        if direction in probed:
            removed = [
                delay_s - sign * fit.offset_at(direction, at_s)
                for at_s, delay_s in probed[direction]
            ]
            figures[direction, "owd_offset_removed_s"] = distribution(removed)
        else:
            figures[direction, "owd_offset_removed_s"] = _shifted(
                delays[direction], sign * fit.offsets[0]
            )
    return figures


def _shifted(figure: Figure, offset_s: float) -> Figure:
    spread = {name: value - offset_s for name, value in figure.spread.items()}
    return Figure(figure.value - offset_s, figure.origin, spread)


def fit_of(
    probed: ProbedDelays,
    drift: float | None,
    steps: Sequence[Mapping[str, DelayStep]] = (),
    asymmetry_s: float = 0.0,
) -> ClockFit:
    """Return the offsets between steps of the clocks, by the least delays without the drift.

    ``asymmetry_s`` is half of what the delay towards the other host is longer by.
    """
    gain = drift or 0.0
    times = {direction: [step[direction].at_s for step in steps] for direction in probed}
    least: dict[str, list[float]] = {}
    for direction, sign in ((SEND, 1), (RECEIVE, -1)):
        least[direction] = [math.inf] * (len(steps) + 1)
        for at_s, delay_s in probed[direction]:
            part = bisect_right(times[direction], at_s)
            least[direction][part] = min(least[direction][part], delay_s - sign * gain * at_s)
    if math.inf in (*least[SEND], *least[RECEIVE]):  # no packet of a direction between two steps
        times, least = {}, {direction: [min(values)] for direction, values in least.items()}
    offsets = [
        (there - back) / 2 - asymmetry_s
        for there, back in zip(least[SEND], least[RECEIVE], strict=True)
    ]
    return ClockFit(drift, times, offsets)


def clock_steps(steps: Mapping[str, Sequence[DelayStep]]) -> list[Mapping[str, DelayStep]]:
    """Return the steps that clocks made: at one time in both directions, of opposite size.

    Each as both directions show it. A change of the path is in one direction only, or has the same
    sign in both.
    """
    found: list[Mapping[str, DelayStep]] = []
    others = [*steps.get(RECEIVE, ())]
    for step in steps.get(SEND, ()):
        for other in others:
            near = abs(step.at_s - other.at_s) <= step.level_s + other.level_s
            if near and abs(step.size_s + other.size_s) < abs(step.size_s - other.size_s) / 2:
                found.append({SEND: step, RECEIVE: other})
                others.remove(other)
                break
    return found


def step_events(fold: FlowFold) -> list[FlowEvent]:
    """Return the steps of the least delays of a flow's packets, of clocks or of the path."""
    steps = {direction: steps_of(points) for direction, points in probed_delays(fold).items()}
    of_clocks = [step for both in clock_steps(steps) for step in both.values()]
    return [
        FlowEvent(
            direction, "owd_s", Happening.CLOCK_STEP if step in of_clocks else Happening.DELAY_STEP,
            step.at_s, None, step.before_s, step.after_s,
        )
        for direction, found in steps.items()
        for step in found
    ]  # fmt: skip


def drift_of(probed: ProbedDelays, steps: Mapping[str, Sequence[DelayStep]]) -> float | None:
    """Return what the other clock gains in each second; of one direction, what delays gain.

    None where no part of the time without a step has two minutes at ten packets a second; where
    the slope is no surer than the noise; and where it may be a queue: if both directions' slopes
    do not have opposite signs, or the delays of a single direction do not follow its line.
    """
    if not probed:
        return None
    begin_s, end_s = _quiet(probed, [step for found in steps.values() for step in found])
    slopes, sure = [], 0.0
    for direction, points in probed.items():
        within = [point for point in points if begin_s <= point[0] <= end_s]
        if len(within) < LEAST_PACKETS or max(within)[0] - min(within)[0] < LEAST_SPAN_S:
            return None
        line = lower_bound_line(within)
        above = [(at_s, delay_s - line.at(at_s)) for at_s, delay_s in within]
        span_s = max(within)[0] - min(within)[0]
        levels = sorted(levels_of(above, len(above) // 10)[1])
        sure = max(sure, SURE * quantile(levels, 0.25) / span_s)
        if len(probed) == 1:
            parts = levels_of(above, PARTS)[1]
            if max(parts) > CLOSE * abs(line.slope) * span_s:
                return None
        slopes.append(line.slope if direction == SEND or len(probed) == 1 else -line.slope)
    drift = sum(slopes) / len(slopes)
    apart = max(slopes) - min(slopes)
    return drift if abs(drift) > sure and apart <= max(abs(drift) / 2, 2 * sure) else None


def _quiet(probed: ProbedDelays, steps: Sequence[DelayStep]) -> tuple[float, float]:
    """Return the longest time that all directions share, and in which there is no step."""
    begin_s = max(min(points)[0] for points in probed.values())
    end_s = min(max(points)[0] for points in probed.values())
    ordered = sorted(steps, key=lambda step: step.at_s)
    begins = [begin_s, *(step.at_s + 2 * step.level_s for step in ordered)]
    ends = [*(step.at_s - 2 * step.level_s for step in ordered), end_s]
    return max(zip(begins, ends, strict=True), key=lambda part: part[1] - part[0])
