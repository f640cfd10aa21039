"""Which hosts are there: those of which something recent was heard. Pure.

Heartbeats may come late, and after a stop of this process or of the network in a burst. So a host
is judged by the times in its heartbeats: what its clock is ahead is taken from those that came
fastest.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator

from benchctl.fleet.host_messages import Heartbeat

AWAY_S = 4.0
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

    def hear(self, heartbeat: Heartbeat, now_s: float) -> None:
        """Take a heartbeat that came at a time of our clock."""
        known = self.heartbeat
        if known is not None and (
            known.nonce != heartbeat.nonce  # the agent started again
            or heartbeat.time_s < known.time_s  # its clock was set back
        ):
            self._leads.clear()
        self._leads.append((heartbeat.time_s, heartbeat.time_s - now_s))
        self.heartbeat = heartbeat

    @property
    def offset_s(self) -> float:
        """How far its clock is ahead of ours, less the least delay of a heartbeat."""
        return max((lead for _, lead in self._leads), default=0.0)

    @property
    def seen_s(self) -> float:
        """When it was there for sure, by our clock; 0 for never."""
        return max((at for at, _ in self._leads), default=0.0) - self.offset_s


class Presence:
    """What is known of all hosts. ``wall`` is this machine's clock, in Unix time."""

    def __init__(self, wall: Callable[[], float]) -> None:
        self._wall = wall
        self._hosts: dict[str, HostPresence] = {}
        self._looked_s = wall()
        self._catches_up_until_s = 0.0

    def hear(self, host: str, heartbeat: Heartbeat) -> None:
        """Take a host's heartbeat, which was verified."""
        self._hosts.setdefault(host, HostPresence()).hear(heartbeat, self._wall())

    def tick(self) -> None:
        """Say that this process runs; called each second."""
        now_s = self._wall()
        if now_s - self._looked_s > _CATCH_UP_S:  # it stood still: what came waits to be read
            self._catches_up_until_s = now_s + _CATCH_UP_S
        self._looked_s = now_s

    def of(self, host: str) -> HostPresence | None:
        """Return what is known of a host, None if it was never heard."""
        return self._hosts.get(host)

    def away(self, host: str) -> str:
        """Return why nothing new is to start on a host, empty if it is there."""
        known = self._hosts.get(host)
        if known is None:
            return f"host {host} was not heard of since the coordinator began"
        silent_s = self._wall() - known.seen_s
        if silent_s <= AWAY_S or self._wall() < self._catches_up_until_s:
            return ""
        return f"host {host} was not heard of for {silent_s:.0f} s"

    def all(self) -> Iterator[tuple[str, HostPresence]]:
        """Yield the hosts that were heard, by name."""
        yield from sorted(self._hosts.items())
