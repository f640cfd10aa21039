"""What limited a flow: the bounds on its rate, and the one that its counters and theory point to.

The window bound is W / RTT (RFC 6349, section 3.3.1). Loss bounds Reno, as
`losses` says. What is far beyond a bound is not limited by it. The kernel's own
account of the sender's time is that of tcp_info (net/ipv4/tcp.c, tcp_chrono).
Where the packets of a flow were recorded, what its senders waited for (`packets.sender.waiting`)
takes the place of that account.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Mapping
from enum import StrEnum
from typing import Any, NamedTuple

from msgspec import Struct

from benchctl.analysis.flow.losses import MODEL, mathis_bps, padhye_bps
from benchctl.analysis.results import asked_bps, protocol_of
from benchctl.metrics import Aspect, Direction, of_aspect
from benchctl.run.record import RecordedFlow

# A full segment of Ethernet with timestamps, if the tool does not report its own.
MSS_BYTES = 1448
# What is measured differs a little from every bound: headers, the way up, the last round trip.
REACHED = 0.9
# And by no more than this where a window is a mean over time, or of some of the streams.
EXCEEDED = 1.25
# A window that data fills but for the interval in which it opened.
FILLED = 0.8
# A sender that waits half of its time is not limited by the network.
HALF = 0.5
# A queue worth a name adds a quarter to the round trip, and more than a scheduler does.
QUEUE_SHARE, QUEUE_S = 0.25, 0.001
# Of the data of a flow's largest connection: one with less controls the measurement.
STREAM_SHARE = 0.01
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
    """Its capacity, its round trip or its losses: the packets do not tell which."""
    UNKNOWN = "not known"

    @property
    def leaves_host(self) -> bool:
        """Whether it leaves open that a processor of a host limits the flow, too."""
        return self not in (Limiter.RATE, Limiter.BUFFERS, Limiter.BOTTLENECK, Limiter.LOSS)


class Limit(Struct, frozen=True, kw_only=True):
    """What limited a flow in one direction, and the bounds beside its rate, all streams together.

    ``share_bps`` is what theory expects of the lab, ``link`` that of which it is a share.
    ``held_ratio`` is the share of its busy time that the sender was held back by the receive
    window, or by its buffer; ``idle_ratio`` the share of the whole time that it had nothing to
    send. ``waits_s`` are the times that its packets show its senders to wait, by
    `packets.sender.seen.Cause`, of all ``connections`` together. Of TCP, the models of loss are
    of its loss events: Mathis of the least number of them, Padhye of the most. ``lost`` are
    datagrams that did not reach the program, of which the receiving host dropped ``host_lost``, and
    the way the others. Unknown is None.
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
    lost: float | None = None
    host_lost: float | None = None
    loss_events_least: float | None = None
    loss_events_most: float | None = None
    loss_event_ratio: float | None = None
    mathis_bps: float | None = None
    padhye_bps: float | None = None
    share_bps: float | None = None
    link: str | None = None
    held_ratio: float | None = None
    idle_ratio: float | None = None
    cpu_ratio: float | None = None
    waits_s: Mapping[str, float] | None = None
    connections: int | None = None

    @property
    def fits_loss(self) -> bool:
        """Whether a number of loss events that there may have been explains the rate."""
        if self.padhye_bps is None or self.mathis_bps is None:
            return False
        return self.padhye_bps / MODEL <= self.rate_bps <= MODEL * self.mathis_bps


class Waits(NamedTuple):
    """What the senders of some connections waited for, in seconds of all of them, by cause."""

    waits_s: Mapping[str, float] = {}
    connections: int = 0


