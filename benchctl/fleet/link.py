"""The coordinator's side of the hosts of a fleet: a link of each run to each, and ends over it.

`FleetHosts` opens links for `benchctl.hosts.hosts.Hosts`. A link is lost only when its host was not
heard of for very long: until then a trial that runs there goes on, and waits for its events.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Coroutine, Mapping, Sequence
from contextlib import suppress
from types import ModuleType
from typing import Any, Self

from benchctl.api import Failure, FailureKind, Ready, Role
from benchctl.engine.trial.ends import EndListener, EndPlace, EndSpec, by_our_clock
from benchctl.errors import HostError
from benchctl.fleet.arrivals import Arrivals
from benchctl.fleet.carrier.carrier import Carrier, Delivered, Subscription
from benchctl.fleet.carrier.streams import RESULTS, SAMPLES
from benchctl.fleet.driven_host import (
    HINT,
    PING_S,
    PREPARED_S,
    CoordinatorIdentity,
    DrivenHost,
    RefusedError,
)
from benchctl.fleet.host_messages import (
    AbortEnds,
    EndOver,
    GoingEnd,
    Heartbeat,
    Lock,
    Neighbours,
    OfEnd,
    OtherHeartbeat,
    PreparedAt,
    PreparedEnd,
    StopEnds,
    ToHost,
    Unlock,
)
from benchctl.fleet.messages import COORDINATOR, AskHost, Done, EndRef
from benchctl.fleet.presence import Standstill
from benchctl.fleet.trust.signing import UntrustedError, Verifier
from benchctl.hosts.clocks import HostClock
from benchctl.hosts.local.spawn import STOP_GRACE_S, OnData, Process
from benchctl.hosts.sent.filter import PortPair
from benchctl.hosts.sent.messages import check_answer
from benchctl.hosts.ssh.remote import holder
from benchctl.hosts.tasks import cancel
from benchctl.run.planned import FleetTarget, Reach
from benchctl.visible import visible

HOST_WAIT_S = 1800.0
"""So long a trial waits for a host that is away, if its profile does not say otherwise."""
# A host ends what was stopped in its grace, and the last events pass its spool and the stream.
_REPORT_S = STOP_GRACE_S + 8.0
# As the exit code of an end that was lost with its agent.
_LOST = 255

Known = Callable[[str, EndRef], int]
"""The number of the last message of an end of a host that is in the store; 0 for none."""


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
        known: Known = lambda _, __: 0,
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
            for one in (kind, *others):
                with suppress(UntrustedError):  # of an attacker: nothing of it is acted on
                    signed = verifier.open(delivered.data, None, one)
                    if delivered.subject.rpartition(".")[2] == signed.head.sender:
                        take(signed.head.sender, signed.message)
                    return

        return opened

    def _hear(self, name: str, beat: Heartbeat | OtherHeartbeat) -> None:
        state = self.hosts.get(name)
        if state is None:
            state = self.hosts[name] = DrivenHost(
                name, self._carrier, self._identity, self._standstill
            )
            self._tasks.append(asyncio.ensure_future(state.watch()))
        state.is_other = isinstance(beat, OtherHeartbeat)
        state.hear(beat.known if isinstance(beat, OtherHeartbeat) else beat, time.monotonic())
        if not state.is_other:
            self._introduce(state)

    def _look_at_neighbours(self) -> None:
        known = {one for each in self._addresses.values() for one in each}
        told = Neighbours(tuple(sorted(known)), self._identity.signed_keys())
        if told != self._neighbours:
            self._neighbours = told

    def _introduce(self, host: DrivenHost) -> None:
        """Tell a host the addresses of the others and new keys, if it does not know them."""
        beat = host.last
        assert beat is not None, "it was just heard of"
        if self._addresses.get(host.name, ()) != beat.addresses:
            self._addresses[host.name] = beat.addresses
            self._look_at_neighbours()
        told = self._neighbours
        nonce, last = self._introduced.get(host.name, ("", None))
        if nonce == beat.nonce and last is told:
            return
        self._introduced[host.name] = beat.nonce, told

        async def tell() -> None:
            try:
                await host.ask(told)
            except HostError:
                self._introduced.pop(host.name, None)  # with its next heartbeat

        task = asyncio.ensure_future(tell())
        self._telling.add(task)
        task.add_done_callback(self._telling.discard)

    def _take(self, name: str, message: OfEnd) -> None:
        state = self.hosts.get(name)
        if state is not None and state.take(message):
            return
        if message.number <= self.known(name, message.ref):
            self.committed(name, message)
        elif self._late is not None:
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


class FleetLink:
    """One run's link to a host; see `benchctl.hosts.link.HostLink`."""

    missing_features = ""
    ports: frozenset[PortPair] = frozenset()

    def __init__(
        self,
        name: str,
        reach: FleetTarget,
        state: DrivenHost,
        fleet: FleetHosts,
        host_wait_s: float,
    ) -> None:
        self._host_wait_s = host_wait_s
        self.name = name
        self._reach = reach
        self.state = state
        state.links += 1
        self.fleet = fleet
        self.clock: HostClock = state.clock
        self.lost = ""
        self.closes = False
        self.hurries = asyncio.Event()
        """Set when somebody wants to end."""
        self.ended: asyncio.Future[str] = asyncio.get_running_loop().create_future()
        self._run = ""
        self._ends: set[FleetEnd] = set()
        self._watching = asyncio.ensure_future(self._watch())
        self._telling: set[asyncio.Task[None]] = set()
        self._aborting: set[asyncio.Task[None]] = set()

    @property
    def reach(self) -> Reach:
        return self._reach

    @property
    def away(self) -> str:
        return self.state.away

    async def _watch(self) -> None:
        while self.state.silent_s <= self._host_wait_s:
            await asyncio.sleep(PING_S)
        self._break(f"{self.state.away}, so it is not waited for any longer")

    def _break(self, why: str) -> None:
        if not self.lost:
            self.lost = why
            self.state.links -= 1
            self.ended.set_result(why)
            for end in [*self._ends]:
                end.lose(why)

    # --- what the engine asks for -----------------------------------------------------------

    async def start(
        self, argv: Sequence[str], env: Mapping[str, str], on_data: OnData, *, as_root: bool = False
    ) -> Process:
        raise HostError(
            f"host {self.name} is of a fleet, and starts no commands",
            "measure with a backend; hooks and captures need ssh",
        )

    async def check_room(self, commands: int) -> None:
        """Return: an agent starts any number of ends."""

    async def _ask(self, message: ToHost) -> Any:
        if self.lost:
            raise HostError(self.lost)
        answer = await self.state.ask(message)
        if not isinstance(answer, Done):
            raise HostError(f"host {self.name} did not answer what it was asked")
        return answer.value

    async def ask(self, module: ModuleType, function: str, *arguments: Any) -> Any:
        name = f"{module.__name__.rpartition('.')[2]}.{function}"
        value = await self._ask(AskHost(name, list(arguments)))
        try:
            return check_answer(name, value)
        except (ValueError, KeyError) as error:
            raise HostError(f"host {self.name}: its answer is not allowed: {error}") from None

    async def lock(self, run: str) -> str:
        self._run = run
        return visible(str(await self._ask(Lock(run, holder(run))) or ""))

    def unlock(self) -> None:
        if self._run:
            self._tell(self._told(Unlock(self._run)))

    def _tell(self, telling: Coroutine[Any, Any, None]) -> asyncio.Task[None]:
        task = asyncio.ensure_future(telling)
        self._telling.add(task)
        task.add_done_callback(self._telling.discard)
        return task

    async def _told(self, message: ToHost) -> None:
        with suppress(HostError):  # it leaves and ends by itself what nobody asks for
            await self.state.ask(message)

    async def _aborted(self, ref: EndRef) -> None:
        """Say it until it is heard: an end that still runs is in the way of the next one."""
        while not self.lost:
            try:
                await self.state.request(AbortEnds([ref]))
                return
            except HostError:
                await asyncio.sleep(PING_S)

    async def why_lost(self) -> str:
        return self.lost

    def forget_clock(self) -> None:
        self.state.forget_clock()

    async def timed(self) -> HostClock:
        begun_s = time.monotonic()
        while True:
            for why in (self.lost, self.away):
                if why:
                    raise HostError(why, HINT)
            if self.state.is_timed.is_set():
                return self.clock
            if time.monotonic() - begun_s > PREPARED_S:
                raise HostError(f"host {self.name} is there, and answers nothing", HINT)
            await _first(self.ended, self.state.is_timed.wait(), asyncio.sleep(PING_S))

    def hurry(self) -> None:
        self.hurries.set()

    def abandon(self) -> None:
        self._break(f"host {self.name} is not waited for any more")

    async def close(self) -> None:
        self.closes = True
        await cancel(self._watching)
        if self._ends and not self.lost and not self.away:
            await self._told(AbortEnds([end.ref for end in self._ends]))
        self.unlock()
        if self._telling:  # it leaves and ends by itself what nobody asks for
            await asyncio.wait(self._telling, timeout=STOP_GRACE_S)
            await cancel(*self._telling)
        self._break("the connection was closed")

    # --- ends -------------------------------------------------------------------------------

    def abort(self, ref: EndRef) -> None:
        """Kill an end, without a wait; the next one there waits for that."""
        task = self._tell(self._aborted(ref))
        self._aborting.add(task)
        task.add_done_callback(self._aborting.discard)

    async def cleared(self) -> None:
        """Wait until the host has ended what it was to kill; not for one that is away."""
        while self._aborting and not self.away and not self.lost:
            await asyncio.wait(self._aborting, timeout=PING_S)

    def end(self, place: EndPlace, flow: str, spec: EndSpec, listener: EndListener) -> FleetEnd:
        """Return an end of a flow there, which is still to be prepared."""
        ref = EndRef(place.run, place.trial, place.attempt, flow, str(spec.role))
        return FleetEnd(self, ref, spec, listener, adopts=place.adopts)

    def enter(self, end: FleetEnd) -> None:
        """Hear the messages of an end from now on."""
        known = 0 if end.adopts else self.fleet.known(self.state.name, end.ref)
        self._ends.add(end)
        self.state.ends[end.ref] = Arrivals(known), end
        if end.adopts:
            self.fleet.adopting(self.state.name, end.ref)

    def leave(self, end: FleetEnd) -> None:
        """Hear no more of it: what comes now is late."""
        self._ends.discard(end)
        self.state.ends.pop(end.ref, None)


