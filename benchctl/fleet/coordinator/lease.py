"""The lease that fences coordinators: only the one that holds it says anything to hosts.

The revision of the lease is the epoch of the coordinator's messages. Whoever takes it over has a
higher one, and hosts refuse lower ones from then on.
"""

from __future__ import annotations

import asyncio
import math
import os
import platform
from collections.abc import Awaitable, Callable

from benchctl.errors import FleetError
from benchctl.fleet.carrier.carrier import Carrier, LeaseError
from benchctl.fleet.carrier.streams import LEASE_LIFE_S

LEASE_KEY = "coordinator"
RENEW_S = 0.5
# Others see a lease as free after 2 s without a renewal.
_SURE_S = 1.5


class LostLeaseError(FleetError):
    """Another coordinator took over: this one has to end."""


class CoordinatorLease:
    """The lease of one coordinator. ``clock`` is monotonic, in seconds."""

    def __init__(
        self,
        carrier: Carrier,
        clock: Callable[[], float],
        sleep: Callable[[float], Awaitable[object]] = asyncio.sleep,
    ) -> None:
        self._carrier, self._clock, self._sleep = carrier, clock, sleep
        self._value = f"{platform.node()}:{os.getpid()}".encode()
        self.epoch = 0
        """Its revision; grows with each renewal."""
        self._renewed = -_SURE_S

    @property
    def is_sure(self) -> bool:
        """Whether nobody else can have taken it over."""
        return self._clock() - self._renewed < _SURE_S

    async def take(self, *, wait: bool, say: Callable[[str], object]) -> None:
        """Take the lease; waits for another coordinator to end. Raises FleetError without it."""
        said = ""
        while True:
            began = self._clock()
            try:
                self.epoch = await self._carrier.lease(LEASE_KEY, self._value, 0)
            except LeaseError:
                text = "another coordinator of this fleet runs"
                if not wait:
                    raise FleetError(text, "stop it first; or leave out --no-wait") from None
                why = f"{text}; this one takes over when it ends"
            except ConnectionError:
                why = "the server cannot be reached; trying again"
            else:
                self._renewed = began
                return
            if why != said:
                say(why)
                said = why
            await self._sleep(RENEW_S)

    async def keep(self) -> None:
        """Renew the lease for ever. Raises LostLeaseError when another coordinator has it.

        A lease that ended meanwhile, and that nobody took, is taken again with a higher epoch. A
        renewal without an answer may have come: its revision is not known here, and it ends first.
        """
        unknown_until = -math.inf
        while True:
            await self._sleep(RENEW_S)
            began = self._clock()
            try:
                self.epoch = await self._renewal()
            except LeaseError:
                if self._clock() > unknown_until:
                    raise LostLeaseError("another coordinator has taken over this fleet") from None
            except ConnectionError:
                unknown_until = self._clock() + LEASE_LIFE_S + 2 * RENEW_S
            else:
                self._renewed = began

    async def _renewal(self) -> int:
        try:
            return await self._carrier.lease(LEASE_KEY, self._value, self.epoch)
        except LeaseError:
            return await self._carrier.lease(LEASE_KEY, self._value, 0)
