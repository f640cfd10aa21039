"""Runs one trial: all its flows together, as often as its attempts allow."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from benchctl.analysis.figures import FlowFold
from benchctl.analysis.statistics import fairness_jain
from benchctl.api import Command, FailureKind, Flow, Role, Tool
from benchctl.backends import AnyBackend, Registry
from benchctl.engine.flow import FAILED, INTERRUPTED, OK, SKIPPED, TIMED_OUT, End, FlowAttempt
from benchctl.engine.network import Network, address_of, describe_flow, ports_of
from benchctl.engine.promise import Promises
from benchctl.engine.site import Site
from benchctl.engine.tools import Toolbox
from benchctl.hosts.host import Host
from benchctl.hosts.spawn import Spawner
from benchctl.profile.bind import FlowPlan, Trial
from benchctl.store.record import Recorder

# Flows that wait for a common start need both interpreters up and their options read by then. Each
# takes its turn: two or three start at the same time on as many cores.
START_LEAD_S = 0.5
# Back-off differs by up to a quarter, so that two who wait for one server do not meet again.
BACKOFF_JITTER = 0.25
FAIR_RATES = ("throughput_bps", "sent_bps")


@dataclass(frozen=True, slots=True)
class Attempts:
    """How often a trial is tried, and how long it waits in between."""

    most: int
    backoff_s: float


@dataclass(slots=True)
class Place:
    """Where a flow of a trial runs, and what of it stays the same over all attempts."""

    plan: FlowPlan
    backend: AnyBackend
    network: Network
    source: Host
    target: Host | None
    tools: Mapping[Role, Tool]
    expected: Promises
    ports: list[int | None]
    turn: int = 0
    """Which of the ports is tried now."""

    @property
    def port(self) -> int | None:
        """The port of this attempt."""
        return self.ports[self.turn % len(self.ports)]


class Signals:
    """What the outside may ask of a running trial; each is set once and stays."""

    def __init__(self) -> None:
        self.stop = asyncio.Event()
        self.skip = asyncio.Event()


class TrialRunner:
    """Runs trials, one after another, on one site."""

    def __init__(
        self,
        registry: Registry,
        site: Site,
        toolbox: Toolbox,
        spawner: Spawner,
        recorder: Recorder,
        attempts: Attempts,
        signals: Signals,
        wall_clock: Callable[[], float],
        seed: int,
    ) -> None:
        self._registry = registry
        self._site = site
        self._toolbox = toolbox
        self._spawner = spawner
        self._recorder = recorder
        self._attempts = attempts
        self._signals = signals
        self._wall = wall_clock
        self._seed = seed

    async def run(self, trial_id: int, trial: Trial, first_attempt: int = 1) -> str:
        """Run a trial to its end and write how it went; returns its status.

        Raises MissingError when a program is not there, LabError when the lab cannot be built or
        does not keep its promises, StoreError when the store fails.
        """
        network = await self._site.prepare(trial)
        expected = self._site.expected(trial)
        places = [
            await self._place(flow, network, expected.get(flow.name, {})) for flow in trial.flows
        ]
        jitter = random.Random(f"{self._seed}/{trial.index}")
        tried, number = 1, first_attempt
        while True:
            flows = await self._attempt(trial_id, trial, places, number)
            status = _overall(flows)
            if status != FAILED or not _may_succeed(flows):
                return self._finish(trial_id, trial, flows, status)
            # A busy server moves the flow on at once; only a whole round of ports costs a try.
            if not _next_port(places, flows):
                if tried == self._attempts.most:
                    return self._finish(trial_id, trial, flows, status)
                wait_s = self._attempts.backoff_s * 2 ** (tried - 1)
                tried += 1
                if await self._pause(wait_s * (1 + BACKOFF_JITTER * jitter.uniform(-1, 1))):
                    return self._finish(trial_id, trial, flows, self._asked())
            number += 1

    async def _place(self, flow: FlowPlan, network: Network, expected: Promises) -> Place:
        backend = self._registry.load(flow.backend)
        source = network.hosts[flow.source]
        target = network.hosts.get(flow.to)
        tools = await self._toolbox.of_flow(backend, source, target)
        return Place(flow, backend, network, source, target, tools, expected, [])

    def _choose_ports(self, places: list[Place]) -> None:
        taken: set[int] = set()
        for place in places:
            parameters = place.backend.parameters.model_validate(place.plan.parameters)
            address = address_of(place.target, parameters) if place.target else ""
            if place.target is None and place.ports:
                continue  # a peer's range: go on where the last attempt was
            place.ports = ports_of(place.plan, place.backend, place.network, address, taken)
            place.turn = 0 if place.target else place.turn
            if place.target and place.port is not None:
                taken.add(place.port)

    # --- one attempt ----------------------------------------------------------------------

    async def _attempt(
        self, trial_id: int, trial: Trial, places: list[Place], number: int
    ) -> list[FlowAttempt]:
        self._choose_ports(places)
        waiting = sum(place.backend.capabilities.waits_for_start for place in places)
        lead_s = START_LEAD_S * max(1, waiting) if len(places) > 1 else 0.0
        starts = self._wall() + lead_s
        flows = [self._flow(trial_id, place, number, starts, lead_s > 0) for place in places]
        self._recorder.update_trial(trial_id, status="running", started_time=starts)
        measuring = asyncio.ensure_future(self._measure(trial, flows, starts))
        waits = [asyncio.ensure_future(e.wait()) for e in (self._signals.stop, self._signals.skip)]
        try:
            await asyncio.wait(
                [measuring, *waits],
                timeout=trial.deadline_s + lead_s,
                return_when=asyncio.FIRST_COMPLETED,
            )
        finally:
            for wait in waits:
                wait.cancel()
        status, reason = "", ""
        if not measuring.done():
            status = self._asked() or TIMED_OUT
            reason = (
                f"not finished within its deadline of {trial.deadline_s:g} s"
                if status == TIMED_OUT
                else f"{status} by the user"
            )
            measuring.cancel()
            await asyncio.wait([measuring])
        elif (error := measuring.exception()) is not None:
            status, reason = INTERRUPTED, str(error)
        await asyncio.gather(*(self._end(flow, status, reason) for flow in flows))
        if not measuring.cancelled() and (error := measuring.exception()) is not None:
            raise error
        return flows

    async def _end(self, flow: FlowAttempt, status: str, reason: str) -> None:
        if not status and flow.failure is None and not flow.has_ended:
            status, reason = INTERRUPTED, "ended because another flow of its trial failed"
        elif status and (flow.failure is not None or flow.has_ended):
            status, reason = "", ""  # it had its end before the others were cut short
        await flow.end(status, reason)

    async def _measure(self, trial: Trial, flows: list[FlowAttempt], starts: float) -> None:
        """Bring all flows to their gates, open them together, and wait until all have ended.

        The first flow that fails ends the attempt.
        """
        await asyncio.gather(*(flow.prepare() for flow in flows))
        if any(flow.failure for flow in flows):
            return
        waiting_s = starts - self._wall()
        early = [flow for flow in flows if flow.waits_for_start]
        for flow in early:
            flow.begin(starts)
        if len(flows) > 1 and waiting_s > 0:
            await asyncio.sleep(waiting_s)
        common_start = starts if len(flows) > 1 else self._wall()
        self._site.begin(common_start)
        delays = sorted({plan.delay_s for plan in trial.flows})
        for before_s, delay_s in zip([0.0, *delays], delays, strict=False):
            if delay_s > before_s:
                await asyncio.sleep(delay_s - before_s)
            for plan, flow in zip(trial.flows, flows, strict=True):
                if plan.delay_s == delay_s and flow not in early:
                    flow.begin(common_start)
        pending = {asyncio.ensure_future(flow.finished()) for flow in flows}
        try:
            while pending and not any(flow.failure for flow in flows):
                _, pending = await asyncio.wait(pending, return_when=asyncio.FIRST_COMPLETED)
        finally:
            for task in pending:
                task.cancel()

    def _flow(
        self, trial_id: int, place: Place, number: int, starts: float, together: bool
    ) -> FlowAttempt:
        plan, backend = place.plan, place.backend
        waits = backend.capabilities.waits_for_start and together
        start_at_s = starts + plan.delay_s if waits else None

        def describe(role: Role) -> Flow[Any]:
            return describe_flow(
                plan, backend, place.network, place.port, place.tools, role, start_at_s
            )

        client: Command = backend.client(describe(Role.CLIENT))
        server = (
            backend.server(describe(Role.SERVER))
            if place.target is not None and backend.capabilities.needs_server
            else None
        )
        flow_id = self._recorder.add_flow(
            trial_id,
            attempt=number,
            name=plan.name,
            backend=plan.backend,
            source=plan.source,
            target=plan.to,
            direction=str(plan.direction),
            port=place.port,
            status="running",
            client=client.argv,
            server=server.argv if server else (),
            expected=place.expected,
            requested=_plain(backend.parameters.model_validate(plan.parameters).model_dump()),
        )
        return FlowAttempt(
            plan.name,
            flow_id,
            End(Role.CLIENT, place.source, client),
            End(Role.SERVER, place.target, server) if server and place.target else None,
            FlowFold(backend.capabilities),
            self._spawner,
            self._recorder,
            self._wall,
            waits,
        )

    # --- between and after attempts -------------------------------------------------------

    def _asked(self) -> str:
        """Return the status that the outside asked for, or ""."""
        if self._signals.stop.is_set():
            return INTERRUPTED
        return SKIPPED if self._signals.skip.is_set() else ""

    async def _pause(self, length_s: float) -> bool:
        """Wait; returns True when the user ended the waiting."""
        waits = [asyncio.ensure_future(e.wait()) for e in (self._signals.stop, self._signals.skip)]
        done, pending = await asyncio.wait(
            waits, timeout=length_s, return_when=asyncio.FIRST_COMPLETED
        )
        for wait in pending:
            wait.cancel()
        return bool(done)

    def _finish(self, trial_id: int, trial: Trial, flows: list[FlowAttempt], status: str) -> str:
        failed = [f"{flow.name}: {flow.failure.message}" for flow in flows if flow.failure]
        error = failed[0] if failed else f"not finished within {trial.deadline_s:g} s"
        starts = [
            flow.second_0 - plan.delay_s
            for plan, flow in zip(trial.flows, flows, strict=True)
            if flow.second_0 is not None
        ]
        self._recorder.update_trial(
            trial_id,
            status=status,
            error=error if status in (FAILED, TIMED_OUT) else "",
            finished_time=self._wall(),
            start_skew_s=max(starts) - min(starts) if len(starts) > 1 else None,
            fairness_jain=_fairness(flows) if status == OK else None,
        )
        return status


def _overall(flows: list[FlowAttempt]) -> str:
    """Return a trial's status from its flows': the worst one counts."""
    statuses = {flow.status for flow in flows}
    if FAILED in statuses:
        return FAILED  # the others were cut short because of it
    return next((s for s in (INTERRUPTED, SKIPPED, TIMED_OUT) if s in statuses), OK)


def _may_succeed(flows: list[FlowAttempt]) -> bool:
    return all(flow.failure.kind.retryable for flow in flows if flow.failure)


def _next_port(places: list[Place], flows: list[FlowAttempt]) -> bool:
    """Move every busy flow to its next port; False when one has been round all of them."""
    moved = False
    for place, flow in zip(places, flows, strict=True):
        if flow.failure is not None and flow.failure.kind is FailureKind.BUSY:
            place.turn += 1
            moved = place.turn % len(place.ports) != 0
            if not moved:
                return False
    return moved


def _fairness(flows: list[FlowAttempt]) -> float | None:
    """Return Jain's index of the flows' rates over the window that all of them share."""
    for name in FAIR_RATES:
        told = [(flow, flow.fold.window_s(name)) for flow in flows]
        shares = [(f, w, f.second_0) for f, w in told if w is not None and f.second_0 is not None]
        if len(shares) > 1:
            begin = max(second_0 + window[0] for _, window, second_0 in shares)
            end = min(second_0 + window[1] for _, window, second_0 in shares)
            if end <= begin:
                return None
            return fairness_jain(
                [f.fold.rate_within(name, begin - s0, end - s0) for f, _, s0 in shares]
            )
    return None


def _plain(values: Mapping[str, Any]) -> dict[str, Any]:
    """Return parameters as JSON-like data; what is not set is left out."""
    return {
        name: "unlimited" if value == float("inf") else value
        for name, value in values.items()
        if value is not None
    }
