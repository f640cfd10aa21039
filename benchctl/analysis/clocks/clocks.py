"""What one-way delays prove of the two clocks that they are differences of.

No delay is negative, and in a lab none is shorter than the topology promises: a shorter one proves
that the clocks differ. Without such a proof, directions that differ may have different paths. A
clock's own claim to be synchronized is the S bit of RFC 4656, 4.1.2, and its error estimate; the
estimate of a clock that does not claim it means nothing.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from enum import StrEnum
from statistics import fmean

from msgspec import Struct

from benchctl.metrics import Direction
from benchctl.run.record import Figures

SEND, RECEIVE = str(Direction.SEND), str(Direction.RECEIVE)
# Emulated links are exact to less, and a promise is rounded to the size of a packet.
LEAST_SHORT_S, SHORT = 1e-4, 0.01
# What moves clocks moves both directions' least delays by this many times more than their sum.
MOVED, LEAST_MOVED_S = 3.0, 2e-4
LEAST_POINTS = 3
_ROUNDED_S = 1e-6
# A single packet may have waited anywhere.
LEAST_PACKETS = 5


class ClockVerdict(StrEnum):
    """What the delays of a flow say of the clocks."""

    APART = "apart"
    """They differ: a delay is shorter than any can be."""
    CLOCKS_OR_PATH = "clocks or path"
    """The directions differ by the clocks, or because the path is not symmetric."""
    UNKNOWN_OFFSET = "unknown offset"
    """The clocks do not claim to be synchronized, and a single direction shows no more."""
    COARSE = "coarse"
    """They claim to be synchronized, with an error as large as the delay."""


class Clocks(Struct, frozen=True):
    """What a flow shows of the clocks of its two ends.

    ``least_s`` are the least delays by direction, ``promised_s`` those of the lab's topology.
    ``offset_s`` is by how much the other clock is ahead, ``way_s`` half of the sum of the least
    delays, without drift and steps if these are known: the one-way delay of a symmetric path.
    ``usual_s`` is half of the sum of the medians. ``drift`` is what the other clock gains in each
    second. ``error_s`` is what the clocks claim if ``synchronized``. Unknown is None.
    """

    verdict: ClockVerdict
    least_s: Mapping[str, float]
    promised_s: Mapping[str, float]
    offset_s: float | None
    way_s: float | None
    usual_s: float | None
    drift: float | None
    synchronized: bool
    error_s: float | None

    @property
    def moved(self) -> bool:
        """Whether the clocks moved within the flow, so that its minima are not of one moment."""
        return self.way_s is not None and (
            self.way_s < 0 or abs(self.way_s - fmean(self.least_s.values())) > _ROUNDED_S
        )


def are_apart(least_s: Mapping[str, float], promised_s: Mapping[str, float]) -> bool:
    """Return whether least delays prove that the clocks differ.

    By direction; of a lab ``promised_s`` is what the idle path takes.
    """

    def shortest_s(direction: str) -> float:
        known_s = promised_s.get(direction)
        return 0.0 if known_s is None else known_s - max(LEAST_SHORT_S, SHORT * known_s)

    return any(value_s < shortest_s(direction) for direction, value_s in least_s.items())


def promised_of(expected: Mapping[str, Mapping[str, float]]) -> dict[str, float]:
    """Return the least delays that the topology of a lab allows, by direction."""
    return {
        direction: metrics.get("owd_least_s", metrics["owd_s"])
        for direction, metrics in expected.items()
        if "owd_s" in metrics
    }


def clocks_of(
    figures: Figures, expected: Mapping[str, Mapping[str, float]], *, one_clock: bool
) -> Clocks | None:
    """Return what a flow's figures show of the clocks; None if nothing has to be said.

    ``expected`` are the theoretical figures of a lab, by direction; ``one_clock`` says that both
    ends are on one machine.
    """
    least_s = {
        direction: figure.spread["min"]
        for (direction, metric), figure in figures.items()
        if metric == "owd_s" and "min" in figure.spread
    }
    promised_s = promised_of(expected)
    apart = are_apart(least_s, promised_s)
    if not least_s or (not apart and (one_clock or promised_s)):
        return None
    known = {
        name: [figure.value for (_, metric), figure in figures.items() if metric == name]
        for name in ("clock_synchronized", "owd_error_s")
    }
    synchronized = bool(known["clock_synchronized"]) and min(known["clock_synchronized"]) == 1
    error_s = max(known["owd_error_s"], default=None) if synchronized else None
    offset_s = way_s = usual_s = None
    if len(least_s) == 2:
        way_s = fmean(least_s.values())
        offset = figures.get((SEND, "clock_offset_s"))
        offset_s = offset.value if offset else (least_s[SEND] - least_s[RECEIVE]) / 2
        both = [figures[direction, "owd_s"] for direction in (SEND, RECEIVE)]
        usual_s = fmean(figure.spread.get("median", figure.value) for figure in both)
        removed = [
            figures.get((direction, "owd_offset_removed_s")) for direction in (SEND, RECEIVE)
        ]
        if removed[0] and removed[1]:
            way_s = fmean(figure.spread["min"] for figure in removed if figure)
    drifts = [
        sign * figure.value
        for direction, sign in ((SEND, 1), (RECEIVE, -1))
        if (figure := figures.get((direction, "clock_drift_ratio"))) is not None
    ]
    if apart:
        verdict = ClockVerdict.APART
    elif offset_s is not None and not (error_s is not None and abs(offset_s) <= error_s):
        verdict = ClockVerdict.CLOCKS_OR_PATH
    elif not synchronized:
        verdict = ClockVerdict.UNKNOWN_OFFSET
    elif error_s is not None and error_s >= min(least_s.values()):
        verdict = ClockVerdict.COARSE
    else:
        return None
    drift = drifts[0] if drifts else None
    return Clocks(
        verdict, least_s, promised_s, offset_s, way_s, usual_s, drift, synchronized, error_s
    )  # fmt: skip


class ClockPoint(Struct, frozen=True):
    """The clocks as one flow of a run saw them: when, in Unix time, and from how many packets."""

    time: float
    packets: float
    clocks: Clocks


class ClocksOverRun(Struct, frozen=True):
    """Clocks that moved from trial to trial, while the path did not.

    ``offsets_s`` and ``usual_s``, half of the sum of the medians, are those of the trials in order
    of time. ``drift`` is what the other clock gains in each second; None if it did not move evenly.
    """

    first: Clocks
    last: Clocks
    lasted_s: float
    offsets_s: Sequence[float]
    usual_s: Sequence[float]
    drift: float | None


def clocks_over(points: Sequence[ClockPoint]) -> ClocksOverRun | None:
    """Return how the clocks moved from trial to trial of a flow; None if they are not seen to.

    A queue changes the sum of both directions' delays as much as their difference; a clock changes
    the difference only. The sum is that of the medians: the minima of both directions may be of
    other moments, between which the clocks move.
    """
    rows = [
        (point.time, point.packets, clocks.offset_s, clocks.usual_s, clocks)
        for point in sorted(points, key=lambda point: point.time)
        for clocks in (point.clocks,)
        if clocks.offset_s is not None
        and clocks.usual_s is not None
        and point.packets >= LEAST_PACKETS
    ]
    if len(rows) < LEAST_POINTS:
        return None
    times, packets, offsets_s, usual_s, ones = zip(*rows, strict=True)
    moved_s = max(offsets_s) - min(offsets_s)
    if moved_s < max(MOVED * (max(usual_s) - min(usual_s)), LEAST_MOVED_S):
        return None
    drift = _slope(times, offsets_s, packets)
    left = [offset - drift * time for time, offset in zip(times, offsets_s, strict=True)]
    even = max(left) - min(left) < moved_s / 4
    lasted_s = times[-1] - times[0]
    return ClocksOverRun(ones[0], ones[-1], lasted_s, offsets_s, usual_s, drift if even else None)


def _slope(times: Sequence[float], values: Sequence[float], weights: Sequence[float]) -> float:
    """Return the slope of least squares, weighted; 0 for a single time."""
    total = sum(weights)
    middle = sum(w * t for w, t in zip(weights, times, strict=True)) / total
    level = fmean(values)
    squares = sum(w * (t - middle) ** 2 for w, t in zip(weights, times, strict=True))
    products = sum(
        w * (t - middle) * (value - level)
        for w, t, value in zip(weights, times, values, strict=True)
    )
    return products / squares if squares else 0.0
