"""Runs the trials of one run that share no host at the same time.

One task for each attempt. Between two attempts at a trial, others may have its hosts.
`benchctl.plan.matching` chooses the next of the trials that are ready. A trial is ready if its
hosts are connected, no other run has them, and its pause is over. A host that is lost is asked
again after growing pauses, beside all that is measured.
"""

from __future__ import annotations

import asyncio
import random
from collections.abc import Awaitable, Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from benchctl.analysis.runs.summary import point_key
from benchctl.backends import Registry
from benchctl.engine.checks.needed_hosts import names_of_ends
from benchctl.engine.runner.host_locks import LOOK_S, HostLocks
from benchctl.engine.site.attendance import Attendance
from benchctl.engine.site.context import RunContext
from benchctl.engine.trial.retry import NextAttempt, Tries
from benchctl.engine.trial.trial import TrialRunner, jittered
from benchctl.errors import HookError, HostError, LabError, MissingError
from benchctl.hosts.tasks import cancel
from benchctl.plan.bound import BoundTrial, bind_trial
from benchctl.plan.matching import Matching, OpenTrial, machine_of, open_trial
from benchctl.run.planned import FleetTarget, Host, Network, Parallel, Reach, SshTarget
from benchctl.run.record import Trial
from benchctl.run.status import Status

# A host that restarts takes a minute; one that is gone should cost few logins.
FIRST_PAUSE_S, LONGEST_PAUSE_S = 2.0, 60.0


@dataclass
class _Begun:
    """A trial that was tried at least once, or is."""

    runner: TrialRunner
    trial: BoundTrial
    id: int
    tries: Tries


@dataclass
class _Absent:
    """A host that was lost, and how often it was asked since."""

    error: HostError
    asks: int
    since: float
    """When it was first seen to be away, by the clock of the loop."""
    in_fleet: bool
    asking: asyncio.Task[None] | None = None


