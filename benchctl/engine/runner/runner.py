"""Runs a planned run, trial after trial or side by side, and keeps the store current."""

from __future__ import annotations

import asyncio
import os
import time
from collections.abc import Callable, Iterator
from contextlib import closing
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from benchctl.analysis.results import TrialReport
from benchctl.backends import Registry
from benchctl.engine.checks.sessions import check_sessions
from benchctl.engine.checks.tools import Toolbox
from benchctl.engine.runner.host_facts import HostFacts
from benchctl.engine.runner.host_locks import (
    HostLocks,
    disturbing,
    hosts_of_run,
    uses_this_machine,
)
from benchctl.engine.runner.side_by_side import SideBySide
from benchctl.engine.site.attendance import Attendance
from benchctl.engine.site.context import RunContext, Signals
from benchctl.engine.site.site import Site
from benchctl.engine.trial.trial import TrialRunner
from benchctl.errors import BenchctlError, HookError, LabError, MissingError, StoreError
from benchctl.hosts.hosts import Hosts, OnConnect
from benchctl.hosts.tasks import cancel
from benchctl.plan.bound import bind_trial, timed
from benchctl.plan.strategy import Strategy, strategy_of
from benchctl.run.planned import Hook, Settings, When
from benchctl.run.record import Run, Trial
from benchctl.run.status import Status
from benchctl.store.locks import Liveness, Turn
from benchctl.store.read import Reader
from benchctl.store.record import Recorder

# How long a sample may wait for those that are written with it. People wait for the first of a run.
FLUSH_S = 0.1
# How often a waiting run checks whether the other run has ended.
TURN_S = 0.25


@dataclass(frozen=True)
class RunnerParts:
    """What a runner is made of, and its process.

    ``liveness`` is shared by the runs of a process; None for one of its own. ``pid`` is the one
    that takes signals for this run, if there is one. ``strategy`` is not its settings' own. A run
    whose hosts another one measures fails at once unless it ``waits``.
    """

    liveness: Liveness | None = None
    pid: int | None = field(default_factory=os.getpid)
    hosts: Callable[[OnConnect], Hosts] = Hosts
    recorder: Callable[[Path, int], Recorder] = Recorder
    strategy: Strategy | None = None
    waits: bool = True


