"""What is measured: the metrics, the direction of traffic, and the samples.

Backends use these terms (`benchctl.api` exports them), and so does everything that reads a store.
pydantic is not needed here, so a screen that only reads starts without it.

Quantities are in SI base units: seconds, bits per second, bytes, ratios. Names carry their unit.
"""

from __future__ import annotations

from collections.abc import Collection, Container, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from types import MappingProxyType

from msgspec import Struct

from benchctl.units import without_unit


class Direction(StrEnum):
    """The direction of the measured traffic, seen from the flow's ``from`` host."""

    SEND = "send"
    RECEIVE = "receive"
    BOTH = "both"
    ROUND_TRIP = "round-trip"


class Fold(StrEnum):
    """How the samples of one metric become a flow's single figure."""

    RATE = "rate"
    """Summed over streams, then the mean over time, weighted by the intervals' lengths."""
    COUNT = "count"
    """Summed over streams and intervals."""
    DISTRIBUTION = "distribution"
    """Min, mean, median, 95th percentile and max over all samples of all streams.

    Percentiles by linear interpolation (Hyndman and Fan, type 7), by whichever program.
    """
    VALUE = "value"
    """The last value seen; for figures that only a tool's own summary gives."""


class Aspect(StrEnum):
    """What a metric describes, if several metrics describe the same: one of them is enough."""

    RATE = "rate"
    DELAY = "delay"
    WINDOW = "window"


@dataclass(frozen=True, slots=True)
class Metric:
    """The meaning of a name in ``Sample.metrics`` or ``Summary.metrics``.

    ``better`` is ``"higher"``, ``"lower"``, or ``""`` if neither is. ``per`` names the two counts
    of a ratio, (part, whole): the flow's figure is the quotient of their sums. ``wanted`` metrics
    have a column in tables, a row in comparisons, and may be a run's figure in the history.
    ``stands_for`` names the wanted metric that this one replaces if that is unknown. Of every
    ``aspect``, the first measured metric is plotted before others. A metric ``by_stream`` belongs
    to single streams, such as the hops of a `TracedRoute`: it is folded for each of them, and a
    flow has no figure of it.
    """

    name: str
    description: str
    fold: Fold
    better: str = ""
    per: tuple[str, str] | None = None
    wanted: bool = False
    stands_for: str = ""
    aspect: Aspect | None = None
    by_stream: bool = False


_ACRONYMS = ("owd", "rtt", "tcp")


def title_of(name: str) -> str:
    """Return a metric's name without its unit, for people: ``tcp_rtt_s`` is TCP RTT."""
    words = without_unit(name).removesuffix("_rfc3550").split("_")
    return " ".join(word.upper() if word in _ACRONYMS else word for word in words)


def _metrics(*metrics: Metric) -> Mapping[str, Metric]:
    return MappingProxyType({metric.name: metric for metric in metrics})


