"""The known faults in what iperf3 tells, by version, each with its place in iperf3's source.

A parser that works around one names it. Where a figure had to be left out or replaced, ``told`` is
what the user hears.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Fault:
    """Something that iperf3 tells wrongly: which versions do, and where it comes from."""

    versions: str
    source: str
    told: str = ""


FIRST_INTERVAL = Fault(
    "all to 3.21",
    # iperf_reset_stats sets the stream's start and clears its bytes, but leaves the end of the
    # interval before, from which iperf_stats_callback reckons length and datagrams; the negative
    # start is printed without its sign (iperf_time_diff). Which timer fires first is a question of
    # microseconds (create_client_timers, create_client_omit_timer).
    "src/iperf_api.c: 3196 and 3244 in 3.12, 3730 and 3780 in 3.21",
)
