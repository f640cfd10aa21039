"""One coordinator of a fleet, from taking its lease to losing it."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from benchctl.backends import Registry, installed
from benchctl.fleet.carrier.carrier import Carrier, Delivered
from benchctl.fleet.coordinator.desk import Desk, Judge
from benchctl.fleet.coordinator.lease import CoordinatorLease
from benchctl.fleet.coordinator.log_sender import LogSender
from benchctl.fleet.coordinator.presence import Presence
from benchctl.fleet.coordinator.runs import FleetRuns, LimitsOf
from benchctl.fleet.host_messages import Heartbeat
from benchctl.fleet.messages import COORDINATOR
from benchctl.fleet.person_messages import PEOPLE, LogEntry
from benchctl.fleet.trust.keys import SigningKey
from benchctl.fleet.trust.signing import Keys, Signer, UntrustedError, Verifier
from benchctl.hosts.hosts import Hosts, OnConnect
from benchctl.store.log.logged import prepare_log, requests

TICK_S = 1.0
_DRAIN_S = 2.0


class FleetMembers:
    """Who is of a fleet: the keys of hosts and people, and what each person may do."""

    def __init__(
        self,
        name: str,
        key: SigningKey,
        keys: Keys,
        limits: LimitsOf,
        hosts: Callable[[], Sequence[str]],
    ) -> None:
        self.name, self.key, self.keys = name, key, keys
        self.limits, self.hosts = limits, hosts


class Coordinator:
    """Measures with a fleet; `serve` ends when the lease is lost, or when it is cancelled."""

    def __init__(
        self,
        carrier: Carrier,
        members: FleetMembers,
        store: Path,
        open_hosts: Callable[[Coordinator, str, OnConnect], Hosts],
        *,
        judge: Judge,
        registry: Registry | None = None,
        wall: Callable[[], float] = time.time,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        """``open_hosts`` gives a run, by its name, its hosts; ``judge`` asks them about a plan."""
        self.carrier, self.members, self.wall = carrier, members, wall
        self.lease = CoordinatorLease(carrier, clock)
        self.presence = Presence(wall)
        self._signer = Signer(members.key, members.name, COORDINATOR)
        self._heartbeats = Verifier(members.name, COORDINATOR, members.keys, "host")
        self._log = LogSender(carrier, store, self._seal_for_all)
        self.runs = FleetRuns(
            store,
            installed() if registry is None else registry,
            lambda run, on_connect: open_hosts(self, run, on_connect),
            members.limits,
            wall,
            on_logged=self._log.logged,
            on_written=lambda _: lambda _: None,
        )
        self._desk = Desk(
            self.runs,
            self.presence,
            Verifier(members.name, COORDINATOR, members.keys, "person"),
            self.seal,
            members.limits,
            members.hosts,
            judge,
            wall,
            self._log.name,
        )
        self._store = store

    def seal(self, message: Any, to: str, nonce: str = "") -> bytes:
        """Sign a message to a host or a person."""
        return self._signer.seal(
            message, to, epoch=self.lease.epoch, nonce=nonce, now_s=self.wall()
        )

    def _seal_for_all(self, entry: LogEntry) -> bytes:
        return self.seal(entry, PEOPLE)

    async def serve(
        self, *, wait: bool = True, say: Callable[[str], object] = lambda _: None
    ) -> None:
        """Take the lease and measure what people ask for. Raises FleetError, StoreError."""
        await self.lease.take(wait=wait, say=say)
        prepare_log(self._store)
        for known in requests(self._store):
            self._log.name(known.run_id, known.name)
        self._log.begin()
        async with asyncio.TaskGroup() as group:
            group.create_task(self.lease.keep())
            group.create_task(self._log.run())
            group.create_task(self._tick())
            heartbeats = await self.carrier.listen("bench.hb.*", self._hear)
            self.runs.recover()
            submissions = await self.carrier.listen("bench.submit.*", self._desk.take)
            say("ready")
            try:
                await asyncio.get_running_loop().create_future()
            finally:
                await submissions.close()
                await self.runs.close()
                await heartbeats.close()
                await self._log.drain(_DRAIN_S)

    async def leave(self) -> None:
        """Say what was not said yet; runs, hosts and what is left go on without this process."""
        await self._log.drain(_DRAIN_S)

    async def _tick(self) -> None:
        while True:
            self.presence.tick()
            self.runs.start_ready()
            await asyncio.sleep(TICK_S)

    async def _hear(self, message: Delivered) -> None:
        try:
            signed = self._heartbeats.open(message.data, None, Heartbeat)
        except UntrustedError:
            return
        if message.subject == f"bench.hb.{signed.head.sender}":
            self.presence.hear(signed.head.sender, signed.message)
