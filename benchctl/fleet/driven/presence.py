"""Which hosts are there: those of which something recent was heard. Pure.

Heartbeats may come late, and after a stop of this process or of the network in a burst. So a host
is judged by the times in its heartbeats: what its clock is ahead is taken from those that came
fastest.
"""

from __future__ import annotations

import math
from collections import deque

from benchctl.fleet.host_messages import Heartbeat

# A minute of heartbeats: long enough for one without delay among them, short enough to follow a
# clock that was set.
_KEPT = 60
# What waits after a stop of this process is read within this time.
_CATCH_UP_S = 2.0


class HostPresence:
    """What is known of one host."""

    def __init__(self) -> None:
        self._leads: deque[tuple[float, float]] = deque(maxlen=_KEPT)
        """Of each heartbeat its own time, and how far that was ahead of ours when it came."""
        self.heartbeat: Heartbeat | None = None
        """The last one."""
        self.offset_s = 0.0
        """How far its clock is ahead of ours, less the least delay of a heartbeat."""
        self.seen_s = -math.inf
        """When it was there for sure, by our clock; minus infinity for never."""

    def hear(self, heartbeat: Heartbeat, now_s: float) -> None:
        """Take a heartbeat that came at a time of our clock, which may be monotonic."""
        known = self.heartbeat
        if known is not None and (
            known.nonce != heartbeat.nonce  # the agent started again
            or heartbeat.time_s < known.time_s - _CATCH_UP_S  # its clock was set back
        ):
            self._leads.clear()
        self._leads.append((heartbeat.time_s, heartbeat.time_s - now_s))
        self.heartbeat = heartbeat
        self.offset_s = max(lead for _, lead in self._leads)
        self.seen_s = max(at for at, _ in self._leads) - self.offset_s


class Standstill:
    """Notices that this process stood still: what came meanwhile waits to be read.

    Times are of one clock, in seconds.
    """

    def __init__(self, now_s: float) -> None:
        self._looked_s = now_s
        self._until_s = 0.0

    def tick(self, now_s: float) -> None:
        """Say that this process runs; called each second."""
        if now_s - self._looked_s > _CATCH_UP_S:
            self._until_s = now_s + _CATCH_UP_S
        self._looked_s = now_s

    def is_reading(self, now_s: float) -> bool:
        """Whether hosts cannot be judged, since what they said may wait."""
        return now_s - self._looked_s > _CATCH_UP_S or now_s < self._until_s
