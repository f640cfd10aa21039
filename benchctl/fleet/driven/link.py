"""One run's link to a host of a fleet, in the place of a connection by SSH.

It is lost only when its host was not heard of for very long: until then a trial that runs there
goes on, and waits for its events.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Coroutine, Mapping, Sequence
from contextlib import suppress
from types import ModuleType
from typing import Any

from benchctl.engine.trial.ends import EndListener, EndPlace, EndSpec
from benchctl.errors import HostError
from benchctl.fleet.driven.arrivals import Arrivals
from benchctl.fleet.driven.end import EndEvents, FleetEnd, first_of
from benchctl.fleet.driven.host import HINT, PING_S, PREPARED_S, DrivenHost
from benchctl.fleet.host_messages import AbortEnds, ToHost
from benchctl.fleet.messages import AskHost, Done, EndRef
from benchctl.hosts.clocks import HostClock
from benchctl.hosts.local.spawn import STOP_GRACE_S, OnData, Process
from benchctl.hosts.sent.filter import PortPair
from benchctl.hosts.sent.messages import check_answer
from benchctl.hosts.ssh.remote import holder
from benchctl.hosts.tasks import cancel
from benchctl.run.planned import FleetTarget, Reach


class FleetLink:
    """One run's link to a host; see `benchctl.hosts.link.HostLink`."""

    missing_features = ""
    ports: frozenset[PortPair] = frozenset()

    def __init__(
        self,
        name: str,
        reach: FleetTarget,
        state: DrivenHost,
        fleet: EndEvents,
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
        # After a stop of this process, what was said meanwhile is read first: then nobody is away.
        while self.state.silent_s <= self._host_wait_s or not self.away:
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
        if self.lost:
            raise HostError(self.lost)
        self._run = run
        return await self.state.hold.take(run, holder(run))

    def unlock(self) -> None:
        self.state.hold.leave(self._run)

    def _tell(self, telling: Coroutine[Any, Any, None]) -> asyncio.Task[None]:
        task = asyncio.ensure_future(telling)
        self._telling.add(task)
        task.add_done_callback(self._telling.discard)
        return task

    async def _send_if_there(self, message: ToHost) -> None:
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
            await first_of(self.ended, self.state.is_timed.wait(), asyncio.sleep(PING_S))

    def hurry(self) -> None:
        self.hurries.set()

    def abandon(self) -> None:
        self._break(f"host {self.name} is not waited for any more")

    async def close(self) -> None:
        self.closes = True
        await cancel(self._watching)
        if self._ends and not self.lost and not self.away:
            await self._send_if_there(AbortEnds([end.ref for end in self._ends]))
        self._tell(self.state.hold.give_back(self._run))
        if self._telling:  # it leaves and ends by itself what nobody asks for
            await asyncio.wait(self._telling, timeout=STOP_GRACE_S)
            await cancel(*self._telling)
        self._break("the connection was closed")

    # --- ends -------------------------------------------------------------------------------

    def abort(self, ref: EndRef) -> None:
        task = self._tell(self._aborted(ref))
        self._aborting.add(task)
        task.add_done_callback(self._aborting.discard)

    async def cleared(self) -> None:
        while self._aborting and not self.away and not self.lost:
            await asyncio.wait(self._aborting, timeout=PING_S)

    def end(self, place: EndPlace, flow: str, spec: EndSpec, listener: EndListener) -> FleetEnd:
        """Return an end of a flow there, which is still to be prepared."""
        ref = EndRef(place.run, place.trial, place.attempt, flow, str(spec.role))
        return FleetEnd(self, ref, spec, listener, adopts=place.adopts)

    def enter(self, end: FleetEnd) -> None:
        known = 0 if end.adopts else self.fleet.known(self.state.name, end.ref)
        self._ends.add(end)
        self.state.ends[end.ref] = Arrivals(known), end
        if end.adopts:
            self.fleet.adopting(self.state.name, end.ref)

    def leave(self, end: FleetEnd) -> None:
        self._ends.discard(end)
        self.state.ends.pop(end.ref, None)
