"""What is needed of the connection to a remote host, over SSH or in a fleet."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from types import ModuleType
from typing import Any, Protocol

from benchctl.hosts.clocks import HostClock
from benchctl.hosts.local.spawn import OnData, Process
from benchctl.hosts.sent.filter import PortPair
from benchctl.run.planned import FleetTarget, Reach


class HostLink(Protocol):
    """A connection to one remote host; opened by whoever makes it."""

    name: str
    clock: HostClock
    ended: asyncio.Future[str]
    """Done when the connection has broken, with the reason."""

    @property
    def reach(self) -> Reach:
        """How the host is reached."""

    @property
    def lost(self) -> str:
        """Why the connection has broken; empty while it works."""

    @property
    def away(self) -> str:
        """Why nothing new can start there now, although it may come back; empty if it can."""

    @property
    def closes(self) -> bool:
        """Whether it ends because it is needed no more."""

    @property
    def missing_features(self) -> str:
        """What cannot be done there that an agent can do, for people; empty for an agent."""

    @property
    def ports(self) -> frozenset[PortPair]:
        """Those of the TCP connections that it goes over."""

    async def start(
        self, argv: Sequence[str], env: Mapping[str, str], on_data: OnData, *, as_root: bool = False
    ) -> Process:
        """Start a command up to its gate. Raises HostError."""

    async def check_room(self, commands: int) -> None:
        """Raise HostError if so many commands cannot run at once."""

    async def ask(self, module: ModuleType, function: str, *arguments: Any) -> Any:
        """Call a function of a stand-alone module there. Raises HostError."""

    async def lock(self, run: str) -> str:
        """Take the host for a run; returns who has it, empty if it is taken. Raises HostError."""

    def unlock(self) -> None:
        """Leave the host to other runs."""

    async def why_lost(self) -> str:
        """Return why the connection has broken; empty if the host answers what is sent now."""

    def forget_clock(self) -> None:
        """Time its clock anew."""

    async def timed(self) -> HostClock:
        """Return its clock, once it is known well. Raises HostError."""

    def hurry(self) -> None:
        """Wait for nothing any longer than for a tool."""

    def abandon(self) -> None:
        """Give it up at once."""

    async def close(self) -> None:
        """End it, and what it started."""


class FleetWays(Protocol):
    """Opens the links to the hosts of a fleet."""

    async def open(self, name: str, reach: FleetTarget) -> HostLink:
        """Return a link to a host. Raises HostError if it is away."""
