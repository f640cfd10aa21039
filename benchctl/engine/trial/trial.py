"""Runs one trial: all its flows together, as often as its attempts allow."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from benchctl.analysis.flow.figures import FlowFold
from benchctl.analysis.flow.laws import terms_of
from benchctl.api import FailureKind, Role
from benchctl.engine.checks.network import FreePorts, ports_of, unanswered
from benchctl.engine.checks.tools import Toolbox
from benchctl.engine.site.attendance import Attendance, AwayError
from benchctl.engine.site.hooks import Hooks
from benchctl.engine.site.site import Site
from benchctl.engine.trial.capture import recorder_of
from benchctl.engine.trial.command import command_of
from benchctl.engine.trial.flow import FlowAttempt
from benchctl.engine.trial.host_counters import HostReadings, came_in_bytes, ends_of
from benchctl.engine.trial.losses import clocks_at, diagnose_lost_host, reach_hosts, watch_hosts
from benchctl.engine.trial.packet_figures import keep_analysis
from benchctl.engine.trial.place import (
    FlowSetup,
    Shares,
    first_sent,
    lead_s,
    loads,
    next_port,
    server_of,
)
from benchctl.engine.trial.ways import diagnose_closed_ports
from benchctl.errors import HookError, HostError, LabError, MissingError
from benchctl.hosts.local.spawn import STOP_GRACE_S, Spawner
from benchctl.hosts.tasks import cancel
from benchctl.plan.bound import BoundTrial
from benchctl.run.planned import Settings
from benchctl.run.record import HookOutcome, Trial
from benchctl.run.status import Status, overall
from benchctl.store.record import Recorder

# Back-off varies by up to a quarter, so that two clients of one server do not collide again.
BACKOFF_JITTER = 0.25
# Longest wait between two looks for a server that is starting.
SERVER_BACKOFF_S = 5.0


class Signals:
    """Requests from outside to a running trial; once set, they stay set."""

    def __init__(self) -> None:
        self.stop = asyncio.Event()
        self.skip = asyncio.Event()


class TrialRunner:
    """Runs trials, one after another, on one site."""

    def __init__(
        self,
        site: Site,
        toolbox: Toolbox,
        spawner: Spawner,
        recorder: Recorder,
        settings: Settings,
        signals: Signals,
        wall_clock: Callable[[], float],
        seed: int,
        of_run: Sequence[HookOutcome] = (),
        attendance: Attendance | None = None,
    ) -> None:
        """``of_run`` are the hosts' commands that ran around the run already."""
        self._attendance = attendance
        self._site = site
        self._toolbox = toolbox
        self._spawner = spawner
        self._recorder = recorder
        self._settings = settings
        self._signals = signals
        self._wall = wall_clock
        self._seed = seed
        is_away = [attendance.is_away] if attendance else []
        self.hooks = Hooks(
            settings.hooks, spawner, recorder, wall_clock, site.failure_reason, of_run, *is_away
        )
        """The commands of the hosts around each attempt; to be closed at the end of the run."""
        self.gives_up = ""
        """Why the run is to end with the last trial, if it is."""
        self._wait_end = wall_clock() + settings.server_wait_s
        """Until then, a server that does not answer may still be starting."""
        self._free: FreePorts = {}
        self._answered: set[tuple[str, str]] = set()
        """Those at the far end of a flow that has measured something, in this run."""

    async def run(self, trial_id: int, trial: BoundTrial, first_attempt: int = 1) -> Status:
        """Run a trial to its end and write its outcome; returns its status.

        A lab that fails costs an attempt. Raises HookError if the run cannot be prepared,
        MissingError if a program is missing, LabError if the lab cannot be built or does not keep
        its promises, StoreError if the store fails.
        """
        jitter = random.Random(f"{self._seed}/{trial.plan.position}")
        places: list[FlowSetup] = []
        flows: list[FlowAttempt] = []
        turns = dict.fromkeys((flow.name for flow in trial.plan.flows), 0)
        tried, number, waited = 1, first_attempt, 0
        while True:
            calls = self._attendance if number == first_attempt else None
            placing = asyncio.ensure_future(self._places(trial_id, trial, turns, calls))
            try:
                if not await self._wait_or_stop(placing):
                    return self._finish(trial_id, trial, places, flows, self._cut_short())
                places = placing.result()
                flows = await self._attempt(trial_id, trial, places, number)
            except HookError as error:
                if error.of_run:
                    raise
                return self._finish(trial_id, trial, [], [], Status.FAILED, error.message)
            except (LabError, MissingError) as error:
                failure_reason, wait_s = (
                    await self._site.failure_reason(),
                    0.0,
                )  # the next lab is a new one
                if not failure_reason and isinstance(error, HostError):
                    failure_reason, wait_s = (
                        error.message,
                        self._settings.backoff_s * 2 ** (tried - 1),
                    )
                if not failure_reason:
                    raise
                if tried == self._settings.attempts or isinstance(error, AwayError):
                    return self._finish(trial_id, trial, [], [], Status.FAILED, failure_reason)
                tried, number = tried + 1, number + 1
                if not await self._wait_or_stop(asyncio.ensure_future(asyncio.sleep(wait_s))):
                    return self._finish(trial_id, trial, [], [], self._cut_short())
                continue
            finally:
                await self.hooks.after()
            status = overall({flow.status for flow in flows})
            may_succeed = self._may_succeed(places, flows, status)
            away = self._unanswered(places, flows)
            starting = bool(away) and self._wall() < self._wait_end
            if away and self._settings.gives_up:
                self.gives_up = await _why_away(*away[0])
            if self.gives_up or not (may_succeed or starting):
                return self._finish(trial_id, trial, places, flows, status)
            # A busy server moves the flow to its next port at once; only a full round of ports is
            # an attempt.
            if not next_port(places, flows, turns):
                if starting:
                    wait_s = min(self._settings.backoff_s * 2**waited, SERVER_BACKOFF_S)
                    waited += 1
                elif tried == self._settings.attempts:
                    return self._finish(trial_id, trial, places, flows, status)
                else:
                    wait_s = self._settings.backoff_s * 2 ** (tried - 1)
                    tried += 1
                wait_s *= 1 + BACKOFF_JITTER * jitter.uniform(-1, 1)
                if not await self._wait_or_stop(asyncio.ensure_future(asyncio.sleep(wait_s))):
                    return self._finish(trial_id, trial, places, flows, self._cut_short())
            number += 1

    async def _wait_or_stop(
        self, task: asyncio.Future[Any], timeout_s: float | None = None
    ) -> bool:
        """Wait for a task, until the user or the time ends it.

        Returns whether it was done by then; if not, it is cancelled.
        """
        waits = [asyncio.ensure_future(e.wait()) for e in (self._signals.stop, self._signals.skip)]
        try:
            done, _ = await asyncio.wait(
                [task, *waits], timeout=timeout_s, return_when=asyncio.FIRST_COMPLETED
            )
        finally:
            for wait in waits:
                wait.cancel()
        if task not in done:
            await cancel(task)
        return task in done

    async def _places(
        self,
        trial_id: int,
        trial: BoundTrial,
        turns: Mapping[str, int],
        calls: Attendance | None,
    ) -> list[FlowSetup]:
        if calls is not None:
            await calls.call(trial.plan)
        network = await self._site.prepare(trial)
        if self._site.was_probed:
            self._spawner.forget_clocks()
        earlier = trial.plan.hooks if isinstance(trial.plan, Trial) else ()
        await self.hooks.before(trial_id, earlier, network)
        expected, bottlenecks = self._site.expected(trial), self._site.bottlenecks(trial)
        taken: set[int] = set()
        places = []
        for flow in trial.flows:
            plan, backend = flow.plan, flow.backend
            source, target = network.hosts[plan.source], network.target(plan.to)
            tools = await self._toolbox.of_flow(backend, source, target)
            await self._toolbox.check_capture(plan, network)
            known = {} if turns[plan.name] else self._free  # those of a busy one are known no more
            ports = await ports_of(flow, network, taken, self._spawner, known)
            port = ports[turns[plan.name] % len(ports)]
            if target is not None and port is not None:
                taken.add(port)
            together = len(trial.flows) > 1 or self._site.changes
            waits = backend.capabilities.waits_for_start and together
            theory = expected.get(plan.name, {}), bottlenecks.get(plan.name, {})
            places.append(
                FlowSetup(flow, network, source, target, tools, *theory, waits, ports, port)
            )
        return places

    # --- one attempt ----------------------------------------------------------------------

    async def _attempt(
        self, trial_id: int, trial: BoundTrial, places: list[FlowSetup], number: int
    ) -> list[FlowAttempt]:
        self._recorder.update_trial(trial_id, status=Status.RUNNING, started_time=self._wall())
        flows = [self._flow(trial_id, trial, place, number) for place in places]
        counts = HostReadings(places, self._spawner, self._site, self._wall)
        # A login after a connection was lost takes nothing of the deadline.
        task = asyncio.ensure_future(reach_hosts(places, flows, self._spawner))
        is_done = await self._wait_or_stop(task)
        if is_done and not any(flow.failure for flow in flows):
            task = asyncio.ensure_future(self._measure(trial_id, places, flows, counts))
            is_done = await self._wait_or_stop(task, trial.plan.deadline_s + lead_s(places))
        status: Status | None = None
        reason = ""
        if not is_done:
            status = self._cut_short()
            reason = (
                f"exceeded its deadline of {trial.plan.deadline_s:g} s"
                if status is Status.TIMED_OUT
                else f"{status} by the user"
            )
        error = None if task.cancelled() else task.exception()
        if error is not None:
            status, reason = Status.INTERRUPTED, str(error)
        counting = asyncio.ensure_future(counts.end())
        self._recorder.update_trial(trial_id, clocks=clocks_at(flows, self._wall()))
        await diagnose_lost_host(places, flows, self._spawner, self._site)
        ends = [self._end(flow, status, reason) for flow in flows]
        killing = asyncio.ensure_future(self._kill_late(flows))
        # Build all of them first: if one fails, no other is running.
        unwritten = [end for end in await asyncio.gather(*ends, return_exceptions=True) if end]
        await cancel(killing)
        counters = await counting
        self._recorder.update_trial(trial_id, counters=counters)
        await self._keep_links(trial_id, trial)
        await self._wait_or_stop(
            asyncio.ensure_future(diagnose_closed_ports(places, flows, self._spawner))
        )
        for one in (error, *unwritten):
            if one is not None:
                raise one
        carried = loads(places, flows)
        rises = self._settings.search is not None
        bounds = self._site.bounds(trial)
        is_whole = all(counts.began_time <= load.began for load in carried)
        came_in = came_in_bytes(counters) if is_whole else {}
        for place, flow in zip(places, flows, strict=True):
            flow.write(
                carried,
                place.expected,
                ends_of(place, places, counters),
                terms=terms_of(
                    place.flow.requested, place.bounded(bounds.get(flow.name, {}), came_in)
                ),
                one_clock=place.one_clock,
                rises=rises,
            )
            await keep_analysis(self._recorder, place, flow, self._signals.stop)
        return flows

    async def _kill_late(self, flows: Sequence[FlowAttempt]) -> None:
        """Kill what has not ended soon after the user has asked for the end."""
        await self._signals.stop.wait()
        await asyncio.sleep(STOP_GRACE_S)
        for flow in flows:
            flow.kill()

    async def _keep_links(self, trial_id: int, trial: BoundTrial) -> None:
        """Write the counters of the links, and warn if they make the figures doubtful."""
        links = await self._site.carried(trial)
        self._recorder.update_trial(trial_id, links=[link.as_entry() for link in links])
        if strains := [link.strain for link in links if link.strain]:
            text = f"trial {trial.plan.position + 1}: {', '.join(strains)}"
            self._recorder.add_note(text, "warning", self._wall(), trial_id, None)

    async def _end(self, flow: FlowAttempt, status: Status | None, reason: str) -> None:
        if flow.failure is not None or flow.has_ended:
            await flow.end()  # it had ended before the others were cut short
        elif status:
            await flow.end(status, reason)
        else:
            await flow.end(Status.INTERRUPTED, "ended because another flow of its trial failed")

    async def _measure(
        self, trial_id: int, places: list[FlowSetup], flows: list[FlowAttempt], counts: HostReadings
    ) -> None:
        """Bring all flows to their gates, open them together, and wait until all have ended.

        The first flow that fails ends the attempt.
        """
        pairs = list(zip(places, flows, strict=True))
        await asyncio.gather(*(self._start_server(place, flow) for place, flow in pairs))
        if any(flow.failure for flow in flows):
            return
        await asyncio.gather(*(flow.record() for flow in flows))
        if any(flow.failure for flow in flows):
            return
        # Some hosts take long to bring a client to its gate.
        await asyncio.gather(*(self._start_client(*pair) for pair in pairs if not pair[0].waits))
        # Only now is nothing in the way of those that wait for a time of day.
        ahead_s = lead_s(places)
        starts = self._wall() + ahead_s
        waiting = (self._start_client(*pair, starts) for pair in pairs if pair[0].waits)
        await asyncio.gather(counts.begin(starts), *waiting)
        if any(flow.failure for flow in flows):
            return
        common_start = starts if ahead_s else self._wall()
        for flow in flows:
            self._recorder.update_flow(flow.flow_id, status=Status.RUNNING)
        self._recorder.update_trial(trial_id, started_time=common_start)
        self._site.begin(common_start)
        watching = [
            asyncio.ensure_future(watch_hosts(place, flow, self._spawner)) for place, flow in pairs
        ]
        pending = {
            asyncio.ensure_future(self._run_flow(place, flow, common_start))
            for place, flow in pairs
        }
        try:
            while pending and not any(flow.failure for flow in flows):
                done, pending = await asyncio.wait(pending, return_when=asyncio.FIRST_COMPLETED)
                await asyncio.gather(*done)
        finally:
            await cancel(*pending, *watching)

    async def _start_server(self, place: FlowSetup, flow: FlowAttempt) -> None:
        if place.target is None or not place.flow.backend.capabilities.needs_server:
            return
        command = command_of(place, flow, Role.SERVER, place.flow.backend.server)
        if command is not None:
            self._recorder.update_flow(flow.flow_id, server=place.shown(command, place.target))
            await flow.start_server(place.with_rights(place.target, command), command)

    async def _start_client(
        self, place: FlowSetup, flow: FlowAttempt, starts: float | None = None
    ) -> None:
        start_at_s = None
        if starts is not None:
            clock = await self._spawner.clock_of(place.source)
            start_at_s = clock.theirs(starts + place.flow.plan.delay_s)
        command = command_of(place, flow, Role.CLIENT, place.flow.backend.client, start_at_s)
        if command is not None:
            self._recorder.update_flow(flow.flow_id, client=place.shown(command, place.source))
            await flow.start_client(place.with_rights(place.source, command), command)

    async def _run_flow(self, place: FlowSetup, flow: FlowAttempt, common_start: float) -> None:
        at = None if place.waits else common_start + place.flow.plan.delay_s
        if at is not None and place.source.reach is None:
            await asyncio.sleep(max(0.0, at - self._wall()))
        flow.begin(common_start, at)
        await flow.finished()

    def _flow(self, trial_id: int, trial: BoundTrial, place: FlowSetup, number: int) -> FlowAttempt:
        plan, backend = place.flow.plan, place.flow.backend
        flow_id = self._recorder.add_flow(
            trial_id, attempt=number, name=plan.name, backend=plan.backend, source=plan.source,
            target=plan.to, direction=str(plan.direction), port=place.port,
            status=Status.PLANNED, client=(), server=(), expected=place.expected,
            bottlenecks=place.bottlenecks, requested=place.flow.requested,
            protocol=place.flow.demand.protocol,
        )  # fmt: skip
        fold = FlowFold(backend.capabilities.metrics)
        tap = recorder_of(
            place.flow, place.network, self._spawner, self._recorder, flow_id, self._wall
        )
        return FlowAttempt(
            plan.name, flow_id, fold, self._spawner, self._recorder, self._wall, tap,
            trial=trial.plan.position + 1,
        )  # fmt: skip

    # --- between and after attempts -------------------------------------------------------

    def _may_succeed(
        self, places: list[FlowSetup], flows: list[FlowAttempt], status: Status
    ) -> bool:
        """Return whether another attempt makes sense.

        After a deadline it does only if the peer has measured before: a peer that never answered
        has had a whole deadline to do so.
        """
        pairs = list(zip(places, flows, strict=True))
        self._answered |= {
            server_of(place) for place, flow in pairs if flow.has_measured and not _is_away(flow)
        }
        if status is Status.TIMED_OUT:
            late = {server_of(place) for place, flow in pairs if flow.status is Status.TIMED_OUT}
            return late <= self._answered
        retryable = all(flow.failure.kind.retryable for flow in flows if flow.failure)
        return status is Status.FAILED and retryable

    def _unanswered(
        self, places: list[FlowSetup], flows: list[FlowAttempt]
    ) -> list[tuple[FlowSetup, FlowAttempt]]:
        """Return the flows that failed, if all did because servers of others never answered."""
        pairs = zip(places, flows, strict=True)
        late = [(p, f) for p, f in pairs if f.failure or f.status is Status.TIMED_OUT]
        away = all(
            place.target is None
            and server_of(place) not in self._answered
            and (flow.failure is None or _is_away(flow))
            for place, flow in late
        )
        return late if away else []

    def _cut_short(self) -> Status:
        """Return the status of an unfinished flow: as requested by the user, or timed out."""
        if self._signals.stop.is_set():
            return Status.INTERRUPTED
        return Status.SKIPPED if self._signals.skip.is_set() else Status.TIMED_OUT

    def _finish(
        self,
        trial_id: int,
        trial: BoundTrial,
        places: list[FlowSetup],
        flows: list[FlowAttempt],
        status: Status,
        error: str = "",
    ) -> Status:
        failed = [f"{flow.name}: {flow.failure.message}" for flow in flows if flow.failure]
        if status is Status.TIMED_OUT:
            late = f"exceeded its deadline of {trial.plan.deadline_s:g} s"
            error = ": ".join([late, *failed[:1]])
        elif status is Status.FAILED:
            error = error or failed[0]
        pairs = zip(places, flows, strict=False)  # none if none began
        starts = [time for place, flow in pairs if (time := first_sent(place, flow)) is not None]
        shares = Shares.of(flows) if status is Status.OK else None
        self._recorder.update_trial(
            trial_id,
            status=status,
            error=error,
            finished_time=self._wall(),
            start_skew_s=max(starts) - min(starts) if len(starts) > 1 else None,
            fairness_jain=shares and shares.jain,
            fair_windows=shares.windows if shares else [],
        )
        return status


def _is_away(flow: FlowAttempt) -> bool:
    return flow.failure is not None and flow.failure.kind is FailureKind.UNREACHABLE


async def _why_away(place: FlowSetup, flow: FlowAttempt) -> str:
    address = place.network.peers[place.flow.plan.to].host
    message = flow.failure.message if flow.failure else ""
    return await asyncio.to_thread(unanswered, address, message)
