"""Checks iperf3's final figures against each other; contradicted ones are not passed on.

Bytes are counted where they are sent and received, and no known fault affects them. So a count of
datagrams must match the bytes by their length, and the rate of arrival cannot exceed a steady
sending rate. A figure that fails is reported under a name of its own (`METRICS`). It is replaced by
one computed from the bytes, or dropped: then benchctl's own from the samples counts.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, field

from benchctl.api import METRICS as SHARED
from benchctl.api import Direction, Flow, Fold, Metric, Warn
from benchctl_iperf3.faults import (
    EARLY_COUNT,
    LATE_END,
    LATE_START,
    OMITTED_LOSSES,
    OMITTED_SENT,
    UNDONE_LOSSES,
    UNSENT,
    Fault,
)
from benchctl_iperf3.parameters import LEAST_INTERVAL_S, Iperf3Parameters, ends_late

Metrics = dict[str, float]

_WEIGHED = (
    "throughput_bps", "sent_bps", "packets_sent", "packets_received", "packets_lost", "loss_ratio",
)  # fmt: skip
METRICS = tuple(
    Metric(
        f"iperf3_{name}",
        f"{name} as reported by iperf3, kept when iperf3's other figures contradict it",
        Fold.VALUE,
        SHARED[name].better,
    )
    for name in _WEIGHED
)

# The sender's threads and the reporting thread differ by a few datagrams.
_TOLERANCE, _STRAY = 0.001, 2
# The rates of a flow at its two ends agree within this, without loss and queueing.
_STEADY = 0.01
# The delayed acknowledgement of `LATE_START`, plus scheduling and a short path.
_LATE_S = (0.035, 0.08)


@dataclass(slots=True)
class Final:
    """The tool's final figures of one direction; the times are those of each end's count."""

    metrics: Metrics = field(default_factory=dict)
    sent_s: float = 0.0
    received_s: float = 0.0


def weigh(
    final: Final,
    flow: Flow[Iperf3Parameters],
    direction: Direction,
    datagram_bytes: float | None,
) -> Iterator[Warn]:
    """Replace impossible figures; yields a warning for each fault.

    ``datagram_bytes`` is the length of each, None for TCP.
    """
    scales = _Scales(final, flow, direction, datagram_bytes or 1.0)
    if datagram_bytes:
        yield from scales.sent()
        yield from scales.received()
    if not flow.params.omit:  # else each end's time starts in the middle of the data
        yield from scales.time()
    if ends_late(flow) and final.sent_s * _STEADY < LEAST_INTERVAL_S:
        yield scales.doubt(LATE_END, {"sent_bps": None, "throughput_bps": None})


class _Scales:
    """The figures of one direction, and the values they are checked against."""

    def __init__(
        self,
        final: Final,
        flow: Flow[Iperf3Parameters],
        direction: Direction,
        datagram_bytes: float,
    ) -> None:
        self._final = final
        self._told = final.metrics
        self._params = flow.params
        self._flow = flow
        self._direction = direction
        self._datagram_bytes = datagram_bytes
        self._knows_omitted = "omitted-losses" in flow.tool.features

    def doubt(self, fault: Fault, instead: dict[str, float | None]) -> Warn:
        """Replace reported figures by others, or drop them."""
        doubted = []
        for name, value in instead.items():
            if (told := self._told.pop(name, None)) is not None:
                self._told[f"iperf3_{name}"] = told
                doubted.append(f"{name} {told:.6g}")
            if value is not None:
                self._told[name] = value
        return Warn(
            f"iperf3's own {', '.join(doubted)} (direction {self._direction}) is wrong:"
            f" {fault.told}"
        )

    def sent(self) -> Iterator[Warn]:
        """Check the datagrams sent against their bytes."""
        by_bytes = self._by_bytes("bytes_sent")
        told = self._told.get("packets_sent")
        if by_bytes is not None and told is not None and not self._agree(told, by_bytes):
            fault = UNSENT if self._knows_omitted else OMITTED_SENT
            yield self.doubt(fault, {"packets_sent": by_bytes})

    def received(self) -> Iterator[Warn]:
        """Check the datagrams received, and so the losses, against their bytes."""
        by_bytes = self._by_bytes("bytes_received")
        told, lost = (self._told.get(name) for name in ("packets_received", "packets_lost"))
        if by_bytes is None or told is None or lost is None:
            return
        if self._params.omit:
            # The server's omitted losses are unknown here, unless there are none at all.
            unknown = self._direction is Direction.SEND and not self._knows_omitted
            # A table's bytes have three digits.
            exact = by_bytes if "json-stream" in self._flow.tool.features else None
            if lost and (unknown or not self._agree(told, by_bytes)):
                instead = {"packets_received": exact, "packets_lost": None, "loss_ratio": None}
                yield self.doubt(OMITTED_LOSSES, instead)
            elif not self._agree(told, by_bytes):
                # The sender's omitted part, of all received datagrams: off by milliseconds.
                self.doubt(OMITTED_LOSSES, {"packets_received": exact})
        elif not self._agree(told, by_bytes):
            whole = told + lost
            missing = whole - by_bytes
            if whole > 0 and missing >= 0:
                yield self.doubt(
                    UNDONE_LOSSES,
                    {
                        "packets_received": by_bytes,
                        "packets_lost": missing,
                        "loss_ratio": missing / whole,
                    },
                )

    def time(self) -> Iterator[Warn]:
        """Check the receiver's time against the sender's."""
        told, sent = (self._told.get(name) for name in ("throughput_bps", "sent_bps"))
        if not told or not sent or not self._final.sent_s:
            return
        final = self._final
        late_s = final.received_s - final.sent_s
        steady = self._params.protocol == "udp" and math.isfinite(self._params.rate)
        # Datagrams at a steady rate: those that arrived, at the sending rate.
        received, handed = (self._told.get(name, 0.0) for name in ("bytes_received", "bytes_sent"))
        by_sender = sent * received / handed if steady and handed else None
        if self._direction is Direction.RECEIVE:
            if by_sender is not None and told > sent * (1 + _STEADY):
                yield self.doubt(LATE_START, {"throughput_bps": by_sender})
        elif late_s > final.sent_s * _STEADY:
            waited = _LATE_S[0] < late_s < _LATE_S[1]
            prompt = "prompt-start" in self._flow.tool.features
            if waited and self._flow.owns_server and not prompt:
                rate = told * final.received_s / final.sent_s if by_sender is None else by_sender
                yield self.doubt(LATE_START, {"throughput_bps": rate})
            elif steady:
                # How much of it is a queue, in which data did arrive, is unknown.
                causes = [EARLY_COUNT, *[LATE_START] * (waited and not self._flow.owns_server)]
                yield Warn(
                    f"throughput_bps may be up to {late_s / final.received_s:.1%} too low:"
                    f" the receiver counted for {late_s * 1e3:.0f} ms longer than the sender sent;"
                    f" {', and '.join(cause.told for cause in causes)}"
                )

    def _by_bytes(self, name: str) -> float | None:
        amount = self._told.get(name)
        return None if amount is None else float(round(amount / self._datagram_bytes))

    def _agree(self, told: float, by_bytes: float) -> bool:
        stray = _STRAY * self._params.streams
        return abs(told - by_bytes) <= max(stray, _TOLERANCE * by_bytes)