METRICS: Mapping[str, Metric] = _metrics(
    Metric("throughput_bps", "payload bits received per second (goodput, RFC 6349)",
           Fold.RATE, "higher", wanted=True, aspect=Aspect.RATE),
    Metric("sent_bps", "payload bits sent per second, by the sender's count",
           Fold.RATE, stands_for="throughput_bps", aspect=Aspect.RATE),
    Metric("rtt_s", "round-trip time of a probe, such as an ICMP echo; of a segment in a packet"
           " trace, from its place to the receiver", Fold.DISTRIBUTION, "lower",
           wanted=True, aspect=Aspect.DELAY),
    Metric("rtt_increase_s", "round-trip time of a probe while other flows carry data, less the"
           " median of the idle path: latency under load, or working latency", Fold.DISTRIBUTION,
           "lower", wanted=True),
    Metric("owd_s", "one-way delay (RFC 7679); negative if the clocks differ by more than the "
    "delay",
           Fold.DISTRIBUTION, "lower", wanted=True, aspect=Aspect.DELAY),
    Metric("owd_offset_removed_s", "one-way delay without the estimated offset and drift of the"
           " clocks; as true as the assumption that the path is symmetric, or in a lab as the"
           " topology says", Fold.DISTRIBUTION, "lower", wanted=True),
    Metric("pdv_p95_p50_s", "delay variation: 95th minus 50th percentile of the one-way delays, by"
           " nearest rank; the mean over streams", Fold.VALUE, "lower", wanted=True),
    Metric("loss_ratio", "share of sent packets that were lost (RFC 7680)", Fold.VALUE, "lower",
           per=("packets_lost", "packets_sent"), wanted=True),
    Metric("jitter_rfc3550_s", "smoothed interarrival jitter (RFC 3550, 6.4.1) after the last"
           " packet; the mean over streams", Fold.VALUE, "lower", wanted=True),
    Metric("retransmits", "TCP segments sent again (tcpi_total_retrans; of a packet trace, as many"
           " as it shows)", Fold.COUNT, "lower", wanted=True),
    Metric("tcp_rtt_s", "the sender's smoothed round-trip time (tcpi_rtt, RFC 6298)",
           Fold.DISTRIBUTION, "lower", wanted=True, aspect=Aspect.DELAY),
    Metric("responsiveness_rpm", "round trips per minute under load, estimated after"
           " draft-ietf-ippm-responsiveness-09 for TCP only: without TLS and HTTP it is not"
           " comparable with networkQuality's figure", Fold.VALUE, "higher", wanted=True),
    Metric("rtt_idle_s", "round-trip time of a probe before and after other flows carry data",
           Fold.DISTRIBUTION, "lower"),
    Metric("rtt_under_load_s", "round-trip time of a probe while other flows carry data",
           Fold.DISTRIBUTION, "lower"),
    Metric("steady_throughput_bps", "throughput_bps from steady_from_s on", Fold.VALUE, "higher"),
    Metric("steady_sent_bps", "sent_bps from steady_from_s on", Fold.VALUE),
    Metric("steady_from_s", "time after which the flow's rate was steady (MSER-5)", Fold.VALUE,
           "lower"),
    Metric("cwnd_bytes", "the sender's congestion window (tcpi_snd_cwnd x MSS)",
           Fold.DISTRIBUTION, aspect=Aspect.WINDOW),
    Metric("cwnd_estimated_bytes", "the sender's congestion window as a packet trace shows it: the"
           " most in flight of an interval, if the network and no loss limited it",
           Fold.DISTRIBUTION, aspect=Aspect.WINDOW),
    Metric("flight_bytes", "bytes sent and not acknowledged, in the sender's view; the most of each"
           " interval", Fold.DISTRIBUTION),
    Metric("rtt_max_s", "the longest round-trip time of each interval of a packet trace",
           Fold.DISTRIBUTION, "lower"),
    Metric("bytes_received", "payload bytes received", Fold.COUNT),
    Metric("bytes_sent", "payload bytes sent", Fold.COUNT),
    Metric("tcp_rttvar_s", "variation of the smoothed round-trip time (tcpi_rttvar, RFC 6298)",
           Fold.DISTRIBUTION),
    Metric("tcp_min_rtt_s", "minimum round-trip time seen by the sender (tcpi_min_rtt)",
           Fold.DISTRIBUTION, "lower"),
    Metric("ipdv_s", "one-way delay of a packet less that of the one sent before it (RFC 3393);"
           " negative if the later one was faster", Fold.DISTRIBUTION),
    Metric("reflector_s", "time that a reflector held a packet (TWAMP, STAMP); no part of rtt_s",
           Fold.DISTRIBUTION, "lower"),
    Metric("clock_offset_s", "the receiver's clock less the sender's, estimated from the least"
           " delays of both directions; at second 0 if the drift is known", Fold.VALUE),
    Metric("clock_drift_ratio", "seconds that the receiver's clock gains on the sender's in each"
           " second, by a line below the delays", Fold.VALUE),
    Metric("owd_error_s", "largest error estimate of the one-way delays (RFC 4656, 4.1.2)",
           Fold.VALUE),
    Metric("clock_synchronized", "1 if both clocks report that they are synchronized, else 0",
           Fold.VALUE),
    Metric("packets_sent", "packets sent", Fold.COUNT),
    Metric("packets_received", "packets received, duplicates not counted", Fold.COUNT),
    Metric("packets_lost", "packets that did not arrive", Fold.COUNT, "lower"),
    Metric("packets_unaccounted", "packets sent that were neither received nor counted as lost,"
           " such as those on their way when the receiver ended", Fold.COUNT, "lower"),
    Metric("packets_duplicated", "packets that arrived more than once", Fold.COUNT, "lower"),
    Metric("packets_reordered", "packets that arrived after a later one (RFC 4737)",
           Fold.COUNT, "lower"),
    Metric("reordered_ratio", "share of received packets that were reordered (RFC 4737, 4.1)",
           Fold.VALUE, "lower", per=("packets_reordered", "packets_received")),
    Metric("packets_1_reordered", "packets that arrived right after a later one (1-reordering of"
           " RFC 4737, 5.3); at most as many as were reordered", Fold.COUNT, "lower"),
    Metric("packets_3_reordered", "packets that arrived right after three later ones, which TCP"
           " takes for a loss (3-reordering of RFC 4737, 5.3)", Fold.COUNT, "lower"),
    Metric("packets_in_error", "probes answered by an ICMP error", Fold.COUNT, "lower"),
    Metric("hops", "routers on the path, by the received time to live or a traced route",
           Fold.DISTRIBUTION),
    Metric("hop_rtt_s", "round-trip time of a probe to one hop of a route, with the time that the"
           " router takes to answer", Fold.DISTRIBUTION, "lower", by_stream=True),
    Metric("hop_probes", "probes to one hop of a route", Fold.COUNT, by_stream=True),
    Metric("hop_unanswered", "probes that one hop of a route did not answer", Fold.COUNT,
           by_stream=True),
    Metric("hop_unanswered_ratio", "share of its probes that one hop of a route did not answer;"
           " routers limit their answers, so it is a loss only at the last hop", Fold.VALUE,
           per=("hop_unanswered", "hop_probes"), by_stream=True),
    Metric("peer_window_bytes", "receive window that the peer advertises (tcpi_snd_wnd; in a packet"
           " trace the least of each interval)",
           Fold.DISTRIBUTION),
    Metric("path_mtu_bytes", "path MTU as the kernel knows it (tcpi_pmtu)", Fold.DISTRIBUTION),
    Metric("reordering", "the sender's reordering degree, in segments (tcpi_reordering)",
           Fold.DISTRIBUTION),
    Metric("loss_events_least", "least number of TCP's loss events, each of them all that is lost"
           " within a round trip (RFC 5348, 5.2): recoveries and timeouts of the sender's kernel,"
           " else by the intervals with segments sent again", Fold.COUNT, "lower"),
    Metric("loss_events_most", "greatest number of TCP's loss events; the least one, if the kernel"
           " of the sender sent nothing else again", Fold.COUNT, "lower"),
    Metric("receiver_drops", "packets dropped at the receiving host because the socket buffer was"
           " full (SK_MEMINFO_DROPS; else UdpRcvbufErrors, if no other flow receives there)",
           Fold.COUNT, "lower"),
    Metric("cpu_client_ratio", "CPU time of the client process per second; 1 is one core",
           Fold.VALUE, "lower"),
    Metric("cpu_server_ratio", "CPU time of the server process per second; 1 is one core",
           Fold.VALUE, "lower"),
)  # fmt: skip
"""The metrics that every backend may use, in the order of tables, the main ones first.

A backend declares its own in `Capabilities.metrics`.
"""

