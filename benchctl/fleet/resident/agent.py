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
from datetime import datetime
from pathlib import Path
from typing import Any

import msgspec
from msgspec import Struct

import benchctl
from benchctl.api import Role, Tool
from benchctl.backends import Registry, installed
from benchctl.engine.checks.tools import Toolbox
from benchctl.engine.trial.ends import EndSpec, schema_of, version_of
from benchctl.errors import FleetError, MissingError
from benchctl.fleet.carrier.carrier import Carrier, Delivered, StreamFullError
from benchctl.fleet.host_messages import (
    EndOver,
    Heartbeat,
    JudgeEnds,
    Neighbours,
    OfEnd,
    OfHost,
    Plugin,
    Prepare,
    PreparedEnd,
    ToHost,
)
from benchctl.fleet.limits import (
    ASSUMED_LINK_BPS,
    NOTHING,
    EndAmount,
    HostLoad,
    Limits,
    amount_of,
    refusal,
)
from benchctl.fleet.messages import COORDINATOR, AskHost, Done, EndRef, Refused, answered
from benchctl.fleet.resident.addresses import addresses_of, resolved
from benchctl.fleet.resident.day import DayBytes
from benchctl.fleet.resident.ends import FLUSH_S, HostEnd, Outbox
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
from benchctl.fleet.spool import Spool, Spooled, SpooledMessage, sync_and_close
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
# What was sent and not committed is sent again: the broker's streams are not for ever.
AGAIN_S = 60.0
_RETRY_S = 1.0
# Of the coordinator's clock, from when its messages were signed: the quickest of the last ones.
_CLOCK_TRIPS = 30
_NO_TOOL = Tool("")
_log = logging.getLogger(__name__)
_OVER = msgspec.msgpack.Decoder(OfEnd)


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
        self._limits, self._day = limits, DayBytes(folder / "day.json")
        self._registry = registry or installed()
        self._resolve = resolve or addresses_of
        self.nonce = secrets.token_hex(16)
        self._signer = Signer(identity.key, identity.fleet, identity.name)
        self._verifier = Verifier(
            identity.fleet, identity.name, identity.keys, "coordinator", nonce=self.nonce
        )
        self._clock = CoordinatorClock()
        self._lock = HostLock(lock)
        self._targets: dict[EndRef, Collection[str]] = {}
        self._amounts: dict[EndRef, EndAmount] = {}
        """What the ends that have not ended send and receive."""
        self._fleet_addresses: Collection[str] = ()
        """Those of the fleet's hosts, as the coordinator says."""
        self._states = States(self._refusal, self._lock.take, self._lock.give_back)
        self._spawner = LocalSpawner()
        self._toolbox = Toolbox(self._spawner)
        self._ends: dict[EndRef, HostEnd] = {}
        self._overs: dict[EndRef, int] = {}
        """The numbers of the last messages of ends that are over and not committed."""
        self._queues: dict[Spooled, asyncio.Queue[SpooledMessage]] = {
            kind: asyncio.Queue() for kind in (Spooled.SAMPLES, Spooled.RESULT)
        }
        self._sent: dict[SpooledMessage, float] = {}
        self._replies: dict[int, Delivered] = {}
        """The messages that are not answered yet."""
        self._turn = 0
        self._told_s = 0.0
        """When the coordinator was last told how this host is, because it asked."""
        self._tasks: set[asyncio.Task[Any]] = set()
        self._link_bps = _link_bps()
        self._plugins = self._known_plugins()

    # --- from start to end ------------------------------------------------------------------

    async def run(self) -> None:
        """Serve the coordinator until cancelled; then all that runs here is ended."""
        async with self._spawner:
            self._take_up()
            subject = f"bench.run.{self._identity.name}"
            while True:
                try:
                    subscription = await self._carrier.listen(subject, self._take)
                    break
                except ConnectionError:
                    await asyncio.sleep(_RETRY_S)
            loops = [self._beat(), self._keep_synced(), *map(self._publish, self._queues)]
            tasks = [asyncio.ensure_future(loop) for loop in loops]
            try:
                await asyncio.gather(*tasks)
            finally:
                await subscription.close()
                for end in self._ends.values():
                    end.stop(kill=True)
                await cancel(*tasks, *self._tasks)
                self._lock.give_back()

    def _take_up(self) -> None:
        """Send what an earlier start left, and the end of what it did not end."""
        for ref, kept in [*self._spool.account.kept.items()]:
            last = max(kept, key=lambda spooled: spooled.number)
            message = None
            if last.kind is Spooled.RESULT:
                with suppress(OSError, msgspec.MsgspecError):
                    message = _OVER.decode(self._spool.body(last))
            for spooled in kept:
                if spooled.kind is not Spooled.MARK:
                    self._queues[spooled.kind].put_nowait(spooled)
            if isinstance(message, EndOver):
                self._overs[ref] = message.number
            elif any(spooled.kind is Spooled.MARK for spooled in kept):
                outbox = Outbox(ref, self._spool, self._queue)
                outbox.after(last.number)
                outbox.over(None, "", f"the agent of {self._identity.name} was ended meanwhile")
            self._states.recent.append(ref)

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
        self._fleet_addresses = message.addresses
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
            other = end.spec.peer if end.spec.role is Role.SERVER else end.spec.address
            targets = await self._resolve(other) if other else ()
            said.append(self._why_not(end.ref, end.spec, targets)[0])
        await self._reply(number, Done(said))

    async def _look_up(self, number: int, message: Prepare) -> None:
        """Resolve the addresses of a plan, once: what is judged is what is used."""
        ends = []
        for end in message.ends:
            other = end.spec.peer if end.spec.role is Role.SERVER else end.spec.address
            found = await self._resolve(other) if other else ()
            self._targets[end.ref] = found
            ends.append(PreparedEnd(end.ref, resolved(end.spec, found)))
        known = {**self._amounts}
        effects = self._states.message(number, Prepare(ends), time.time())
        for end in ends:
            self._targets.pop(end.ref, None)
        if not any(isinstance(effect, StartEnd) for effect in effects):  # it was refused
            self._amounts = known
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
                    self._forget(committed.ref, committed.number)
                case Tell(to):
                    self._told_s = time.monotonic()
                    await self._reply(to, self._heartbeat())

    async def _reply(self, number: int, answer: OfHost) -> None:
        delivered = self._replies.pop(number)
        if delivered.reply is not None:
            with suppress(ConnectionError):  # the coordinator asks again, or aborts
                await delivered.reply(self._sealed(answer, answered(delivered.data)))

    # --- ends -------------------------------------------------------------------------------

    def _refusal(self, prepared: PreparedEnd) -> str:
        why, amount = self._why_not(
            prepared.ref, prepared.spec, self._targets.get(prepared.ref, ())
        )
        if not why:
            self._amounts[prepared.ref] = amount
        return why

    def _why_not(
        self, ref: EndRef, spec: EndSpec, targets: Collection[str]
    ) -> tuple[str, EndAmount]:
        """Return why an end may not run here, empty if it may, and what it sends and receives."""
        name = self._identity.name
        if why := self._spool.why_full:
            return f"host {name}: {why}", NOTHING
        here = next((plugin for plugin in self._plugins if plugin.name == spec.backend), None)
        if here is None:
            return f"host {name} has no backend {spec.backend}", NOTHING
        if here.why_not:
            return f"host {name}: {here.why_not}", NOTHING
        if (spec.version, spec.schema) != (here.version, here.schema):
            ours = f"{here.version or 'a file'} ({here.schema[:8]})"
            theirs = f"{spec.version or 'a file'} ({spec.schema[:8]})"
            return f"host {name} has {spec.backend} {ours}, and the coordinator {theirs}", NOTHING
        backend = self._registry.load(spec.backend)
        try:
            flow = spec.flow(backend, _NO_TOOL)
            amount = amount_of(backend, flow.params, self._link_bps)
        except ValueError as error:
            return f"host {name}: {error}", NOTHING
        load = HostLoad(
            sum(end_amount.rate_bps for end_amount in self._amounts.values()),
            self._day.bytes,
            sum(
                end_amount.bytes
                for other, end_amount in self._amounts.items()
                if is_one_trial(other, ref)
            ),
        )
        why = refusal(
            self._limits, spec, backend, flow.params, targets, self._fleet_addresses,
            load, self._link_bps, datetime.now().astimezone(),
        )  # fmt: skip
        return f"host {name}: {why}" if why else "", amount

    def _begin(self, prepared: PreparedEnd) -> None:
        self._day.add(self._amounts[prepared.ref].bytes)
        outbox = Outbox(prepared.ref, self._spool, self._queue)
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
            self._amounts.pop(end.ref, None)
            self._states.over(end.ref)
            await self._do(self._states.due(time.time()))

    # --- the spool, and what is sent --------------------------------------------------------

    def _queue(self, kept: SpooledMessage) -> None:
        self._queues[kept.kind].put_nowait(kept)
        # The last result of an end may be its last message.
        if kept.kind is Spooled.RESULT:
            self._overs[kept.ref] = kept.number

    def _forget(self, ref: EndRef, number: int) -> None:
        self._spool.commit(ref, number)
        self._sent = {kept: at for kept, at in self._sent.items() if self._spool.has(kept)}
        if ref not in self._ends and number >= self._overs.get(ref, 0):
            self._overs.pop(ref, None)
            self._spool.close_end(ref)

    async def _publish(self, kind: Spooled) -> None:
        """Bring messages into their stream, one after the other."""
        place = "smp" if kind is Spooled.SAMPLES else "res"
        subject = f"bench.{place}.{self._identity.name}"
        while True:
            kept = await self._queues[kind].get()
            if not self._spool.has(kept):
                continue
            ref = kept.ref
            number = f"{subject}/{ref.run}/{ref.trial}/{ref.attempt}/{ref.flow}/{ref.role}/"
            try:
                data = self._sealed(_OVER.decode(self._spool.body(kept)))
                await self._carrier.publish(subject, data, f"{number}{kept.number}")
            except (StreamFullError, ConnectionError):
                self._queues[kind].put_nowait(kept)
                await asyncio.sleep(_RETRY_S)
                continue
            self._sent[kept] = time.monotonic()

    def _sealed(self, message: OfEnd | OfHost, nonce: str = "") -> bytes:
        return self._signer.seal(
            message, COORDINATOR, epoch=self._identity.starts, nonce=nonce, now_s=time.time()
        )

    async def _beat(self) -> None:
        """Say each second how this host is, and do what is due."""
        subject = f"bench.hb.{self._identity.name}"
        while True:
            now_s = time.monotonic()
            if now_s - self._told_s > ASKED_S:
                with suppress(ConnectionError):
                    await self._carrier.send(subject, self._sealed(self._heartbeat()))
            await self._do(self._states.due(time.time()))
            for kept, at_s in [*self._sent.items()]:
                if now_s - at_s > AGAIN_S:
                    del self._sent[kept]
                    self._queues[kept.kind].put_nowait(kept)
            await asyncio.sleep(HEARTBEAT_S)

    async def _keep_synced(self) -> None:
        """Sync the spool each second: a power cut costs no more."""
        while True:
            await asyncio.sleep(FLUSH_S)
            if (file := self._spool.unsynced()) is not None:
                try:
                    await asyncio.to_thread(sync_and_close, file)
                except OSError as error:
                    _log.error("the spool is not synced: %s", error.strerror)

    def _heartbeat(self) -> Heartbeat:
        return Heartbeat(
            nonce=self.nonce, time_s=time.time(), version=benchctl.__version__,
            plugins=self._plugins, limits=self._limits.words, spool=self._spool.state,
            clock=facts.clock(), is_wanted=self._lock.is_wanted,
            running=tuple(self._states.running), addresses=self._identity.addresses,
            certificate_ends_s=self._carrier.certificate_ends_s,
        )  # fmt: skip

    def _known_plugins(self) -> list[Plugin]:
        found = []
        for name in sorted(self._registry.candidates):
            try:
                backend = self._registry.load(name)
            except MissingError as error:
                found.append(Plugin(name, "", "", error.message[:1024]))
                continue
            why_not = ""
            if self._limits.backends is not None and name not in self._limits.backends:
                why_not = f"its owner does not allow the backend {name}"
            found.append(Plugin(name, version_of(backend), schema_of(backend), why_not))
        return found

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


def is_one_trial(ref: EndRef, other: EndRef) -> bool:
    """Return whether two ends are of one attempt at a trial."""
    return (ref.run, ref.trial, ref.attempt) == (other.run, other.trial, other.attempt)


def _link_bps() -> float:
    speeds = [
        float(interface["speed_bps"])
        for interface in facts.interfaces().values()
        if "speed_bps" in interface
    ]
    return max(speeds, default=ASSUMED_LINK_BPS)
