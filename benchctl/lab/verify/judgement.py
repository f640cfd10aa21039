"""Does one way over a link keep its promises? Pure: from what was sent and what arrived.

Each promise is kept, broken, or not verified, where what was seen could not have shown it broken.

**Chance.** Losses and jitter are drawn, so a look may refuse a link that keeps its promise. Bounds
are set so that each of the three figures that chance has a part in (loss, jitter, and the delay of
a link with jitter) is beyond them with a probability of at most `_CHANCE`. A link has two
directions, and is refused only when three looks in a row find something broken: at most
(2 x 3 x 0.001)^3 = 2.2e-7. A lab of ten links is refused by chance in 2 of a million checks.

- *Loss*: of n frames the number lost is binomial; its bounds are the exact quantiles.
- *Jitter*: the delay is uniform within D ± J, so its interquartile range is J. That of n frames
  scatters around it with a standard deviation of J / sqrt(n): the joint distribution of two sample
  quantiles (Mosteller, "On Some Useful 'Inefficient' Statistics", 1946) gives each a variance of
  3/16 and their pair a covariance of 1/16, over n, in units of the width 2 J.
- *Delay*: the 5 % quantile of these delays is D - 0.9 J, and that of n frames scatters around it
  with 2 J sqrt(0.05 x 0.95 / n).

**The machine.** It delivers frames late when it is busy, and never early. So delays are judged by
the earliest frames, which tell what the link adds to all of them, and the tolerance for what
spreads them upwards is wider. How late frames are in a trial its counters say (`strain`).
"""

from __future__ import annotations

import math
import statistics
from bisect import bisect_left
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from itertools import accumulate, pairwise

from benchctl.lab.emulate.link import NEVER_NS, OneWay
from benchctl.lab.topology.legs import LinkPath
from benchctl.lab.topology.model import LinkSettings
from benchctl.units import format_duration, format_rate, format_ratio

_CHANCE = 1e-3
_Z = statistics.NormalDist().inv_cdf(1 - _CHANCE / 2)
"""How many standard deviations hold all but that part of a normal distribution."""

# A quarter of a second is told to a few in a hundred on a machine that does other things, too.
RATE_TOLERANCE = 0.05
# An emulator on an idle machine adds a sixth of this to each link.
_DELAY_TOLERANCE_S = 5e-4
# Every fourth frame may be so late where links have no priority: a turn of another process on the
# same core takes some 4 ms. More jitter than promised shows in the earliest frames, too.
_LATE_TOLERANCE_S = 5e-3
# Of the delays: among the earliest, but no outlier where chance has a part in them.
_EARLY = 0.05
# Frames may come so much earlier or later to the queue than their sender noted.
_STAMP_S = 2.5e-4
# To call a lossless link lossless, as many frames as a loss of 5 % lets pass once in a thousand.
_LOSSLESS_FRAMES = math.ceil(math.log(_CHANCE) / math.log(1 - 0.05))
# Below this, quartiles and the normal approximation mean little.
_QUARTILE_FRAMES = 100
# Of a handful of frames, the earliest is not late even when the machine was busy for some of them.
_LEAST_FRAMES = 5


class Promise(StrEnum):
    """The promises of a link."""

    DELAY = "delay"
    JITTER = "jitter"
    LOSS = "loss"
    QUEUE = "queue"
    RATE = "rate"
    ORDER = "order"
    CHANGE = "change"


class PromiseVerdict(StrEnum):
    """The result of one check of a promise; of two, the later one counts."""

    UNVERIFIED = "not verified"
    KEPT = "kept"
    BROKEN = "broken"


@dataclass(frozen=True, slots=True)
class PromiseFinding:
    """One promise, its measured value (NaN if none), and whether it is kept.

    Delays and jitter are in seconds, rates in bits per second of Ethernet frames, queues in frames.
    For the order: the frames that arrived after a later one. For a change: the deviation of frames
    from their time.
    """

    promise: Promise
    promised: float
    measured: float
    verdict: PromiseVerdict


@dataclass(frozen=True, slots=True)
class Train:
    """Datagrams of one frame size: when each was sent, and ``(number, time)`` in order of arrival.

    Times in nanoseconds on one clock. ``unread`` were lost by the receiver's own socket.
    """

    frame_bytes: int
    sent_ns: Sequence[int]
    got: Sequence[tuple[int, int]]
    unread: int = 0

    @property
    def delays_s(self) -> list[float]:
        """The one-way delay of each frame that arrived."""
        return [(got_ns - self.sent_ns[number]) / 1e9 for number, got_ns in self.got]

    @property
    def overtaken(self) -> int:
        """The number of frames that arrived after one that was sent later."""
        latest, count = -1, 0
        for number, _ in self.got:
            count += number < latest
            latest = max(latest, number)
        return count


