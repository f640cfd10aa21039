"""Holds iperf3's final figures against each other: what it reports wrongly, by its known faults.

Bytes are counted where they are sent and received, and so is each end's time; no known fault
affects them. So a count of datagrams must match the bytes by their length, and a rate the bytes by
the time of its own end. A figure that does not is reported as broken (`benchctl.api.Breach`). What
the bytes give takes its place, else what the other end or the samples do.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from statistics import fmean

from benchctl.api import Breach, Direction, Flow
from benchctl_iperf3.faults import (
    COPIED_COUNT,
    EARLY_COUNT,
    EARLY_END,
    FIRST_JITTER,
    LATE_END,
    LATE_START,
    LATE_START_S,
    OMITTED_LOSSES,
    OMITTED_SENT,
    OTHER_TIMES,
    UNDONE_LOSSES,
    UNSENT,
    UNTIMED,
    Fault,
)
from benchctl_iperf3.parameters import LEAST_INTERVAL_S, Iperf3Parameters, ends_late

Metrics = dict[str, float]
Rates = Mapping[tuple[float, float], float]
"""What arrived at an end in each interval, of all streams, by its begin and end."""

# The sender's threads and the reporting thread differ by a few datagrams.
_TOLERANCE, _STRAY = 0.001, 2
STEADY = 0.01
"""The rates of a flow at its two ends agree within this, without loss and queueing."""
# By so many datagrams of each stream an interval differs by chance.
_FEW = 3
# An interval that is shorter than the first by more was cut short by the end.
_WHOLE = 0.9
# `LATE_START_S` beside that of a short path.
_LATE_S = (0.035, 0.08)


@dataclass(slots=True)
class Final:
    """The tool's final figures of one direction; the times are those of each end's count.

    ``untimed`` says that the server did not report its own.
    """

    metrics: Metrics = field(default_factory=dict)
    sent_s: float = 0.0
    received_s: float = 0.0
    untimed: bool = False


@dataclass(slots=True)
class Weighed:
    """What is wrong with the figures of one direction, in the terms of `benchctl.api.Summary`."""

    broken: dict[str, Breach] = field(default_factory=dict)
    instead: Metrics = field(default_factory=dict)
    resolution: Metrics = field(default_factory=dict)
    warnings: list[str] = field(default_factory=list)

    def doubt(self, fault: Fault, instead: dict[str, float | None]) -> None:
        """Mark figures as wrong; None if the tool's other figures do not give them."""
        for name, value in instead.items():
            self.broken[name] = Breach("no known fault of iperf3", fault.message)
            self.instead.pop(name, None)
            if value is not None:
                self.instead[name] = value


def weigh(
    final: Final,
    flow: Flow[Iperf3Parameters],
    direction: Direction,
    length_bytes: float | None,
    rates: Rates,
) -> Weighed:
    """Return what is wrong with the figures of a direction, or known in steps.

    ``length_bytes`` is the length of each datagram, or of each write; ``rates`` are those of what
    arrived here. Figures that are off by less than their rounding are corrected in place.
    """
    scales = _Scales(final, flow, direction, length_bytes, rates)
    if flow.params.protocol == "udp":
        scales.sent()
        scales.received()
        scales.jitter()
    scales.time()
    scales.end()
    scales.steps()
    return scales.found


def judges_start(flow: Flow[Iperf3Parameters]) -> bool:
    """Return whether the server's parser judges when its count began, and not the client's.

    Only its intervals show that; those of a flow with its own pace show nothing.
    """
    prompt = "prompt-start" in flow.tool.features
    return flow.owns_server and not flow.params.omit and (_is_steady(flow.params) or not prompt)


def weigh_start(
    flow: Flow[Iperf3Parameters],
    told_bps: float,
    lasted_s: float,
    rates: Rates,
) -> Weighed:
    """Return what is wrong with a server's rate: the time before the first byte is in it."""
    found = Weighed()
    wait_s, fault = -_early_s(rates, flow.params), EARLY_COUNT
    if "prompt-start" not in flow.tool.features:
        wait_s, fault = max(wait_s, LATE_START_S), LATE_START
    counted_s = lasted_s - wait_s
    if counted_s > 0 and wait_s > lasted_s * STEADY:
        found.doubt(fault, {"throughput_bps": told_bps * lasted_s / counted_s})
    if _is_steady(flow.params) and lasted_s:
        found.resolution["throughput_bps"] = (flow.params.length or 0.0) * 8 / lasted_s
    return found


