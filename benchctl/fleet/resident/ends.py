"""The ends that run on a host of a fleet: by its own backends, and what they say, as messages."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Sequence
from itertools import groupby
from typing import cast

import msgspec

from benchctl.api import Event, Failure, FailureKind, Role, Tool
from benchctl.backends import Registry
from benchctl.engine.checks.tools import Toolbox
from benchctl.engine.trial.ends import CommandEnd, EndHost, EndPlan
from benchctl.errors import MissingError
from benchctl.fleet.host_messages import (
    EndOver,
    Events,
    HeardEvent,
    PreparedAt,
    PreparedEnd,
    ReadCounters,
)
from benchctl.fleet.messages import EndRef
from benchctl.fleet.spool import Spool, Spooled, SpooledMessage
from benchctl.hosts.clocks import OURS
from benchctl.hosts.local.spawn import LocalSpawner
from benchctl.hosts.sent import counters
from benchctl.run.planned import LOCAL

FLUSH_S = 1.0
"""How long events wait for more of them: a message each second. Only failures do not wait."""
# Samples of a thousand streams in a tenth of a second; a message stays far below its bound.
_MOST_WAITING = 2000
_KINDS = Spooled.RESULT, Spooled.SAMPLES


class Outbox:
    """The messages of one end, numbered and in the spool before anything else happens."""

    def __init__(
        self, ref: EndRef, spool: Spool, publish: Callable[[SpooledMessage], None]
    ) -> None:
        self._ref, self._spool, self._publish = ref, spool, publish
        self._waiting: list[HeardEvent] = []
        self._number = 0
        self._dropped = 0
        self._flushing: asyncio.TimerHandle | None = None

    def mark(self) -> None:
        """Note on the disk that the end was begun."""
        self._spool.add(Spooled.MARK, self._ref, 0, b"")

    def take(self, event: Event, arrived_s: float) -> None:
        """Take the next event."""
        self._waiting.append(HeardEvent.of(event, arrived_s))
        if isinstance(event, Failure) or len(self._waiting) >= _MOST_WAITING:
            self.flush()
        elif self._flushing is None:
            self._flushing = asyncio.get_running_loop().call_later(FLUSH_S, self.flush)

    def flush(self) -> None:
        """Write the events that wait; samples not in the room that is for results."""
        events = self._taken()
        for kind, part in groupby(events, key=lambda event: _KINDS[event.kind == "sample"]):
            some = tuple(part)
            if not self._add(kind, Events(self._ref, self._number + 1, some)):
                self._dropped += len(some)

    def _taken(self) -> list[HeardEvent]:
        if self._flushing is not None:
            self._flushing.cancel()
            self._flushing = None
        events, self._waiting = self._waiting, []
        return events

    def over(
        self, code: int | None, stderr: str, lost: str = "", counters: ReadCounters | None = None
    ) -> bool:
        """Write the last message; returns whether there was room for it."""
        if self._spool.why_full:  # what is left is for results
            self.flush()
        events = self._taken()
        message = EndOver(
            self._ref, self._number + 1, time.time(), code, stderr, lost, self._dropped,
            tuple(events), counters,
        )  # fmt: skip
        is_kept = self._add(Spooled.RESULT, message)
        if not is_kept:
            self._waiting = events
        return is_kept

    def _add(self, kind: Spooled, message: Events | EndOver) -> bool:
        kept = self._spool.add(kind, self._ref, message.number, msgspec.msgpack.encode(message))
        if kept is None:
            return False
        self._number = message.number
        self._publish(kept)
        return True

    def after(self, number: int) -> None:
        """Go on after a number, as after a start of the agent."""
        self._number = number


class HostEnd:
    """One end that runs here; see `benchctl.engine.trial.ends`."""

    def __init__(self, prepared: PreparedEnd, spawner: LocalSpawner, outbox: Outbox) -> None:
        self.ref, self.spec = prepared.ref, prepared.spec
        self._spawner, self._outbox = spawner, outbox
        self._shown: Sequence[str] = ()
        self._end: CommandEnd | None = None
        self._stopping = asyncio.Event()

    def show(self, role: Role, argv: Sequence[str]) -> None:
        """Take the words of its command, see `EndListener`."""
        self._shown = argv

    def take(self, role: Role, event: Event, arrived: float | None) -> None:
        """Take its next event, see `EndListener`."""
        self._outbox.take(event, arrived or time.time())

    async def prepare(self, registry: Registry, toolbox: Toolbox) -> PreparedAt:
        """Bring it to where it waits, and return how it is there."""
        self._outbox.mark()
        role = Role(self.spec.role)
        tool = Tool("")
        try:
            backend = registry.load(self.spec.backend)
            tool = await toolbox.find(backend, role, LOCAL)
            flow = self.spec.flow(backend, tool)
        except (MissingError, ValueError) as error:
            why = error.message if isinstance(error, MissingError) else str(error)
            self.take(role, Failure(FailureKind.PARAMETER, why), None)
            return PreparedAt(self.ref, is_up=False)
        self._end = end = CommandEnd(
            EndPlan(role, backend, lambda: flow),
            EndHost(LOCAL, self._spawner, OURS, time.time),
            self,
        )
        await end.prepare()
        is_up = end.runs and (role is Role.CLIENT or end.is_ready)
        parameters = {
            name: value
            for name, value in flow.params.model_dump(mode="json").items()
            if value is not None
        }
        return PreparedAt(
            self.ref, is_up, end.is_ready, end.stays, end.name, tool.version[:64],
            tuple(word[:1024] for word in self._shown), self.spec.port, parameters,
            await _counters(),
        )  # fmt: skip

    async def go(self, at_s: float) -> None:
        """Let a client begin at a time of this host."""
        assert self._end is not None, "only an end that waits is let go"
        await self._end.go(at_s or None)

    async def run_to_end(self) -> None:
        """Wait until it has ended by itself or was stopped, and write its last message."""
        end = self._end
        if end is not None and end.runs:
            if await end.ended(None, unless=self._stopping):
                await end.take_end()
            else:
                await end.stop()
        code, stderr = (None, "") if end is None else (end.exit_code, end.stderr)
        counted = await _counters()
        while not self._outbox.over(code, stderr, counters=counted):
            await asyncio.sleep(FLUSH_S)  # until the spool has room

    def give_up(self, why: str) -> None:
        """Kill it, and say why nothing more is known of it."""
        self.stop(kill=True)
        self._outbox.over(None, "", why[:4096])

    def stop(self, *, kill: bool) -> None:
        """Let it end in order, or kill it."""
        if kill and self._end is not None:
            self._end.kill()
        self._stopping.set()


async def _counters() -> ReadCounters | None:
    """Return the counters of this host; None if its system has none."""
    return cast("ReadCounters | None", await asyncio.to_thread(counters.read) or None)
