"""What simpleperf measures beyond the metrics that all backends share."""

from __future__ import annotations

from benchctl.api import Fold, Metric

OWN_METRICS = (
    Metric(
        "delivery_rate_bps",
        "rate at which the peer acknowledged data, by the sender's kernel (tcpi_delivery_rate)",
        Fold.DISTRIBUTION,
        "higher",
    ),
    Metric(
        "segments_lost",
        "segments that the sender currently considers lost (tcpi_lost)",
        Fold.DISTRIBUTION,
        "lower",
    ),
    Metric(
        "reading_late_s",
        "how long after the end of the interval the sender's TCP_INFO was read",
        Fold.DISTRIBUTION,
        "lower",
    ),
    Metric("busy_s", "time with data in flight or to send (tcpi_busy_time)", Fold.COUNT),
    Metric(
        "rwnd_limited_s",
        "time that the sender was limited by the peer's receive window (tcpi_rwnd_limited)",
        Fold.COUNT,
    ),
    Metric(
        "sndbuf_limited_s",
        "time that the sender was limited by its send buffer (tcpi_sndbuf_limited)",
        Fold.COUNT,
    ),
    Metric(
        "receiver_drops",
        "packets dropped at the receiving host because the socket buffer was full "
        "(SK_MEMINFO_DROPS)",
        Fold.COUNT,
        "lower",
    ),
    Metric(
        "packet_gap_s",
        "time between the arrivals of two datagrams, by kernel timestamps if available",
        Fold.DISTRIBUTION,
    ),
    Metric(
        "cpu_client_host_ratio",
        "CPU utilization of the client's host; 1 is all cores",
        Fold.VALUE,
        "lower",
    ),
    Metric(
        "cpu_server_host_ratio",
        "CPU utilization of the server's host; 1 is all cores",
        Fold.VALUE,
        "lower",
    ),
)
