"""Figures of a flow whose samples are single packets: loss, order, and variation of the delay.

Each packet is a sample without a length, at the time of its sending, and the samples are in the
order of arrival. Nothing here depends on the offset of the two clocks.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from itertools import pairwise

from benchctl.analysis.flow.figures import FlowFold, MetricSeries, distribution
from benchctl.run.record import Figure, Figures

# How many packets in a row have overtaken one. TCP takes three for a loss (RFC 4737, 5.3).
DEGREES = (1, 3)


def packet_figures(fold: FlowFold) -> Figures:
    """Return what the packets of a flow show together, by direction.

    Nothing for samples that are not single packets; a figure that the tool reported stays its own.
    """
    reported = fold.figures()
    measured = fold.measured()
    figures: dict[tuple[str, str], Figure] = {}
    for direction in dict.fromkeys(direction for direction, _ in measured):
        own = {metric: series for (of, metric), series in measured.items() if of == direction}
        for metric, figure in (*_counts(own), *_delays(own)):
            known = reported.get((direction, metric))
            if known is None or known.origin != "tool":
                figures[direction, metric] = figure
    return figures


def _counts(own: Mapping[str, MetricSeries]) -> Iterator[tuple[str, Figure]]:
    """Yield the counts of packets sent, and the share that did not arrive."""
    if not _are_packets(own.get("packets_sent")):
        return
    counts = {
        name: math.fsum(own[name].values) if name in own else 0.0
        for name in ("packets_sent", "packets_received", "packets_duplicated")
    }
    sent, received = counts["packets_sent"], counts["packets_received"]
    counts["packets_lost"] = sent - received
    if sent:
        counts["loss_ratio"] = (sent - received) / sent
    yield from ((name, Figure(value, "samples")) for name, value in counts.items())


def _delays(own: Mapping[str, MetricSeries]) -> Iterator[tuple[str, Figure]]:
    delays = own.get("owd_s")
    if delays is None or not _are_packets(delays):
        return
    values: dict[str, float] = {}
    reordered = reordering(delays.starts_s)
    values["packets_reordered"] = float(reordered[0])
    values["reordered_ratio"] = reordered[0] / len(delays.values)
    for degree in DEGREES:
        values[f"packets_{degree}_reordered"] = float(reordered[degree])
    sent = own.get("packets_sent", own.get("owd_s", delays))
    variation_s = pdv_p95_p50_s(sorted(delays.values), len(sent.values))
    if variation_s is not None:
        values["pdv_p95_p50_s"] = variation_s
    for metric, worst in (("owd_error_s", max), ("clock_synchronized", min)):
        if metric in own:
            values[metric] = worst(own[metric].values)
    yield from ((name, Figure(value, "samples")) for name, value in values.items())
    lost = own["packets_lost"].starts_s if "packets_lost" in own else ()
    if variations := ipdv_s(delays.starts_s, delays.values, lost):
        yield "ipdv_s", distribution(variations)


def _are_packets(series: MetricSeries | None) -> bool:
    return series is not None and series.starts_s == series.ends_s


def reordering(numbers: Sequence[float]) -> dict[int, int]:
    """Return how many packets were reordered (key 0), and n-reordered (keys `DEGREES`).

    ``numbers`` are those of the sender, or its times, in the order of arrival, without duplicates.
    A packet is reordered if one sent later has arrived (RFC 4737, 3.3), and n-reordered if the n
    packets that arrived right before it were all sent later (5.3).
    """
    found = dict.fromkeys((0, *DEGREES), 0)
    highest = -math.inf
    for place, number in enumerate(numbers):
        if number >= highest:
            highest = number
            continue
        found[0] += 1
        for degree in DEGREES:
            before = numbers[place - degree : place] if place >= degree else ()
            found[degree] += len(before) == degree and min(before) > number
    return found


def ipdv_s(
    sent_s: Sequence[float], delays_s: Sequence[float], lost_s: Sequence[float] = ()
) -> list[float]:
    """Return the differences of the delays of packets that were sent one after the other.

    ``sent_s`` are the times of sending, in any order, ``lost_s`` those of packets that did not
    arrive: the difference to one of them is undefined (RFC 3393, 2.4 and 2.5).
    """
    packets = sorted([*zip(sent_s, delays_s, strict=True), *((at_s, math.nan) for at_s in lost_s)],
                     key=lambda packet: packet[0])  # fmt: skip
    steps = (later - earlier for (_, earlier), (_, later) in pairwise(packets))
    return [step for step in steps if not math.isnan(step)]


def pdv_p95_p50_s(delays_s: Sequence[float], sent: int) -> float | None:
    """Return the 95th minus the 50th percentile of sorted delays, as OWAMP computes them.

    A lost packet counts as infinitely late: the shares are of the packets sent, and with more than
    5 % lost there is no 95th percentile (None). Source: CalculateJitter in owamp's stats.c; RFC
    5481, 4.2, takes such differences to the least delay.
    """
    high, middle = (math.ceil(share * sent) - 1 for share in (0.95, 0.5))
    if high >= len(delays_s):
        return None
    return delays_s[high] - delays_s[middle]
