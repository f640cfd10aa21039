"""One attempt at a trial: its flows, each with where it runs and what it came to."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from benchctl.analysis.flow.loaded import Load
from benchctl.analysis.flow.sharing import Shares
from benchctl.api import FailureKind
from benchctl.engine.trial.flow import FlowAttempt
from benchctl.engine.trial.setup import lead_s
from benchctl.hosts.clocks import OURS
from benchctl.metrics import Direction
from benchctl.run.planned import Host
from benchctl.run.record import ClockReading
from benchctl.run.status import Status, overall

ROUND_TRIPS = ("tcp_min_rtt_s", "tcp_rtt_s", "rtt_s")


@dataclass(frozen=True)
class Attempt:
    """The flows of a trial, measured together once; none if it could not begin."""

    flows: Sequence[FlowAttempt] = ()
    adopted_start_s: float | None = None
    """As in `Tries`."""

    @property
    def status(self) -> Status:
        """The worst of its flows counts."""
        return overall({flow.result.status for flow in self.flows})

    @property
    def has_failed(self) -> bool:
        """Whether one of its flows has failed already."""
        return any(flow.result.failure for flow in self.flows)

    @property
    def waits_for_host(self) -> bool:
        """Whether it is longer than its deadline, because a host is away for a time."""
        return any(flow.waits_for_host for flow in self.flows)

    @property
    def failures(self) -> list[str]:
        """Why flows failed: ``bulk: connection refused``."""
        pairs = ((flow.setup.name, flow.result.failure) for flow in self.flows)
        return [f"{name}: {failure.message}" for name, failure in pairs if failure]

    @property
    def hosts(self) -> list[Host]:
        """Ours, at the ends of its flows."""
        return [host for flow in self.flows for host in flow.setup.hosts]

    @property
    def lead_s(self) -> float:
        """How long before the common start its clients are started."""
        told_s = max((flow.lead_s for flow in self.flows), default=0.0)
        return lead_s(flow.setup for flow in self.flows) + told_s

    @property
    def loads(self) -> list[Load]:
        """When each flow that measures a rate carried data, in Unix time."""
        return [
            load._replace(began=load.began - flow.setup.flow.demand.omitted_s)
            for flow in self.flows
            if (load := flow.result.load) is not None
        ]

    @property
    def shares(self) -> Shares | None:
        """How its flows share the rate; None if they do not."""
        results = [flow.result for flow in self.flows]
        broken = {name for result in results for name in result.broken}
        return Shares.of([(result.fold, result.second_0) for result in results], broken)

    @property
    def start_skew_s(self) -> float | None:
        """The time between the first and the last start of its flows; None if unknown."""
        starts = [time for flow in self.flows if (time := first_sent(flow)) is not None]
        return max(starts) - min(starts) if len(starts) > 1 else None

    def clocks_at(self, time: float) -> dict[str, ClockReading]:
        """Return what is known of the clocks of its remote hosts, at a Unix time."""
        clocks = {host: clock for flow in self.flows for host, clock in flow.clocks.items()}
        return {host: clock.reading(time) for host, clock in clocks.items() if clock is not OURS}

    def next_ports(self, ports_tried: Mapping[str, int]) -> tuple[Mapping[str, int], bool]:
        """Return how many ports each flow has tried if busy flows move on to their next ones.

        And whether they do: not if none is busy, or if one has tried all of its ports.
        """
        busy = [flow.setup for flow in self.flows if fails_by(flow, FailureKind.BUSY)]
        tried = {setup.name: ports_tried.get(setup.name, 0) + 1 for setup in busy}
        moves = bool(busy) and all(tried[setup.name] % len(setup.ports) for setup in busy)
        return {**ports_tried, **tried}, moves


def fails_by(flow: FlowAttempt, kind: FailureKind) -> bool:
    """Return whether a flow failed by this kind of failure."""
    return flow.result.failure is not None and flow.result.failure.kind is kind


def first_sent(flow: FlowAttempt) -> float | None:
    """Return when a flow's first data left its sender, minus the delay set in the profile.

    In Unix time; None if unknown. Our own servers share our clock and report it. For other servers,
    the path's one-way delay is subtracted from the arrival at the client: the expected delay, else
    half the smallest round-trip time.
    """
    setup, result = flow.setup, flow.result
    if result.second_0 is None:
        return None
    before_s = setup.flow.plan.delay_s + setup.flow.demand.omitted_s
    if setup.flow.plan.direction is not Direction.RECEIVE:
        return result.second_0 - before_s
    if setup.target is not None and result.server_second_0 is not None:
        return result.server_second_0 - before_s
    expected_s = setup.expected.get("receive", {}).get("owd_s")
    return result.second_0 - before_s - (_one_way_s(flow) if expected_s is None else expected_s)


def _one_way_s(flow: FlowAttempt) -> float:
    """Return half the smallest round-trip time in a flow's samples; 0 without any."""
    figures = flow.result.fold.figures()
    found = [figures[key] for key in (("receive", name) for name in ROUND_TRIPS) if key in figures]
    return min((f.spread.get("min", f.value) for f in found), default=0.0) / 2
