"""One coordinator of a fleet, from taking its lease to losing it."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from benchctl.backends import Registry, installed
from benchctl.fleet.carrier.carrier import Carrier
from benchctl.fleet.coordinator.desk import Desk
from benchctl.fleet.coordinator.late import LateEvents
from benchctl.fleet.coordinator.lease import CoordinatorLease, LostLeaseError
from benchctl.fleet.coordinator.log_sender import LogSender
from benchctl.fleet.coordinator.runs import FleetRuns, LimitsOf
from benchctl.fleet.driven.hosts import FleetHosts, RunWays
from benchctl.fleet.host_messages import OfEnd
from benchctl.fleet.messages import COORDINATOR, EndRef
from benchctl.fleet.person_messages import PEOPLE, RunWrites
from benchctl.fleet.trust.keys import SigningKey
from benchctl.fleet.trust.signing import Keys, Signer, Verifier
from benchctl.hosts.hosts import Hosts
from benchctl.store.log.logged import EndKey, last_received, prepare_log, requests, sync

TICK_S = 1.0
_DRAIN_S = 2.0
# What came before the first attempt that is still open is committed, or is sent again by its host.
_CLOCKS_APART_S = 300.0
"""By which the server's clock and this one may differ."""


class FleetMembers:
    """Who is of a fleet: the keys of hosts and people, and what each person may do."""

    def __init__(
        self,
        name: str,
        key: SigningKey,
        keys: Keys,
        limits: LimitsOf,
        hosts: Callable[[], Sequence[str]],
        signed_keys: Callable[[], bytes] = bytes,
    ) -> None:
        """``signed_keys`` returns the newest set of the coordinator's keys for hosts."""
        self.name, self.key, self.keys = name, key, keys
        self.limits, self.hosts, self.signed_keys = limits, hosts, signed_keys


