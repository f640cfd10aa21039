"""The runs of a coordinator: those that are measured, at the same time, and those that wait."""

from __future__ import annotations

import asyncio
import logging
import math
from collections.abc import Callable, Iterator, Mapping
from contextlib import closing
from functools import partial
from pathlib import Path

from benchctl.backends import Registry
from benchctl.engine.runner.runner import Runner, RunnerParts
from benchctl.errors import BenchctlError
from benchctl.fleet.admin.members import Person
from benchctl.fleet.coordinator.queue import AskedRun, waits_for
from benchctl.hosts.hosts import Hosts, OnConnect
from benchctl.run.planned import FleetTarget
from benchctl.run.record import Trial
from benchctl.run.status import Status
from benchctl.store.locks import Liveness
from benchctl.store.log.logged import (
    EndKey,
    LoggedRecorder,
    OnLogged,
    change_logged,
    reopen_logged,
    requests,
)
from benchctl.store.read import Reader

_log = logging.getLogger(__name__)
LimitsOf = Callable[[str], Person | None]
"""Returns the limits of a person; None for nobody of the fleet."""


class FleetRuns:
    """Runs what people asked for. ``wall`` is this machine's clock, in Unix time."""

    def __init__(
        self,
        store: Path,
        registry: Registry,
        hosts: Callable[[float, OnConnect], Hosts],
        limits: LimitsOf,
        wall: Callable[[], float],
        *,
        on_logged: OnLogged,
        on_written: Callable[[str, Mapping[EndKey, int]], object],
        on_ended: Callable[[str], object],
    ) -> None:
        """``hosts`` gives a run its hosts, for which it waits so many seconds.

        ``on_written`` hears of the events of its ends.
        """
        self._on_ended = on_ended
        self.store = store
        self._registry, self._hosts, self._limits, self._wall = registry, hosts, limits, wall
        self._on_logged, self._on_written = on_logged, on_written
        self._liveness = Liveness(store, together=True)
        self._asked: dict[str, AskedRun] = {}
        """Those that have not ended and those of the last day, by the name of the run."""
        self._waiting: dict[str, AskedRun] = {}
        self._running: dict[str, Runner] = {}
        self._tasks: dict[str, asyncio.Task[None]] = {}
        self.recorders: dict[str, LoggedRecorder] = {}
        """Of the runs that are measured."""
        self.adopted: set[tuple[str, int, int]] = set()
        """Run, position and attempt of what hosts had begun when this coordinator began."""
        self.adopted_since_s = math.inf
        """When the first of these was started."""

    # --- at the start and the end ---------------------------------------------------------------

    def recover(self) -> None:
        """Take over the runs that were measured, or waited, when the last coordinator ended.

        Their attempts that hosts have begun go on; `start_ready` lets the runs go on.
        """
        with closing(Reader(self.store)) as reader:
            for stored in requests(self.store):
                run = reader.run(stored.run_id)
                hosts = {
                    host.reach.name
                    for host in run.settings.network.remote.values()
                    if isinstance(host.reach, FleetTarget)
                }
                request = AskedRun(
                    run.id, run.name, stored.person, frozenset(hosts), run.settings.at_once,
                    stored.sent_bytes, stored.created_time,
                )  # fmt: skip
                self._asked[run.name] = request
                if stored.status == Status.RUNNING:
                    kept = []
                    for trial, attempt in _begun(reader, run.id):
                        kept.append(trial.position)
                        self.adopted.add((run.name, trial.position, attempt))
                        since_s = trial.started_time or 0.0
                        self.adopted_since_s = min(self.adopted_since_s, since_s)
                    reopen_logged(self.store, run.id, self._on_logged, kept=kept)
                if stored.status in (Status.PLANNED, Status.RUNNING):
                    self._waiting[run.name] = request

    async def close(self) -> None:
        """Leave all runs as they are: the next coordinator goes on with them."""
        tasks = list(self._tasks.values())
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    # --- what begins ----------------------------------------------------------------------------

    def add(self, request: AskedRun) -> None:
        """Let a run that is in the store begin as soon as it may."""
        self._asked[request.name] = self._waiting[request.name] = request
        self.start_ready()

    def start_ready(self) -> None:
        """Begin all runs that may."""
        for name, request in list(self._waiting.items()):
            if not self._waits_for(request):
                del self._waiting[name]
                self._start(request)

    def _waits_for(self, request: AskedRun) -> str:
        limits = self._limits(request.person)
        if limits is None:
            return f"{request.person}, who is not of the fleet any more"
        return waits_for(request, limits, [self._asked[name] for name in self._running])

    def _start(self, request: AskedRun) -> None:
        with closing(Reader(self.store)) as reader:
            wait_s = reader.run(request.run_id).settings.host_wait_s
        parts = RunnerParts(
            self._liveness,
            None,
            partial(self._hosts, wait_s),
            partial(self._open_own, request.name),
        )
        runner = Runner(self.store, request.run_id, self._registry, parts=parts)
        self._running[request.name] = runner
        self._tasks[request.name] = asyncio.create_task(self._run(request.name, runner))

    def _open_own(self, name: str, path: Path, run_id: int) -> LoggedRecorder:
        recorder = self.recorders[name] = self.open_recorder(name, run_id)
        return recorder

    def open_recorder(self, name: str, run_id: int) -> LoggedRecorder:
        """Return a recorder of a run; the caller closes it. Raises StoreError."""
        return LoggedRecorder(
            self.store, run_id, on_logged=self._on_logged,
            on_written=partial(self._on_written, name),
        )  # fmt: skip

    async def _run(self, name: str, runner: Runner) -> None:
        try:
            status = await runner.run()
            _log.info("run %s: %s", name, status)
        except BenchctlError as error:  # which is in the store, too
            _log.warning("run %s: %s", name, "; ".join(filter(None, [error.message, error.hint])))
        except Exception:
            _log.exception("run %s", name)
        finally:
            del self._running[name], self._tasks[name]
            self.recorders.pop(name, None)
            self._on_ended(name)
        self.start_ready()

    # --- what people ask ------------------------------------------------------------------------

    def owner(self, name: str) -> str | None:
        """Return who asked for a run, None if there is none."""
        request = self._asked.get(name)
        return None if request is None else request.person

    def of_token(self, token: str) -> str | None:
        """Return the run that was asked for with a token, if there is one."""
        known = (request.name for request in requests(self.store) if request.token == token)
        return next(known, None)

    def asked_by(self, person: str) -> list[AskedRun]:
        """Return what a person asked for."""
        return [request for request in self._asked.values() if request.person == person]

    def stop(self, name: str) -> str:
        """Stop a run, or take it out of the queue; returns why not, empty if it is done."""
        if (runner := self._running.get(name)) is not None:
            runner.signals.stop.set()
            return ""
        if (request := self._waiting.pop(name, None)) is not None:
            now = self._wall()
            change_logged(
                self.store, request.run_id, self._on_logged,
                status=Status.INTERRUPTED, finished_time=now,
            )  # fmt: skip
            return ""
        return f"run {name} is not in progress"

    def skip(self, name: str) -> str:
        """Skip what a run measures now; returns why not, empty if it is done."""
        if (runner := self._running.get(name)) is None:
            return f"run {name} is not measured now"
        runner.signals.skip.set()
        return ""

    def queue(self) -> Iterator[tuple[AskedRun, str]]:
        """Yield the runs that are measured, then those that wait, and what for."""
        for name in self._running:
            yield self._asked[name], ""
        for request in self._waiting.values():
            yield request, self._waits_for(request) or "the next moment"


def _begun(reader: Reader, run_id: int) -> Iterator[tuple[Trial, int]]:
    """Yield the trials whose hosts were told to go, and that have no result, and the attempt."""
    for trial in reader.trials(run_id):
        if trial.status is Status.RUNNING and trial.started_time:
            flows = reader.flows(trial.id)
            if flows and all(flow.status is Status.RUNNING for flow in flows):
                yield trial, flows[0].attempt
