"""Finds what happened within a flow by its rate: ramp-up, drop, stall, recovery, oscillation."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from itertools import groupby, pairwise
from statistics import fmean, median

from msgspec import Struct
from msgspec.structs import replace

from benchctl.analysis.distributions import beta_share
from benchctl.analysis.flow.figures import FlowFold, MetricSeries
from benchctl.analysis.flow.regular import Regular, rates_of
from benchctl.analysis.steps import FALSE_ALARMS, LEAST_LEVEL, LEAST_SERIES, Step, find_steps
from benchctl.analysis.transform import smooth_length, transform
from benchctl.metrics import Fold, Vocabulary
from benchctl.run.record import FlowEvent, Happening

# Of the higher of two levels. A smaller step may be certain and still matter to nobody.
LEAST_CHANGE = 0.1
# Slow start takes some round trips; a plateau that is worth a name lasts longer.
LEAST_PLATEAU_S = 2.0
# Growing by half in each round trip of 0.2 s, 10 segments become 1 Gbit/s in 4 s.
MOST_START_S = 5.0
# Below this share of the median rate nothing moves but what was on its way.
STALLED = 0.01
LEAST_STALL_S = 1.0
# The share of all variance that a regular swing must explain; a saw-tooth's is 0.61.
LEAST_SWING = 0.5
LEAST_CYCLES = 4
# Longer series are averaged down to about this length, which shows four cycles and a hundred.
MOST_TRANSFORMED = 600


def events_of(fold: FlowFold) -> list[FlowEvent]:
    """Return the events of a flow, each direction by its first rate, in order of time."""
    measured = fold.measured()
    found = []
    for direction, metric, rate in rates_of(fold):
        others = {
            m: series for (d, m), series in measured.items() if d == direction and m != metric
        }
        for event in find_events(rate, direction, metric):
            first_s = event.at_s - rate.step_s
            last_s = (event.until_s or event.at_s + rate.step_s) + rate.step_s
            beside = _beside(others, fold.vocabulary, first_s, last_s)
            found.append(replace(event, beside=beside))
    return sorted(found, key=lambda event: event.at_s)


def find_events(rate: Regular, direction: str = "", metric: str = "") -> Iterator[FlowEvent]:
    """Yield the events of a rate, without other metrics beside them."""
    stalls = list(_stalls(rate))
    for begin, end in stalls:
        before = rate.values[begin - 1] if begin else 0.0
        yield FlowEvent(
            direction, metric, Happening.STALL, rate.time_s(begin), rate.time_s(end), before,
            fmean(rate.values[begin:end]),
        )  # fmt: skip
    # Without what stood still, only a difference of the levels around a stall is a step.
    still = {index for begin, end in stalls for index in range(begin, end)}
    moving = [index for index in range(_start(rate), len(rate.values)) if index not in still]
    values = [rate.values[index] for index in moving]
    if swing := _swing(values):
        samples, confidence = swing
        tenth = len(values) // 10
        ordered = sorted(values)
        begin_s, end_s = rate.time_s(0), rate.time_s(len(rate.values))
        yield FlowEvent(
            direction, metric, Happening.OSCILLATION, begin_s, end_s, ordered[tenth],
            ordered[-1 - tenth], confidence, samples * rate.step_s,
        )  # fmt: skip
        return
    risen = True
    for change in _changes(values, rate.step_s):
        up = change.after > change.before
        kind = Happening.DROP if not up else Happening.RAMP_UP if risen else Happening.RECOVERY
        risen = risen and up
        if kind is Happening.RAMP_UP and not change.from_plateau:
            continue
        at_s = rate.time_s(moving[change.at])
        yield FlowEvent(
            direction, metric, kind, at_s, None, change.before, change.after, change.confidence
        )


class _Change(Struct, frozen=True):
    """Steps in one direction without a plateau between them, and whether one was before them.

    ``at`` is the first sample of the change, ``end`` that of its last step.
    """

    at: int
    end: int
    before: float
    after: float
    confidence: float
    from_plateau: bool

    @property
    def matters(self) -> bool:
        return abs(self.after - self.before) >= LEAST_CHANGE * max(self.before, self.after)

    def and_then(self, step: Step) -> _Change:
        at = self.at if self.matters else step.at
        confidence = max(self.confidence, step.confidence)
        return replace(self, at=at, end=step.at, after=step.after, confidence=confidence)


def _changes(values: Sequence[float], step_s: float) -> Iterator[_Change]:
    """Yield the changes of level that matter."""
    least = LEAST_PLATEAU_S / step_s * (1 - 1e-6)
    runs = [list(run) for _, run in groupby(find_steps(values), key=_rises)]
    turns = [*(run[0].at for run in runs[1:]), len(values)]
    begin = 0
    for run, turn in zip(runs, turns, strict=False):
        last: _Change | None = None
        for step in run:
            since = last.end if last else begin
            long_enough = step.at - since >= least
            plateau = long_enough and _is_level(values, since, step.at, turn, rises=_rises(step))
            if last and not plateau:
                last = last.and_then(step)
                continue
            if last and last.matters:
                yield last
                begin = last.end
            last = _Change(step.at, step.at, step.before, step.after, step.confidence, plateau)
        if last and last.matters:
            yield last
            begin = last.end


def _rises(step: Step) -> bool:
    return step.after > step.before


def _is_level(values: Sequence[float], begin: int, at: int, turn: int, *, rises: bool) -> bool:
    """Return whether the samples before a step are no part of the climb or fall after it.

    From the first to the last third of its time, an even climb, by sums or by factors, grows by two
    thirds of what it grows by to the time as long that follows. Half of that is too much here.
    """
    third = (at - begin) // 3
    if not third:
        return False
    first, last = median(values[begin : begin + third]), median(values[at - third : at])
    before, after = median(values[begin:at]), median(values[at : min(2 * at - begin, turn)])
    moved, follows = last * last * before, first * first * after
    return moved < follows if rises else moved > follows


def _start(rate: Regular) -> int:
    """Return the index of the first sample that does not grow any more.

    Slow start is neither a level nor noise: every sample of it is below those of the next seconds.
    """
    values = rate.values
    ahead = max(LEAST_LEVEL, round(LEAST_PLATEAU_S / rate.step_s))
    most = min(math.ceil(MOST_START_S / rate.step_s), len(values) - ahead)
    for at in range(most):
        if values[at] >= (1 - LEAST_CHANGE) * median(values[at + 1 : at + 1 + ahead]):
            return at
    return max(most, 0)


def _stalls(rate: Regular) -> Iterator[tuple[int, int]]:
    """Yield the first index of every stall, and that after its last."""
    moved = [value for value in rate.values if value > 0]
    least = STALLED * median(moved) if moved else 0.0
    begin = 0
    for stalled, group in groupby(rate.values, key=lambda value: value <= least):
        end = begin + len(list(group))
        if stalled and moved and (end - begin) * rate.step_s >= LEAST_STALL_S * (1 - 1e-6):
            yield begin, end
        begin = end


def _swing(values: Sequence[float]) -> tuple[float, float] | None:
    """Return the samples of a cycle of a swing that explains most of the variance, if there is one.

    By the two neighbouring frequencies that hold most: a swing that is no whole number of cycles
    shows in both. With white noise their share has a beta distribution (Fisher, Proceedings of the
    Royal Society A 125, 1929, for one frequency). Also returns the confidence.
    """
    block = -(-len(values) // MOST_TRANSFORMED)
    means = [fmean(values[at : at + block]) for at in range(0, len(values) - block + 1, block)]
    if len(means) < LEAST_SERIES:
        return None
    n = smooth_length(len(means))
    del means[n:]
    middle = fmean(means)
    around = [value - middle for value in means]
    whole = n * math.fsum(value * value for value in around)
    powers = [2 * abs(wave) ** 2 for wave in transform(around)[1 : (n + 1) // 2]]
    if not whole:
        return None
    share, first = max((sum(pair), at) for at, pair in enumerate(pairwise(powers)))
    share /= whole
    lower, upper = powers[first : first + 2]
    cycles = first + 1 + upper / (lower + upper)
    ordered = sorted(means)
    height = ordered[-1 - n // 10] - ordered[n // 10]
    chance = len(powers) * (1 - beta_share(share, 2, max(len(powers) - 2, 1)))
    regular_enough = share >= LEAST_SWING and cycles >= LEAST_CYCLES and chance < FALSE_ALARMS
    if not regular_enough or height < LEAST_CHANGE * ordered[-1]:
        return None
    return block * n / cycles, 1 - chance


def _beside(
    others: Mapping[str, MetricSeries], vocabulary: Vocabulary, first_s: float, last_s: float
) -> dict[str, float]:
    """Return other metrics over a window: counts summed, anything else as its mean."""
    beside = {}
    for metric, series in sorted(others.items()):
        there = [
            value
            for start, end, value in zip(series.starts_s, series.ends_s, series.values, strict=True)
            if end > first_s and start < last_s
        ]
        if there:
            counted = vocabulary.describe(metric).fold is Fold.COUNT
            beside[metric] = math.fsum(there) if counted else fmean(there)
    return beside
