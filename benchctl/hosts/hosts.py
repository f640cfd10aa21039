"""Starts the commands of a run on every host: here and in labs directly, remote ones over SSH."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Collection, Iterable, Iterator, Mapping, Sequence
from types import ModuleType
from typing import Any

from benchctl.errors import HostError
from benchctl.hosts.clocks import OURS, HostClock
from benchctl.hosts.link import FleetWays, HostLink
from benchctl.hosts.local.spawn import LocalSpawner, OnData, Process
from benchctl.hosts.sent.filter import PortPair
from benchctl.hosts.sent.hostlock import NAME, HostLock
from benchctl.hosts.ssh.remote import RemoteHost, holder, link_to
from benchctl.hosts.ssh.shell import ShellHost
from benchctl.hosts.ssh.ssh import NoPythonError
from benchctl.hosts.tasks import cancel, interrupts
from benchctl.run.planned import FleetTarget, Host, Reach, SshTarget
from benchctl.visible import visible

# How often it is looked whether whoever needs the hosts wants to end.
_LOOK_S = 0.1
# Fewer than sshd lets in at once (MaxStartups, sshd_config(5)), should all be behind one jump host.
LOGINS = 8

OnConnect = Callable[[Host, HostLink], Awaitable[None]]
"""Is called with each host whose connection has just been opened."""


async def connect_nobody(_: Host, __: HostLink) -> None:
    """Do nothing with a new connection."""


class Hosts:
    """A `Spawner` for all hosts; use as an async context manager.

    A connection is opened when its host is first needed, or when it is needed again after it broke.
    """

    def __init__(
        self, on_connect: OnConnect = connect_nobody, ways: FleetWays | None = None, **settings: Any
    ) -> None:
        """``settings`` are those of every agent, see `benchctl.hosts.sent.agent.main`.

        ``ways`` opens the links to hosts of a fleet.
        """
        self._ways = ways
        self._on_connect = on_connect
        self._settings = settings
        self._local = LocalSpawner()
        self._lock = HostLock(settings.get("lock", NAME))
        """Of this machine."""
        self._opening: dict[Reach | None, asyncio.Future[HostLink]] = {}
        """By how they are reached: two names of a profile may be one host."""
        self._turns = asyncio.Semaphore(LOGINS)
        self._hurries = False

    async def __aenter__(self) -> Hosts:
        await self._local.__aenter__()
        if (owner := asyncio.current_task()) is not None:
            self._watching = asyncio.ensure_future(self._watch(owner))
        return self

    async def _watch(self, owner: asyncio.Task[Any]) -> None:
        """Hurry as soon as the task that needs the hosts is cancelled, and give up at a second."""
        while not owner.cancelling():
            await asyncio.sleep(_LOOK_S)
        self.hurry()
        while interrupts() < 2:
            await asyncio.sleep(_LOOK_S)
        for link in self._links():
            link.abandon()

    async def __aexit__(self, *exception: object) -> None:
        await cancel(self._watching)
        if isinstance(exception[1], asyncio.CancelledError):
            self.hurry()
        for opening in self._opening.values():
            opening.cancel()  # no effect on a connection that is open
        opened = await asyncio.gather(*self._opening.values(), return_exceptions=True)
        await asyncio.gather(
            *(link.close() for link in opened if not isinstance(link, BaseException))
        )
        self._lock.give_back()
        await self._local.__aexit__(*exception)

    async def connect(self, hosts: Iterable[Host]) -> list[Host]:
        """Open all connections that are missing; returns the hosts that are there."""
        wanted = list(hosts)
        remote = [host for host in wanted if host.reach]
        found = await asyncio.gather(*map(self.link, remote), return_exceptions=True)
        for error in found:
            if isinstance(error, BaseException) and not isinstance(error, HostError):
                raise error
        return [host for host in wanted if self.away(host) is None]

    def away(self, host: Host) -> BaseException | None:
        """Return why a remote host was not reached when that was last tried; None if it was."""
        opening = self._opening.get(host.reach) if host.reach else None
        if opening is None or not opening.done() or opening.exception():
            return opening.exception() if opening is not None and opening.done() else None
        return HostError(why) if (why := opening.result().away) else None

    def is_connected(self, host: Host) -> bool:
        """Return whether a remote host has a connection that works, as far as is known."""
        link = self._opened(host)
        return link is not None and not link.lost and not link.away

    async def link(self, host: Host) -> HostLink:
        """Return the connection to a remote host, opened if there is none. Raises HostError."""
        opening = self._opening.get(host.reach)
        if opening is None or (opening.done() and (opening.exception() or opening.result().lost)):
            if self._hurries:
                raise HostError(f"host {host.name}: it is not connected again, to end soon")
            opening = self._opening[host.reach] = asyncio.ensure_future(self._open(host))
        return await asyncio.shield(opening)  # others may wait for it, too

    async def _open(self, host: Host) -> HostLink:
        assert host.reach is not None
        link: HostLink
        if not isinstance(host.reach, FleetTarget):
            link = await self._login(host.name, host.reach)
        elif self._ways is not None:
            link = await self._ways.open(host.name, host.reach)
        else:
            what = f"host {host.name} is of a fleet, whose coordinator measures with it"
            raise HostError(what, "run the profile with --fleet FILE")
        try:
            await self._on_connect(host, link)
        except BaseException:
            await link.close()
            raise
        return link

    async def _login(self, name: str, reach: SshTarget) -> RemoteHost:
        link = link_to(name, reach, **self._settings)
        async with self._turns:
            try:
                await link.open()
            except NoPythonError as error:
                link = plain = ShellHost(name, reach, error.message, **self._settings)
                self._guard(plain.folder, link)
                await link.open()
        self._guard(link.pid, link)
        return link

    def _guard(self, left: int | str, link: RemoteHost) -> None:
        self._local.guard(left)
        link.ended.add_done_callback(lambda _: self._local.forget(left))

    async def lock(self, host: Host, run: str) -> str:
        """Take a host for a run; returns who has it, empty if it is taken. Raises HostError.

        This machine is shared with other runs that start on it.
        """
        if host.reach is None:
            return visible(self._lock.take(holder(run), shared=True))
        return await (await self.link(host)).lock(run)

    def unlock(self, host: Host) -> None:
        """Leave a host to other runs."""
        if host.reach is None:
            self._lock.give_back()
        elif link := self._opened(host):
            link.unlock()

    async def start(
        self, host: Host, argv: Sequence[str], env: Mapping[str, str], on_data: OnData
    ) -> Process:
        if host.reach is None:
            return await self._local.start(host, argv, env, on_data)
        try:
            link = await self.link(host)
            return await link.start(argv, env, on_data, as_root=host.as_root)
        except HostError as error:  # as a command that cannot be started
            raise ConnectionError(0, error.message) from None

    async def clock_of(self, host: Host) -> HostClock:
        return OURS if host.reach is None else await (await self.link(host)).timed()

    def forget_clocks(self) -> None:
        for link in self._links():
            link.forget_clock()

    async def ask(self, host: Host, module: ModuleType, function: str, *arguments: Any) -> Any:
        if host.reach is None:
            return await self._local.ask(host, module, function, *arguments)
        return await (await self.link(host)).ask(module, function, *arguments)

    def lost(self, host: Host) -> asyncio.Future[str]:
        link = self._opened(host)
        return self._local.lost(host) if link is None else link.ended

    async def why_lost(self, host: Host) -> str:
        link = self._opened(host)
        return "" if link is None else await link.why_lost()

    def hurry(self) -> None:
        self._hurries = True
        for link in self._links():
            link.hurry()

    def own_ports(self) -> Collection[PortPair]:
        return frozenset[PortPair]().union(*(link.ports for link in self._links() if not link.lost))

    def _links(self) -> Iterator[HostLink]:
        return filter(None, map(_opened, self._opening.values()))

    def _opened(self, host: Host) -> HostLink | None:
        return _opened(self._opening.get(host.reach))


def _opened(opening: asyncio.Future[HostLink] | None) -> HostLink | None:
    if opening is None or not opening.done() or opening.exception():
        return None
    return opening.result()