OF_TRIALS: Mapping[str, Metric] = _metrics(
    Metric("fairness_jain", "Jain's index of the flows' rates in the window that all share",
           Fold.VALUE, "higher"),
    Metric("found_rate_bps", "highest rate at which the condition of a search holds",
           Fold.VALUE, "higher"),
    Metric("fair_after_s", "time until the flows first shared evenly (delta-fair convergence time,"
           " RFC 5166, delta 0.1)", Fold.VALUE, "lower"),
)  # fmt: skip
"""Metrics of a whole trial, or of a whole search, without flow and direction."""


STAND_INS: Mapping[str, str] = MappingProxyType(
    {metric.stands_for: metric.name for metric in METRICS.values() if metric.stands_for}
)
"""By the metric that each replaces."""

PROBES = ("owd_s", "rtt_s")
"""The delays of probes, which do not depend on a sender's own queue."""


def of_aspect(aspect: Aspect) -> list[str]:
    """Return the metrics of an aspect, the most informative first."""
    return [metric.name for metric in METRICS.values() if metric.aspect is aspect]


def _is_wanted(metric: Metric) -> bool:
    return metric.wanted or bool(metric.stands_for)


_WANTED = [metric.name for metric in METRICS.values() if _is_wanted(metric)]


class Vocabulary:
    """The metrics of a run: the shared ones, and the ``own`` ones of its backends.

    ``headlines`` are the headline metrics of the backends.
    """

    def __init__(
        self, own: Sequence[Metric] = (), headlines: Mapping[str, str] = MappingProxyType({})
    ) -> None:
        self.headlines = headlines
        self.metrics = {**METRICS, **{m.name: m for m in own if m.name not in METRICS}}
        """By name."""
        names = [*_WANTED, *(m.name for m in own if m.name not in METRICS and _is_wanted(m))]
        known = {*headlines.values()}
        leading = [name for name in self.metrics if name in known] if known else []
        self.wanted = (*dict.fromkeys([*leading, *names, *headlines.values()]),)
        """What people look for and what stands in for it, headlines first: the order of tables."""

    def __or__(self, other: Vocabulary) -> Vocabulary:
        """Return the metrics of two runs together."""
        own = (*self.metrics.values(), *other.metrics.values())
        return Vocabulary(own, {**other.headlines, **self.headlines})

    def describe(self, name: str) -> Metric:
        """Return the metric of a name; an undeclared name is a distribution."""
        known = self.metrics.get(name) or OF_TRIALS.get(name)
        return known or Metric(name, "", Fold.DISTRIBUTION)

    def headline(self, backend: str, measured: Container[str]) -> str | None:
        """Return the headline metric of a backend's flow, of those that were measured."""
        names = (self.headlines.get(backend, ""), *self.wanted)
        return next((name for name in names if name in measured), None)

    def plotted(self, measured: Collection[str]) -> list[str]:
        """Return metrics as plots show them: headlines, one of each aspect, the others by name."""
        known = {name if name in measured else STAND_INS.get(name) for name in
                 self.headlines.values()}  # fmt: skip
        first = [name for name in self.wanted if name in known and name in measured]
        for aspect in Aspect:
            names = of_aspect(aspect)
            if not set(names) & set(first):
                first += [name for name in names if name in measured][:1]
        return [*first, *sorted(set(measured) - set(first))]