def limit_of(
    flow: RecordedFlow, direction: str, figures: Mapping[str, float], waits: Waits | None = None
) -> Limit | None:
    """Return what limited a flow in a direction; ``figures`` are its own, by metric.

    ``waits`` are those of its packets; of several repeats, those of all of them. None for a flow
    that carries no data, such as ping.
    """
    rate_bps = next((figures[name] for name in of_aspect(Aspect.RATE) if name in figures), None)
    if not rate_bps:
        return None
    streams = int(flow.requested.get("streams", 1))
    asked = asked_bps(flow)
    theory = flow.expected.get(direction, {})
    share_bps = theory.get("share_bps", theory.get("throughput_bps"))
    cpus = [figures[name] for name in ("cpu_client_ratio", "cpu_server_ratio") if name in figures]
    known: dict[str, Any] = {
        "rate_bps": rate_bps,
        "streams": streams,
        "asked_bps": asked,
        "share_bps": share_bps,
        "link": flow.bottlenecks.get(direction) or None,
        "cpu_ratio": max(cpus, default=None),
    }
    protocol = protocol_of(flow) or "tcp"
    if protocol == "udp":
        known["loss_ratio"], lost = figures.get("loss_ratio"), figures.get("packets_lost")
        drops = figures.get("receiver_drops")
        known["lost"] = lost
        # Where nothing counts, nothing is known of either; others' datagrams are not the flow's.
        if drops is not None and lost is not None:
            known["host_lost"] = min(drops, max(0.0, lost))
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
    by_loss: bool | None = False
    events = figures.get("loss_events_least"), figures.get("loss_events_most")
    if sent_bytes := figures.get("bytes_sent"):
        segments, resent = sent_bytes / mss_bytes, figures.get("retransmits", 0.0)
        known["loss_ratio"] = resent / segments
        known["loss_events_least"], known["loss_events_most"] = events
        if events[0] is not None and events[0] == events[1]:
            known["loss_event_ratio"] = events[0] / (segments + resent)
    if rtt_s:
        known["bdp_bytes"] = rate_bps * (min_rtt_s or rtt_s) / 8
        if known["window_bytes"]:
            known["window_bps"] = streams * known["window_bytes"] * 8 / rtt_s
        # The models are of controls that halve their window at a loss event, as BBR does not.
        is_bbr = str(settings.get("congestion_control", "")).startswith("bbr")
        if known.get("loss_ratio") and not is_bbr:
            by_loss = _by_loss(known, events, segments + resent, mss_bytes)
    of_link = flow.bottlenecks.get(direction) != ""
    waits = waits or waits_of([flow], direction)
    if waits.connections:
        by = _of_packets(waits.waits_s, known, figures, by_loss, of_link)
        return Limit(by=by, **known, **waits._asdict())
    if (busy_s := figures.get("busy_s")) is not None and "bytes_received" in figures:
        lasted_s = figures["bytes_received"] * 8 / rate_bps  # also of one that ended early
        known["idle_ratio"] = max(0.0, 1 - busy_s / (streams * lasted_s)) if lasted_s else None
    by, held = _of_tcp(known, figures, by_loss, of_link)
    return Limit(by=by, held_ratio=held, **known)


def _by_loss(
    known: dict[str, Any], events: tuple[float | None, ...], segments: float, mss_bytes: float
) -> bool | None:
    """Return whether its loss events explain a rate, and add the models to what is ``known``.

    They do between half of Padhye's rate and twice Mathis's. None if it depends on how many there
    were, between the least and the most.
    """
    least, most = events
    if least is None or not most:
        return False if most == 0 else None
    rtt_s, streams, rate_bps = known["rtt_s"], known["streams"], known["rate_bps"]
    few, many = (max(number, 1.0) / segments for number in (least, most))
    models = {
        (model, ratio): streams * model(rtt_s, ratio, mss_bytes)
        for model in (mathis_bps, padhye_bps)
        for ratio in (few, many)
    }
    known["mathis_bps"], known["padhye_bps"] = models[mathis_bps, few], models[padhye_bps, many]
    fits = [
        models[padhye_bps, ratio] / MODEL <= rate_bps <= MODEL * models[mathis_bps, ratio]
        for ratio in (few, many)
    ]
    if all(fits):
        return True
    may_fit = known["padhye_bps"] / MODEL <= rate_bps <= MODEL * known["mathis_bps"]
    return None if may_fit else False


def waits_of(flows: Iterable[RecordedFlow], direction: str) -> Waits:
    """Return what the senders of some attempts waited for in a direction, by their packets.

    Those are what the end recorded that sends, else the other one.
    """
    waits_s: Counter[str] = Counter()
    count = 0
    for flow in flows:
        sender = flow.target if direction == Direction.RECEIVE else flow.source
        found = [packets for packets in flow.captures if packets.findings]
        packets = next(
            (packets for packets in found if packets.host in ("", sender)), next(iter(found), None)
        )
        streams = [
            stream
            for connection in (packets.findings if packets is not None else ())
            for stream in connection["directions"]
            if stream["waits"] and _is_of(flow, direction, connection, stream["from"])
        ]
        most_bytes = max((stream["unique_bytes"] for stream in streams), default=0)
        for stream in streams:
            if stream["unique_bytes"] >= STREAM_SHARE * most_bytes:
                waits_s.update({cause: wait["total_s"] for cause, wait in stream["waits"].items()})
                count += 1
    return Waits(dict(waits_s), count)


