"""Laws: what must be true of the figures of a flow, whatever tool reported them.

A law is one line of `LAWS`. It binds some figures of one direction, and says in words how they
break it: ``received 834 of 739 sent``. `held` holds the figures of a flow against all of them, and
says what becomes of those that break one.

A law must not refuse honest data: a count that the tool rounds, an interval that ended late, ends
that count from different moments. So each has a tolerance, whose reason is beside it. What a law
needs and nobody knows makes it silent.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from msgspec import Struct

from benchctl.analysis.flow.figures import DISAGREEMENT
from benchctl.run.record import Figure
from benchctl.units import format_duration, format_rate, format_size, format_value

PACKETS = ("packets_sent", "packets_received", "packets_lost", "loss_ratio")
# Threads that send and threads that count read their counters at different moments.
STRAY_RATIO, STRAY_PACKETS = 0.001, 2
# Two ends do not begin and end to count at the same moment: a delayed acknowledgement takes 40 ms,
# a queue on a slow link 100 ms. What is on its way then counts at one end alone.
ON_ITS_WAY_S = 0.1
# Two clocks, and the time that a thread takes to start.
STEADY = 0.01
# A kernel's round-trip times are in microseconds, and of several segments it takes one.
RTT_RATIO, RTT_S = 0.01, 20e-6
# Rounding of sums and quotients of 64-bit floats.
FLOATS = 1e-9
# A flow ends when its last data has arrived: a queue drains, and a login takes its time.
LATE_RATIO, LATE_S = 0.25, 1.0
RTTS = ("rtt_s", "tcp_rtt_s", "tcp_min_rtt_s")


class PathBounds(Struct, frozen=True):
    """What the path of one direction allows, as a topology or counters know it.

    ``link_bps`` is the rate of the slowest link, ``rtt_s`` the least round-trip time, and
    ``host_bytes`` all that came in at the interfaces of the receiver's host. What is not known
    bounds nothing.
    """

    link_bps: float = math.inf
    rtt_s: float = 0.0
    host_bytes: float = math.inf


class Terms(Struct, frozen=True):
    """What a flow was asked to do, as far as laws need it. Unknown is None, or 0 for ``omit_s``.

    ``datagram_bytes`` is the payload of each; ``lasted_s`` the time that its samples cover.
    """

    streams: int = 1
    duration_s: float | None = None
    omit_s: float = 0.0
    datagram_bytes: float | None = None
    lasted_s: float | None = None
    bounds: Mapping[str, PathBounds] = {}


UNKNOWN = Terms()
"""Those of a flow of which nothing is known."""


def terms_of(
    requested: Mapping[str, Any], bounds: Mapping[str, PathBounds] = UNKNOWN.bounds
) -> Terms:
    """Return the terms in the parameters of a flow, in SI units."""

    def number(name: str) -> float | None:
        value = requested.get(name)
        return float(value) if isinstance(value, int | float) else None

    of_datagrams = requested.get("protocol") == "udp"
    return Terms(
        int(number("streams") or 1),
        number("duration"),
        number("omit") or 0.0,
        number("length") if of_datagrams else None,
        bounds=bounds,
    )


class Ledger:
    """The figures of one direction of a flow that are not known to be wrong.

    ``samples`` are those that its samples give.
    """

    def __init__(
        self,
        direction: str,
        figures: Mapping[str, Figure],
        samples: Mapping[str, Figure],
        terms: Terms,
    ) -> None:
        self.figures = figures
        self.samples = samples
        self.terms = terms
        self.bounds = terms.bounds.get(direction, PathBounds())

    def values(self, *names: str) -> list[float] | None:
        """Return the values of some metrics; None unless all of them are known."""
        found = [self.figures[name].value for name in names if name in self.figures]
        return found if len(found) == len(names) else None

    def least(self, name: str) -> float | None:
        """Return the least of a distribution; None if it is not known."""
        return self.figures[name].spread.get("min") if name in self.figures else None

    @property
    def stray_packets(self) -> float:
        """How many packets the counts of the two ends may differ by."""
        sent = self.figures.get("packets_sent")
        of_sent = sent.value if sent else 0.0
        stray = max(STRAY_PACKETS * self.terms.streams, STRAY_RATIO * of_sent)
        if self.terms.omit_s and self.terms.duration_s:
            # What is on its way at second 0 counts at the receiver alone. It was sent in the
            # omitted part; a queue may hold all of that.
            stray += of_sent * self.terms.omit_s / self.terms.duration_s
        return stray

    @property
    def measured_s(self) -> float | None:
        """How long it was measured; None if that is not known."""
        return self.terms.lasted_s or self.terms.duration_s

    def most_bps(self, limit_bps: float, held_s: float = 0.0) -> float | None:
        """Return what a receiver may honestly show behind a limit; None if the time is unknown.

        ``held_s`` is of how long a queue may hold what was sent before second 0.
        """
        if not self.measured_s:
            return None
        step = self.figures["throughput_bps"].resolution
        if step is None:
            step = 8 * (self.terms.datagram_bytes or 0.0) / self.measured_s
        slack = max(STEADY, ON_ITS_WAY_S / self.measured_s, held_s / self.measured_s)
        return limit_bps * (1 + slack) + self.terms.streams * step


Break = tuple[tuple[str, ...], str]
"""The metrics whose figures break a law together, and in words how."""


class Law(Struct, frozen=True):
    """One law: its name, what it allows for, and what breaks it.

    A figure that it needs and that nobody knows makes it silent.
    """

    name: str
    tolerance: str
    breaks: Callable[[Ledger], Iterator[Break]]


def _counts(ledger: Ledger) -> Iterator[Break]:
    counts = ledger.values("packets_sent", "packets_received")
    if counts is None:
        return
    sent, received = counts
    lost = ledger.figures["packets_lost"].value if "packets_lost" in ledger.figures else 0.0
    if received + max(0.0, lost) > sent + ledger.stray_packets:
        also = f" and lost {lost:,.0f}" if lost > 0 and received <= sent else ""
        yield PACKETS, f"received {received:,.0f}{also} of {sent:,.0f} sent"


def _losses(ledger: Ledger) -> Iterator[Break]:
    for (lost,) in filter(None, (ledger.values("packets_lost"),)):
        if lost < 0:
            yield ("packets_lost",), f"lost {lost:,.0f}"
    for (ratio,) in filter(None, (ledger.values("loss_ratio"),)):
        if not -FLOATS <= ratio <= 1 + FLOATS:
            yield ("loss_ratio",), f"lost {ratio:.1%}"


def _sender(ledger: Ledger) -> Iterator[Break]:
    rates = ledger.values("throughput_bps", "sent_bps")
    most = ledger.most_bps(rates[1], ledger.terms.omit_s) if rates else None
    if rates and most is not None and rates[0] > most:
        yield (
            ("throughput_bps",),
            f"received at {format_rate(rates[0])}, sent at {format_rate(rates[1])}",
        )


def _link(ledger: Ledger) -> Iterator[Break]:
    rate, link_bps = ledger.values("throughput_bps"), ledger.bounds.link_bps
    most = ledger.most_bps(link_bps) if rate else None
    if rate and most is not None and rate[0] > most:
        words = f"{format_rate(rate[0])} over a link of {format_rate(link_bps)}"
        yield ("throughput_bps",), words


def _host(ledger: Ledger) -> Iterator[Break]:
    received, passed = ledger.values("bytes_received"), ledger.bounds.host_bytes
    if received and received[0] > passed * (1 + STRAY_RATIO):
        words = (
            f"received {format_size(received[0])}, and {format_size(passed)} came in at the host"
        )
        yield ("bytes_received", "throughput_bps"), words


def _samples(ledger: Ledger) -> Iterator[Break]:
    asked_s, lasted_s = ledger.terms.duration_s, ledger.terms.lasted_s
    if not asked_s or not lasted_s or lasted_s < asked_s * (1 - DISAGREEMENT):
        return  # they lack a part
    for name in ("throughput_bps", "sent_bps", "bytes_received", "bytes_sent"):
        if name in ledger.figures and name in ledger.samples:
            reported, ours = ledger.figures[name].value, ledger.samples[name].value
            if abs(reported - ours) > DISAGREEMENT * (reported + ours) / 2:
                both = (format_value(name, reported), format_value(name, ours))
                yield (name,), "{}, and {} in its own intervals".format(*both)


def _order(ledger: Ledger) -> Iterator[Break]:
    for name, figure in ledger.figures.items():
        spread = {**figure.spread, "mean": figure.value}
        if not figure.spread:
            continue
        allowed = figure.resolution or FLOATS * max(map(abs, spread.values()))
        for low, high in (
            ("min", "median"), ("median", "p95"), ("p95", "max"), ("min", "max"),
            ("min", "mean"), ("mean", "max"), ("median", "max"),
        ):  # fmt: skip
            if low in spread and high in spread and spread[low] > spread[high] + allowed:
                words = [f"{at} {format_value(name, spread[at])}" for at in (high, low)]
                yield (name,), f"{words[0]} below {words[1]}"
                break


def _least_rtt(ledger: Ledger) -> Iterator[Break]:
    smoothed, least = ledger.least("tcp_rtt_s"), ledger.least("tcp_min_rtt_s")
    if smoothed is not None and least is not None and smoothed < least * (1 - RTT_RATIO) - RTT_S:
        words = f"{format_duration(smoothed)}, and {format_duration(least)} is the stream's least"
        yield ("tcp_rtt_s",), words
    path_s = ledger.bounds.rtt_s
    for name in RTTS:
        seen = ledger.least(name)
        if seen is not None and seen < path_s * (1 - RTT_RATIO) - RTT_S:
            where = f" on a path of {format_duration(path_s)}" if path_s else ""
            yield (name,), f"{format_duration(seen)}{where}"


def _jitter(ledger: Ledger) -> Iterator[Break]:
    delays = ledger.figures["owd_s"].spread if "owd_s" in ledger.figures else {}
    for name in ("jitter_rfc3550_s", "pdv_p95_p50_s"):
        for (jitter,) in filter(None, (ledger.values(name),)):
            if {"min", "max"} <= delays.keys() and not ledger.terms.omit_s:
                most = delays["max"] - delays["min"]
                step = ledger.figures["owd_s"].resolution or 0.0
                if jitter > most * (1 + FLOATS) + max(step, RTT_S):
                    apart = f"delays that differ by {format_duration(most)}"
                    yield (name,), f"{format_duration(jitter)} of {apart}"
            elif ledger.measured_s and jitter > ledger.measured_s + ledger.terms.omit_s + LATE_S:
                whole = format_duration(ledger.measured_s)
                yield (name,), f"{format_duration(jitter)} in a flow of {whole}"


LAWS = (
    Law("packets add up", "2 packets a stream or 0.1 %; with an omitted part what is sent in it",
        _counts),
    Law("a loss is a share", "rounding of floats", _losses),
    Law("no faster than sent", "as the next; with an omitted part what is sent in it",
        _sender),
    Law("no faster than the link", "1 % or 100 ms of the time, and one step or datagram a stream",
        _link),
    Law("no more than came in", "0.1 %; all bytes of all interfaces of the receiver's host count",
        _host),
    Law("intervals add up", "5 %; not if the intervals lack a part of the time", _samples),
    Law("least, median, greatest", "one step, or rounding of floats", _order),
    Law("no RTT below the least", "1 % and 20 us", _least_rtt),
    Law("jitter within the delays", "one step or 20 us; without delays, the time of the flow",
        _jitter),
)  # fmt: skip
