"""Reads the counters of the hosts at the ends of a trial's flows, before and after an attempt."""

from __future__ import annotations

import asyncio
import math
from collections import Counter
from collections.abc import Mapping, Sequence
from contextlib import suppress
from typing import Any

from benchctl.analysis.flow.counting import between
from benchctl.analysis.flow.losses import CountedEnds
from benchctl.engine.site.context import RunContext
from benchctl.engine.trial.attempt import Attempt
from benchctl.engine.trial.setup import FlowSetup
from benchctl.errors import HostError, LabError
from benchctl.hosts.sent import counters
from benchctl.hosts.tasks import cancel
from benchctl.metrics import Direction
from benchctl.run.planned import FleetTarget, Host
from benchctl.run.record import HostCounters

# Where there is time before the common start, a reading begins as late as it may: the shares of
# processors are those of the time between the readings. It takes some milliseconds, and what the
# connection takes. A host of a fleet tells them as its ends wait, and again when they have ended.
READ_S = 0.1
NOT_LINUX = "its counters are read on Linux only"


class HostReadings:
    """The counters of the hosts of some flows, around one attempt."""

    def __init__(self, attempt: Attempt, context: RunContext) -> None:
        self._flows = attempt.flows
        self._hosts = {host.name: host for host in attempt.hosts}
        self._spawner = context.hosts
        self._site = context.site
        self._wall = context.wall
        self._first: asyncio.Future[list[Mapping[str, Any]]] | None = None
        self.began_time = math.inf
        """When the first reading was complete, in Unix time: they count all that came later."""

    async def begin(self, start_time: float) -> None:
        """Read them shortly before a start that is to come, in Unix time; wait only if it is due.

        A start must not be late because a host answers late.
        """
        is_due = start_time <= self._wall()
        readings = (self._read_first(host, start_time) for host in self._hosts.values())
        self._first = asyncio.gather(*readings)
        self._first.add_done_callback(self._note_time)
        if is_due:
            await asyncio.wait([self._first])

    def _note_time(self, _: object) -> None:
        self.began_time = self._wall()

    async def end(self, over: asyncio.Event) -> dict[str, HostCounters]:
        """Read them again, and return what they have counted, by host; nothing if none began.

        The hosts of a fleet have told theirs when all ends are ``over``.
        """
        if self._first is None or not self._first.done():
            await self.close()
            return {}
        first = dict(zip(self._hosts, self._first.result(), strict=True))

        async def read(host: Host) -> Mapping[str, Any]:
            if isinstance(host.reach, FleetTarget):
                await over.wait()
                if reading := self._last_reading(host, first[host.name].get("time_s", 0.0)):
                    return reading
            return await self._read(host)

        last = await asyncio.gather(*map(read, self._hosts.values()))
        pairs = zip(first.items(), last, strict=True)
        return {name: _counted(before, after) for (name, before), after in pairs}

    async def close(self) -> None:
        """Read no more."""
        await cancel(*filter(None, [self._first]))

    async def _read_first(self, host: Host, start_time: float) -> Mapping[str, Any]:
        """Return a reading as late as it may be."""
        wait_s, now = 0.0, self._wall()
        with suppress(HostError):  # of which the reading tells
            if start_time > now and not self._spawner.lost(host).done():
                clock = await self._spawner.clock_of(host)
                wait_s = start_time - now - READ_S - 2 * clock.reading(now).rtt_s
        if wait_s < READ_S and (reading := self._last_reading(host)):
            return reading
        await asyncio.sleep(max(0.0, wait_s))
        return await self._read(host)

    def _last_reading(self, host: Host, after_s: float = 0.0) -> Mapping[str, Any] | None:
        """Return the last reading that a host told with an end, if it is later than another one."""
        readings = filter(None, (flow.take_counters(host.name) for flow in self._flows))
        later = (reading for reading in readings if reading["time_s"] > after_s)
        return max(later, key=lambda reading: float(reading["time_s"]), default=None)

    async def _read(self, host: Host) -> Mapping[str, Any]:
        """Return a reading, or why there is none, as ``unread``."""
        try:
            if (lost := self._spawner.lost(host)).done():  # to ask would connect again
                return {"unread": lost.result()}
            if host.prefix:
                found = await self._site.counters(host.name)
            else:
                found = await self._spawner.ask(host, counters, "read")
        except (HostError, LabError) as error:
            return {"unread": error.message}
        return found or {"unread": NOT_LINUX}


def _counted(before: Mapping[str, Any], after: Mapping[str, Any]) -> HostCounters:
    why = before.get("unread") or after.get("unread")
    return HostCounters(0.0, unread=why) if why else between(before, after)


def ends_of(
    setup: FlowSetup, setups: Sequence[FlowSetup], counters: Mapping[str, HostCounters]
) -> dict[str, CountedEnds]:
    """Return what the hosts at the ends of a flow counted, by direction, among those of a trial."""
    protocol = setup.flow.demand.protocol
    others = Counter(
        name
        for setup in setups
        if setup.flow.demand.protocol == protocol
        for _, name in _directed(setup).values()
    )
    found = {}
    for direction, (sender, receiver) in _directed(setup).items():
        is_udp = protocol == "udp" and others[receiver] == 1
        found[direction] = CountedEnds(
            counters.get(sender) if protocol == "tcp" else None,
            counters.get(receiver) if is_udp else None,
        )
    return found


def _directed(setup: FlowSetup) -> dict[str, tuple[str, str]]:
    """Return the hosts that send and receive in each direction of a flow."""
    plan = setup.flow.plan
    there, back = (plan.source, plan.to), (plan.to, plan.source)
    match plan.direction:
        case Direction.SEND:
            return {"send": there}
        case Direction.RECEIVE:
            return {"receive": back}
        case _:
            return {"send": there, "receive": back}


def came_in_bytes(counters: Mapping[str, HostCounters]) -> dict[str, float]:
    """Return how many bytes came in at all interfaces of each host, loopback too."""
    return {
        host: float(sum(interface.rx_bytes for interface in counted.interfaces.values()))
        for host, counted in counters.items()
        if not counted.unread
    }
