"""The program of an agent that stays: it listens to the coordinator, and carries out its plans.

`benchctl.fleet.resident.states` decides, this does. Nothing from outside becomes a command here:
an end is run by the backend that is installed here, within the limits of the host's owner.
"""

from __future__ import annotations

import asyncio
import logging
import secrets
import time
from collections import deque
from collections.abc import Awaitable, Callable, Collection, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

from msgspec import Struct

import benchctl
from benchctl.api import Role
from benchctl.backends import Registry, installed
from benchctl.engine.checks.tools import Toolbox
from benchctl.errors import FleetError, MissingError
from benchctl.fleet.carrier.carrier import Carrier, Delivered
from benchctl.fleet.host_messages import (
    Heartbeat,
    JudgeEnds,
    Neighbours,
    OfEnd,
    OfHost,
    Prepare,
    PreparedEnd,
    ToHost,
)
from benchctl.fleet.limits import (
    Limits,
)
from benchctl.fleet.messages import COORDINATOR, AskHost, Done, EndRef, Refused, answered
from benchctl.fleet.resident.addresses import addresses_of, resolved
from benchctl.fleet.resident.day import DayBytes
from benchctl.fleet.resident.ends import HostEnd
from benchctl.fleet.resident.outgoing import RETRY_S, Outgoing
from benchctl.fleet.resident.permits import HostPermits
from benchctl.fleet.resident.states import (
    Effect,
    EndEnd,
    Forget,
    LetGo,
    Reply,
    StartEnd,
    States,
    Tell,
)
from benchctl.fleet.spool import Spool
from benchctl.fleet.trust.keys import SigningKey
from benchctl.fleet.trust.signing import Keys, Signer, UntrustedError, Verifier
from benchctl.hosts.local.spawn import LocalSpawner
from benchctl.hosts.sent import counters, facts, ports
from benchctl.hosts.sent.hostlock import NAME, HostLock
from benchctl.hosts.sent.messages import check_answer
from benchctl.hosts.tasks import cancel
from benchctl.run.planned import LOCAL

HEARTBEAT_S = 1.0
# Whoever was asked within this time how it is says it unasked only later.
ASKED_S = 2.5
# Of the coordinator's clock, from when its messages were signed: the quickest of the last ones.
_CLOCK_TRIPS = 30
_log = logging.getLogger(__name__)


class Identity(Struct, frozen=True):
    """Who an agent is: its name and key in a fleet, whose messages it takes, how often it began.

    ``addresses`` are those at which others reach it. ``take_keys`` takes a newer set of the
    coordinator's keys; it raises UntrustedError for one that the root key has not signed.
    """

    fleet: str
    name: str
    key: SigningKey
    keys: Keys
    starts: int
    addresses: tuple[str, ...] = ()
    take_keys: Callable[[bytes], None] = lambda _: None


class CoordinatorClock:
    """What is known of the coordinator's clock here, from when its messages were issued. Pure.

    A message that took no time shows it exactly; the others show less.
    """

    def __init__(self) -> None:
        self._ahead: deque[float] = deque(maxlen=_CLOCK_TRIPS)

    def has_expired(self, issued_s: float, expires_s: float, now_s: float) -> bool:
        """Return whether a message has expired that came at a time of our monotonic clock."""
        self._ahead.append(issued_s - now_s)
        return now_s + max(self._ahead) > expires_s


