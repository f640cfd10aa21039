"""What simpleperf measures beyond the metrics that all backends share."""

from __future__ import annotations

from benchctl.api import Fold, Metric

__all__ = ["OWN_METRICS"]

OWN_METRICS = (
    Metric(
        "delivery_rate_bps",
        "rate at which the peer acknowledged data, by the sender's kernel (tcpi_delivery_rate)",
        Fold.DISTRIBUTION,
        "higher",
    ),
    Metric(
        "segments_lost",
        "segments that the sender takes for lost at this moment (tcpi_lost)",
        Fold.DISTRIBUTION,
        "lower",
    ),
    Metric(
        "reading_late_s",
        "how long after the interval's end the sender's kernel was read (TCP)",
        Fold.DISTRIBUTION,
        "lower",
    ),
    Metric("busy_s", "time with data in flight or to send (tcpi_busy_time)", Fold.COUNT),
    Metric(
        "rwnd_limited_s",
        "time the peer's receive window held the sender up (tcpi_rwnd_limited)",
        Fold.COUNT,
    ),
    Metric(
        "sndbuf_limited_s",
        "time the send buffer held the sender up (tcpi_sndbuf_limited)",
        Fold.COUNT,
    ),
    Metric(
        "receiver_drops",
        "packets that reached the receiving host and found its socket full (SK_MEMINFO_DROPS)",
        Fold.COUNT,
        "lower",
    ),
    Metric(
        "packet_gap_s",
        "time from one datagram's arrival to the next, by kernel timestamps where there are",
        Fold.DISTRIBUTION,
    ),
    Metric(
        "cpu_client_host_ratio",
        "busy share of the client's host; 1 is all its cores",
        Fold.VALUE,
        "lower",
    ),
    Metric(
        "cpu_server_host_ratio",
        "busy share of the server's host; 1 is all its cores",
        Fold.VALUE,
        "lower",
    ),
)
