"""What is measured: the metrics, which way traffic goes, and what one interval showed.

Backends speak in these words (`benchctl.api` has them all), and everything that reads a store. So
there is no need for pydantic here, and a screen that only reads starts without it.

Quantities are in SI base units: seconds, bits per second, bytes, ratios. Names carry their unit.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from types import MappingProxyType


class Direction(StrEnum):
    """Which way the measured traffic goes, seen from the flow's ``from`` host."""

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

    Percentiles by linear interpolation (Hyndman and Fan, type 7), whoever works them out.
    """
    VALUE = "value"
    """The last value seen; for figures that only a tool's own summary gives."""


@dataclass(frozen=True, slots=True)
class Metric:
    """What a name in ``Sample.metrics`` or ``Summary.metrics`` means.

    ``better`` is ``"higher"``, ``"lower"`` or ``""`` where neither is. ``per`` names the counts
    that a ratio is made of, (part, whole): then the flow's figure is the quotient of their sums.
    """

    name: str
    description: str
    fold: Fold
    better: str = ""
    per: tuple[str, str] | None = None


def _metrics(*metrics: Metric) -> Mapping[str, Metric]:
    return MappingProxyType({metric.name: metric for metric in metrics})


METRICS: Mapping[str, Metric] = _metrics(
    Metric("throughput_bps", "payload bits received per second (goodput, RFC 6349)",
           Fold.RATE, "higher"),
    Metric("sent_bps", "payload bits handed to the network per second, by the sender's count",
           Fold.RATE),
    Metric("bytes_received", "payload bytes received", Fold.COUNT),
    Metric("bytes_sent", "payload bytes sent", Fold.COUNT),
    Metric("rtt_s", "round-trip time of a probe, such as an ICMP echo", Fold.DISTRIBUTION, "lower"),
    Metric("tcp_rtt_s", "the sender's smoothed round-trip time (tcpi_rtt, RFC 6298)",
           Fold.DISTRIBUTION, "lower"),
    Metric("tcp_rttvar_s", "variation of the smoothed round-trip time (tcpi_rttvar, RFC 6298)",
           Fold.DISTRIBUTION),
    Metric("tcp_min_rtt_s", "least round-trip time the sender has seen (tcpi_min_rtt)",
           Fold.DISTRIBUTION, "lower"),
    Metric("owd_s", "one-way delay (RFC 7679); negative when the clocks differ by more",
           Fold.DISTRIBUTION, "lower"),
    Metric("owd_error_s", "largest error estimate of the one-way delays (RFC 4656, 4.1.2)",
           Fold.VALUE),
    Metric("clock_synchronized", "1 when both clocks say they are synchronized, else 0",
           Fold.VALUE),
    Metric("loss_ratio", "packets lost of those sent (RFC 7680)", Fold.VALUE, "lower",
           per=("packets_lost", "packets_sent")),
    Metric("packets_sent", "packets sent", Fold.COUNT),
    Metric("packets_received", "packets received, duplicates not counted", Fold.COUNT),
    Metric("packets_lost", "packets that did not arrive", Fold.COUNT, "lower"),
    Metric("packets_duplicated", "packets that arrived more than once", Fold.COUNT, "lower"),
    Metric("packets_reordered", "packets that arrived after a later one (RFC 4737)",
           Fold.COUNT, "lower"),
    Metric("packets_in_error", "probes answered by an ICMP error", Fold.COUNT, "lower"),
    Metric("jitter_rfc3550_s", "smoothed interarrival jitter (RFC 3550, 6.4.1) after the last"
           " packet; the mean over streams", Fold.VALUE, "lower"),
    Metric("pdv_p95_p50_s", "delay variation: 95th less 50th percentile of the one-way delays, by"
           " nearest rank; the mean over streams", Fold.VALUE, "lower"),
    Metric("hops", "routers passed, from the received time to live", Fold.DISTRIBUTION),
    Metric("retransmits", "TCP segments sent again (tcpi_total_retrans)", Fold.COUNT, "lower"),
    Metric("cwnd_bytes", "the sender's congestion window (tcpi_snd_cwnd x MSS)",
           Fold.DISTRIBUTION),
    Metric("peer_window_bytes", "receive window that the peer advertises (tcpi_snd_wnd)",
           Fold.DISTRIBUTION),
    Metric("path_mtu_bytes", "path MTU as the kernel knows it (tcpi_pmtu)", Fold.DISTRIBUTION),
    Metric("reordering", "the sender's reordering degree, in segments (tcpi_reordering)",
           Fold.DISTRIBUTION),
    Metric("cpu_client_ratio", "CPU time of the client process per second; 1 is one core",
           Fold.VALUE, "lower"),
    Metric("cpu_server_ratio", "CPU time of the server process per second; 1 is one core",
           Fold.VALUE, "lower"),
)  # fmt: skip
"""The metrics that every backend may use. A backend declares its own in `Capabilities.metrics`."""

OF_TRIALS: Mapping[str, Metric] = _metrics(
    Metric("fairness_jain", "Jain's index of the flows' rates in the window that all share",
           Fold.VALUE, "higher"),
)  # fmt: skip
"""Metrics that a trial has as a whole; no flow and no direction has them."""


@dataclass(frozen=True, slots=True)
class Sample:
    """What one interval of one stream showed.

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


@dataclass(frozen=True, slots=True)
class Summary:
    """The tool's own final figures for one direction.

    A value may be a distribution: a mapping with some of ``min``, ``mean``, ``median``, ``p95``,
    ``max``.
    """

    metrics: Mapping[str, float | Mapping[str, float]]
    direction: Direction = Direction.SEND