class HostAgent:
    """The agent of one host; `run` serves until it is cancelled."""

    def __init__(
        self,
        identity: Identity,
        carrier: Carrier,
        spool: Spool,
        limits: Limits,
        folder: Path,
        *,
        registry: Registry | None = None,
        lock: str = NAME,
        resolve: Callable[[str], Awaitable[Collection[str]]] | None = None,
    ) -> None:
        """``folder`` keeps what it sent on this day; ``lock`` is the name of the host's lock."""
        self._identity, self._carrier, self._spool = identity, carrier, spool
        self._limits = limits
        self._registry = registry or installed()
        self._permits = HostPermits(
            identity.name, self._registry, limits, DayBytes(folder / "day.json"),
            resolve or addresses_of,
        )  # fmt: skip
        self._outgoing = Outgoing(identity.name, carrier, spool, self._sealed)
        self.nonce = secrets.token_hex(16)
        self._signer = Signer(identity.key, identity.fleet, identity.name)
        self._verifier = Verifier(
            identity.fleet, identity.name, identity.keys, "coordinator", nonce=self.nonce
        )
        self._clock = CoordinatorClock()
        self._lock = HostLock(lock)
        self._states = States(self._refusal, self._lock.take, self._lock.give_back)
        self._spawner = LocalSpawner()
        self._toolbox = Toolbox(self._spawner)
        self._ends: dict[EndRef, HostEnd] = {}
        self._replies: dict[int, Delivered] = {}
        """The messages that are not answered yet."""
        self._turn = 0
        self._told_s = 0.0
        """When the coordinator was last told how this host is, because it asked."""
        self._tasks: set[asyncio.Task[Any]] = set()

    # --- from start to end ------------------------------------------------------------------

    async def run(self) -> None:
        """Serve the coordinator until cancelled; then all that runs here is ended."""
        async with self._spawner:
            self._states.recent.extend(self._outgoing.take_up())
            subject = f"bench.run.{self._identity.name}"
            while True:
                try:
                    subscription = await self._carrier.listen(subject, self._take)
                    break
                except ConnectionError:
                    await asyncio.sleep(RETRY_S)
            tasks = [*map(asyncio.ensure_future, (self._beat(), *self._outgoing.loops()))]
            try:
                await asyncio.gather(*tasks)
            finally:
                await subscription.close()
                for end in self._ends.values():
                    end.stop(kill=True)
                await cancel(*tasks, *self._tasks)
                self._lock.give_back()

    def _do_later(self, work: Awaitable[None]) -> None:
        task = asyncio.ensure_future(work)
        self._tasks.add(task)
        task.add_done_callback(self._done)

    def _done(self, task: asyncio.Task[None]) -> None:
        self._tasks.discard(task)
        if not task.cancelled() and (error := task.exception()):
            _log.error("%s: %s", type(error).__name__, error, exc_info=error)

    # --- what the coordinator says ------------------------------------------------------------

    async def _take(self, delivered: Delivered) -> None:
        """Take a message of `bench.run`. What is not trusted gets no answer."""
        now_s = time.monotonic()
        try:
            signed = self._verifier.open(delivered.data, None, ToHost)
        except UntrustedError:
            return
        head = signed.head
        if self._clock.has_expired(head.issued_s, head.expires_s, now_s):
            return
        self._turn += 1
        number = self._turn
        self._replies[number] = delivered
        match signed.message:
            case Prepare() as message:
                self._do_later(self._look_up(number, message))
            case Neighbours() as message:
                await self._reply(number, self._meet(message))
            case JudgeEnds() as message:
                self._do_later(self._judge(number, message))
            case AskHost() as message:
                self._do_later(self._answer(number, message))
            case message:
                await self._do(self._states.message(number, message, time.time()))

    def _meet(self, message: Neighbours) -> OfHost:
        self._permits.fleet_addresses = message.addresses
        try:
            if message.keys:
                self._identity.take_keys(message.keys)
        except (UntrustedError, FleetError) as error:
            return Refused(str(error))
        return Done()

    async def _judge(self, number: int, message: JudgeEnds) -> None:
        """Say what would be refused, and start nothing."""
        said = []
        for end in message.ends:
            targets = await self._permits.targets(end.spec)
            said.append(self._why_full() or self._permits.why_not(end.ref, end.spec, targets))
        await self._reply(number, Done(said))

    async def _look_up(self, number: int, message: Prepare) -> None:
        """Resolve the addresses of a plan, once: what is judged is what is used."""
        found = {end.ref: await self._permits.targets(end.spec) for end in message.ends}
        ends = [PreparedEnd(end.ref, resolved(end.spec, found[end.ref])) for end in message.ends]
        self._permits.consider(found)
        effects = self._states.message(number, Prepare(ends), time.time())
        if not any(isinstance(effect, StartEnd) for effect in effects):
            self._permits.take_back()
        await self._do(effects)

    async def _do(self, effects: Sequence[Effect]) -> None:
        for effect in effects:
            match effect:
                case Reply(to, answer):
                    await self._reply(to, answer)
                case StartEnd(prepared):
                    self._begin(prepared)
                case LetGo(ref, at_s):
                    self._do_later(self._ends[ref].go(at_s))
                case EndEnd(ref, kill):
                    self._ends[ref].stop(kill=kill)
                case Forget(committed):
                    runs = committed.ref in self._ends
                    self._outgoing.forget(committed.ref, committed.number, runs=runs)
                case Tell(to):
                    self._told_s = time.monotonic()
                    await self._reply(to, self._heartbeat())

    async def _reply(self, number: int, answer: OfHost) -> None:
        delivered = self._replies.pop(number)
        if delivered.reply is not None:
            with suppress(ConnectionError):  # the coordinator asks again, or aborts
                await delivered.reply(self._sealed(answer, answered(delivered.data)))

    # --- ends -------------------------------------------------------------------------------

    def _why_full(self) -> str:
        why = self._spool.why_full
        return f"host {self._identity.name}: {why}" if why else ""

    def _refusal(self, prepared: PreparedEnd) -> str:
        return self._why_full() or self._permits.refusal(prepared)

    def _begin(self, prepared: PreparedEnd) -> None:
        self._permits.begin(prepared.ref)
        outbox = self._outgoing.outbox(prepared.ref)
        end = self._ends[prepared.ref] = HostEnd(prepared, self._spawner, outbox)
        self._do_later(self._run_end(end))

    async def _run_end(self, end: HostEnd) -> None:
        try:
            at = await end.prepare(self._registry, self._toolbox)
            await self._do(self._states.up(at, time.time()))
            await end.run_to_end()
        except Exception as error:  # of a system that nobody has seen yet
            end.give_up(f"{type(error).__name__}: {error}")
            raise
        finally:
            del self._ends[end.ref]
            self._permits.end(end.ref)
            self._states.over(end.ref)
            await self._do(self._states.due(time.time()))

    # --- what it says of itself -------------------------------------------------------------

    def _sealed(self, message: OfEnd | OfHost, nonce: str = "") -> bytes:
        return self._signer.seal(
            message, COORDINATOR, epoch=self._identity.starts, nonce=nonce, now_s=time.time()
        )

    async def _beat(self) -> None:
        """Say each second how this host is, and do what is due."""
        subject = f"bench.hb.{self._identity.name}"
        while True:
            if time.monotonic() - self._told_s > ASKED_S:
                with suppress(ConnectionError):
                    await self._carrier.send(subject, self._sealed(self._heartbeat()))
            await self._do(self._states.due(time.time()))
            await asyncio.sleep(HEARTBEAT_S)

    def _heartbeat(self) -> Heartbeat:
        return Heartbeat(
            nonce=self.nonce, time_s=time.time(), version=benchctl.__version__,
            plugins=self._permits.plugins, limits=self._limits.words, spool=self._spool.state,
            clock=facts.clock(), is_wanted=self._lock.is_wanted,
            running=tuple(self._states.running), addresses=self._identity.addresses,
            certificate_ends_s=self._carrier.certificate_ends_s,
        )  # fmt: skip

    # --- questions --------------------------------------------------------------------------

    async def _answer(self, number: int, message: AskHost) -> None:
        """Answer a question of the fixed table."""
        call = _QUESTIONS.get(message.function)
        answer: OfHost
        try:
            if message.function == "tools.tool":
                value = await self._tool(*message.arguments)
            elif call is None:
                await self._reply(number, Refused("this agent does not know that question"))
                return
            else:
                value = await asyncio.to_thread(call, *message.arguments)
            answer = Done(check_answer(message.function, value))
        except Exception as error:  # of arguments, or a system that nobody has seen yet
            answer = Refused(f"{type(error).__name__}: {error}"[:4096])
        await self._reply(number, answer)

    async def _tool(self, name: str, role: str) -> Mapping[str, Any]:
        try:
            tool = await self._toolbox.find(self._registry.load(name), Role(role), LOCAL)
        except MissingError as error:
            why = {"why_not": error.message[:4096], "hint": error.hint[:1024]}
            return {"version": "", "features": [], **why}
        return {"version": tool.version, "features": sorted(tool.features)}


_QUESTIONS: Mapping[str, Callable[..., Any]] = {
    "facts.collect": facts.collect,
    "counters.read": counters.read,
    "ports.is_own": ports.is_own,
    "ports.first_free": ports.first_free,
}
"""All that a host of a fleet is asked, besides its tools."""