class Coordinator:
    """Measures with a fleet; `serve` ends when the lease is lost, or when it is cancelled."""

    def __init__(
        self,
        carrier: Carrier,
        members: FleetMembers,
        store: Path,
        *,
        registry: Registry | None = None,
        wall: Callable[[], float] = time.time,
        clock: Callable[[], float] = time.monotonic,
        on_lost: Callable[[LostLeaseError], object] = lambda _: None,
    ) -> None:
        """``on_lost`` hears that another one has the lease, before any run is ended here."""
        self._carrier, self._wall, self._store = carrier, wall, store
        self._on_lost = on_lost
        self.lease = CoordinatorLease(carrier, clock)
        self.fleet, self.keys = members.name, members.keys
        self.signed_keys = members.signed_keys
        self.signer = Signer(members.key, members.name, COORDINATOR)
        self.hosts = FleetHosts(
            carrier,
            self,
            known=self._known,
            taking=self._taking,
            adopting=self._adopting,
            taken=self._taken,
            late=self._late,
        )
        self._log = LogSender(carrier, store, self._seal_for_all)
        self.runs = FleetRuns(
            store,
            installed() if registry is None else registry,
            lambda wait_s, greet: Hosts(greet, ways=RunWays(self.hosts, wait_s)),
            members.limits,
            wall,
            on_logged=self._log.logged,
            on_written=self._written,
            on_ended=self._run_ended,
        )
        self._received: dict[str, dict[EndKey, int]] = {}
        """The last messages of ends that are in the store, by run."""
        self._unsynced: list[tuple[str, EndKey, int]] = []
        """Run, end and number of messages that are in the store since its last sync."""
        self._adopted_ends: set[EndRef] = set()
        """Those that are heard again from their first message."""
        self._early: dict[tuple[str, EndRef], list[OfEnd]] = {}
        """What came of those before a run hears them."""
        self._late_events = LateEvents(
            store, self.runs.recorders.get, self.runs.open_recorder, wall
        )
        self._desk = Desk(
            self.runs,
            self.hosts,
            Verifier(members.name, COORDINATOR, members.keys, "person"),
            self._seal_to,
            members.limits,
            members.hosts,
            wall,
            self._log.name,
        )

    @property
    def epoch(self) -> int:
        """That of all its messages."""
        return self.lease.epoch

    def _seal_to(self, message: Any, to: str) -> bytes:
        return self.signer.seal(message, to, epoch=self.epoch, now_s=self._wall())

    def _seal_for_all(self, entry: RunWrites) -> bytes:
        return self._seal_to(entry, PEOPLE)

    # --- what hosts measured --------------------------------------------------------------------

    def _known(self, host: str, ref: EndRef) -> int:
        if self._is_to_adopt(ref):
            return 0
        return self._stored(host, ref)

    def _stored(self, host: str, ref: EndRef) -> int:
        if ref.run not in self._received:
            self._received[ref.run] = last_received(self._store, ref.run)
        return self._received[ref.run].get(_key(host, ref), 0)

    def _is_to_adopt(self, ref: EndRef) -> bool:
        return _attempt(ref) in self.runs.adopted and ref not in self._adopted_ends

    def _adopting(self, host: str, ref: EndRef) -> None:
        """Let an end be heard from its first message on, for its figures."""
        self._adopted_ends.add(ref)
        asyncio.get_running_loop().call_soon(self._hear_again, host, ref)

    def _hear_again(self, host: str, ref: EndRef) -> None:
        for message in self._early.pop((host, ref), []):
            self.hosts.hosts[host].take(message)

    def _taking(self, host: str, message: OfEnd) -> None:
        """Say whether what comes was recorded by the coordinator before."""
        ref = message.ref
        if (recorder := self.runs.recorders.get(ref.run)) is not None:
            is_stored = message.number <= self._stored(host, ref)
            recorder.is_replayed = ref in self._adopted_ends and is_stored

    def _taken(self, host: str, message: OfEnd) -> None:
        """Note a message whose events a run has recorded."""
        if (recorder := self.runs.recorders.get(message.ref.run)) is not None:
            if not recorder.is_replayed:
                recorder.received(_key(host, message.ref), message.number)
            recorder.is_replayed = False

    def _late(self, host: str, message: OfEnd) -> None:
        ref = message.ref
        if self._is_to_adopt(ref):
            self._early.setdefault((host, ref), []).append(message)
            return
        end, stored = _key(host, ref), self._stored(host, ref)
        if message.number <= stored:
            self._unsynced.append((ref.run, end, message.number))
        elif not self._late_events.take(end, message, stored):
            self.hosts.committed(host, message)  # of a run that was deleted

    def _run_ended(self, run: str) -> None:
        """Let what was never heard of a run's attempts, or not stored, be late."""
        for state in self.hosts.hosts.values():
            state.run_ended(run)
        self.runs.adopted = {attempt for attempt in self.runs.adopted if attempt[0] != run}
        for host, ref in [key for key in self._early if key[1].run == run]:
            for message in self._early.pop((host, ref)):
                self._late(host, message)

    def _written(self, run: str, received: Mapping[EndKey, int]) -> None:
        """Note what is in the store."""
        self._received.setdefault(run, {}).update(received)
        self._unsynced += [(run, end, number) for end, number in received.items()]

    async def _tell_synced(self) -> None:
        """Tell hosts what is in the store, and stays there through a power cut."""
        written, self._unsynced = self._unsynced, []
        if written:
            await asyncio.to_thread(sync, self._store)
        for run, (host, *end), number in written:
            if (state := self.hosts.hosts.get(host)) is not None:
                state.commit(EndRef(run, *end), number)  # type: ignore[arg-type]

    # --- from the lease to its end --------------------------------------------------------------

    async def serve(
        self, *, wait: bool = True, say: Callable[[str], object] = lambda _: None
    ) -> None:
        """Take the lease and measure what people ask for. Raises FleetError, StoreError."""
        await self.lease.take(wait=wait, say=say)
        prepare_log(self._store)
        sync(self._store)  # the last coordinator may not have
        for known in requests(self._store):
            self._log.name(known.run_id, known.name)
        self._log.begin()
        self.runs.recover()
        self.hosts.since_s = min(self._wall(), self.runs.adopted_since_s) - _CLOCKS_APART_S
        async with self.hosts, asyncio.TaskGroup() as group:
            group.create_task(self._keep_lease())
            group.create_task(self._log.run())
            group.create_task(self._tick())
            self.runs.start_ready()
            submissions = await self._carrier.listen("bench.submit.*", self._desk.take)
            say("ready")
            try:
                await asyncio.get_running_loop().create_future()
            finally:
                await submissions.close()
                await self.runs.close()
                await self.leave()

    async def _keep_lease(self) -> None:
        try:
            await self.lease.keep()
        except LostLeaseError as error:
            self._on_lost(error)
            raise

    async def leave(self) -> None:
        """Say what was not said yet; runs, hosts and what is left go on without this process."""
        await self._log.drain(_DRAIN_S)

    async def _tick(self) -> None:
        while True:
            self.runs.start_ready()
            await self._tell_synced()
            await asyncio.sleep(TICK_S)


def _attempt(ref: EndRef) -> tuple[str, int, int]:
    return ref.run, ref.trial, ref.attempt


def _key(host: str, ref: EndRef) -> EndKey:
    return host, ref.trial, ref.attempt, ref.flow, ref.role