class SideBySide:
    """Runs the open trials of a run."""

    def __init__(
        self,
        context: RunContext,
        runner: TrialRunner,
        registry: Registry,
        locks: HostLocks,
    ) -> None:
        assert context.settings.parallel is not None
        self._context, self._runner, self._registry = context, runner, registry
        self._locks = locks
        self._limits = context.settings.parallel
        self._network = Network({})
        self._matching = Matching(Parallel(None), self._network, 1, spreads=False)
        self._needs: dict[int, OpenTrial] = {}
        """What the trials of each point need, by the number of the point."""
        self._points: dict[object, int] = {}
        self._ends: dict[int, tuple[Host, ...]] = {}
        """The remote hosts of each point."""
        self._begun: dict[int, _Begun] = {}
        self._tasks: dict[asyncio.Task[None], int] = {}
        self._absent: dict[Reach, _Absent] = {}
        self._back: dict[Reach, float] = {}
        """When each of them was there again, by the clock of the loop."""
        self._not_before: dict[int | str, float] = {}
        """When trials and machines may be used again, by this clock."""
        self._measured: set[int] = set()
        """The positions of the trials that are measured now."""
        self._noted: set[str] = set()
        self._has_ended = False
        """Whether any trial has."""
        self._errors = 0
        """How many could not be measured before."""
        self._woken = asyncio.Event()
        self._draw = random.Random(context.run.seed)

    async def run(self, add: Callable[[], Awaitable[Trial | None]]) -> str:
        """Run all; ``add`` records one more when all have ended. Returns why it gave up, if so.

        Raises as `TrialRunner.run` if the run cannot continue.
        """
        skipping = asyncio.ensure_future(self._skip())
        try:
            preparing = asyncio.ensure_future(self._prepare())
            stopping = asyncio.ensure_future(self._context.signals.stop.wait())
            waits: list[asyncio.Future[Any]] = [preparing, stopping]
            try:
                await asyncio.wait(waits, return_when=asyncio.FIRST_COMPLETED)
                if preparing.done():
                    preparing.result()
            finally:
                await cancel(*waits)  # no effect if it is done
            while not self._stops:
                self._start_all()
                if not (self._tasks or self._matching.open):
                    self._context.recorder.flush()  # which trial is next may depend on the last
                    row = await add()
                    if row is None:
                        break
                    self._add(row)
                elif not self._give_up_on_absent():
                    await self._wait()
            await asyncio.gather(*self._tasks)
        except BaseException:
            # Those that run end by themselves then.
            self._context.signals.stop.set()
            raise
        finally:
            try:
                await asyncio.gather(*self._tasks, return_exceptions=True)
            finally:  # also if this wait is cancelled
                asking = [absent.asking for absent in self._absent.values() if absent.asking]
                await cancel(skipping, *asking)
            self._end_begun(Status.INTERRUPTED)
        return self._why

    @property
    def _why(self) -> str:
        return next((begun.runner.gives_up for begun in self._begun.values()), "")

    @property
    def _stops(self) -> bool:
        return self._context.signals.stop.is_set() or bool(self._why)

    async def _prepare(self) -> None:
        context = self._context
        first: dict[object, BoundTrial] = {}
        for row in self._open_rows():
            key = point_key(row.point)
            if key not in first:
                first[key] = bind_trial(row, self._registry)
        trials = list(first.values())
        self._network = await context.site.prepare_for(trials, self._limits.at_once)
        if context.site.was_probed:
            context.hosts.forget_clocks()
        spreads = context.settings.order == "interleaved" and context.settings.until is None
        self._matching = Matching(self._limits, self._network, len(trials), spreads=spreads)
        for row in self._open_rows():
            self._add(row, first[point_key(row.point)])

    def _open_rows(self) -> Iterator[Trial]:
        """Yield the trials that are left: all of them at once would need much memory."""
        trials = self._context.reader.trials(self._context.run.id)
        return (row for row in trials if row.status.is_open)

    def _add(self, row: Trial, trial: BoundTrial | None = None) -> None:
        number = self._points.setdefault(point_key(row.point), len(self._points))
        if number not in self._needs:
            trial = trial or bind_trial(row, self._registry)
            network, links = self._network, self._context.site.links_of(trial)
            self._needs[number] = open_trial(trial, network, number)._replace(links=links)
            names = sorted(names_of_ends(network, row.flows))
            hosts = (network.hosts[name] for name in names)
            self._ends[number] = tuple(host for host in hosts if host.reach)
        self._matching.add(self._needs[number]._replace(position=row.position))

    # --- what starts ----------------------------------------------------------------------

    @property
    def _now(self) -> float:
        return asyncio.get_running_loop().time()

    def _start_all(self) -> None:
        now = self._now
        self._not_before = {key: at for key, at in self._not_before.items() if at > now}
        while not self._stops and (trial := self._matching.start(self._is_ready)) is not None:
            task = asyncio.ensure_future(self._attempt(trial))
            self._tasks[task] = trial.position
            task.add_done_callback(lambda _: self._woken.set())

    def _is_ready(self, trial: OpenTrial) -> bool:
        waits = self._not_before
        if waits and (trial.position in waits or not waits.keys().isdisjoint(trial.hosts)):
            return False
        return not [host for host in self._ends[trial.point] if self._is_away(host)]

    def _is_away(self, host: Host) -> bool:
        """Return whether a host is not to be had now; one that was lost is asked from now on."""
        assert host.reach is not None
        if host.reach in self._absent:
            return True
        hosts, attendance = self._context.hosts, self._runner.attendance
        if attendance is None or (hosts.is_connected(host) and not attendance.is_away(host)):
            return False
        known = hosts.away(host)
        error = known if isinstance(known, HostError) else None
        again = self._now - self._back.get(host.reach, -LONGEST_PAUSE_S) < LONGEST_PAUSE_S
        error = error or HostError(f"host {host.name} is away")
        absent = _Absent(
            error, int(again or known is not None), self._now, isinstance(host.reach, FleetTarget)
        )
        self._absent[host.reach] = absent
        absent.asking = asyncio.ensure_future(self._ask(host, absent, attendance))
        return True

    async def _ask(self, host: Host, absent: _Absent, attendance: Attendance) -> None:
        """Ask a host until it is there."""
        assert host.reach is not None
        pause_s = FIRST_PAUSE_S
        was_there = not absent.asks
        while True:
            if absent.asks:
                await asyncio.sleep(jittered(pause_s, self._draw))
                if isinstance(host.reach, SshTarget):  # to ask a fleet costs nothing
                    pause_s = min(2 * pause_s, LONGEST_PAUSE_S)
            try:
                await attendance.place(host)
            except HostError as error:
                absent.error, absent.asks = error, absent.asks + 1
                self._woken.set()
                if absent.asks == 1 and was_there:
                    self._context.note(f"{error.message}; its trials wait until it is back")
                continue
            break
        del self._absent[host.reach]
        self._back[host.reach] = self._now
        if absent.asks:
            self._context.note(f"host {host.name} is back")
        self._woken.set()

    def _give_up_on_absent(self) -> bool:
        """Fail what waits for hosts that were asked often enough, if nothing else is left.

        Returns whether a trial has failed.
        """
        if self._tasks or self._stops:
            return False
        waiting = [(trial, self._absent_of(trial)) for trial in self._matching.open]
        if not all(absent for _, absent in waiting):
            return False
        failing = [
            (trial, absent[0]) for trial, absent in waiting if any(map(self._is_given_up, absent))
        ]
        for trial, absent in failing:
            self._matching.drop(trial.position)
            begun = self._begun.pop(trial.position, None) or self._begin(trial)
            given_up = filter(self._is_given_up, self._absent_of(trial))
            error = next((each.error for each in given_up), absent.error)
            begun.runner.cut_short(begun.id, begun.trial, Status.FAILED, error.message)
        return bool(failing)

    def _is_given_up(self, absent: _Absent) -> bool:
        """Return whether a host was away for too long: a fleet's, or was asked often enough."""
        if absent.in_fleet:
            return self._now - absent.since >= self._context.settings.host_wait_s
        return absent.asks >= self._context.settings.attempts

    def _absent_of(self, trial: OpenTrial) -> list[_Absent]:
        found = (self._absent.get(host.reach) for host in self._ends[trial.point] if host.reach)
        return [absent for absent in found if absent is not None]

    async def _wait(self) -> None:
        """Wait until a trial has ended, a host is back, a pause is over, or the user stops it."""
        until = min(self._not_before.values(), default=None)
        timeout_s = None if until is None else max(0.0, until - self._now)
        waits = [
            asyncio.ensure_future(event.wait())
            for event in (self._woken, self._context.signals.stop)
        ]
        try:
            await asyncio.wait(waits, timeout=timeout_s, return_when=asyncio.FIRST_COMPLETED)
        finally:
            await cancel(*waits)
        self._woken.clear()
        for task in [task for task in self._tasks if task.done()]:
            del self._tasks[task]
            task.result()

    # --- one attempt ----------------------------------------------------------------------

    def _begin(self, open_trial: OpenTrial) -> _Begun:
        reader, run = self._context.reader, self._context.run
        row = reader.next_open(run.id, open_trial.position)
        assert row is not None
        assert row.position == open_trial.position, "nobody else measures this run"
        attempts = reader.attempts(row.id)
        tries = Tries(attempts + 1)
        if row.status is Status.RUNNING and row.started_time:  # by a process before this one
            tries = Tries(attempts, adopted_start_s=row.started_time)
        trial = bind_trial(row, self._registry)
        return _Begun(self._runner.beside(), trial, row.id, tries)

    async def _attempt(self, trial: OpenTrial) -> None:
        """Make one attempt at a trial, on hosts that no other run has."""
        ends, is_again = self._ends[trial.point], False
        try:
            if busy := await self._locks.take_for_trial(self._context.hosts, ends):
                self._leave(busy)
                is_again = True
            else:
                try:
                    is_again = await self._measure(trial)
                finally:
                    self._locks.release(self._context.hosts, ends)
        except HostError:  # lost since it was looked at
            is_again = True
            self._not_before[trial.position] = self._now + LOOK_S
        finally:
            self._matching.ended(trial.position, again=is_again)
            if pause_s := self._context.settings.pause_s:
                self._not_before |= dict.fromkeys(trial.hosts, self._now + pause_s)

    def _leave(self, busy: Mapping[str, str]) -> None:
        """Leave hosts to other runs for a while."""
        until = self._now + LOOK_S * self._draw.uniform(0.5, 1.5)
        for name, who in busy.items():
            self._not_before[machine_of(self._network, name)] = until
            text = f"host {name} is measured by {who}; trials there wait for it"
            if text not in self._noted:
                self._noted.add(text)
                self._context.note(text)

    async def _measure(self, trial: OpenTrial) -> bool:
        """Make one attempt; returns whether there is to be another."""
        context, position = self._context, trial.position
        try:
            begun = self._begun.get(position) or self._begin(trial)
            self._begun[position] = begun
            begun.runner.others = set(self._measured)
            for other in self._measured:
                self._begun[other].runner.others.add(position)
            self._measured.add(position)
            if self._runner.attendance is not None:
                self._runner.attendance.has_measured = True
            after = await begun.runner.attempt(begun.id, begun.trial, begun.tries)
        except (HookError, LabError, MissingError) as error:
            # An error of all that start at first affects the whole run.
            self._errors += 1
            of_run = isinstance(error, LabError) or (isinstance(error, HookError) and error.of_run)
            if not self._has_ended and (of_run or self._errors >= self._limits.at_once):
                raise
            self._begun.pop(position, None)
            row = context.reader.next_open(context.run.id, position)
            if row is not None and row.position == position:
                context.recorder.update_trial(
                    row.id, status=Status.FAILED, error=error.message,
                    finished_time=context.wall(),
                )  # fmt: skip
            return False
        finally:
            self._measured.discard(position)
        if isinstance(after, NextAttempt):
            begun.tries = after.tries
            if after.wait_s:
                self._not_before[position] = self._now + jittered(after.wait_s, self._draw)
            return True
        self._has_ended = True
        if not begun.runner.gives_up:
            del self._begun[position]
        return False

    # --- what ends early ------------------------------------------------------------------

    async def _skip(self) -> None:
        """Skip all that runs; if nothing does, what waits for another attempt."""
        skip = self._context.signals.skip
        while True:
            await skip.wait()
            skip.clear()
            if not self._tasks:
                self._end_begun(Status.SKIPPED)
            for position in self._tasks.values():
                if position in self._begun:
                    self._begun[position].runner.skip()

    def _end_begun(self, status: Status) -> None:
        """End the trials that were tried and are open."""
        for trial in list(self._matching.open):
            if (begun := self._begun.pop(trial.position, None)) is not None:
                self._matching.drop(trial.position)
                begun.runner.cut_short(begun.id, begun.trial, status)
        self._woken.set()