class Sample(Struct, frozen=True):
    """The measurements of one interval of one stream.

    ``start_s`` and ``end_s`` count from the start of the measurement (after any omitted part, so
    omitted samples lie at or below zero). ``direction`` is send, receive or round-trip, never
    both.
    """

    start_s: float
    end_s: float
    metrics: Mapping[str, float]
    stream: int = 0
    direction: Direction = Direction.SEND
    omitted: bool = False


class Breach(Struct, frozen=True):
    """A law that a figure breaks, and in words how: ``received 834 of 739 sent``."""

    law: str
    words: str


@dataclass(frozen=True, slots=True)
class Summary:
    """The tool's own final figures for one direction.

    A value may be a distribution: a mapping with some of ``min``, ``mean``, ``median``, ``p95``,
    ``max``. All figures are those that the tool reported, also wrong ones. A backend that knows a
    figure to be wrong names it in ``broken``; what the tool's other figures give for it is in
    ``instead``, by the same name. Without that, what the other end reports or the samples give
    takes its place, if they have the metric. ``resolution`` is the step in which a figure is known,
    in its unit: a receiver that counts whole blocks of 128 KiB in 3 s knows its ``throughput_bps``
    in steps of 349,525.
    """

    metrics: Mapping[str, float | Mapping[str, float]]
    direction: Direction = Direction.SEND
    broken: Mapping[str, Breach] = field(default_factory=dict)
    instead: Mapping[str, float] = field(default_factory=dict)
    resolution: Mapping[str, float] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class TracedRoute:
    """The way that the probes of a flow took, as far as routers answered.

    ``hops`` are the distances from the first router on, the last one the farthest that answered.
    Each has the addresses that answered there with their numbers of answers, in the order of the
    first ones: none is a router that is silent, several are parallel or changing ways. What was
    measured of the n-th is in the samples of stream n, under metrics ``by_stream``.
    """

    hops: Sequence[Mapping[str, int]]