def _is_of(flow: RecordedFlow, direction: str, connection: Mapping[str, Any], end: str) -> bool:
    """Return whether what one end of a connection sent are data of a flow in a direction."""
    ends = connection["ends"]
    if flow.source in ends:  # each direction of a trace that was kept is a flow
        return end == flow.source
    servers = [end for end in ends if end.endswith(f":{flow.port}")]
    if flow.port is None:
        servers = [end for end in ends if end != connection["opened_by"]]
    return len(servers) == 1 and (end in servers) is (direction == Direction.RECEIVE)


def _of_packets(
    waits_s: Mapping[str, float],
    known: Mapping[str, Any],
    figures: Mapping[str, float],
    by_loss: bool | None,
    of_link: bool,
) -> Limiter:
    """Return what limited TCP by what its senders waited for the longest.

    Whether a rate or the share of a link was reached does not depend on that, and what the network
    or the sender did is told by the other bounds.
    """
    cause = max(waits_s, key=waits_s.__getitem__)
    # Of the receiver's window and of a sender without data, the packets say more than these.
    without = {name: value for name, value in figures.items() if name != "rwnd_limited_s"}
    other, _ = _of_tcp({**known, "window_bps": None}, without, by_loss, of_link)
    share_bps = known["share_bps"]
    reached = bool(share_bps) and known["rate_bps"] >= REACHED * share_bps
    if other is Limiter.RATE or (other is Limiter.BOTTLENECK and reached):
        return other
    match cause:
        case "window":
            return Limiter.RECEIVE_WINDOW
        case "timeout":
            return Limiter.LOSS
        case "application":
            return other if other in (Limiter.PROCESSOR, Limiter.SEND_BUFFER) else Limiter.SENDER
        case "unknown":  # what the packets do not show, the kernel's account may
            return _of_tcp(known, figures, by_loss, of_link)[0]
        case "unexplained":
            return other
        case _:
            return other if other is not Limiter.UNKNOWN else Limiter.NETWORK


def _of_datagrams(known: Mapping[str, Any], figures: Mapping[str, float]) -> Limiter:
    asked, lost = known["asked_bps"], figures.get("loss_ratio")
    sent = figures.get("sent_bps", known["rate_bps"] if lost == 0 else None)
    if asked and sent is not None and sent < 0.99 * asked:
        return Limiter.SENDER
    if lost is not None and lost > LOST:
        here = known.get("host_lost", 0.0) > HALF * (known["lost"] or math.inf)
        return Limiter.RECEIVER if here else Limiter.BOTTLENECK
    if asked and lost is None and known["rate_bps"] < REACHED * asked:
        return Limiter.UNKNOWN
    if asked and known["rate_bps"] > EXCEEDED * asked:
        return Limiter.UNKNOWN
    return Limiter.RATE if asked else Limiter.SENDER


def _of_tcp(
    known: Mapping[str, Any], figures: Mapping[str, float], by_loss: bool | None, of_link: bool
) -> tuple[Limiter, float | None]:
    """Return what limited TCP; ``of_link`` is whether its share is one of a link.

    ``by_loss`` is None where the loss events are not known well enough.
    """
    rate_bps, share_bps, asked = known["rate_bps"], known["share_bps"], known["asked_bps"]
    if asked and 0.95 * asked <= rate_bps <= EXCEEDED * asked:
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
    within = rate_bps <= EXCEEDED * window_bps
    filled = within and rate_bps >= FILLED * window_bps
    # A window that only fills the bottleneck's queue is not what limits the rate.
    queued = rtt_s is not None and rtt_s - min_rtt_s > max(QUEUE_S, QUEUE_SHARE * min_rtt_s)
    near = within and rate_bps >= HALF * window_bps
    if not queued and by_window >= by_buffer and (filled or (near and by_window > HALF)):
        return Limiter.RECEIVE_WINDOW, by_window if by_window > HALF else None
    if not queued and (by_buffer > HALF or (filled and by_buffer > by_window)):
        return Limiter.SEND_BUFFER, by_buffer
    if share_bps and rate_bps >= REACHED * share_bps and (of_link or not asked):
        return Limiter.BOTTLENECK if of_link else Limiter.BUFFERS, None
    if by_loss and not queued:
        return Limiter.LOSS, None
    if queued:
        return Limiter.BOTTLENECK, None
    if busy_core:
        return Limiter.PROCESSOR, None
    return Limiter.UNKNOWN, None
