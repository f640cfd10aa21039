"""The process that emulates one direction of a link: it moves frames between packet sockets.

There is one process for each direction, because most of the work is the kernel's (it runs the far
side's whole network stack inside the call that sends a frame). So data and its acknowledgements use
two cores. The process sleeps until a frame arrives or is due, with the precision of select
(microseconds; epoll rounds up to milliseconds), and never spins. A frame's arrival time is the
kernel's timestamp, so the process's own lateness delays nothing unless it exceeds the link's delay.
"""

from __future__ import annotations

import gc
import os
import select
import time
from dataclasses import asdict
from multiprocessing.connection import Connection
from typing import Any

from benchctl.hosts.local.slices import SHORTEST_NS, ask_for_slices
from benchctl.lab.emulate.link import NEVER_NS, Change, OneWay
from benchctl.lab.emulate.messages import DirectionCounters, receive, send
from benchctl.lab.emulate.ring import Outlet, Ring
from benchctl.lab.syscalls import set_timer_slack
from benchctl.lab.topology.model import LinkSettings

# Frames between two readings of the clock: enough to save system calls, few enough that a full
# batch (about 0.3 ms) does not delay due frames.
_BATCH = 64
# A ring holds more than arrives in this time at any rate that an emulator can carry.
_RING_PATIENCE_S = 2e-3
# Frames that are due faster than this leave in small groups: a wake-up for each would cost more
# than sending it. They are no later than any other timer on Linux (its slack is 50 us).
_CROWDED_NS = 50_000
# More than the worst wake-up of an idle machine.
LATE_NS = 1_000_000


def hurry() -> bool:
    """Run before ordinary processes; returns whether that is permitted.

    Only root may. Others get the shortest slices (Linux 6.12), so a frame that is due seldom waits
    for another process. Still, the punctuality of their links depends on the machine's load.
    """
    try:
        os.sched_setscheduler(0, os.SCHED_RR, os.sched_param(1))
    except PermissionError:
        ask_for_slices(SHORTEST_NS, os.nice(0))
        return False
    return True


class _Forwarder:
    """One direction of a link: frames arrive at one device and leave by another."""

    def __init__(
        self, settings: LinkSettings, seed: str, devices: tuple[str, str], mtu: int, rings: int = 1
    ) -> None:
        self.way: OneWay[bytes] = OneWay(settings, seed)
        self.source = Ring(devices[0], mtu, rings)
        self._send = Outlet(devices[1]).send
        self.crowded = False
        """Whether the last look found several frames due."""
        self._now_ns = 0
        self._late = 0
        self._late_max_ns = 0
        self._refused = 0

    def take(self) -> bool:
        """Pass the frames that have arrived to the model; returns whether there may be more.

        The model's time passes no frame that is still to be taken, however late this process is: it
        would find the queue shorter than it was when the frame arrived.
        """
        arrive, now_ns = self.way.arrive, self._now_ns
        # Before the frames are read: those that are not among them arrived later.
        until_ns = time.monotonic_ns()
        frames = self.source.receive(_BATCH)
        for stamp_ns, frame in frames:
            if stamp_ns > now_ns:
                now_ns = stamp_ns
            arrive(now_ns, len(frame), frame)
        more = len(frames) == _BATCH
        self._now_ns = now_ns if more else max(now_ns, until_ns)
        return more

    def deliver(self) -> int:
        """Send the frames that are due; returns the time of the next check."""
        next_ns = self.way.next_ns()
        if next_ns > self._now_ns:
            return next_ns
        frames = self.way.due(self._now_ns)
        self.crowded = len(frames) > 1
        if frames:
            now_ns, (first_ns, _) = time.monotonic_ns(), frames[0]
            self._late_max_ns = max(self._late_max_ns, now_ns - first_ns)
            if now_ns - first_ns > LATE_NS:
                self._late += sum(now_ns - due_ns > LATE_NS for due_ns, _ in frames)
        for _, frame in frames:
            try:
                self._send(frame)
            except OSError:
                # The far device is down or its backlog is full: a cable would lose the frame, too.
                self._refused += 1
        return self.way.next_ns()

    def counters(self) -> DirectionCounters:
        """Return the counters; the maxima are reset."""
        counters = DirectionCounters(
            **asdict(self.way.counters),
            queued=self.way.queued,
            late=self._late,
            late_max_ns=self._late_max_ns,
            missed=self.source.count_dropped(),
            refused=self._refused,
        )
        self.way.counters.queue_max = self.way.queued
        self._late_max_ns = 0
        return counters


def run_direction(
    settings: LinkSettings,
    seed: str,
    devices: tuple[str, str],
    mtu: int,
    control: Connection,
    rings: int,
) -> None:
    """Emulate one direction of a link, between two devices, until ``control`` is closed.

    It is one of ``rings`` in the lab.

    Sends None once ready and after each `Change` that it receives, and its counters for a None.
    """
    # 50 us by default, which would delay every frame.
    set_timer_slack(1)
    hurry()
    direction = _Forwarder(settings, seed, devices, mtu, rings)
    send(control, None)
    # No cycles are created here, and a collection would stop the link for milliseconds.
    gc.disable()
    anything: list[Any] = [direction.source, control]
    while True:
        more = direction.take()
        next_ns = direction.deliver()
        readers, timeout_s = anything, None
        if more:
            timeout_s = 0.0
        elif next_ns < NEVER_NS:
            least_ns = _CROWDED_NS if direction.crowded else 0
            timeout_s = max(least_ns, next_ns - time.monotonic_ns()) / 1e9
            if direction.way.foreseen:
                # Frames that arrive meanwhile wait in the ring with their timestamps.
                readers, timeout_s = [control], min(timeout_s, _RING_PATIENCE_S)
        if control in select.select(readers, [], [], timeout_s)[0]:
            try:
                change: Change | None = receive(control)
            except EOFError:
                return
            if change:
                direction.way.change(change, time.monotonic_ns())
            send(control, None if change else direction.counters())
