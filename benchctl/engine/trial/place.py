"""Where the flows of one attempt run, and how well they started together and shared the way."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from msgspec.structs import replace

from benchctl.analysis.flow.figures import FlowFold
from benchctl.analysis.flow.laws import PathBounds
from benchctl.analysis.flow.loaded import Load
from benchctl.analysis.flow.sharing import WINDOWS, fair_windows
from benchctl.analysis.statistics import fairness_jain
from benchctl.api import Command, FailureKind, Role, Tool
from benchctl.engine.trial.flow import FlowAttempt
from benchctl.engine.trial.tally import Tally
from benchctl.hosts.ssh.programs import as_sent
from benchctl.metrics import Aspect, Direction, of_aspect
from benchctl.plan.bound import BoundFlow
from benchctl.run.planned import Host, Network
from benchctl.run.record import FairWindow

if TYPE_CHECKING:
    from benchctl.plan.promise import Promises

# Flows that wait for a common start must have started their interpreter and parsed their options by
# then. Each takes its turn: two or three start at the same time on as many cores.
START_LEAD_S = 0.5
# And have connected: to the server, to greet it, to ask it, and each stream.
LEAD_ROUND_TRIPS = 5
ROUND_TRIPS = ("tcp_min_rtt_s", "tcp_rtt_s", "rtt_s")


@dataclass(frozen=True, slots=True)
class FlowSetup:
    """Where one attempt of a flow runs, and what it runs with."""

    flow: BoundFlow
    network: Network
    source: Host
    target: Host | None
    tools: Mapping[Role, Tool]
    expected: Promises
    bottlenecks: Mapping[str, str]
    """The links that limit it by theory, by direction."""
    waits: bool
    """Whether its client waits itself for the trial's common start."""
    ports: Sequence[int | None]
    """The ports that may be tried."""
    port: int | None
    """The port in use."""

    def with_rights(self, host: Host, command: Command) -> Host:
        """Return a host of the flow as a command needs it: one that needs root gets it by sudo."""
        needs_root = self.flow.backend.capabilities.needs_root
        return replace(host, as_root=needs_root or command.wants_root)

    def shown(self, command: Command, host: Host) -> tuple[str, ...]:
        """Return the words of a command as they run on a host."""
        return command.argv if host.reach is None else as_sent(command.argv)

    @property
    def hosts(self) -> list[Host]:
        """Those of its ends that are ours."""
        return [self.source] if self.target is None else [self.source, self.target]

    def bounded(
        self, links: Mapping[str, PathBounds], came_in: Mapping[str, float]
    ) -> Mapping[str, PathBounds]:
        """Return the bounds of its directions: of the links, and the bytes that its ends got."""
        receivers = {"send": self.flow.plan.to, "receive": self.source.name}
        return {
            direction: replace(
                links.get(direction, PathBounds()),
                host_bytes=came_in.get(receivers.get(direction, ""), math.inf),
            )
            for direction in {*links, *receivers}
        }

    @property
    def one_clock(self) -> bool:
        """Whether both ends are on one machine."""
        return self.network.is_one_machine(self.source.name, self.flow.plan.to)


def server_of(place: FlowSetup) -> tuple[str, str]:
    """Return what answers a flow: its far end, and the tool there."""
    return place.flow.plan.to, place.flow.plan.backend


def next_port(places: list[FlowSetup], flows: list[FlowAttempt], turns: dict[str, int]) -> bool:
    """Move every busy flow to its next port; False if one has tried all of them."""
    moved = False
    for place, flow in zip(places, flows, strict=True):
        if flow.failure is not None and flow.failure.kind is FailureKind.BUSY:
            turns[flow.name] += 1
            moved = turns[flow.name] % len(place.ports) != 0
            if not moved:
                return False
    return moved


def lead_s(places: list[FlowSetup]) -> float:
    """Return how long before the common start the clients of a trial are started."""
    waiting = [place for place in places if place.waits]
    if not waiting and len(places) < 2:
        return 0.0
    rtts_s = [told.get("rtt_s", 0.0) for place in waiting for told in place.expected.values()]
    return START_LEAD_S * max(1, len(waiting)) + LEAD_ROUND_TRIPS * max(rtts_s, default=0.0)


def first_sent(place: FlowSetup, flow: FlowAttempt) -> float | None:
    """Return when a flow's first data left its sender, minus the delay set in the profile.

    In Unix time; None if unknown. Our own servers share our clock and report it. For other servers,
    the path's one-way delay is subtracted from the arrival at the client: the expected delay, else
    half the smallest round-trip time.
    """
    if flow.second_0 is None:
        return None
    before_s = place.flow.plan.delay_s + place.flow.demand.omitted_s
    if place.flow.plan.direction is not Direction.RECEIVE:
        return flow.second_0 - before_s
    if place.target is not None and flow.server_second_0 is not None:
        return flow.server_second_0 - before_s
    expected_s = place.expected.get("receive", {}).get("owd_s")
    return flow.second_0 - before_s - (_one_way_s(flow) if expected_s is None else expected_s)


def _one_way_s(flow: FlowAttempt) -> float:
    """Return half the smallest round-trip time in a flow's samples; 0 without any."""
    figures = flow.fold.figures()
    found = [figures[key] for key in (("receive", name) for name in ROUND_TRIPS) if key in figures]
    return min((f.spread.get("min", f.value) for f in found), default=0.0) / 2


def loads(places: list[FlowSetup], flows: list[FlowAttempt]) -> list[Load]:
    """Return when each flow that measures a rate carried data, in Unix time."""
    spans = []
    for place, flow in zip(places, flows, strict=True):
        if (load := flow.load) is not None:
            spans.append(load._replace(began=load.began - place.flow.demand.omitted_s))
    return spans


@dataclass(frozen=True, slots=True)
class Shares:
    """The time that the flows of a trial share, in Unix time, and their rates in it."""

    metric: str
    flows: Sequence[tuple[FlowFold, float]]
    """Those that measured it, each with its second 0."""
    begin: float
    end: float

    @classmethod
    def of(cls, flows: Sequence[Tally]) -> Shares | None:
        """Return None if fewer than two flows measured a rate, or none at the same time.

        A rate that cannot be has no share.
        """
        for name in of_aspect(Aspect.RATE):
            told = [(flow, flow.fold.window_s(name)) for flow in flows]
            shares = [(f, w, f.second_0) for f, w in told if w is not None and f.second_0]
            if any(name in flow.broken for flow in flows):
                return None
            if len(shares) > 1:
                begin = max(second_0 + window[0] for _, window, second_0 in shares)
                end = min(second_0 + window[1] for _, window, second_0 in shares)
                parts = [(flow.fold, second_0) for flow, _, second_0 in shares]
                return cls(name, parts, begin, end) if end > begin else None
        return None

    @property
    def jain(self) -> float | None:
        """Jain's index over the whole time."""
        return fairness_jain([rate for (rate,) in self._rates(1)])

    @property
    def windows(self) -> list[FairWindow]:
        """Jain's index over time, in windows no shorter than any sample."""
        longest_s = max(fold.longest_s(self.metric) for fold, _ in self.flows)
        count = min(WINDOWS, int((self.end - self.begin) / longest_s + 1e-6)) if longest_s else 0
        return fair_windows(self._rates(count), (self.end - self.begin) / count) if count else []

    def _rates(self, count: int) -> list[list[float]]:
        """Return the mean rates of each flow in equal windows of the time."""
        step_s = (self.end - self.begin) / count
        return [
            fold.in_windows(self.metric, self.begin - second_0, step_s, count)
            for fold, second_0 in self.flows
        ]
