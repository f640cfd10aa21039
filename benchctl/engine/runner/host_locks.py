"""Holds the hosts of one run, so that two people's runs do not measure each other.

The lock of a remote host is the agent's, and ends with its connection; that of this machine is
ours. Hosts are taken in the order of their names, all or none: who holds some while waiting for
others could wait for a run that waits for it.
"""

from __future__ import annotations

import asyncio
import random
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import closing
from pathlib import Path

from benchctl.engine.checks.needed_hosts import needed_hosts
from benchctl.errors import HostError, StoreError, UsageError
from benchctl.hosts.hosts import Hosts, OnConnect, connect_nobody
from benchctl.hosts.link import HostLink
from benchctl.hosts.ssh.remote import holder
from benchctl.hosts.tasks import run_to_end
from benchctl.run.planned import LOCAL, Host, Reach
from benchctl.run.record import Run
from benchctl.run.status import FAILURES, OPEN
from benchctl.store.locks import other_stores
from benchctl.store.read import Reader

# How often a run looks whether the others have ended; by chance, so that not all look at once.
LOOK_S = 1.0


def hosts_of_run(reader: Reader, run: Run, *, failed: bool = False) -> list[Host]:
    """Return the hosts of the trials that are left, and with ``failed`` of those that failed.

    None of a lab: they exist for this run alone.
    """
    if run.settings.lab is not None:
        return []
    left = (*OPEN, *FAILURES) if failed else OPEN
    trials = (trial for trial in reader.trials(run.id) if trial.status in left)
    flows = (flow for trial in trials for flow in trial.flows)
    return needed_hosts(run.settings.network.network, flows, run.settings.hooks)


def uses_this_machine(reader: Reader, run: Run) -> bool:
    """Return whether a run measures on this machine, or builds its lab here."""
    return run.settings.lab is not None or LOCAL in hosts_of_run(reader, run)


def disturbing(reader: Reader, run: Run) -> list[str]:
    """Return the other stores whose runs measure here at the same time, if this one does, too.

    Remote hosts belong to one run at a time.
    """

    def may_be_here(store: str) -> bool:
        try:
            with closing(Reader(Path(store))) as other:
                measured = other.measured_now()
                return measured is None or uses_this_machine(other, measured)
        except StoreError:  # it is another user's
            return True

    if not uses_this_machine(reader, run):
        return []
    return [store for store in other_stores(reader.path) if may_be_here(store)]


def check_free_hosts(hosts: Iterable[Host]) -> None:
    """Raise UsageError if another run measures on one of the hosts that are there."""

    async def look() -> None:
        async with Hosts() as own:
            await HostLocks("", connect_nobody, None).take(own, hosts)

    run_to_end(look())


class HostLocks:
    """The hosts of one run; `on_connect` is for its `Hosts`."""

    def __init__(self, run: str, on_connect: OnConnect, note: Callable[[str], None] | None) -> None:
        """``greet`` is called with each new connection, ``note`` with what the user should know.

        Without a ``note``, the run waits for no other.
        """
        self._run, self._on_connect, self._note = run, on_connect, note
        self._takes = False
        self._is_by_trial = False
        self._uses: Counter[Reach] = Counter()
        """How many trials have each remote host, if each takes its own."""

    async def on_connect(self, host: Host, link: HostLink) -> None:
        """Hold a host again whose connection broke. Raises HostError if another run has it now."""
        await self._on_connect(host, link)
        if self._takes or self._is_by_trial:
            return
        if who := self._other(await link.lock(self._run)):
            raise HostError(f"host {host.name}: {who} measures there now", "try again when it ends")

    def by_trial(self) -> None:
        """Let each trial take its own hosts, instead of the run all of them."""
        self._is_by_trial = True

    async def take_for_trial(self, hosts: Hosts, wanted: Sequence[Host]) -> Mapping[str, str]:
        """Take the remote hosts of one trial, or none; returns who has those that are busy.

        The run has them already if it took all. Raises HostError for one that is away.
        """
        if not self._is_by_trial:
            return {}
        reaches = [host.reach for host in wanted if host.reach]
        self._uses.update(reaches)
        new = [host for host in wanted if host.reach and self._uses[host.reach] == 1]
        try:
            has = await asyncio.gather(*(hosts.lock(host, self._run) for host in new))
        except BaseException:
            self.release(hosts, wanted)
            raise
        found = zip(new, map(self._other, has), strict=True)
        busy = {host.name: who for host, who in found if who}
        if busy:
            self.release(hosts, wanted)
        return busy

    def release(self, hosts: Hosts, wanted: Sequence[Host]) -> None:
        """Leave the hosts of a trial to other runs, unless another trial has them."""
        for host in wanted:
            if host.reach and self._is_by_trial:
                self._uses[host.reach] -= 1
                if not self._uses[host.reach]:
                    hosts.unlock(host)

    async def take(self, hosts: Hosts, wanted: Iterable[Host]) -> None:
        """Connect to hosts and hold all that are there; waits for runs that have one.

        Raises UsageError if the run may not wait.
        """
        self._takes = True
        try:
            there = await hosts.connect(wanted)
            ordered = sorted(there, key=lambda host: host.name)
            noted: set[str] = set()
            while busy := await self._try(hosts, ordered):
                if self._note is None:
                    raise UsageError(busy, "wait until it ends; without --no-wait, runs wait")
                if busy not in noted:
                    noted.add(busy)
                    self._note(f"{busy}; this run starts when that ends")
                await asyncio.sleep(LOOK_S * random.uniform(0.5, 1.5))
        finally:
            self._takes = False

    async def _try(self, hosts: Hosts, ordered: Sequence[Host]) -> str:
        """Take all hosts, or none; returns which one is busy, and by whom."""
        for number, host in enumerate(ordered):
            try:
                has = await hosts.lock(host, self._run)
            except HostError:  # it is away by now
                continue
            if who := self._other(has):
                for held in ordered[:number]:
                    hosts.unlock(held)
                where = f"host {host.name}" if host.reach else "this machine"
                return f"{where} is measured by {who}"
        return ""

    def _other(self, who: str) -> str:
        """Return who has a host, if not this run, which may know it by two names."""
        return "" if who == holder(self._run) else who
