"""The hosts of a fleet as its coordinator drives them: heard, introduced, and linked to runs.

`FleetHosts` opens links for `benchctl.hosts.hosts.Hosts`.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Coroutine
from contextlib import suppress
from functools import partial
from typing import Any, Self

from benchctl.errors import HostError
from benchctl.fleet.carrier.carrier import Carrier, Delivered, Subscription
from benchctl.fleet.carrier.streams import RESULTS, SAMPLES
from benchctl.fleet.driven.host import HINT, PING_S, CoordinatorIdentity, DrivenHost
from benchctl.fleet.driven.link import FleetLink
from benchctl.fleet.driven.presence import Standstill
from benchctl.fleet.host_messages import Heartbeat, Neighbours, OfEnd, OtherHeartbeat
from benchctl.fleet.messages import COORDINATOR, EndRef
from benchctl.fleet.trust.signing import UntrustedError, Verifier
from benchctl.hosts.tasks import cancel
from benchctl.run.planned import FleetTarget

HOST_WAIT_S = 1800.0
"""So long a trial waits for a host that is away, if its profile does not say otherwise."""


class FleetHosts:
    """The hosts of a fleet, as its coordinator sees them; use as an async context manager.

    ``known`` says what was stored before. ``taken`` is called with each message of an end when its
    events have gone to who writes them, with its host; whoever writes then calls `committed`.
    ``taking`` is called before, and ``adopting`` when an end is heard that was started before.
    ``late`` gets the messages of ends that nobody waits for any more.
    """

    def __init__(
        self,
        carrier: Carrier,
        identity: CoordinatorIdentity,
        *,
        known: Callable[[str, EndRef], int] = lambda _, __: 0,
        taking: Callable[[str, OfEnd], None] = lambda _, __: None,
        adopting: Callable[[str, EndRef], None] = lambda _, __: None,
        taken: Callable[[str, OfEnd], None] | None = None,
        late: Callable[[str, OfEnd], None] | None = None,
    ) -> None:
        self._carrier, self._identity = carrier, identity
        self.known, self._late = known, late
        self.taking, self.adopting = taking, adopting
        self.taken = taken or (lambda host, message: self.committed(host, message))
        self.hosts: dict[str, DrivenHost] = {}
        """Those that were heard of."""
        self.since_s = 0.0
        """From when on their streams are heard, by the server's clock."""
        self._neighbours = Neighbours(())
        self._addresses: dict[str, tuple[str, ...]] = {}
        self._introduced: dict[str, tuple[str, Neighbours]] = {}
        """The start of each host that was told of the others, and what."""
        self._telling: set[asyncio.Task[None]] = set()
        self._standstill = Standstill(time.monotonic())
        self._subscriptions: list[Subscription] = []
        self._tasks: list[asyncio.Task[None]] = []

    async def __aenter__(self) -> Self:
        carrier = self._carrier
        self._tasks.append(asyncio.ensure_future(self._tick()))
        self._subscriptions = [
            await carrier.listen("bench.hb.*", self._opener(Heartbeat, self._hear, OtherHeartbeat)),
            *[
                await carrier.follow(
                    stream.subject, 0, self._opener(OfEnd, self._take, repeats=True), self.since_s
                )
                for stream in (SAMPLES, RESULTS)
            ],
        ]
        return self

    async def __aexit__(self, *_: object) -> None:
        for subscription in self._subscriptions:
            await subscription.close()
        await cancel(*self._tasks, *self._telling)

    async def _tick(self) -> None:
        while True:
            self._standstill.tick(time.monotonic())
            self._look_at_neighbours()
            await asyncio.sleep(PING_S)

    def _opener(
        self, kind: Any, take: Callable[[str, Any], None], *others: Any, repeats: bool = False
    ) -> Callable[[Delivered], Coroutine[Any, Any, None]]:
        """``others`` are what is understood of messages of other versions."""
        identity = self._identity
        verifier = Verifier(identity.fleet, COORDINATOR, identity.keys, "host", repeats=repeats)

        async def opened(delivered: Delivered) -> None:
            for message_kind in (kind, *others):
                with suppress(UntrustedError):  # of an attacker: nothing of it is acted on
                    signed = verifier.open(delivered.data, None, message_kind)
                    if delivered.subject.rpartition(".")[2] == signed.head.sender:
                        take(signed.head.sender, signed.message)
                    return

        return opened

    def _hear(self, name: str, beat: Heartbeat | OtherHeartbeat) -> None:
        state = self.hosts.get(name)
        if state is None:
            state = self.hosts[name] = DrivenHost(
                name, self._carrier, self._identity, self._standstill, partial(self._hear, name)
            )
            self._tasks.append(asyncio.ensure_future(state.watch()))
        state.is_other = isinstance(beat, OtherHeartbeat)
        state.hear(beat.known if isinstance(beat, OtherHeartbeat) else beat, time.monotonic())
        if not state.is_other:
            self._introduce(state)

    def _look_at_neighbours(self) -> None:
        known = {address for addresses in self._addresses.values() for address in addresses}
        neighbours = Neighbours(tuple(sorted(known)), self._identity.signed_keys())
        if neighbours != self._neighbours:
            self._neighbours = neighbours

    def _introduce(self, host: DrivenHost) -> None:
        """Tell a host the addresses of the others and new keys, if it does not know them."""
        beat = host.last
        assert beat is not None, "it was just heard of"
        if self._addresses.get(host.name, ()) != beat.addresses:
            self._addresses[host.name] = beat.addresses
            self._look_at_neighbours()
        neighbours = self._neighbours
        nonce, last = self._introduced.get(host.name, ("", None))
        if nonce == beat.nonce and last is neighbours:
            return
        self._introduced[host.name] = beat.nonce, neighbours

        async def tell() -> None:
            try:
                await host.ask(neighbours)
            except HostError:
                self._introduced.pop(host.name, None)  # with its next heartbeat

        task = asyncio.ensure_future(tell())
        self._telling.add(task)
        task.add_done_callback(self._telling.discard)

    def _take(self, name: str, message: OfEnd) -> None:
        state = self.hosts.get(name)
        if state is not None and state.take(message):
            return
        if self._late is not None:
            self._late(name, message)
        else:
            self.committed(name, message)

    def committed(self, name: str, message: OfEnd) -> None:
        """Note that a message and those before it are in the store for good."""
        if state := self.hosts.get(name):
            state.commit(message.ref, message.number)

    async def open(
        self, name: str, reach: FleetTarget, host_wait_s: float = HOST_WAIT_S
    ) -> FleetLink:
        """Return a new link to a host, lost when that is away so long. Raises HostError."""
        state = self.hosts.get(reach.name)
        if state is None:
            raise HostError(f"host {name} was not heard of yet", HINT)
        if state.away:
            raise HostError(state.away, HINT)
        return FleetLink(name, reach, state, self, host_wait_s)


class RunWays:
    """Opens the links of one run, whose trials wait so long for a host that is away."""

    def __init__(self, fleet: FleetHosts, host_wait_s: float) -> None:
        self._fleet, self._host_wait_s = fleet, host_wait_s

    async def open(self, name: str, reach: FleetTarget) -> FleetLink:
        """Return a new link to a host. Raises HostError if it is away."""
        return await self._fleet.open(name, reach, self._host_wait_s)
