"""Simulated hosts of a fleet, all in one process: ``python bench/fleet_hosts.py FOLDER COUNT``.

Each has a connection and a key of its own, and answers as an agent does. It runs no tool: what it
measures is made up, ten samples a second from both ends of a flow, one message of them a second,
and the last ones with the end of its end.
``FOLDER/dispatch`` gets, for each trial, the seconds from the coordinator's signature of its go to
its arrival, ``FOLDER/ended`` when its last end was over.
"""

from __future__ import annotations

import asyncio
import secrets
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import msgspec

from benchctl.api import Role
from benchctl.backends import installed
from benchctl.engine.trial.ends import schema_of, version_of
from benchctl.fleet.admin.directory import FleetDirectory
from benchctl.fleet.carrier.carrier import Delivered
from benchctl.fleet.carrier.opening import open_carrier
from benchctl.fleet.host_messages import (
    AbortEnds,
    EndOver,
    Events,
    Go,
    HeardEvent,
    Heartbeat,
    JudgeEnds,
    Lock,
    Ping,
    Plugin,
    Prepare,
    Prepared,
    PreparedAt,
    SpoolState,
    StopEnds,
    ToHost,
)
from benchctl.fleet.messages import COORDINATOR, AskHost, Done, EndRef, answered
from benchctl.fleet.resident.agent import ASKED_S
from benchctl.fleet.trust.keys import SigningKey
from benchctl.fleet.trust.signing import Signer, UntrustedError, Verifier
from benchctl.hosts.sent import counters, facts, ports
from benchctl.metrics import Direction, Sample, Summary

_PORTS = {"ports.first_free": ports.first_free, "ports.is_own": ports.is_own}
LASTS_S, EVERY_S, MESSAGE_S = 2.0, 0.1, 1.0


