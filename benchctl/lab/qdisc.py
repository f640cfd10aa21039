"""Links emulated by the kernel: what its queueing disciplines are told.

On the device that a direction leaves by, netem delays and loses frames and hands them to tbf,
which lets them out at the rate, from a queue of packets (pfifo). Against `link`'s order, delay and
loss come before the queue; round-trip times, the rate and what the queue drops are the same, and
a lost frame takes none of the link's time. See tc-netem(8), tc-tbf(8), tc-pfifo(8).
"""

from __future__ import annotations

import errno
import math
import socket
from itertools import pairwise
from typing import Any

from pyroute2 import IPRoute
from pyroute2.netlink.exceptions import NetlinkError

from benchctl.lab.model import ETHERNET_HEADER_BYTES, Settings

# Frames on their way are not in the queue of the model, so netem must never run full: a second
# of full frames at 10 Gbit/s.
_FLYING_LIMIT = 825_000
# tbf's clock ticks are short, but its timer comes late by up to so much; unused time up to this
# is made good, at the price of bursts of as much.
_BURST_S = 200e-6
# One for each, so that a change of settings finds it again, or replaces another.
_HANDLES = {"netem": 0x10000, "tbf": 0x20000, "pfifo": 0x30000}


def plan(settings: Settings, mtu: int) -> list[dict[str, Any]]:
    """Return the disciplines of one direction, from the root down, as pyroute2 takes them."""
    disciplines: list[dict[str, Any]] = []
    if settings.delay_s or settings.jitter_s or settings.loss_ratio:
        disciplines.append({
            "kind": "netem",
            "delay": round(settings.delay_s * 1e6),
            "jitter": round(settings.jitter_s * 1e6),
            "loss": settings.loss_ratio * 100,
            "limit": _FLYING_LIMIT,
        })  # fmt: skip
    if math.isfinite(settings.rate_bps):
        rate_bytes = round(settings.rate_bps / 8)
        frame_bytes = mtu + ETHERNET_HEADER_BYTES
        disciplines.append({
            "kind": "tbf",
            "rate": rate_bytes,
            "burst": frame_bytes + round(rate_bytes * _BURST_S),
            # Of the queue that tbf brings along, and that the next discipline replaces.
            "limit": settings.queue_packets * frame_bytes,
        })  # fmt: skip
        disciplines.append({"kind": "pfifo", "limit": settings.queue_packets})
    for discipline in disciplines:
        discipline["handle"] = _HANDLES[discipline["kind"]]
    for upper, lower in pairwise(disciplines):
        lower["parent"] = upper["handle"] | 1
    return disciplines


def apply(netlink: IPRoute, device: str, settings: Settings, mtu: int) -> None:
    """Give a device the disciplines of a direction, in place of those it has.

    Raises NetlinkError where the kernel does not know one.
    """
    index = socket.if_nametoindex(device)
    for discipline in plan(settings, mtu):
        netlink.tc("replace", index=index, **discipline)


def missing(netlink: IPRoute, device: str) -> str:
    """Return the name of a discipline that this kernel lacks, tried on a device; empty if none."""
    everything = Settings(rate_bps=1e6, delay_s=1e-3, jitter_s=1e-4, loss_ratio=0.01)
    for discipline in plan(everything, 1500):
        alone = {key: value for key, value in discipline.items() if key not in ("parent", "handle")}
        try:
            netlink.tc("replace", index=socket.if_nametoindex(device), **alone)
        except NetlinkError as error:
            if error.code != errno.ENOENT:
                raise
            return str(discipline["kind"])
    return ""
