"""Which remote hosts of a run are there. One that is away costs the trials that need it."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Collection, Iterable, Sequence

from msgspec.structs import replace

from benchctl.engine.checks.needed_hosts import names_of_ends
from benchctl.engine.checks.network import note_same_machines, with_own_address
from benchctl.engine.site.context import RunContext
from benchctl.errors import HostError
from benchctl.run.planned import FleetTarget, Host, PlannedTrial


class AwayError(HostError):
    """A host that was away when a trial began is still away."""


class Attendance:
    """The remote hosts of one run, and what is asked of each when it comes."""

    def __init__(self, context: RunContext, left: Callable[[], Iterable[PlannedTrial]]) -> None:
        """``left`` are the trials that are to be measured."""
        self._hosts, self._site, self._left = context.hosts, context.site, left
        self._note = context.note
        # A host that no flow uses prepares something for all of them, as a router does.
        flows = (flow for trial in left() for flow in trial.flows)
        hooks = context.settings.hooks
        self._for_all = {hook.host for hook in hooks} - names_of_ends(self._site.network, flows)
        self._waits = context.settings.parallel is not None
        self._unplaced: set[str] = set()
        self.first: HostError | None = None
        """Of the first host that was away."""
        self.has_measured = False
        """Whether the hosts of any trial were there."""

    async def begin(self, wanted: Collection[Host]) -> list[Host]:
        """Note who is there after the first login; returns those.

        Raises the HostError of the first that is not if each trial needs one of them.
        """
        remote = [host for host in wanted if host.reach]
        self._unplaced = {host.name for host in remote}
        errors = await asyncio.gather(*map(self._first, remote))
        self.first = next(filter(None, errors), None)
        if self.first is not None:
            away = [self._away(trial) for trial in self._left()]
            # Hosts of a fleet are waited for.
            if away and all(away) and not _in_fleet(away[0]):
                raise self.first
        what = "trials that need it fail, the others are measured"
        if self._waits:
            what = "trials that need it wait while others are measured"
        for error in filter(None, errors):
            why = "; ".join(filter(None, [error.message, error.hint]))
            self._note(f"{why}; {what}")
        there = [host for host in remote if not self.is_away(host)]
        network = self._site.network
        note_same_machines((network.hosts[host.name] for host in there), self._note)
        return there

    async def _first(self, host: Host) -> HostError | None:
        """Return why a host is away; it was asked already."""
        away = self._hosts.away(host)
        if isinstance(away, HostError):
            return away
        try:
            await self.place(host)
        except HostError as error:
            return error
        return None

    async def place(self, host: Host) -> None:
        """Connect to a host, and learn its addresses if that is new. Raises HostError."""
        await self._hosts.link(host)
        if host.name in self._unplaced:
            found = await with_own_address(host, self._hosts, self._note)
            network = self._site.network
            self._site.network = replace(network, hosts={**network.hosts, host.name: found})
            self._unplaced.discard(host.name)

    def _away(self, trial: PlannedTrial) -> Sequence[Host]:
        network = self._site.network
        names = names_of_ends(network, trial.flows) | self._for_all
        needed = (network.hosts[name] for name in sorted(names))
        return [host for host in needed if host.reach and self.is_away(host)]

    def is_away(self, host: Host) -> bool:
        """Return whether a host was away when it was last asked."""
        return host.name in self._unplaced or self._hosts.away(host) is not None

    async def call(self, trial: PlannedTrial) -> None:
        """Ask the hosts of a trial that were away once. Raises AwayError for one that still is."""
        try:
            for host in self._away(trial):
                await self.place(host)
        except HostError as error:
            self.first = self.first or error
            raise AwayError(error.message, error.hint) from None
        self.has_measured = True

    def check_end(self) -> None:
        """Raise the error of the first host that was away if it left nothing to measure."""
        if self.first is not None and not self.has_measured:
            raise self.first


def _in_fleet(hosts: Iterable[Host]) -> bool:
    return any(isinstance(host.reach, FleetTarget) for host in hosts)