@dataclass(frozen=True, slots=True)
class Look:
    """The result of one direction of a link."""

    leg: LinkPath
    findings: Mapping[Promise, PromiseFinding] = field(default_factory=dict)

    @property
    def problem(self) -> str:
        """The broken promise with both values; empty if none is broken."""
        for finding in self.findings.values():
            if finding.verdict is PromiseVerdict.BROKEN:
                return f"{self.leg.name}: {_SAID[finding.promise](finding)}"
        return ""

    @property
    def unverified(self) -> tuple[Promise, ...]:
        """The promises that could not be verified."""
        return tuple(
            f.promise for f in self.findings.values() if f.verdict is PromiseVerdict.UNVERIFIED
        )


_SAID: Mapping[Promise, Callable[[PromiseFinding], str]] = {
    Promise.DELAY: lambda f: (
        f"promises a delay of {format_duration(f.promised)}, "
        f"takes {format_duration(f.measured)} here"
    ),
    Promise.JITTER: lambda f: (
        f"promises a jitter of {format_duration(f.promised)}, "
        f"has {format_duration(f.measured)} here"
    ),
    Promise.LOSS: lambda f: (
        f"promises a loss of {format_ratio(f.promised)}, loses {format_ratio(f.measured)} here"
    ),
    Promise.QUEUE: lambda f: (
        f"promises a queue of {f.promised:.0f} frames, holds {f.measured:.0f} here"
    ),
    Promise.RATE: lambda f: (
        f"promises {format_rate(f.promised)}, carries {format_rate(f.measured)} here"
    ),
    Promise.ORDER: lambda f: (
        f"promises to keep the order, {f.measured:.0f} frames were reordered here"
    ),
    Promise.CHANGE: lambda f: (
        "does not keep new settings: "
        + (
            f"frames are {format_duration(f.measured)} off their time with them"
            if math.isfinite(f.measured)
            else "it carries too little with them"
        )
    ),
}


def look_at(leg: LinkPath, findings: Iterable[PromiseFinding]) -> Look:
    """Return the combined result of these checks, each promise judged once or more."""
    weight = list(PromiseVerdict).index
    found: dict[Promise, PromiseFinding] = {}
    for finding in findings:
        known = found.get(finding.promise, finding)
        found[finding.promise] = max(known, finding, key=lambda each: weight(each.verdict))
    return Look(leg, found)


def judge_train(leg: LinkPath, train: Train) -> list[PromiseFinding]:
    """Judge delay, jitter, loss and order by small frames that the link never has to queue."""
    order = [] if leg.jitter_s else [_order(train)]
    return [_jitter(leg, train), _delay(leg, train), _loss(leg, train), *order]


def _jitter(leg: LinkPath, train: Train) -> PromiseFinding:
    delays_s, jitter_s = train.delays_s, leg.jitter_s
    if len(delays_s) < _LEAST_FRAMES:
        return PromiseFinding(Promise.JITTER, jitter_s, math.nan, PromiseVerdict.UNVERIFIED)
    low_s, _, high_s = statistics.quantiles(delays_s)
    more_s = high_s - low_s - jitter_s
    chance_s = _Z * jitter_s / math.sqrt(len(delays_s))
    least_s = -_DELAY_TOLERANCE_S * len(leg.hops) - chance_s
    most_s = _LATE_TOLERANCE_S * len(leg.hops) + chance_s
    several = sum(hop.settings.jitter_s > 0 for hop in leg.hops) > 1  # no longer uniform
    few = jitter_s > 0 and len(delays_s) < _QUARTILE_FRAMES
    if several or few or 0 < jitter_s <= -least_s:
        verdict = PromiseVerdict.UNVERIFIED
    else:
        verdict = _verdict(least_s <= more_s <= most_s)
    return PromiseFinding(Promise.JITTER, jitter_s, high_s - low_s, verdict)


