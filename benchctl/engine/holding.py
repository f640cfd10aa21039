"""Holds the hosts elsewhere for one run, so that two people's runs do not measure each other.

The lock is the agent's and ends with its connection. Hosts are taken in the order of their names,
all or none: who holds some while waiting for others could wait for a run that waits for it.
"""

from __future__ import annotations

import asyncio
import random
from collections.abc import Callable, Iterable, Sequence

from benchctl.errors import HostError
from benchctl.hosts.hosts import Greet, Hosts
from benchctl.hosts.remote import RemoteHost, holder
from benchctl.run.planned import Host

# How often a run looks whether the others have ended; by chance, so that not all look at once.
LOOK_S = 1.0


class Holding:
    """The hosts of one run; `greet` is for its `Hosts`."""

    def __init__(self, run: str, greet: Greet, note: Callable[[str], None]) -> None:
        """``greet`` is called with each new connection, ``note`` with what the user should know."""
        self._run, self._greet, self._note = run, greet, note
        self._takes = False

    async def greet(self, host: Host, link: RemoteHost) -> None:
        """Hold a host again whose connection broke. Raises HostError if another run has it now."""
        await self._greet(host, link)
        if not self._takes and (who := await self._lock(link)):
            raise HostError(f"host {host.name}: {who} measures there now", "try again when it ends")

    async def take(self, hosts: Hosts, wanted: Iterable[Host]) -> None:
        """Connect to hosts and hold all of them; waits for runs that have one.

        Raises HostError if one cannot be reached.
        """
        ordered = sorted(wanted, key=lambda host: host.name)
        self._takes = True
        try:
            told: set[str] = set()
            while busy := await self._try(hosts, ordered):
                if busy not in told:
                    told.add(busy)
                    self._note(f"{busy}; this run starts when that ends")
                await asyncio.sleep(LOOK_S * random.uniform(0.5, 1.5))
        finally:
            self._takes = False

    async def _try(self, hosts: Hosts, ordered: Sequence[Host]) -> str:
        """Take all hosts, or none; returns which one is busy, and by whom."""
        await hosts.connect(ordered)
        links: list[RemoteHost] = []
        for host in ordered:
            link = await hosts.link(host)
            if who := await self._lock(link):
                for one in links:
                    one.unlock()
                return f"host {host.name} is measured by {who}"
            links.append(link)
        return ""

    async def _lock(self, link: RemoteHost) -> str:
        """Return who has a host, if not this run, which may know it by two names."""
        who = await link.lock(self._run)
        return "" if who == holder(self._run) else who
