"""Finds changes of level in a series whose noise depends on itself, by binary segmentation.

Samples of a network's rate resemble their predecessors, and methods that take noise as white see
steps in most series without any. Here the noise is a first-order autoregression, AR(1): every
sample keeps the share ``phi`` of the last one's deviation. The statistic of a step is that of
generalized least squares after whitening (Prais and Winsten, 1954; Lund et al., Journal of Climate
20, 2007), and its threshold holds for all places of a step together (Bonferroni).
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from itertools import accumulate, islice, pairwise
from operator import mul, sub
from statistics import fmean, median

from msgspec import Struct

from benchctl.analysis.distributions import t_two_sided

# The chance that a series without a step shows one.
FALSE_ALARMS = 0.002
# Fewer samples are an outlier, not a level.
LEAST_LEVEL = 3
LEAST_SERIES = 20
# Standard deviations of a difference, beyond which it is taken for a step at first.
JUMP = 3.0
# Each round knows at least one more step; few series have more of unlike size.
MOST_ROUNDS = 8
# Closer to 1, no series is long enough to have a level.
MOST_PHI = 0.97


class Step(Struct, frozen=True):
    """A change of level: the index of its first sample, the levels, and the confidence in it.

    Levels are medians of the samples between this step and its neighbours.
    """

    at: int
    before: float
    after: float
    confidence: float


class Noise(Struct, frozen=True):
    """AR(1) noise: ``phi``, and the standard deviation of what is new in each sample."""

    phi: float
    innovation: float


def find_steps(values: Sequence[float], false_alarms: float = FALSE_ALARMS) -> list[Step]:
    """Return the steps of a series of samples at equal distances, in order.

    ``false_alarms`` is the chance that a series without a step shows one.
    """
    if len(values) < LEAST_SERIES:
        return []
    # A step adds to the noise until it is known, and a large one hides a small one. So jumps are
    # taken for steps at first.
    found = dict.fromkeys(_jumps(values), 1.0)
    for _ in range(MOST_ROUNDS):
        square = _square(values, 1, found)
        phi = _phi_of_differences(values, found, square)
        noise = _noise(square, phi)
        if not noise.innovation:  # nothing varies but by these steps
            break
        known, found = found.keys(), dict(_segment(values, 0, len(values), noise, false_alarms))
        if found.keys() == known:
            break
    # Steps that are none leave noise with a larger phi than was thought, and go when it is known.
    while found and noise.innovation and (estimate := _phi_around(values, sorted(found))) > phi:
        phi = estimate
        noise = _noise(_square(values, 1, found), phi)
        found = dict(_segment(values, 0, len(values), noise, false_alarms))
    places = [0, *sorted(found), len(values)]
    levels = [median(values[begin:end]) for begin, end in pairwise(places)]
    return [
        Step(at, before, after, found[at])
        for at, (before, after) in zip(places[1:-1], pairwise(levels), strict=True)
    ]


def _jumps(values: Sequence[float]) -> Iterator[int]:
    """Yield where a series jumps by far more than most of the time, and stays there.

    By the median of all differences, which a few jumps do not change; of noise, it is 0.67 standard
    deviations. A jump that is undone before a level would be one is an outlier: of the noise.
    """
    sizes = [*map(abs, map(sub, values[1:], values))]
    least = JUMP / 0.6745 * median(sizes)
    jumps = [0, *(at for at, size in enumerate(sizes, 1) if size > least), len(values)]
    for before, at, after in zip(jumps, jumps[1:], jumps[2:], strict=False):
        if min(at - before, after - at) >= LEAST_LEVEL:
            yield at


def _phi_of_differences(values: Sequence[float], steps: Iterable[int], square: float) -> float:
    """Return phi without regard to levels; ``square`` is that of the differences.

    The variance of differences over two samples is 1 + phi times that over one.
    """
    return _cautious(_square(values, 2, steps) / square - 1 if square else 0.0, len(values))


def _noise(square: float, phi: float) -> Noise:
    """Return the noise with some phi: differences have 2 / (1 + phi) times its variance."""
    return Noise(phi, math.sqrt(square * (1 + phi) / 2))


def _square(values: Sequence[float], lag: int, steps: Iterable[int]) -> float:
    """Return the mean square of the differences over a lag that cross no step."""
    across = {step + after for step in steps for after in range(lag)}
    differences = enumerate(map(sub, islice(values, lag, None), values), lag)
    squares = [size * size for at, size in differences if at not in across]
    return math.fsum(squares) / len(squares) if squares else 0.0


def _phi_around(values: Sequence[float], steps: Sequence[int]) -> float:
    """Return phi as the correlation of neighbours around the levels between steps."""
    around: list[float] = []
    for begin, end in pairwise((0, *steps, len(values))):
        mean = fmean(values[begin:end])
        around += (value - mean for value in values[begin:end])
    squares = math.fsum(value * value for value in around)
    products = math.fsum(map(mul, around, around[1:]))
    return _cautious(products / squares if squares else 0.0, len(values))


def _cautious(phi: float, n: int) -> float:
    """Return an estimate of phi without its bias (Kendall, Biometrika 41, 1954), or larger.

    Too small a phi sees steps where none are, so a standard error is added.
    """
    phi = min(max(phi, 0.0), 1.0)
    return min(phi + (1 + 3 * phi) / n + math.sqrt((1 - phi * phi) / n), MOST_PHI)


def _segment(
    values: Sequence[float], begin: int, end: int, noise: Noise, false_alarms: float
) -> Iterator[tuple[int, float]]:
    """Yield the steps between two indexes, each with its confidence."""
    if end - begin < 2 * LEAST_LEVEL or not noise.innovation:
        return
    at, size = _best(values[begin:end], noise)
    # Of all places in the whole series, whichever part of it this is.
    chance = min(1.0, len(values) * t_two_sided(size, len(values) - 3))
    if chance < false_alarms:
        yield begin + at, 1 - chance
        yield from _segment(values, begin, begin + at, noise, false_alarms)
        yield from _segment(values, begin + at, end, noise, false_alarms)


def _best(values: Sequence[float], noise: Noise) -> tuple[int, float]:
    """Return the likeliest place of a step, and its size in standard errors."""
    n, phi = len(values), noise.phi
    first, rest = math.sqrt(1 - phi * phi), 1 - phi
    new = [later - phi * earlier for earlier, later in pairwise(values)]
    after = [*accumulate(reversed(new), initial=0.0)][::-1]  # of the samples from each on
    level = first * first * values[0] + rest * after[0]
    level_square = first * first + (n - 1) * rest * rest
    place, largest = 0, 0.0
    for at in range(LEAST_LEVEL, n - LEAST_LEVEL + 1):
        tail = (n - 1 - at) * rest * rest
        both = rest + tail
        size = new[at - 1] + rest * after[at] - both / level_square * level
        square = size * size / (1 + tail - both * both / level_square)
        if square > largest:
            place, largest = at, square
    return place, math.sqrt(largest) / noise.innovation
