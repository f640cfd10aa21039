"""Runs one trial: all its flows together, as often as its attempts allow."""

from __future__ import annotations

import asyncio
import random
from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from copy import copy
from dataclasses import replace
from types import MappingProxyType
from typing import NamedTuple

from benchctl.analysis.flow.figures import FlowFold
from benchctl.analysis.flow_result import FlowResult
from benchctl.api import FailureKind
from benchctl.engine.checks.needed_hosts import names_of_ends
from benchctl.engine.checks.network import FreePorts, ports_of, unanswered
from benchctl.engine.checks.tools import Toolbox
from benchctl.engine.site.attendance import Attendance, AwayError
from benchctl.engine.site.context import RunContext
from benchctl.engine.site.hooks import Hooks
from benchctl.engine.trial.attempt import Attempt, fails_by
from benchctl.engine.trial.ends import EndPlace
from benchctl.engine.trial.flow import FlowAttempt
from benchctl.engine.trial.measuring import Measuring
from benchctl.engine.trial.retry import AttemptEnd, NextAttempt, Tries, next_attempt
from benchctl.engine.trial.setup import FlowSetup
from benchctl.errors import HookError, HostError, LabError, MissingError
from benchctl.plan.bound import BoundTrial
from benchctl.plan.matching import machine_of
from benchctl.run.record import Trial
from benchctl.run.status import Status
from benchctl.store.flow_recording import FlowRecording

# Back-off varies by up to a quarter, so that two clients of one server do not collide again.
BACKOFF_JITTER = 0.25


class _Tried(NamedTuple):
    """An attempt that has ended, and how its trial ends if no other one follows."""

    attempt: Attempt
    end: AttemptEnd
    status: Status
    error: str = ""
    ports: Mapping[str, int] = MappingProxyType({})
    """How many ports each flow has tried."""