class SimulatedHost:
    """One host; ``others`` are all, by the flows that they serve."""

    def __init__(
        self, name: str, directory: FleetDirectory, key: SigningKey, plugins: list[Plugin],
        others: dict[tuple[str, int, int, str], SimulatedHost], dispatched: list[float],
        ended: dict[int, float],
    ) -> None:  # fmt: skip
        self.name, self._plugins, self._serving = name, plugins, others
        fleet = directory.members().fleet
        self.carrier = open_carrier(directory.server(), key, name)
        self._nonce = secrets.token_hex(8)
        self._signer = Signer(key, fleet, name)
        self._verifier = Verifier(fleet, name, directory.find, "coordinator", nonce=self._nonce)
        self._dispatched, self._ended = dispatched, ended
        self._numbers: dict[EndRef, int] = {}
        self._over: set[EndRef] = set()
        self._told_s = 0.0
        self._tasks: set[asyncio.Task[Any]] = set()
        self._facts = facts.collect()
        self._counters = counters.read()

    async def run(self) -> None:
        async with self.carrier:
            await self.carrier.wait_connected(60)
            await self.carrier.listen(f"bench.run.{self.name}", self._take)
            while True:
                if time.monotonic() - self._told_s > ASKED_S:
                    await self.carrier.send(f"bench.hb.{self.name}", self._sealed(self._beat()))
                await asyncio.sleep(1)

    def _told(self) -> Heartbeat:
        self._told_s = time.monotonic()
        return self._beat()

    def _beat(self) -> Heartbeat:
        spool = SpoolState(0, 1 << 28, 0, 0, 1 << 30)
        return Heartbeat(self._nonce, time.time(), "0", self._plugins, [], spool, {}, False)

    def _sealed(self, message: Any, nonce: str = "") -> bytes:
        return self._signer.seal(message, COORDINATOR, epoch=1, nonce=nonce, now_s=time.time())

    async def _take(self, delivered: Delivered) -> None:
        now_s = time.time()
        try:
            signed = self._verifier.open(delivered.data, None, ToHost)
        except UntrustedError:
            return
        if isinstance(signed.message, Go):
            self._dispatched.append(now_s - signed.head.issued_s)
        answer = self._answer(signed.message)
        if delivered.reply is not None:
            await delivered.reply(self._sealed(answer, answered(delivered.data)))

    def _answer(self, message: Any) -> Any:
        match message:
            case Prepare():
                return Prepared([self._prepared(end.ref, end.spec.role) for end in message.ends])
            case Go():
                for end in message.ends:
                    self._begin(end.ref, end.at_s)
                return self._told()
            case StopEnds() | AbortEnds():
                for ref in message.ends:
                    self._do(self._end(ref))
                return Done()
            case Lock():
                return Done("")
            case Ping():
                return self._told()
            case JudgeEnds():
                return Done([""] * len(message.ends))
            case AskHost("tools.tool"):
                return Done({"version": "1", "features": []})
            case AskHost("facts.collect"):
                return Done(self._facts)
            case AskHost(function, arguments):
                return Done(_PORTS[function](*arguments))
            case _:
                return Done()

    def _prepared(self, ref: EndRef, role: Role) -> PreparedAt:
        if role is Role.SERVER:
            self._serving[ref.run, ref.trial, ref.attempt, ref.flow] = self
        is_server = role is Role.SERVER
        return PreparedAt(
            ref, True, is_server, name="simulated", version="1", shown=("simulated",),
            counters=self._counted(),
        )  # fmt: skip

    def _counted(self) -> dict[str, Any]:
        return {**self._counters, "time_s": time.monotonic()}

    def _do(self, work: Any) -> None:
        task = asyncio.ensure_future(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    def _begin(self, ref: EndRef, at_s: float) -> None:
        self._do(self._measure(ref, at_s, Direction.SEND))
        server = self._serving.pop((ref.run, ref.trial, ref.attempt, ref.flow), None)
        if server is not None:
            other = msgspec.structs.replace(ref, role="server")
            server._do(server._measure(other, at_s, Direction.SEND))

    async def _measure(self, ref: EndRef, at_s: float, direction: Direction) -> None:
        await asyncio.sleep(max(0.0, at_s - time.time()))
        count, messages = round(MESSAGE_S / EVERY_S), round(LASTS_S / MESSAGE_S)
        for number in range(messages):
            await asyncio.sleep(MESSAGE_S)
            spans = (
                (at * EVERY_S, (at + 1) * EVERY_S)
                for at in range(number * count, (number + 1) * count)
            )
            events: list[Any] = [
                Sample(*span, {"throughput_bps": 1e6}, 0, direction) for span in spans
            ]
            if number + 1 < messages:
                message = Events(ref, self._number(ref), self._heard(events))
                await self._publish("smp", message)
        if ref.role == "client":
            events.append(Summary({"throughput_bps": 1e6}, direction))
        await self._end(ref, events)

    def _number(self, ref: EndRef) -> int:
        number = self._numbers[ref] = self._numbers.get(ref, 0) + 1
        return number

    def _heard(self, events: Sequence[Any]) -> tuple[HeardEvent, ...]:
        return tuple(HeardEvent.of(event, time.time()) for event in events)

    async def _end(self, ref: EndRef, events: Sequence[Any] = ()) -> None:
        if ref not in self._over:
            self._over.add(ref)
            now_s = time.time()
            self._ended[ref.trial] = now_s  # of its last end
            over = EndOver(
                ref, self._number(ref), now_s, 0,
                events=self._heard(events), counters=self._counted(),
            )  # fmt: skip
            await self._publish("res", over)

    async def _publish(self, stream: str, message: Any) -> None:
        ref = message.ref
        number = f"{ref.run}/{ref.trial}/{ref.attempt}/{ref.flow}/{ref.role}/{message.number}"
        subject = f"bench.{stream}.{self.name}"
        await self.carrier.publish(subject, self._sealed(message), number)


async def _main(folder: Path, count: int) -> None:
    directory, registry = FleetDirectory(folder / "bench"), installed()
    backend = registry.load("simpleperf")
    plugins = [Plugin("simpleperf", version_of(backend), schema_of(backend))]
    others: dict[tuple[str, int, int, str], SimulatedHost] = {}
    dispatched: list[float] = []
    ended: dict[int, float] = {}
    hosts = [
        SimulatedHost(
            name,
            directory,
            SigningKey.read(folder / f"{name}.seed"),
            plugins,
            others,
            dispatched,
            ended,
        )
        for name in (f"h{number}" for number in range(count))
    ]

    async def tell() -> None:
        while True:
            await asyncio.sleep(1)
            text = "".join(f"{one:.6f}\n" for one in dispatched)
            (folder / "dispatch").write_text(text)
            (folder / "ended").write_bytes(msgspec.json.encode(ended))

    await asyncio.gather(tell(), *(host.run() for host in hosts))


if __name__ == "__main__":
    asyncio.run(_main(Path(sys.argv[1]), int(sys.argv[2])))
