"""Sends at an even rate: computes when each packet is due (pure), and waits for it.

A timer alone is late by the kernel's slack and by its own wake-up; spinning alone takes a core. So
a sender sleeps until shortly before a packet is due and spins for the rest. The schedule is
absolute, so lateness never accumulates, and a sender that fell behind catches up at twice the rate
instead of in one burst. It makes up for a second at most: a long pause makes no long flood.
"""

from __future__ import annotations

import os
import socket
import time
from collections.abc import Callable

# Packets of one burst leave together: at most this time's share of the rate.
_BURST_S = 200e-6
# Of what a sender is late by, the rest is left out: it keeps its rate from there.
_MADE_UP_NS = 1_000_000_000
# A wake-up is rarely later than this once the timer slack is reduced.
_SPIN_NS = 60_000
# The longest sleep between two checks of whether to stop.
_NAP_NS = 50_000_000


def shares_core(sock: socket.socket) -> bool:
    """Return whether both ends of a connection run on the same core, as far as this is certain."""
    if not hasattr(os, "sched_getaffinity") or len(os.sched_getaffinity(0)) > 1:
        return False
    own: bool = sock.getsockname()[:1] == sock.getpeername()[:1]
    return own


def give_way() -> None:
    """Let other threads that wait for this core run now (sched_yield(2)), if the system can."""
    if _YIELD is not None:
        _YIELD()


_YIELD: Callable[[], None] | None = getattr(os, "sched_yield", None)


class Pacer:
    """The schedule of one stream: ``burst`` packets at a time, evenly spaced."""

    def __init__(self, rate_bps: float, packet_bytes: int, burst_limit: int) -> None:
        packet_ns = packet_bytes * 8e9 / rate_bps
        self.burst = max(1, min(burst_limit, int(_BURST_S * 1e9 / packet_ns)))
        self._packet_ns = packet_ns
        self._least_gap_ns = packet_ns * self.burst / 2
        self._start_ns = 0
        self._last_ns = 0

    def start(self, now_ns: int) -> None:
        """Let the first packet be due now."""
        self._start_ns = now_ns
        self._last_ns = now_ns - int(self._least_gap_ns)

    def due_ns(self, packets: int, last_ns: int) -> int:
        """Return when the next burst may leave, by the packets sent and the last time."""
        on_time_ns = self._start_ns + packets * self._packet_ns
        left_out_ns = int(last_ns - on_time_ns) - _MADE_UP_NS
        if left_out_ns > 0:
            self._start_ns += left_out_ns
            on_time_ns += left_out_ns
        return int(max(on_time_ns, last_ns + self._least_gap_ns))

    def wait(self, packets: int, stopped: Callable[[], bool]) -> None:
        """Wait until the next burst is due, or until `stopped` says so."""
        clock = time.monotonic_ns
        due_ns = self.due_ns(packets, self._last_ns)
        left_ns = due_ns - clock()
        while left_ns > _SPIN_NS and not stopped():
            time.sleep(min(left_ns - _SPIN_NS, _NAP_NS) / 1e9)
            left_ns = due_ns - clock()
        now_ns = clock()
        while now_ns < due_ns:
            time.sleep(0)  # Lets the threads of other streams run Python meanwhile.
            now_ns = clock()
        self._last_ns = now_ns