class TrialRunner:
    """Runs trials, one after another, on one site.

    Those that run at the same time have one each (`beside`), which know what the others know.
    """

    def __init__(
        self, context: RunContext, toolbox: Toolbox, attendance: Attendance | None = None
    ) -> None:
        """``attendance`` knows which remote hosts are there."""
        self._context = context
        self._toolbox = toolbox
        self.attendance = attendance
        self.hooks = Hooks(context, *([attendance.is_away] if attendance else []))
        """The commands of the hosts around each attempt; to be closed at the end of the run."""
        self.gives_up = ""
        """Why the run is to end with the last trial, if it is."""
        self._wait_end = context.wall() + context.settings.server_wait_s
        """Until then, a server that does not answer may still be starting."""
        self._free: FreePorts = {}
        self._answered: set[tuple[str, str]] = set()
        """Those at the far end of a flow that has measured something, in this run."""
        self._ports: defaultdict[str, Counter[int]] = defaultdict(Counter)
        """Those that trials use now, by machine."""
        self._asking: defaultdict[str, asyncio.Lock] = defaultdict(asyncio.Lock)
        """Keep two trials from choosing one port of a machine."""
        self._is_alone = True
        self.others: set[int] = set()
        """The positions of the trials that ran beside its attempt; whoever runs them says so."""
        self._tried = _Tried(Attempt(), AttemptEnd.ENDED, Status.INTERRUPTED)
        """The last attempt."""

    def beside(self) -> TrialRunner:
        """Return a runner for one trial of several that run at the same time."""
        other = copy(self)
        other._context, other._is_alone = self._context.of_trial(), False
        return other

    def skip(self) -> None:
        """Skip the trial that runs."""
        self._context.signals.skip.set()

    async def run(self, trial_id: int, trial: BoundTrial, first_attempt: int = 1) -> Status:
        """Run a trial to its end and write its outcome; returns its status.

        A lab that fails costs an attempt. Raises HookError if the run cannot be prepared,
        MissingError if a program is missing, LabError if the lab cannot be built or does not keep
        its promises, StoreError if the store fails.
        """
        context = self._context
        jitter = random.Random(f"{context.run.seed}/{trial.plan.position}")
        after = await self.attempt(trial_id, trial, Tries(first_attempt), self.attendance)
        while isinstance(after, NextAttempt):
            waiting = asyncio.ensure_future(asyncio.sleep(jittered(after.wait_s, jitter)))
            if not await context.wait_or_stop(waiting):
                return self.cut_short(trial_id, trial, context.cut_short)
            after = await self.attempt(trial_id, trial, after.tries)
        return after

    async def attempt(
        self, trial_id: int, trial: BoundTrial, tries: Tries, calls: Attendance | None = None
    ) -> Status | NextAttempt:
        """Make one attempt at a trial; returns what follows, or how it ended. Raises as `run`."""
        tried = self._tried = await self._try(trial_id, trial, tries, calls)
        after = next_attempt(tried.end, replace(tries, ports=tried.ports), self._context.settings)
        return self._finish(trial_id, trial, tried) if after is None else after

    def cut_short(
        self, trial_id: int, trial: BoundTrial, status: Status, error: str = ""
    ) -> Status:
        """End a trial between two attempts; returns its status."""
        return self._finish(trial_id, trial, self._tried._replace(status=status, error=error))

    # --- one attempt ----------------------------------------------------------------------

    async def _try(
        self, trial_id: int, trial: BoundTrial, tries: Tries, calls: Attendance | None
    ) -> _Tried:
        """Make one attempt, on hosts that ``calls`` asks whether they are there."""
        context = self._context
        held: list[tuple[str, int]] = []
        placing = asyncio.ensure_future(self._setups(trial_id, trial, tries.ports, calls, held))
        try:
            if not await context.wait_or_stop(placing):
                return _Tried(Attempt(), AttemptEnd.ENDED, context.cut_short, ports=tries.ports)
            flows = [self._flow(trial_id, trial, setup, tries) for setup in placing.result()]
            attempt = Attempt(flows, tries.adopted_start_s)
            await Measuring(context, trial_id, trial, attempt).run()
        except HookError as error:
            if error.of_run:
                raise
            return _Tried(Attempt(), AttemptEnd.ENDED, Status.FAILED, error.message, tries.ports)
        except (LabError, MissingError) as error:
            return await self._judge_error(error, tries)
        finally:
            await self.hooks.after(trial_id)
            for machine, port in held:
                self._ports[machine] -= Counter([port])
        return await self._judge(attempt, tries)

    async def _setups(
        self,
        trial_id: int,
        trial: BoundTrial,
        ports_tried: Mapping[str, int],
        calls: Attendance | None,
        held: list[tuple[str, int]],
    ) -> list[FlowSetup]:
        """Return the setups of one attempt; ``held`` gets its ports, by machine."""
        site, hosts = self._context.site, self._context.hosts
        if calls is not None:
            await calls.call(trial.plan)
        network = await site.prepare(trial)
        if site.was_probed:
            hosts.forget_clocks()
        earlier = trial.plan.hooks if isinstance(trial.plan, Trial) else ()
        ends = None if self._is_alone else names_of_ends(network, trial.plan.flows)
        await self.hooks.before(trial_id, earlier, network, ends)
        expected, bottlenecks = site.expected(trial), site.bottlenecks(trial)
        taken: set[int] = set()
        setups = []
        for flow in trial.flows:
            plan, backend = flow.plan, flow.backend
            source, target = network.hosts[plan.source], network.target(plan.to)
            tools = await self._toolbox.of_flow(backend, source, target)
            await self._toolbox.check_capture(plan, network)
            tried = ports_tried.get(plan.name, 0)
            # If a port was busy, ask for free ports again.
            known = {} if tried else self._free
            machine = machine_of(network, plan.to)
            async with self._asking[machine]:
                used = {*taken, *self._ports[machine]}
                ports = await ports_of(flow, network, used, hosts, known)
                chosen = ports[tried % len(ports)]
                for port in filter(None, chosen if target is not None else ()):
                    taken.add(port)
                    self._ports[machine][port] += 1
                    held.append((machine, port))
            together = len(trial.flows) > 1 or site.changes
            waits = backend.capabilities.waits_for_start and together
            theory = expected.get(plan.name, {}), bottlenecks.get(plan.name, {})
            setups.append(
                FlowSetup(flow, network, source, target, tools, *theory, waits, ports, *chosen)
            )
        return setups

    def _flow(
        self, trial_id: int, trial: BoundTrial, setup: FlowSetup, tries: Tries
    ) -> FlowAttempt:
        context, flow = self._context, setup.flow
        plan = flow.plan
        adopts = tries.adopted_start_s is not None
        if adopts:
            begun = context.reader.flows(trial_id)
            flow_id = next(row.id for row in begun if row.name == plan.name)
        else:
            flow_id = context.recorder.add_flow(
                trial_id, attempt=tries.number, name=plan.name, backend=plan.backend,
                source=plan.source, target=plan.to, direction=str(plan.direction),
                port=setup.port, status=Status.PLANNED, client=(), server=(),
                expected=setup.expected, bottlenecks=setup.bottlenecks, requested=flow.requested,
                protocol=flow.demand.protocol,
            )  # fmt: skip
        result = FlowResult(FlowFold(flow.backend.capabilities.metrics))
        name = f"trial {trial.plan.position + 1}, {plan.name}"
        recording = FlowRecording(flow_id, result, context.recorder, context.wall, name)
        number, deadline_s = tries.number, trial.plan.deadline_s
        place = EndPlace(context.run.name, trial.plan.position, number, deadline_s, adopts)
        return FlowAttempt(setup, recording, context, place)

    # --- what an attempt means --------------------------------------------------------------

    async def _judge(self, attempt: Attempt, tries: Tries) -> _Tried:
        may_succeed, away = self._may_succeed(attempt), self._unanswered(attempt)
        starting = bool(away) and self._context.wall() < self._wait_end
        if away and self._context.settings.gives_up:
            self.gives_up = await _why_away(away[0])
        ports, moves = attempt.next_ports(tries.ports)
        # A busy server moves the flow to its next port at once; only a full round of ports is an
        # attempt.
        if self.gives_up or not (may_succeed or starting):
            end = AttemptEnd.ENDED
        elif moves:
            end = AttemptEnd.BUSY
        else:
            end = AttemptEnd.STARTING if starting else AttemptEnd.FAILED
        return _Tried(attempt, end, attempt.status, ports=ports)

    async def _judge_error(self, error: LabError | MissingError, tries: Tries) -> _Tried:
        """Judge an attempt that could not begin. Raises the error if it concerns the run."""
        reason, end = await self._context.site.failure_reason(), AttemptEnd.SITE_FAILED
        if not reason:
            if not isinstance(error, HostError):
                raise error
            reason, end = error.message, AttemptEnd.FAILED
        if isinstance(error, AwayError):
            end = AttemptEnd.ENDED
        return _Tried(Attempt(), end, Status.FAILED, reason, tries.ports)

    def _may_succeed(self, attempt: Attempt) -> bool:
        """Return whether another attempt makes sense.

        After a deadline it does only if the peer has measured before: a peer that never answered
        has had a whole deadline to do so.
        """
        self._answered |= {
            flow.setup.server
            for flow in attempt.flows
            if flow.result.has_measured and not fails_by(flow, FailureKind.UNREACHABLE)
        }
        results = [flow.result for flow in attempt.flows]
        if attempt.status is Status.TIMED_OUT:
            late = (flow for flow in attempt.flows if flow.result.status is Status.TIMED_OUT)
            return {flow.setup.server for flow in late} <= self._answered
        retryable = all(result.failure.kind.retryable for result in results if result.failure)
        return attempt.status is Status.FAILED and retryable

    def _unanswered(self, attempt: Attempt) -> Sequence[FlowAttempt]:
        """Return the flows that failed, if all did because servers of others never answered."""
        late = [
            flow
            for flow in attempt.flows
            if flow.result.failure or flow.result.status is Status.TIMED_OUT
        ]
        away = all(
            flow.setup.target is None
            and flow.setup.server not in self._answered
            and (flow.result.failure is None or fails_by(flow, FailureKind.UNREACHABLE))
            for flow in late
        )
        return late if away else []

    def _finish(self, trial_id: int, trial: BoundTrial, tried: _Tried) -> Status:
        attempt, status, error = tried.attempt, tried.status, ""
        if status is Status.TIMED_OUT:
            late = f"exceeded its deadline of {trial.plan.deadline_s:g} s"
            error = ": ".join([late, *attempt.failures[:1]])
        elif status is Status.FAILED:
            error = tried.error or attempt.failures[0]
        shares = attempt.shares if status is Status.OK else None
        self._context.recorder.update_trial(
            trial_id,
            status=status,
            error=error,
            finished_time=self._context.wall(),
            start_skew_s=attempt.start_skew_s,
            fairness_jain=shares and shares.jain,
            fair_windows=shares.windows if shares else [],
            **({} if self._is_alone else {"beside": sorted(self.others)}),
        )
        return status


def jittered(wait_s: float, draw: random.Random) -> float:
    """Return a wait that is up to a quarter longer or shorter."""
    return wait_s * (1 + BACKOFF_JITTER * draw.uniform(-1, 1))


async def _why_away(flow: FlowAttempt) -> str:
    setup, failure = flow.setup, flow.result.failure
    address = setup.network.peers[setup.flow.plan.to].host
    return await asyncio.to_thread(unanswered, address, failure.message if failure else "")