def _early_s(rates: Rates, params: Iperf3Parameters) -> float:
    """Return how long before its count the first datagram arrived; after it, if negative.

    It is what the first interval has more than the others of a steady rate. It is 0 if few are
    known, or if it is fewer than `_FEW` datagrams of each stream, which may be chance.
    """
    spans = iter(rates.items())
    (_, first_s), first = next(spans, ((0.0, 0.0), 0.0))
    others = [rate for (start, end), rate in spans if end - start > _WHOLE * first_s]
    if not others or not _is_steady(params):
        return 0.0
    more = (first - fmean(others)) * first_s
    step_bits = params.streams * (params.length or 0.0) * 8
    return more / fmean(others) if abs(more) > _FEW * step_bits else 0.0


def _is_steady(params: Iperf3Parameters) -> bool:
    return params.protocol == "udp" and math.isfinite(params.rate)


class _Scales:
    """The figures of one direction, and the values they are checked against."""

    def __init__(
        self,
        final: Final,
        flow: Flow[Iperf3Parameters],
        direction: Direction,
        length_bytes: float | None,
        rates: Rates,
    ) -> None:
        self.found = Weighed()
        self._rates = rates
        self._final = final
        self._reported = final.metrics
        self._params = flow.params
        self._flow = flow
        self._receives = direction is Direction.RECEIVE
        self._length_bytes = length_bytes
        self._features = flow.tool.features
        self._knows_omitted = "omitted-losses" in self._features

    def sent(self) -> None:
        """Check the datagrams sent against their bytes."""
        by_bytes = self._by_bytes("bytes_sent")
        reported = self._reported.get("packets_sent")
        if by_bytes is not None and reported is not None and not self._agree(reported, by_bytes):
            old = OMITTED_SENT if self._params.omit else COPIED_COUNT
            self.found.doubt(UNSENT if self._knows_omitted else old, {"packets_sent": by_bytes})

    def received(self) -> None:
        """Check the datagrams received, and so the losses, against their bytes."""
        by_bytes = self._by_bytes("bytes_received")
        reported, lost = (self._reported.get(name) for name in ("packets_received", "packets_lost"))
        if by_bytes is None or reported is None or lost is None:
            return
        if self._params.omit:
            # The server's omitted losses are unknown here, unless there are none at all.
            unknown = not self._receives and not self._knows_omitted
            # A table's bytes have three digits.
            exact = by_bytes if "json-stream" in self._features else None
            if lost and (unknown or not self._agree(reported, by_bytes)):
                instead = {"packets_received": exact, "packets_lost": None, "loss_ratio": None}
                self.found.doubt(OMITTED_LOSSES, instead)
            elif not self._agree(reported, by_bytes):
                # The sender's omitted part, of all received datagrams: off by milliseconds.
                del self._reported["packets_received"]
                if exact is not None:
                    self._reported["packets_received"] = exact
        elif not self._agree(reported, by_bytes):
            whole = reported + lost
            missing = whole - by_bytes
            if whole > 0 and missing >= 0:
                self.found.doubt(
                    UNDONE_LOSSES,
                    {
                        "packets_received": by_bytes,
                        "packets_lost": missing,
                        "loss_ratio": missing / whole,
                    },
                )

    def jitter(self) -> None:
        """Check the jitter against what can be.

        It is a sum of differences, each by a sixteenth at most (RFC 3550, 6.4.1), of the gaps
        between arrivals and those between departures. The former add up to the receiver's time. The
        latter add up to the sender's, and to more where datagrams overtake others: it counts twice.
        """
        reported = self._reported.get("jitter_rfc3550_s", 0.0)
        most_s = (self._final.received_s + 2 * self._final.sent_s + 3 * self._params.omit) / 16
        is_old = self._final.untimed and not self._receives
        if reported > most_s or (reported and is_old):
            self.found.doubt(FIRST_JITTER, {"jitter_rfc3550_s": None})
            self._final.untimed |= not self._receives and not self._flow.owns_server

    def time(self) -> None:
        """Check the rates against the times of the two ends."""
        final = self._final
        reported, sent = (self._reported.get(name) for name in ("throughput_bps", "sent_bps"))
        if not reported or not sent or not final.sent_s or not final.received_s:
            return
        if self._receives and self._flow.direction is Direction.BOTH:
            final.sent_s, final.received_s = final.received_s, final.sent_s
            reported *= final.sent_s / final.received_s
            sent *= final.received_s / final.sent_s
            if math.isclose(final.sent_s, final.received_s, rel_tol=STEADY):
                self._reported |= {"throughput_bps": reported, "sent_bps": sent}
            else:
                self.found.doubt(OTHER_TIMES, {"throughput_bps": None, "sent_bps": sent})
        if self._params.omit:
            return  # either end's time starts in the middle of the data
        if self._receives:
            self._arrived(reported, sent)
        elif final.untimed:
            self.found.warnings.append(f"throughput_bps may be too high: {UNTIMED.message}")
        elif final.received_s - final.sent_s > final.sent_s * STEADY:
            self._late(final.received_s - final.sent_s)

    def _arrived(self, reported: float, sent: float) -> None:
        """Check what arrived here: before its time began, or faster than it was sent."""
        final = self._final
        received, handed = (
            self._reported.get(name, 0.0) for name in ("bytes_received", "bytes_sent")
        )
        if self._flow.owns_server and "prompt-start" not in self._features:
            early_s = max(_early_s(self._rates, self._params), LATE_START_S)
            in_all_s = final.received_s + early_s
            self.found.doubt(LATE_START, {"throughput_bps": reported * final.received_s / in_all_s})
        elif _is_steady(self._params) and handed and reported > sent * (1 + STEADY):
            # Datagrams at a steady rate: those that arrived, at the sending rate.
            self.found.doubt(LATE_START, {"throughput_bps": sent * received / handed})

    def _late(self, late_s: float) -> None:
        """Judge that the server counted for longer than this end sent.

        It counts while a queue drains, and data arrive, but before the first byte arrives, too.
        """
        if judges_start(self._flow):
            del self._reported["throughput_bps"]  # its own last line counts
        elif _is_steady(self._params) and not self._flow.owns_server:
            waited = _LATE_S[0] < late_s < _LATE_S[1]
            causes = [EARLY_COUNT, *[LATE_START] * waited]
            self.found.warnings.append(
                f"throughput_bps may be up to {late_s / self._final.received_s:.1%} too low:"
                f" the receiver counted for {late_s * 1e3:.0f} ms longer than the sender sent;"
                f" {', and '.join(cause.message for cause in causes)}"
            )

    def end(self) -> None:
        """Check how a flow ended that was asked for bytes."""
        asked, received = self._params.bytes, self._reported.get("bytes_received")
        if asked is None:
            return
        if ends_late(self._flow) and self._final.sent_s * STEADY < LEAST_INTERVAL_S:
            self.found.doubt(LATE_END, {"sent_bps": None, "throughput_bps": None})
        if self._is_stream and received and received < asked * (1 - STEADY):
            self.found.warnings.append(
                f"bytes_received is {received:,.0f} of {asked:,.0f} bytes: {EARLY_END.message}"
            )

    def steps(self) -> None:
        """Note in which steps rates are known: of datagrams, or of blocks where only whole count.

        A server of others may count what it reads: then that is whole blocks only by chance.
        """
        here = "whole-blocks" in self._features
        there = here or not self._flow.owns_server
        for rate, amount, seconds, by_blocks in (
            ("sent_bps", "bytes_sent", self._final.sent_s, there if self._receives else here),
            (
                "throughput_bps", "bytes_received", self._final.received_s,
                here if self._receives else there,
            ),
        ):  # fmt: skip
            counted = self._reported.get(amount)
            if not counted or not self._length_bytes or not seconds:
                continue
            step_bps = self._length_bytes * 8 / seconds
            if not self._is_stream:
                self.found.resolution[rate] = step_bps
            elif by_blocks and counted % self._length_bytes == 0 and counted != self._params.bytes:
                self.found.resolution[rate] = step_bps * self._params.streams

    @property
    def _is_stream(self) -> bool:
        return self._params.protocol != "udp"

    def _by_bytes(self, name: str) -> float | None:
        amount = self._reported.get(name)
        if amount is None or not self._length_bytes:
            return None
        return float(round(amount / self._length_bytes))

    def _agree(self, reported: float, by_bytes: float) -> bool:
        stray = _STRAY * self._params.streams
        return abs(reported - by_bytes) <= max(stray, _TOLERANCE * by_bytes)