def _delay(leg: LinkPath, train: Train) -> PromiseFinding:
    delays_s, jitter_s = train.delays_s, leg.jitter_s
    several = sum(hop.settings.jitter_s > 0 for hop in leg.hops) > 1
    if len(delays_s) < _LEAST_FRAMES or several:
        # If every frame is lost, none has a delay; if some should arrive, the loss is broken.
        return PromiseFinding(Promise.DELAY, leg.delay_s, math.nan, PromiseVerdict.UNVERIFIED)
    early_s = statistics.quantiles(delays_s, n=round(1 / _EARLY), method="inclusive")[0]
    measured_s = early_s + (1 - 2 * _EARLY) * jitter_s - leg.sending_s(train.frame_bytes)
    chance_s = _Z * 2 * jitter_s * math.sqrt(_EARLY * (1 - _EARLY) / len(delays_s))
    kept = abs(measured_s - leg.delay_s) <= _DELAY_TOLERANCE_S * len(leg.hops) + chance_s
    return PromiseFinding(Promise.DELAY, leg.delay_s, measured_s, _verdict(kept))


def _loss(leg: LinkPath, train: Train) -> PromiseFinding:
    frames = len(train.sent_ns) - train.unread
    lost, promised = frames - len(train.got), leg.loss_ratio
    measured = lost / frames if frames > 0 else math.nan
    low, high = binomial_bounds(frames, promised)
    if not low <= lost <= high:
        verdict = PromiseVerdict.BROKEN
    elif frames < _LOSSLESS_FRAMES or (promised > 0 and low == 0):
        verdict = (
            PromiseVerdict.UNVERIFIED
        )  # so few would also fit a link that loses none, or far more
    else:
        verdict = PromiseVerdict.KEPT
    return PromiseFinding(Promise.LOSS, promised, measured, verdict)


def due_of(settings: LinkSettings, frame_bytes: int, sent_ns: Sequence[int]) -> dict[int, int]:
    """Return the times at which the model delivers these frames, over an idle link."""
    model: OneWay[int] = OneWay(settings, "")
    for number, now_ns in enumerate(sent_ns):
        model.arrive(now_ns, frame_bytes, number)
    due: dict[int, int] = {}
    while (next_ns := model.next_ns()) < NEVER_NS:
        due |= {number: due_ns for due_ns, number in model.due(next_ns)}
    return due


def judge_burst(leg: LinkPath, settings: LinkSettings, train: Train) -> list[PromiseFinding]:
    """Judge queue, order and a change by frames that arrived faster than the link sends.

    ``settings`` are those of the changed link, without jitter and loss. The model predicts the same
    frames under them.
    """
    due_ns = due_of(settings, train.frame_bytes, train.sent_ns)
    return [
        *_queue(leg, settings, train, len(train.sent_ns) - len(due_ns)),
        _order(train),
        _change(leg, train, due_ns),
    ]


def _queue(
    leg: LinkPath, settings: LinkSettings, train: Train, dropped: int
) -> list[PromiseFinding]:
    promised = settings.queue_packets
    if math.isinf(settings.rate_bps):
        return []  # a link without a rate never has a queue
    slack = 1 + math.ceil(_STAMP_S * settings.rate_bps / (8 * train.frame_bytes))
    lost = len(train.sent_ns) - train.unread - len(train.got)
    shorter = lost - dropped
    measured = float(promised - shorter)
    rated = sum(math.isfinite(hop.settings.rate_bps) for hop in leg.hops)
    if rated > 1:
        return [PromiseFinding(Promise.QUEUE, promised, math.nan, PromiseVerdict.UNVERIFIED)]
    if abs(shorter) > slack:
        return [PromiseFinding(Promise.QUEUE, promised, measured, PromiseVerdict.BROKEN)]
    if dropped <= slack:  # it was never full, or too briefly
        return [PromiseFinding(Promise.QUEUE, promised, math.nan, PromiseVerdict.UNVERIFIED)]
    return [PromiseFinding(Promise.QUEUE, promised, measured, PromiseVerdict.KEPT)]


def _order(train: Train) -> PromiseFinding:
    if len(train.got) < _LEAST_FRAMES:
        return PromiseFinding(Promise.ORDER, 0, math.nan, PromiseVerdict.UNVERIFIED)
    return PromiseFinding(Promise.ORDER, 0, train.overtaken, _verdict(not train.overtaken))


