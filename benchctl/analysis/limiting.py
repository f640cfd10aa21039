"""What limited a flow: the bounds on its rate, and the one that its counters and theory point to.

The window bound is W / RTT (RFC 6349, section 3.3.1). Loss bounds Reno: Mathis, Semke, Mahdavi
and Ott (CCR 27, 1997), and Padhye, Firoiu, Towsley and Kurose as RFC 5348, section 3.1, writes it.
The kernel's own account of the sender's time is that of tcp_info (net/ipv4/tcp.c, tcp_chrono).
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from enum import StrEnum
from typing import Any

from msgspec import Struct

from benchctl.analysis.results import asked_bps
from benchctl.metrics import Aspect, of_aspect
from benchctl.run.record import RecordedFlow

# A full segment of Ethernet with timestamps, if the tool does not report its own.
MSS_BYTES = 1448
# What is measured differs a little from every bound: headers, the way up, the last round trip.
REACHED = 0.9
# A model of loss is good to about this factor (Padhye et al., section 4).
MODEL = 2.0
# A window that data fills but for the interval in which it opened.
FILLED = 0.8
# A sender that waits half of its time is not limited by the network.
HALF = 0.5
# A queue worth a name adds a quarter to the round trip, and more than a scheduler does.
QUEUE_SHARE, QUEUE_S = 0.25, 0.001
LOST = 0.001
"""Datagrams: RFC 2544 counts any, but the last ones of a flow may be on their way."""


class Limiter(StrEnum):
    """What limits a flow."""

    RATE = "rate asked"
    RECEIVE_WINDOW = "receive window"
    SEND_BUFFER = "send buffer"
    BUFFERS = "buffers"
    """One of the two above, by theory; which one is not known at this end."""
    BOTTLENECK = "bottleneck"
    LOSS = "loss"
    PROCESSOR = "processor"
    SENDER = "sender"
    RECEIVER = "receiver"
    NETWORK = "network"
    """Its capacity, its round trip or its losses: a packet trace does not tell which."""
    UNKNOWN = "not known"


class Limit(Struct, frozen=True, kw_only=True):
    """What limited a flow in one direction, and the bounds beside its rate, all streams together.

    ``share_bps`` is what theory expects of the lab, ``link`` that of which it is a share.
    ``held_ratio`` is the share of its busy time that the sender was held back by the receive
    window, or by its buffer; ``idle_ratio`` the share of the whole time that it had nothing to
    send. ``waits_s`` are the times that a packet trace shows its sender to wait, by
    `benchctl.packets.seen.Cause`. Unknown is None.
    """

    by: Limiter
    rate_bps: float
    streams: int
    asked_bps: float | None = None
    rtt_s: float | None = None
    min_rtt_s: float | None = None
    bdp_bytes: float | None = None
    window_bytes: float | None = None
    window_bps: float | None = None
    loss_ratio: float | None = None
    mathis_bps: float | None = None
    padhye_bps: float | None = None
    share_bps: float | None = None
    link: str | None = None
    held_ratio: float | None = None
    idle_ratio: float | None = None
    cpu_ratio: float | None = None
    waits_s: Mapping[str, float] | None = None


_BY_CAUSE = {
    "window": Limiter.RECEIVE_WINDOW,
    "timeout": Limiter.LOSS,
    "application": Limiter.SENDER,
    "network": Limiter.NETWORK,
}
"""What limited a flow, by what its sender waited for the longest."""


def mathis_bps(rtt_s: float, loss_ratio: float, mss_bytes: float) -> float:
    """Return the rate of Reno at a loss, in bit/s: MSS / RTT x sqrt(3/2) / sqrt(p)."""
    return mss_bytes * 8 / rtt_s * math.sqrt(1.5 / loss_ratio)


def padhye_bps(rtt_s: float, loss_ratio: float, mss_bytes: float) -> float:
    """Return the rate of Reno at a loss, with timeouts, in bit/s; b = 1 and t_RTO = 4 RTT."""
    p = loss_ratio
    timeouts = 4 * rtt_s * 3 * math.sqrt(3 * p / 8) * p * (1 + 32 * p * p)
    return mss_bytes * 8 / (rtt_s * math.sqrt(2 * p / 3) + timeouts)


def limit_of(flow: RecordedFlow, direction: str, figures: Mapping[str, float]) -> Limit | None:
    """Return what limited a flow in a direction; ``figures`` are its own, by metric.

    None for a flow that carries no data, such as ping.
    """
    rate_bps = next((figures[name] for name in of_aspect(Aspect.RATE) if name in figures), None)
    if not rate_bps:
        return None
    streams = int(flow.requested.get("streams", 1))
    asked = asked_bps(flow)
    share_bps = flow.expected.get(direction, {}).get("throughput_bps")
    cpus = [figures[name] for name in ("cpu_client_ratio", "cpu_server_ratio") if name in figures]
    known: dict[str, Any] = {
        "rate_bps": rate_bps,
        "streams": streams,
        "asked_bps": asked,
        "share_bps": share_bps,
        "link": flow.bottlenecks.get(direction) or None,
        "cpu_ratio": max(cpus, default=None),
    }
    if waits_s := _waits_s(flow):
        by = _BY_CAUSE[max(waits_s, key=waits_s.__getitem__)]
        return Limit(by=by, waits_s=waits_s, **known)
    protocol = flow.requested.get("protocol", "tcp")
    if protocol == "udp":
        known["loss_ratio"] = figures.get("loss_ratio")
        return Limit(by=_of_datagrams(known, figures), **known)
    if protocol != "tcp":
        return Limit(by=Limiter.UNKNOWN, **known)
    rtt_s, min_rtt_s = figures.get("tcp_rtt_s"), figures.get("tcp_min_rtt_s")
    # A flow of both directions has settings for each.
    own = flow.effective.get(direction)
    settings = own if isinstance(own, Mapping) else flow.effective
    mss_bytes = settings.get("mss_bytes") or MSS_BYTES
    asked_window = flow.requested.get("window")
    known["window_bytes"] = figures.get("peer_window_bytes", asked_window)
    known |= {"rtt_s": rtt_s, "min_rtt_s": min_rtt_s}
    if sent_bytes := figures.get("bytes_sent"):
        known["loss_ratio"] = figures.get("retransmits", 0.0) / (sent_bytes / mss_bytes)
    if rtt_s:
        known["bdp_bytes"] = rate_bps * (min_rtt_s or rtt_s) / 8
        if known["window_bytes"]:
            known["window_bps"] = streams * known["window_bytes"] * 8 / rtt_s
        if loss_ratio := known.get("loss_ratio"):
            known["mathis_bps"] = streams * mathis_bps(rtt_s, loss_ratio, mss_bytes)
            known["padhye_bps"] = streams * padhye_bps(rtt_s, loss_ratio, mss_bytes)
    if (busy_s := figures.get("busy_s")) is not None and "bytes_received" in figures:
        lasted_s = figures["bytes_received"] * 8 / rate_bps  # also of one that ended early
        known["idle_ratio"] = max(0.0, 1 - busy_s / (streams * lasted_s)) if lasted_s else None
    of_link = flow.bottlenecks.get(direction) != ""
    by, held = _of_tcp(known, figures, str(settings.get("congestion_control", "")), of_link)
    return Limit(by=by, held_ratio=held, **known)


def _waits_s(flow: RecordedFlow) -> dict[str, float]:
    """Return what the sender of a kept trace waited for, and for how long."""
    return {
        cause: wait["total_s"]
        for packets in flow.captures
        if not packets.host
        for connection in packets.findings
        for way in connection["directions"]
        if way["from"] == flow.source
        for cause, wait in way["waits"].items()
    }


def _of_datagrams(known: Mapping[str, Any], figures: Mapping[str, float]) -> Limiter:
    asked, lost = known["asked_bps"], figures.get("loss_ratio")
    sent = figures.get("sent_bps", known["rate_bps"] if lost == 0 else None)
    if asked and sent is not None and sent < 0.99 * asked:
        return Limiter.SENDER
    if lost is not None and lost > LOST:
        drops = figures.get("receiver_drops", 0.0)
        here = drops > HALF * figures.get("packets_lost", math.inf)
        return Limiter.RECEIVER if here else Limiter.BOTTLENECK
    if asked and lost is None and known["rate_bps"] < REACHED * asked:
        return Limiter.UNKNOWN
    return Limiter.RATE if asked else Limiter.SENDER


def _of_tcp(
    known: Mapping[str, Any], figures: Mapping[str, float], congestion_control: str, of_link: bool
) -> tuple[Limiter, float | None]:
    """Return what limited TCP; ``of_link`` is whether its share is one of a link."""
    rate_bps, share_bps, asked = known["rate_bps"], known["share_bps"], known["asked_bps"]
    if asked and rate_bps >= 0.95 * asked:
        return Limiter.RATE, None
    busy_core = (known["cpu_ratio"] or 0.0) >= REACHED
    if (known.get("idle_ratio") or 0.0) > HALF and not busy_core:
        return Limiter.SENDER, None
    rtt_s, min_rtt_s = known["rtt_s"], known["min_rtt_s"] or known["rtt_s"]
    busy_s = figures.get("busy_s")
    window_bps = known.get("window_bps") or math.inf
    by_window = figures.get("rwnd_limited_s", 0.0) / busy_s if busy_s else 0.0
    by_buffer = figures.get("sndbuf_limited_s", 0.0) / busy_s if busy_s else 0.0
    # The kernel counts either of them only when nothing else holds the sender back.
    filled = rate_bps >= FILLED * window_bps
    # A window that only fills the bottleneck's queue is not what limits the rate.
    queued = rtt_s is not None and rtt_s - min_rtt_s > max(QUEUE_S, QUEUE_SHARE * min_rtt_s)
    near = rate_bps >= HALF * window_bps
    if not queued and by_window >= by_buffer and (filled or (near and by_window > HALF)):
        return Limiter.RECEIVE_WINDOW, by_window if by_window > HALF else None
    if not queued and (by_buffer > HALF or (filled and by_buffer > by_window)):
        return Limiter.SEND_BUFFER, by_buffer
    if share_bps and rate_bps >= REACHED * share_bps and (of_link or not asked):
        return Limiter.BOTTLENECK if of_link else Limiter.BUFFERS, None
    modelled = known.get("padhye_bps")
    lossy = bool(modelled) and modelled <= MODEL * rate_bps and congestion_control != "bbr"
    if lossy and not queued:
        return Limiter.LOSS, None
    if queued:
        return Limiter.BOTTLENECK, None
    if busy_core:
        return Limiter.PROCESSOR, None
    return Limiter.UNKNOWN, None
