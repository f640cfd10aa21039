"""The end of a flow on a host of a fleet: asked of its agent, and heard in the host's streams."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Coroutine, Mapping, Sequence
from contextlib import suppress
from typing import Any, Protocol

from benchctl.api import Failure, FailureKind, Ready, Role
from benchctl.engine.trial.ends import EndListener, EndSpec, by_our_clock
from benchctl.errors import HostError
from benchctl.fleet.driven.host import PING_S, DrivenHost, RefusedError
from benchctl.fleet.host_messages import (
    AbortEnds,
    EndOver,
    GoingEnd,
    HeardEvent,
    OfEnd,
    PreparedAt,
    PreparedEnd,
    StopEnds,
    ToHost,
)
from benchctl.fleet.messages import EndRef
from benchctl.hosts.clocks import HostClock
from benchctl.hosts.local.spawn import STOP_GRACE_S
from benchctl.hosts.tasks import cancel
from benchctl.visible import visible

# A host ends what was stopped in its grace, and the last events pass its spool and the stream.
_REPORT_S = STOP_GRACE_S + 8.0
# As the exit code of an end that was lost with its agent.
_LOST = 255


class EndEvents(Protocol):
    """What a coordinator does about the messages of ends."""

    known: Callable[[str, EndRef], int]
    """The number of the last message of an end of a host that is in the store; 0 for none."""
    adopting: Callable[[str, EndRef], None]
    """Called when an end is heard that was started before."""
    taking: Callable[[str, OfEnd], None]
    """Called with the name of a host before a message of an end there is taken."""
    taken: Callable[[str, OfEnd], None]
    """Called when its events have gone to who writes them."""


class FleetEndLink(Protocol):
    """What an end needs of the link to its host."""

    name: str
    state: DrivenHost
    fleet: EndEvents
    clock: HostClock
    lost: str
    ended: asyncio.Future[str]

    @property
    def away(self) -> str:
        """Why nothing new starts there now; empty if it is there."""

    def enter(self, end: FleetEnd) -> None:
        """Hear the messages of an end from now on."""

    def leave(self, end: FleetEnd) -> None:
        """Hear no more of it: what comes now is late."""

    def abort(self, ref: EndRef) -> None:
        """Kill an end, without a wait; the next one there waits for that."""

    async def cleared(self) -> None:
        """Wait until the host has ended what it was to kill; not for one that is away."""


class FleetEnd:
    """One end of a flow on a host of a fleet; see `benchctl.engine.trial.ends.FlowEnd`."""

    def __init__(
        self,
        link: FleetEndLink,
        ref: EndRef,
        spec: EndSpec,
        listener: EndListener,
        *,
        adopts: bool = False,
    ) -> None:
        """``adopts`` is set for an end that was started before, by another coordinator."""
        self.adopts = adopts
        self.ref = ref
        self._link, self._spec, self._listener = link, spec, listener
        self._at: PreparedAt | None = None
        self._is_ready = self._was_let_go = False
        self._over = asyncio.Event()
        self._given_up = asyncio.Event()
        self._code: int | None = None
        self.exit_code: int | None = None
        self.stderr = ""
        self._going: asyncio.Task[None] | None = None
        self._counters: Mapping[str, Any] | None = None

    @property
    def name(self) -> str:
        return visible(self._at.name) if self._at else self._spec.backend

    @property
    def runs(self) -> bool:
        return self._at is not None and self._at.is_up and self.exit_code is None

    @property
    def is_ready(self) -> bool:
        return self._is_ready

    @property
    def stays(self) -> bool:
        return self._at is not None and self._at.stays

    @property
    def lead_s(self) -> float:
        return self._link.state.lead_s

    @property
    def waits_for_host(self) -> bool:
        """Whether its host is away, and may still bring what it measured."""
        return self.runs and not self._over.is_set() and bool(self._link.away)

    async def prepare(self) -> None:
        link = self._link
        link.enter(self)
        if self.adopts:
            self._at = PreparedAt(self.ref, is_up=True)
            self._is_ready = self._was_let_go = True
            return
        try:
            await link.cleared()
            found = await link.state.prepares.add(PreparedEnd(self.ref, self._spec))
        except asyncio.CancelledError:
            link.abort(self.ref)
            link.leave(self)
            raise
        except HostError as error:
            link.abort(self.ref)
            link.leave(self)
            # Of a plan that the host refuses, another attempt makes no sense.
            is_refused = isinstance(error, RefusedError)
            kind = FailureKind.REFUSED if is_refused else FailureKind.PEER
            self._fail(kind, error.message, error.hint)
            return
        self._at = at = found.get(self.ref, PreparedAt(self.ref, is_up=False))
        self._is_ready = at.is_ready
        self._counters = at.counters
        if at.shown:
            self._listener.show(self._role, tuple(map(visible, at.shown)))
        if not at.is_up:
            # It says why, by an event.
            with suppress(TimeoutError):
                await asyncio.wait_for(self._over.wait(), _REPORT_S)
            self._fail(FailureKind.TOOL, f"{self._role} of {self._spec.backend} did not start")
            link.leave(self)

    @property
    def _role(self) -> Role:
        return self._spec.role

    def _fail(self, kind: FailureKind, text: str, hint: str = "") -> None:
        self._listener.take(self._role, Failure(kind, text, hint), None)

    async def go(self, at: float | None = None) -> None:
        if self.adopts:
            return
        self._was_let_go = True
        clock = self._link.clock
        if at is None:  # it waits itself for a time that was prepared
            latest_s = self._spec.start_at_s or clock.theirs(time.time()) + PING_S
            going = GoingEnd(self.ref, 0.0, latest_s)
        else:
            there_s = max(0.0, clock.theirs(at))
            going = GoingEnd(self.ref, there_s, there_s)
        # Its start does not wait for the answer, which only a refusal needs.
        self._going = asyncio.ensure_future(self._go(going))

    async def _go(self, going: GoingEnd) -> None:
        try:
            await self._link.state.goes.add(going)
        except HostError as error:
            if not self._over.is_set():
                self._fail(FailureKind.PEER, error.message, error.hint)

    async def ended(self, timeout_s: float | None, unless: asyncio.Event | None = None) -> bool:
        waits = [asyncio.ensure_future(self._over.wait())]
        if unless is not None:
            waits.append(asyncio.ensure_future(unless.wait()))
        try:
            await asyncio.wait(waits, timeout=timeout_s, return_when=asyncio.FIRST_COMPLETED)
        finally:
            await cancel(*waits)
        return self._over.is_set()

    async def take_end(self) -> None:
        self.exit_code = self._code
        await self._leave()

    async def stop(self) -> None:
        message: ToHost = (
            StopEnds([self.ref])
            if self._was_let_go or self._role is Role.SERVER
            else AbortEnds([self.ref])
        )
        while not self._over.is_set() and not self._given_up.is_set():
            with suppress(HostError):
                await self._link.state.ask(message)
                if await self.ended(_REPORT_S, unless=self._given_up):
                    break
            if not self._link.away:
                break
            # What it measured is in its spool: its end is waited for, as long as its host is.
            await first_of(self._link.ended, self._link.state.back(), self._given_up.wait())
        if not self._over.is_set():
            self._link.abort(self.ref)
        await self.take_end()

    async def _leave(self) -> None:
        self._link.leave(self)
        if self._going is not None:
            await cancel(self._going)

    def kill(self) -> None:
        self._given_up.set()
        if self.runs and not self._link.away:
            self._link.abort(self.ref)

    def take_counters(self) -> Mapping[str, Any] | None:
        found, self._counters = self._counters, None
        return found

    def lose(self, why: str) -> None:
        """Wait for it no longer."""
        if not self._over.is_set():
            self._fail(FailureKind.PEER, why)
            self._code = _LOST
            self._over.set()

    # --- what it says -----------------------------------------------------------------------

    def hear(self, message: OfEnd) -> None:
        """Take the next message of the host."""
        self._link.fleet.taking(self._link.state.name, message)
        if message.events:
            self._hear_events(message.events)
        if isinstance(message, EndOver):
            self._hear_end(message)
        self._link.fleet.taken(self._link.state.name, message)

    def _hear_events(self, events: Sequence[HeardEvent]) -> None:
        clock = self._link.clock
        # Within a message, which is of a second, clocks drift apart by less than events wait.
        first_s = events[0].arrived_s
        behind_s = clock.ours(first_s) - first_s
        for heard in events:
            try:
                event = by_our_clock(heard.event, clock)
            except (ValueError, TypeError) as error:
                self._fail(FailureKind.TOOL, f"not understood: {visible(str(error))}")
                continue
            self._is_ready |= isinstance(event, Ready) and self._role is Role.SERVER
            self._listener.take(self._role, event, heard.arrived_s + behind_s)

    def _hear_end(self, over: EndOver) -> None:
        self._counters = over.counters
        self.stderr = over.stderr
        self._code = over.code
        if over.lost:
            self._fail(FailureKind.PEER, f"host {self._link.name}: {visible(over.lost)}")
        if over.dropped:
            self._fail(
                FailureKind.PEER,
                f"host {self._link.name}: its spool was full, and {over.dropped} events are lost",
                "its disk is full, or the fleet's coordinator was away for long",
            )
        if over.code is None:
            self._code = _LOST
        self._over.set()


async def first_of(future: asyncio.Future[str], *works: Coroutine[Any, Any, Any]) -> None:
    """Wait until a future is done, or the first of the others."""
    waits: list[asyncio.Future[Any]] = [*map(asyncio.ensure_future, works)]
    try:
        await asyncio.wait([future, *waits], return_when=asyncio.FIRST_COMPLETED)
    finally:
        await cancel(*waits)
