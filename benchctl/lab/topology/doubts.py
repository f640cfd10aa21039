"""Values of a topology that are possible, and hardly what was meant. Pure."""

from __future__ import annotations

import math
from collections.abc import Iterator

from benchctl.lab.topology.model import ETHERNET_HEADER_BYTES, Link, Topology
from benchctl.units import format_duration, format_rate

# A modem of 9,600 bit/s sends a full frame in 1.3 s.
_SENDING_S = 2.0
# To the Moon and back light takes 2.6 s.
_DELAY_S = 3.0
# TCP sends a SYN again after 1 s and 3 s, and most tools have given up then.
_QUEUED_S = 60.0


def doubts(topology: Topology) -> Iterator[str]:
    """Yield what a link's rate, delay or queue means, where that is hardly what was meant."""
    for link in topology.links.values():
        # Both directions have most values in common.
        yield from dict.fromkeys(doubt for at in (0, 1) for doubt in _of_direction(link, at))


def _of_direction(link: Link, at: int) -> Iterator[str]:
    settings = link.settings[at]
    if settings.delay_s > _DELAY_S:
        yield f"link {link.name}: a delay of {format_duration(settings.delay_s)}, one way"
    if math.isinf(settings.rate_bps):
        return
    sending_s = 8 * (link.mtu + ETHERNET_HEADER_BYTES) / settings.rate_bps
    queued_s = sending_s * settings.queue_packets
    rate = format_rate(settings.rate_bps)
    if sending_s > _SENDING_S:
        yield f"link {link.name}: at {rate} a full frame takes {format_duration(sending_s)}"
    elif queued_s > _QUEUED_S:
        yield (
            f"link {link.name}: at {rate} a queue of {settings.queue_packets:,} full frames takes"
            f" {format_duration(queued_s)}"
        )
