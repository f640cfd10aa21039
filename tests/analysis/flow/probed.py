"""Packets of one-way delays of which the truth is known."""

import random

from benchctl.analysis.flow.figures import FlowFold
from benchctl.metrics import Sample

MS = 1e-3
MINUTE = 60.0


def delays(
    *, seed=1, count=1300, interval_s=0.1, base_s=10 * MS, queue_s=0.3 * MS, sign=1, offset_s=0.0,
    drift=0.0, steps=(), busy=(),
):  # fmt: skip
    """Return (time of sending, delay) of packets of one direction, on a random schedule.

    ``sign`` is 1 towards the host whose clock is ahead by ``offset_s``, gains ``drift`` each second
    and makes ``steps`` of (time, size); -1 back. ``busy`` are (from, until, queue) on top.
    """
    draw = random.Random(seed)
    packets, at_s = [], 0.0
    for _ in range(count):
        waits_s = draw.expovariate(1 / queue_s)
        if draw.random() < 0.1:  # bursts of other traffic
            waits_s += draw.paretovariate(1.5) * queue_s
        for from_s, until_s, more_s in busy:
            waits_s += draw.expovariate(1 / more_s) if from_s <= at_s < until_s else 0.0
        clock_s = offset_s + drift * at_s + sum(size for when, size in steps if at_s >= when)
        packets.append((at_s, base_s + waits_s + sign * clock_s))
        at_s += draw.expovariate(1 / interval_s)
    return packets


def arrived(packets):
    """Return packets in the order of their arrival."""
    return sorted(packets, key=lambda packet: packet[0] + packet[1])


def both(back_s=None, **truth):
    """Return the packets of both directions, with clocks that differ as said."""
    there = delays(**truth)
    if back_s is not None:
        truth["base_s"] = back_s
    return there, delays(**{**truth, "seed": truth.get("seed", 1) + 1000, "sign": -1})


def fold_of(send=(), receive=(), lost=()):
    """Return the fold of a flow whose packets arrived; of ``lost`` the times in direction send."""
    fold = FlowFold()
    for direction, packets in (("send", send), ("receive", receive)):
        for at_s, delay_s in arrived(packets):
            metrics = {"packets_sent": 1.0, "packets_received": 1.0, "owd_s": delay_s}
            fold.add_sample("client", Sample(at_s, at_s, metrics, direction=direction))
    for at_s in lost:
        metrics = {"packets_sent": 1.0, "packets_lost": 1.0}
        fold.add_sample("client", Sample(at_s, at_s, metrics, direction="send"))
    return fold