class FleetEnd:
    """One end of a flow on a host of a fleet; see `benchctl.engine.trial.ends.FlowEnd`."""

    def __init__(
        self,
        link: FleetLink,
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
            await _first(self._link.ended, self._link.state.back(), self._given_up.wait())
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
        if isinstance(message, EndOver):
            self._hear_end(message)
        else:
            clock = self._link.clock
            # Within a message, which is of a second, clocks drift apart by less than events wait.
            first_s = message.events[0].arrived_s if message.events else 0.0
            behind_s = clock.ours(first_s) - first_s
            for heard in message.events:
                try:
                    event = by_our_clock(heard.event, clock)
                except (ValueError, TypeError) as error:
                    self._fail(FailureKind.TOOL, f"not understood: {visible(str(error))}")
                    continue
                self._is_ready |= isinstance(event, Ready) and self._role is Role.SERVER
                self._listener.take(self._role, event, heard.arrived_s + behind_s)
        self._link.fleet.taken(self._link.state.name, message)

    def _hear_end(self, over: EndOver) -> None:
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


async def _first(future: asyncio.Future[str], *works: Coroutine[Any, Any, Any]) -> None:
    """Wait until a future is done, or the first of the others."""
    waits: list[asyncio.Future[Any]] = [*map(asyncio.ensure_future, works)]
    try:
        await asyncio.wait([future, *waits], return_when=asyncio.FIRST_COMPLETED)
    finally:
        await cancel(*waits)