def _change(leg: LinkPath, train: Train, due_ns: Mapping[int, int]) -> PromiseFinding:
    """Judge the new delay by the first half of the frames, and the new rate by the second.

    A queue of another length, which is judged by itself, does not affect them.
    """
    if not due_ns:
        return PromiseFinding(Promise.CHANGE, 0, math.nan, PromiseVerdict.UNVERIFIED)
    common = [(got_ns, due_ns[number]) for number, got_ns in train.got if number in due_ns]
    if len(common) < min(_LEAST_FRAMES, len(due_ns)):
        return PromiseFinding(Promise.CHANGE, 0, math.nan, PromiseVerdict.BROKEN)
    off_s = [(got - due) / 1e9 for got, due in common]
    half = -(-len(off_s) // 2)
    early_s = min(off_s[:half])
    tolerance_s = _DELAY_TOLERANCE_S * len(leg.hops)
    if abs(early_s) > tolerance_s:
        return PromiseFinding(Promise.CHANGE, 0, abs(early_s), PromiseVerdict.BROKEN)
    span_s = (common[-1][1] - common[0][1]) / 1e9
    drift_s = abs(min(off_s[half:], default=early_s) - early_s)
    # A rate with this error shows half of it between the two halves.
    kept = drift_s <= tolerance_s + RATE_TOLERANCE * span_s / 2
    return PromiseFinding(Promise.CHANGE, 0, abs(early_s) if kept else drift_s, _verdict(kept))


def arrival_rate_bps(train: Train, promised_bps: float) -> float:
    """Return the rate of a link that frames fill, in bits per second.

    By the times at which the model delivers them, which knows when their sender was held up. Those
    that a busy machine delivers late say nothing of the link: the rate is the median over the least
    late ones (the lower convex hull of their times). 0 of fewer than two frames, infinite of all at
    once.
    """
    due_ns = due_of(LinkSettings(promised_bps), train.frame_bytes, train.sent_ns)
    hull: list[tuple[int, int]] = []
    for due, got in sorted((due_ns[n], got_ns) for n, got_ns in train.got if n in due_ns):
        while len(hull) > 1:
            (a_due, a_got), (b_due, b_got) = hull[-2:]
            if (b_got - a_got) * (due - b_due) < (got - b_got) * (b_due - a_due):
                break
            hull.pop()
        hull.append((due, got))
    if len(hull) < 2:
        return 0.0
    whole_due, whole_got = (end - start for start, end in zip(hull[0], hull[-1], strict=True))
    if whole_got <= 0:
        return math.inf
    # Slopes with their weights: a stretch that is long in one direction alone is of late frames.
    stretches = sorted(
        ((b_got - a_got) / (b_due - a_due),
         min((b_due - a_due) / whole_due, (b_got - a_got) / whole_got))
        for (a_due, a_got), (b_due, b_got) in pairwise(hull)
    )  # fmt: skip
    reached = list(accumulate(weight for _, weight in stretches))
    slope, _ = stretches[bisect_left(reached, reached[-1] / 2)]
    return promised_bps / slope if slope > 0 else math.inf


def judge_rate(leg: LinkPath, rate_bps: float) -> list[PromiseFinding]:
    """Judge a rate in bits per second of frames, NaN if it could not be measured."""
    if math.isinf(leg.rate_bps):
        return []
    if math.isnan(rate_bps):
        return [PromiseFinding(Promise.RATE, leg.rate_bps, rate_bps, PromiseVerdict.UNVERIFIED)]
    kept = math.isclose(rate_bps, leg.rate_bps, rel_tol=RATE_TOLERANCE)
    return [PromiseFinding(Promise.RATE, leg.rate_bps, rate_bps, _verdict(kept))]


def binomial_bounds(count: int, probability: float) -> tuple[int, int]:
    """Return the smallest and the largest number of successes in ``count`` within chance.

    Either tail beyond them has at most half of `_CHANCE`.
    """
    if probability <= 0 or count <= 0:
        return 0, 0
    if probability >= 1:
        return count, count
    return (
        _below(count, probability),
        count - _below(count, 1 - probability),
    )


def _below(count: int, probability: float) -> int:
    """Return the greatest k such that fewer than k successes have at most half of `_CHANCE`."""
    log_p, log_q = math.log(probability), math.log1p(-probability)
    tail = 0.0
    for k in range(count + 1):
        choose = math.lgamma(count + 1) - math.lgamma(k + 1) - math.lgamma(count - k + 1)
        tail += math.exp(choose + k * log_p + (count - k) * log_q)
        if tail > _CHANCE / 2:
            return k
    return count


def _verdict(kept: bool) -> PromiseVerdict:
    return PromiseVerdict.KEPT if kept else PromiseVerdict.BROKEN
