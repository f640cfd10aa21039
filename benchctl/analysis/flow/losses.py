"""What was lost where, and what losses make of the rate of TCP: models of Reno, loss events.

A loss event is what a sender loses within one round-trip time (RFC 5348, section 5.2): it answers
all of it by halving its window once. Segments sent again are not events: one overflow of a queue
loses a hundred.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import NamedTuple

from benchctl.analysis.flow.figures import FlowFold, MetricSeries
from benchctl.run.record import Figure, Figures, HostCounters

# Linux waits for an acknowledgement at least that much longer than a round trip (TCP_RTO_MIN in
# include/net/tcp.h; __tcp_set_rto).
RTO_MIN_S = 0.2
# A model of loss is good to about this factor (Padhye et al., section 4).
MODEL = 2.0


def mathis_bps(rtt_s: float, event_ratio: float, mss_bytes: float) -> float:
    """Return the rate of Reno in bit/s: MSS / RTT x sqrt(3/2) / sqrt(p).

    ``event_ratio`` is p, the loss events by segments sent. Mathis, Semke, Mahdavi and Ott (CCR 27,
    1997).
    """
    return mss_bytes * 8 / rtt_s * math.sqrt(1.5 / event_ratio)


def padhye_bps(rtt_s: float, event_ratio: float, mss_bytes: float) -> float:
    """Return the rate of Reno with timeouts, in bit/s.

    Padhye, Firoiu, Towsley and Kurose (SIGCOMM 1998) as RFC 5348, section 3.1, writes it, with
    b = 1; t_RTO is that of Linux, or four round trips if these take longer.
    """
    p = event_ratio
    rto_s = max(4 * rtt_s, rtt_s + RTO_MIN_S)
    timeouts = rto_s * 3 * math.sqrt(3 * p / 8) * p * (1 + 32 * p * p)
    return mss_bytes * 8 / (rtt_s * math.sqrt(2 * p / 3) + timeouts)


class CountedEnds(NamedTuple):
    """What the kernels at the ends of one direction of a flow counted meanwhile; None is unknown.

    ``receiver`` is None, too, where another flow of the trial received by the same protocol.
    """

    sender: HostCounters | None = None
    receiver: HostCounters | None = None


def loss_figures(fold: FlowFold, ends: Mapping[str, CountedEnds]) -> Figures:
    """Return what was lost at the receiving host, and TCP's loss events at least and at most.

    ``ends`` are by direction. The events are the recoveries and timeouts of the sending kernel,
    which may be of other flows, too. By the samples alone, an interval with segments sent again had
    at least a part of an event, and at most one in each round trip.
    """
    known, measured = fold.figures(), fold.measured()
    figures: dict[tuple[str, str], Figure] = {}
    for direction, end in ends.items():
        drops = end.receiver.counts.get("udp_receive_buffer_errors") if end.receiver else None
        lost = known.get((direction, "packets_lost"))
        if drops is not None and lost is not None and (direction, "receiver_drops") not in known:
            # Other programs of the host may lose datagrams, too.
            figures[direction, "receiver_drops"] = Figure(
                min(float(drops), max(0.0, lost.value)), "samples"
            )
    for direction in dict.fromkeys(direction for direction, name in known if name == "retransmits"):
        resent = known[direction, "retransmits"].value
        bounds = min(resent, 1.0), resent
        rtt, series = known.get((direction, "tcp_rtt_s")), measured.get((direction, "retransmits"))
        if rtt is not None and series is not None:
            spread = rtt.spread.get("min", rtt.value), rtt.spread.get("max", rtt.value)
            bounds = _events_of(series, *spread)
        sender = ends.get(direction, CountedEnds()).sender
        counts = sender.counts if sender is not None else {}
        if "tcp_recoveries" in counts:
            events = float(counts["tcp_recoveries"] + counts["tcp_timeouts"])
            # Whatever else the host sent again was as many events at most.
            least = max(0.0, events - max(0.0, counts["tcp_segments_retransmitted"] - resent))
            bounds = max(least, min(bounds[0], events)), min(events, max(bounds[1], least))
        for name, value in zip(("loss_events_least", "loss_events_most"), bounds, strict=True):
            figures[direction, name] = Figure(value, "samples")
    return figures


def _events_of(series: MetricSeries, least_rtt_s: float, most_rtt_s: float) -> tuple[float, float]:
    """Return the least and the greatest number of events in intervals with segments sent again."""
    least, most, reaches_s = 0, 0.0, -math.inf
    intervals = sorted(zip(series.starts_s, series.ends_s, series.values, strict=True))
    for start_s, end_s, resent in intervals:
        if resent <= 0:
            continue
        if start_s >= reaches_s:
            least, reaches_s = least + 1, end_s + most_rtt_s
        trips = (end_s - start_s) / least_rtt_s if least_rtt_s > 0 else math.inf
        most += min(resent, 1 + trips)
    return float(least), most
