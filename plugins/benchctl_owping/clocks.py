"""Explains how accurate one-way figures are.

A one-way delay is the difference of two clocks. Without synchronization it contains their offset,
which is unknown and may be larger than the delay. With it, the error estimate of RFC 4656, 4.1.2
bounds the offset. The estimate of an unsynchronized clock is a meaningless minimum.

With both directions the offset can be estimated: the minimum delays are d1 + offset one way and d2
- offset the other, so half of their difference is the offset if both ways take equally long.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from benchctl.api import Direction, Warn


@dataclass(frozen=True, slots=True)
class ClockView:
    """What one direction shows about the clocks.

    ``error_s`` is the largest error estimate of its packets, ``least_s`` their minimum delay.
    """

    synchronized: bool
    error_s: float
    least_s: float


def warnings(views: Mapping[Direction, ClockView], one_clock: bool = False) -> Iterator[Warn]:
    """Yield warnings about the delays.

    None if both ends have one clock, synchronized or not.
    """
    doubt = _doubt(views)
    if one_clock or not doubt:
        return
    if len(views) < 2:
        yield Warn(doubt)
        return
    send_s, receive_s = views[Direction.SEND].least_s, views[Direction.RECEIVE].least_s
    offset_s, way_s = (send_s - receive_s) / 2, (send_s + receive_s) / 2
    side = "ahead of" if offset_s > 0 else "behind"
    yield Warn(
        f"{doubt}. If both ways take equally long, the other host's clock is {_ms(abs(offset_s))} "
        f"{side} this one's and each way takes {_ms(way_s)} (half the difference and half the sum "
        "of the least delays)"
    )


def _doubt(views: Mapping[Direction, ClockView]) -> str:
    if not all(view.synchronized for view in views.values()):
        return (
            "the clocks of the two hosts are not synchronized: one-way delays carry an unknown "
            "offset, and only differences of delays in one direction can be relied on"
        )
    for direction, view in views.items():
        if view.error_s >= view.least_s:
            return (
                f"the clocks are synchronized only to within {_ms(view.error_s)}, and the least "
                f"delay in direction {direction} is {_ms(view.least_s)}: the delays are no more "
                "accurate than that"
            )
    return ""


def _ms(value_s: float) -> str:
    return f"{value_s * 1000:.3g} ms"
