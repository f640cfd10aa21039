"""One attempt of one flow: its server and client, their events, and its outcome."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any, cast

from benchctl.api import Event, Failure, FailureKind, Flow, Role
from benchctl.engine.site.context import RunContext
from benchctl.engine.trial.capture import recorder_of
from benchctl.engine.trial.ends import (
    CommandEnd,
    EndHost,
    EndLink,
    EndPlace,
    EndPlan,
    EndSpec,
    FlowEnd,
    how_it_ended,
)
from benchctl.engine.trial.setup import FlowSetup
from benchctl.errors import HostError
from benchctl.hosts.clocks import ClockSpan, HostClock
from benchctl.run.planned import FleetTarget, Host
from benchctl.run.status import Status
from benchctl.store.flow_recording import FlowRecording

# Time for a one-shot server to end after its client, and for a client to end after it reported a
# failure. How a tool ends by itself says more than how it reacts to a signal.
GRACE_S = 2.0


class FlowAttempt:
    """Runs the two ends of a flow once and passes their events to its recording.

    The attempt calls, in this order: `start_server` if there is one, `record`, `start_client` (up
    to its gate), `begin`, `finished`, and always `end`. After a failure it continues with `end`.
    """

    def __init__(
        self,
        setup: FlowSetup,
        recording: FlowRecording,
        context: RunContext,
        place: EndPlace,
    ) -> None:
        """``place`` is that of its attempt."""
        self.setup = setup
        self.recording = recording
        self.result = recording.result
        self._hosts = context.hosts
        self._wall = context.wall
        self._recorder = context.recorder
        self._place = place
        self._tap = recorder_of(setup, context, recording.flow_id)
        """What records its packets."""
        self._ends: dict[Role, FlowEnd] = {}
        self.clocks: dict[str, HostClock] = {}
        """Those of its hosts."""
        self.captured_by: Mapping[str, ClockSpan | None] = {}
        """The clocks of the hosts where its packets were recorded."""
        self._failed = asyncio.Event()

    def fail(self, failure: Failure, role: Role = Role.CLIENT) -> None:
        """Note why the flow failed; the first reason of each end counts."""
        self.result.fail(failure, role)
        self._failed.set()

    def blame(self, failure: Failure) -> None:
        """Replace the reasons of the ends, which saw only the effect, with the cause."""
        self.result.failures = {Role.CLIENT: failure}
        self._failed.set()

    @property
    def was_ready(self) -> bool:
        """Whether its server has said that it listens."""
        return Role.SERVER in self._ends and self._ends[Role.SERVER].is_ready

    @property
    def lead_s(self) -> float:
        """How long before its start its ends must be told, as far as they are known."""
        return max((end.lead_s for end in self._ends.values()), default=0.0)

    @property
    def waits_for_host(self) -> bool:
        """Whether a host of it is away for a time, and may still bring what it measures."""
        return any(end.waits_for_host for end in self._ends.values())

    # --- from start to end ----------------------------------------------------------------

    async def start_server(self) -> None:
        """Start the server and wait until it is ready."""
        assert self.setup.target is not None
        await self._prepare(Role.SERVER, self.setup.target)

    async def record(self) -> None:
        """Start what records its packets, if that is asked for."""
        if self._tap and (why := await self._tap.start()):
            self.fail(Failure(FailureKind.TOOL, why))

    async def start_client(self, starts: float | None = None) -> None:
        """Start the client up to its gate; one that waits itself begins at a time of ours."""
        await self._prepare(Role.CLIENT, self.setup.source, starts)

    async def _prepare(self, role: Role, host: Host, starts: float | None = None) -> None:
        try:
            clock = self.clocks[host.name] = await self._hosts.clock_of(host)
        except HostError as error:
            self.fail(Failure(FailureKind.PEER, error.message, error.hint), role)
            return
        setup = self.setup
        start_at_s = None if starts is None else clock.theirs(starts + setup.flow.plan.delay_s)
        described = partial(setup.described, role, start_at_s)
        if isinstance(host.reach, FleetTarget):
            end = await self._end_in_fleet(role, host, described())
        else:
            plan = EndPlan(role, setup.flow.backend, described)
            end = CommandEnd(plan, EndHost(host, self._hosts, clock, self._wall), self)
        self._ends[role] = end
        await end.prepare()

    async def _end_in_fleet(self, role: Role, host: Host, described: Flow[Any]) -> FlowEnd:
        setup = self.setup
        flow, other = setup.flow, setup.source if role is Role.SERVER else setup.target
        spec = EndSpec.of(
            described, flow.backend, role, flow.plan.parameters, duration_s=flow.duration_s,
            deadline_s=self._place.deadline_s,
            peer=flow.address_at(other) if other else described.address,
        )  # fmt: skip
        link = cast("EndLink", await self._hosts.link(host))
        return link.end(self._place, setup.name, spec, self)

    async def begin(self, common_start: float, at: float | None = None) -> None:
        """Open the client's gate. ``common_start`` is the trial's second 0, in Unix time.

        It opens at the time ``at``.
        """
        await self._client.go(at)
        self.recording.begin(common_start)
        if self._place.adopts:
            self.result.begun = common_start + self.setup.flow.plan.delay_s

    async def finished(self) -> None:
        """Wait until the client has ended by itself, or has failed and had time to end."""
        client = self._client
        if await client.ended(None, unless=self._failed) or await client.ended(GRACE_S):
            self.result.client_ended = self._wall()
            await client.take_end()
            if client.exit_code != 0:
                self.fail(Failure(FailureKind.TOOL, how_it_ended(client)))

    @property
    def _client(self) -> FlowEnd:
        return self._ends[Role.CLIENT]

    async def end(self, cut_short: Status | None = None, reason: str = "") -> None:
        """End what is still running, take the last events, and judge; the result is written later.

        ``cut_short`` is None for a flow that ran its full time, else its status with the reason.
        """
        client, server = self._ends.get(Role.CLIENT), self._ends.get(Role.SERVER)
        result = self.result
        failures = dict(result.failures)
        if client and client.runs and not result.has_ended:
            await client.stop()
        if server and server.runs:
            may_end = result.begun and not result.failure and not server.stays
            by_itself = await server.ended(GRACE_S if may_end else 0.0)
            await server.stop()
            if by_itself and server.exit_code:
                how = how_it_ended(server)
                if not (result.failure and how.endswith(result.failure.message)):  # of a lost host
                    self.recording.note(f"the server {how}")
        if not result.has_ended:
            said = result.failures.get(Role.CLIENT)
            result.failures = failures  # a tool's reaction to our signal is not a failure
            silent = cut_short is Status.TIMED_OUT and not result.has_measured
            if silent and said and said.kind is not FailureKind.TOOL:
                result.failures[Role.CLIENT] = said  # but it may give the reason for the wait
        result.exit_code = client.exit_code if client else None
        result.stderr = "".join(self._ends[role].stderr for role in Role if role in self._ends)
        result.judge(self._wall(), cut_short, reason)
        if self._tap:
            result.captures = await self._tap.stop()
            self.captured_by = self._tap.clocks
            for text in self._tap.notes:
                self.recording.note(text)

    def kill(self) -> None:
        """Kill what still runs; for an `end` that takes long."""
        for end in self._ends.values():
            end.kill()
        if self._tap:
            self._tap.kill()

    def take_counters(self, host: str) -> Mapping[str, Any] | None:
        """Return once what a host told of its counters with the end there; None if nothing."""
        setup = self.setup
        names = {Role.CLIENT: setup.source.name, Role.SERVER: setup.target and setup.target.name}
        readings = [end.take_counters() for role, end in self._ends.items() if names[role] == host]
        return next(filter(None, readings), None)

    # --- what the ends say ----------------------------------------------------------------

    def show(self, role: Role, argv: Sequence[str]) -> None:
        """Write the words of the command of an end, see `EndListener`."""
        self._recorder.update_flow(self.recording.flow_id, **{str(role): tuple(argv)})

    def take(self, role: Role, event: Event, arrived: float | None) -> None:
        """Take the next event of an end, see `EndListener`."""
        if isinstance(event, Failure):
            self._failed.set()
        self.recording.take(role, event, arrived)
