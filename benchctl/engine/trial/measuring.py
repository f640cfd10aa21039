"""Measures one attempt: brings its flows to their gates, opens these together, and ends them."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from typing import Any

from benchctl.analysis.flow.laws import terms_of
from benchctl.analysis.flow_result import FlowSurroundings
from benchctl.engine.site.context import RunContext
from benchctl.engine.trial.attempt import Attempt
from benchctl.engine.trial.diagnosis import (
    diagnose_closed_ports,
    diagnose_lost_host,
    reach_hosts,
    watch_hosts,
)
from benchctl.engine.trial.flow import FlowAttempt
from benchctl.engine.trial.host_counters import HostReadings, came_in_bytes, ends_of
from benchctl.engine.trial.packet_figures import keep_analysis
from benchctl.hosts.local.spawn import STOP_GRACE_S
from benchctl.hosts.tasks import cancel
from benchctl.plan.bound import BoundTrial
from benchctl.run.record import HostCounters
from benchctl.run.status import Status


class Measuring:
    """Measures one attempt at a trial."""

    def __init__(
        self, context: RunContext, trial_id: int, trial: BoundTrial, attempt: Attempt
    ) -> None:
        self._context = context
        self._trial_id, self._trial, self._attempt = trial_id, trial, attempt
        self._counters = HostReadings(attempt, context)

    async def run(self) -> None:
        """Measure, and write the result of every flow. Raises what failed but for the flows."""
        try:
            await self._run()
        finally:
            await self._counters.close()

    async def _run(self) -> None:
        context, attempt = self._context, self._attempt
        if attempt.adopted_start_s is None:
            self._update(status=Status.RUNNING, started_time=context.wall())
        # A login after a connection was lost takes nothing of the deadline.
        task = asyncio.ensure_future(reach_hosts(attempt, context.hosts))
        is_done = await context.wait_or_stop(task)
        if is_done and not attempt.has_failed:
            task = asyncio.ensure_future(self._measure())
            is_done = await context.wait_or_stop(
                task, self._trial.plan.deadline_s + attempt.lead_s, lambda: attempt.waits_for_host
            )
        error = None if task.cancelled() else task.exception()
        over = asyncio.Event()
        counting = asyncio.ensure_future(self._counters.end(over))
        try:
            self._update(clocks=attempt.clocks_at(context.wall()))
            await diagnose_lost_host(attempt, context)
            unwritten = await self._end(*self._cut_short(is_done, error))
            over.set()
            counters = await counting
        finally:
            await cancel(counting)  # no effect on one that is done
        self._update(counters=counters)
        await self._keep_links()
        closed = asyncio.ensure_future(diagnose_closed_ports(attempt, context.hosts))
        await context.wait_or_stop(closed)
        for exception in (error, *unwritten):
            if exception is not None:
                raise exception
        await self._write(counters)

    def _update(self, **fields: Any) -> None:
        self._context.recorder.update_trial(self._trial_id, **fields)

    def _cut_short(self, is_done: bool, error: BaseException | None) -> tuple[Status | None, str]:
        """Return the status of flows that had not ended, and why; None if all ran to their end."""
        if error is not None:
            return Status.INTERRUPTED, str(error)
        if is_done:
            return None, ""
        status = self._context.cut_short
        if status is Status.TIMED_OUT:
            return status, f"exceeded its deadline of {self._trial.plan.deadline_s:g} s"
        return status, f"{status} by the user"

    # --- from the start to the end ---------------------------------------------------------

    async def _measure(self) -> None:
        """Bring all flows to their gates, open them together, and wait until all have ended.

        The first flow that fails ends the attempt.
        """
        attempt, flows, wall = self._attempt, self._attempt.flows, self._context.wall
        await asyncio.gather(*map(self._start_server, flows))
        if attempt.has_failed:
            return
        await asyncio.gather(*(flow.record() for flow in flows))
        if attempt.has_failed:
            return
        # Some hosts take long to bring a client to its gate.
        at_gates = (flow.start_client() for flow in flows if not flow.setup.waits)
        await asyncio.gather(*at_gates)
        # Only now is nothing in the way of those that wait for a time of day.
        ahead_s = attempt.lead_s
        starts = attempt.adopted_start_s or wall() + ahead_s
        waiting = [flow.start_client(starts) for flow in flows if flow.setup.waits]
        if attempt.adopted_start_s is not None:  # what hosts had counted before is not known
            await asyncio.gather(*waiting)
            await self._run_flows(starts)
            return
        await asyncio.gather(self._counters.begin(starts), *waiting)
        if attempt.has_failed:
            return
        await self._run_flows(starts if ahead_s else wall())

    async def _run_flows(self, common_start: float) -> None:
        flows, context = self._attempt.flows, self._context
        for flow in flows:
            context.recorder.update_flow(flow.recording.flow_id, status=Status.RUNNING)
        self._update(started_time=common_start)
        context.recorder.flush()  # before hosts begin, so that the next process knows that they did
        context.site.begin(common_start)
        watching = [asyncio.ensure_future(watch_hosts(flow, context.hosts)) for flow in flows]
        pending = {asyncio.ensure_future(self._run_flow(flow, common_start)) for flow in flows}
        try:
            while pending and not self._attempt.has_failed:
                done, pending = await asyncio.wait(pending, return_when=asyncio.FIRST_COMPLETED)
                await asyncio.gather(*done)
        finally:
            await cancel(*pending, *watching)

    async def _start_server(self, flow: FlowAttempt) -> None:
        setup = flow.setup
        if setup.target is not None and setup.flow.backend.capabilities.needs_server:
            await flow.start_server()

    async def _run_flow(self, flow: FlowAttempt, common_start: float) -> None:
        at = None if flow.setup.waits else common_start + flow.setup.flow.plan.delay_s
        await flow.begin(common_start, at)
        await flow.finished()

    # --- after the end ---------------------------------------------------------------------

    async def _end(self, status: Status | None, reason: str) -> list[BaseException]:
        """End every flow; returns the errors of those that could not be ended in order."""
        killing = asyncio.ensure_future(self._kill_late())
        # Build all of them first: if one fails, no other is running.
        ends = [self._end_flow(flow, status, reason) for flow in self._attempt.flows]
        try:
            found = await asyncio.gather(*ends, return_exceptions=True)
        finally:
            await cancel(killing)
        return [error for error in found if error]

    async def _end_flow(self, flow: FlowAttempt, status: Status | None, reason: str) -> None:
        if flow.result.failure is not None or flow.result.has_ended:
            await flow.end()  # it had ended before the others were cut short
        elif status:
            await flow.end(status, reason)
        else:
            await flow.end(Status.INTERRUPTED, "ended because another flow of its trial failed")

    async def _kill_late(self) -> None:
        """Kill what has not ended soon after the user has asked for the end."""
        await self._context.signals.stop.wait()
        await asyncio.sleep(STOP_GRACE_S)
        for flow in self._attempt.flows:
            flow.kill()

    async def _keep_links(self) -> None:
        """Write the counters of the links, and warn if they make the figures doubtful."""
        links = await self._context.site.carried(self._trial)
        self._update(links=[link.as_entry() for link in links])
        if not links:  # nor has anybody imported labs
            return
        from benchctl.lab.verify.strain import strains_of

        if strains := strains_of(links):
            text = f"trial {self._trial.plan.position + 1}: {', '.join(strains)}"
            self._context.note(text, "warning", self._trial_id)

    async def _write(self, counters: Mapping[str, HostCounters]) -> None:
        """Write the results of the flows, and what their packets say."""
        context, flows, loads = self._context, self._attempt.flows, self._attempt.loads
        setups = [flow.setup for flow in flows]
        bounds = context.site.bounds(self._trial)
        is_whole = all(self._counters.began_time <= load.began for load in loads)
        came_in = came_in_bytes(counters) if is_whole else {}
        for flow in flows:
            setup = flow.setup
            limits = setup.bounded(bounds.get(setup.name, {}), came_in)
            known = FlowSurroundings(
                loads,
                setup.expected,
                ends_of(setup, setups, counters),
                terms_of(setup.flow.requested, limits),
                setup.one_clock,
                with_trends=context.settings.search is not None,
            )
            flow.recording.write(known)
            await keep_analysis(flow, context.recorder, context.signals.stop)
