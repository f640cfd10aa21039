"""Where the flows of one attempt run, and what they run with."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from msgspec.structs import replace

from benchctl.analysis.flow.laws import PathBounds
from benchctl.api import Flow, Role, Tool
from benchctl.plan.bound import BoundFlow
from benchctl.run.planned import Host, Network

if TYPE_CHECKING:
    from benchctl.engine.checks.network import ServerPorts
    from benchctl.plan.promise import Promises

# Flows that wait for a common start must have started their interpreter and parsed their options by
# then. Each takes its turn: two or three start at the same time on as many cores.
START_LEAD_S = 0.5
# On this machine, counters are read and programs are started in less, even if it is busy.
LEAST_LEAD_S = 0.2
# And have connected: to the server, to greet it, to ask it, and each stream.
LEAD_ROUND_TRIPS = 5


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
    ports: Sequence[ServerPorts]
    """The ports that may be tried."""
    port: int | None
    """The port in use."""
    second_port: int | None
    """The other port in use, of a server that listens on two."""

    def described(self, role: Role, start_at_s: float | None = None) -> Flow[Any]:
        """Return the flow as its backend sees it, for the command of one end."""
        return self.flow.described(
            self.network, self.port, self.tools, role, start_at_s, self.expected, self.second_port
        )

    @property
    def name(self) -> str:
        """The flow's name."""
        return self.flow.plan.name

    @property
    def server(self) -> tuple[str, str]:
        """What answers the flow: its far end, and the tool there."""
        return self.flow.plan.to, self.flow.plan.backend

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


def lead_s(setups: Iterable[FlowSetup]) -> float:
    """Return how long before the common start the clients of a trial are started.

    On this machine, those that wait have their own delays, too.
    """
    setups = list(setups)
    waiting = [setup for setup in setups if setup.waits]
    if not waiting and len(setups) < 2:
        return 0.0
    rtts_s = [promise.get("rtt_s", 0.0) for setup in waiting for promise in setup.expected.values()]
    needed_s = START_LEAD_S * max(1, len(waiting)) + LEAD_ROUND_TRIPS * max(rtts_s, default=0.0)
    if not waiting or any(host.reach for setup in setups for host in setup.hosts):
        return needed_s
    delay_s = min(setup.flow.plan.delay_s for setup in waiting)
    return max(LEAST_LEAD_S, needed_s - delay_s)