class Runner:
    """Runs the open trials of one run."""

    def __init__(
        self,
        store: Path,
        run_id: int,
        registry: Registry,
        parts: RunnerParts | None = None,
    ) -> None:
        self._store = store
        self._run_id = run_id
        self._registry = registry
        self._parts = parts or RunnerParts()
        self._liveness = self._parts.liveness or Liveness(store)
        self._strategy = self._parts.strategy
        self._taken = 0
        """How many trials the strategy knows."""
        self.signals = Signals()
        """What the outside may ask: to stop the run, or to skip the trial."""

    async def run(self) -> Status:
        """Measure the open trials; returns the run's final status.

        Raises BenchctlError if the run cannot continue; the measurements so far are in the store.
        """
        with closing(Reader(self._store)) as reader:
            # Before it is held: this looks for live runners, see `benchctl.store.locks`.
            run = reader.run(self._run_id)
            with (
                self._liveness.hold(run.id) as turn,
                closing(self._parts.recorder(self._store, run.id)) as recorder,
            ):
                return await self._run(recorder, reader, run, turn)

    async def _run(self, recorder: Recorder, reader: Reader, run: Run, turn: Turn) -> Status:
        started = run.started_time or time.time()
        recorder.update_run(
            status=Status.RUNNING, started_time=started, error="", runner_pid=self._parts.pid
        )
        for store in disturbing(reader, run):
            text = (
                f"another run is being measured here, in store {store}: the two affect each other"
            )
            recorder.add_note(text, "warning", time.time(), None, None)
        flusher = asyncio.ensure_future(self._flush(recorder))
        measuring = asyncio.ensure_future(self._measure(recorder, reader, run, turn))
        try:
            await asyncio.wait([flusher, measuring], return_when=asyncio.FIRST_COMPLETED)
            if flusher.done():  # the store failed: stop the tools in order, then report it
                self.signals.stop.set()
                await asyncio.gather(measuring, return_exceptions=True)
                flusher.result()
            measuring.result()
        except StoreError:
            raise  # which cannot be written
        except Exception as error:
            what = f"a bug: {error!r}"
            if isinstance(error, BenchctlError):
                what = "; ".join(filter(None, [error.message, error.hint]))
            recorder.update_run(status=Status.FAILED, error=what, finished_time=time.time())
            raise
        finally:
            await cancel(flusher, measuring)  # no effect on one that is done
        while not recorder.flush() and not self.signals.stop.is_set():
            await asyncio.sleep(FLUSH_S)
        recorder.settle()
        statuses = reader.statuses(run.id)
        if any(status.is_open for status in statuses):
            status = Status.INTERRUPTED
        else:
            status = Status.OK if statuses <= {Status.OK, Status.SKIPPED} else Status.FAILED
        recorder.update_run(status=status, finished_time=time.time())
        return status

    async def _flush(self, recorder: Recorder) -> None:
        while True:
            await asyncio.sleep(FLUSH_S)
            recorder.flush()

    async def _measure(self, recorder: Recorder, reader: Reader, run: Run, turn: Turn) -> None:
        def note(text: str) -> None:
            recorder.add_note(text, "info", time.time(), None, None)

        site = site_of(run.settings, note)
        facts = HostFacts(recorder)
        watching = asyncio.ensure_future(facts.watch())
        try:
            locks = HostLocks(run.name, facts.on_connect, note if self._parts.waits else None)
            async with self._parts.hosts(locks.on_connect) as hosts:
                context = RunContext(run, recorder, reader, hosts, site, self.signals)
                hurrying = asyncio.ensure_future(self._hurry(hosts))
                try:
                    attendance = await self._attend(context, locks)
                    if not self.signals.stop.is_set():
                        toolbox = Toolbox(hosts, facts.tools)
                        await self._measure_on(context, toolbox, attendance, locks, turn)
                finally:
                    await cancel(hurrying)
        finally:
            await cancel(watching)
            await site.close()

    async def _hurry(self, hosts: Hosts) -> None:
        await self.signals.stop.wait()
        hosts.hurry()

    async def _attend(self, context: RunContext, locks: HostLocks) -> Attendance | None:
        """Hold the hosts that are there, until the user stops it; those of a lab are not yet.

        Raises HostError if too few are there for any trial.
        """
        reader, run, hosts = context.reader, context.run, context.hosts

        def left() -> Iterator[Trial]:
            return (trial for trial in reader.trials(run.id) if trial.status.is_open)

        if run.settings.lab is not None:
            return None
        wanted = hosts_of_run(reader, run)
        attendance = Attendance(context, left)
        held = wanted
        if run.settings.parallel is not None and not any(map(_is_of_run, run.settings.hooks)):
            locks.by_trial()
            held = [host for host in wanted if not host.reach]
            await hosts.connect(wanted)
        if await self._unless_stopped(asyncio.ensure_future(locks.take(hosts, held))):
            there = await attendance.begin(wanted)
            await check_sessions(hosts, there, left(), context.site.network, self._registry)
        return attendance

    async def _unless_stopped(self, task: asyncio.Future[None]) -> bool:
        """Wait for a task; False if the user ended the wait."""
        stopping = asyncio.ensure_future(self.signals.stop.wait())
        waits: list[asyncio.Future[Any]] = [task, stopping]
        try:
            await asyncio.wait(waits, return_when=asyncio.FIRST_COMPLETED)
            is_done = task.done()
        finally:
            await cancel(*waits)  # no effect on one that is done
        if is_done:
            task.result()
        return is_done

    async def _measure_on(
        self,
        context: RunContext,
        toolbox: Toolbox,
        attendance: Attendance | None,
        locks: HostLocks,
        turn: Turn,
    ) -> None:
        runner = TrialRunner(context, toolbox, attendance)
        self._strategy = self._strategy or strategy_of(context.settings)
        try:
            if context.settings.parallel is None:
                await self._measure_trials(context, runner, turn)
            else:
                await self._measure_side_by_side(context, runner, locks, turn)
            if attendance is not None:
                attendance.check_end()
        finally:
            await runner.hooks.close()

    async def _measure_trials(self, context: RunContext, runner: TrialRunner, turn: Turn) -> None:
        recorder, reader, run = context.recorder, context.reader, context.run
        # Runs of one process that measure on remote hosts keep apart by the hosts' locks alone.
        in_turn = self._parts.pid is not None or uses_this_machine(reader, run)
        first = True
        position = 0
        while row := (reader.next_open(run.id, position) or await self._add(context, position)):
            if not first and run.settings.pause_s:
                await self._rest(run.settings.pause_s)
            if in_turn and not await self._take(turn, context):
                return
            try:
                self.signals.skip.clear()
                trial = bind_trial(row, self._registry)
                await runner.run(row.id, trial, reader.attempts(row.id) + 1)
            except (HookError, LabError, MissingError) as error:
                # An error from the start affects the whole run.
                if first:
                    raise
                now = context.wall()
                recorder.update_trial(
                    row.id, status=Status.FAILED, error=error.message, finished_time=now
                )
            finally:
                if in_turn:
                    turn.give_back()
            if runner.gives_up:
                self._give_up(context, runner.gives_up)
                return
            first = False
            position = row.position + 1

    async def _measure_side_by_side(
        self,
        context: RunContext,
        runner: TrialRunner,
        locks: HostLocks,
        turn: Turn,
    ) -> None:
        """Measure trials that share no host at the same time; on this machine, in one turn."""
        is_here = uses_this_machine(context.reader, context.run)
        if is_here and not await self._take(turn, context):
            return
        trials = SideBySide(context, runner, self._registry, locks)
        try:
            if why := await trials.run(lambda: self._add(context, 0)):
                self._give_up(context, why)
        finally:
            if is_here:
                turn.give_back()

    def _give_up(self, context: RunContext, why: str) -> None:
        """Skip the trials that are left."""
        for trial in context.reader.trials(self._run_id):
            if trial.status.is_open:
                error = f"not measured: {why}"
                context.recorder.update_trial(trial.id, status=Status.SKIPPED, error=error)

    async def _add(self, context: RunContext, position: int) -> Trial | None:
        """Record the next trial that the strategy adds, if any."""
        if self._strategy is None:
            return None
        for ended in _results(context.reader, self._run_id, self._taken):
            self._strategy.take(ended)
            self._taken += 1
        trial = self._strategy.next()
        if trial is None:
            return None
        context.recorder.add_trial(timed(bind_trial(trial, self._registry)))
        while not context.recorder.flush():  # another program holds the store
            await self._rest(FLUSH_S)
        return context.reader.next_open(self._run_id, position)

    async def _take(self, turn: Turn, context: RunContext) -> bool:
        """Wait for the turn to measure; False if the user ended the wait."""
        is_noted = False
        while not self.signals.stop.is_set():
            if turn.take():
                return True
            if not is_noted:
                is_noted = True
                context.note("another run is being measured; this one starts when it ends")
            await self._rest(TURN_S)
        return False

    async def _rest(self, length_s: float) -> None:
        try:
            await asyncio.wait_for(self.signals.stop.wait(), length_s)
        except TimeoutError:
            return


def _is_of_run(hook: Hook) -> bool:
    """Return whether a command runs around the run, which then has its hosts throughout."""
    return hook.when in (When.PREPARE_RUN, When.CLEANUP_RUN)


def _results(reader: Reader, run_id: int, from_position: int) -> Iterator[TrialReport]:
    for trial in reader.trials(run_id, from_position):
        yield TrialReport(trial, reader.flow_reports(trial.id))


def site_of(settings: Settings, note: Callable[[str], None]) -> Site:
    """Return the site that a run's settings describe; ``note`` takes messages for the user."""
    if settings.lab is None:
        return Site(settings.network.network)
    # A run without a lab need not wait for the import of its room.
    from benchctl.engine.site.lab_site import LabSite

    return LabSite(settings.network, settings.lab, note)
