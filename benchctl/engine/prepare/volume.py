"""How much a plan will send, by path and by host, as far as this can be known before the run."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from ipaddress import ip_address
from typing import TYPE_CHECKING, NamedTuple

from benchctl.errors import UsageError
from benchctl.metrics import Direction
from benchctl.plan.bound import BoundFlow, BoundTrial
from benchctl.plan.plan import Plan, lab_settings
from benchctl.units import format_rate, format_size

if TYPE_CHECKING:
    from benchctl.engine.prepare.planning import Planned

# A larger plan is estimated from this many trials: people need the order of magnitude.
LOOKED_AT = 500
# What is expected of a lab takes some milliseconds for each trial.
LOOKED_AT_IN_LAB = 20
# What a flow is taken to send if only the network limits it: the usual access of a server. Of ten
# times this rate many hosts pay for each byte.
ASSUMED_BPS = 1e9
# Some hundred measurements of 10 s at that rate, and about what a month of cloud traffic includes.
MOST_BYTES = 100e9


class Path(NamedTuple):
    """From where to where data flows, by the names of the profile."""

    source: str
    to: str


@dataclass(frozen=True, slots=True)
class Amount:
    """Payload bytes: of flows with a known amount, and of others at `ASSUMED_BPS`.

    Others send as much as the network carries in their time.
    """

    known_bytes: float = 0.0
    assumed_bytes: float = 0.0

    def __add__(self, other: Amount) -> Amount:
        return Amount(
            self.known_bytes + other.known_bytes, self.assumed_bytes + other.assumed_bytes
        )

    def times(self, factor: float) -> Amount:
        """Return it as often as that."""
        return Amount(self.known_bytes * factor, self.assumed_bytes * factor)

    @property
    def most_bytes(self) -> float:
        """Both together."""
        return self.known_bytes + self.assumed_bytes

    @property
    def at_assumed(self) -> str:
        """What it comes to at the assumed rate, in words; empty if no flow is open-ended."""
        if not self.assumed_bytes:
            return ""
        return f"{format_size(self.most_bytes)} at {format_rate(ASSUMED_BPS)}"

    def __str__(self) -> str:
        if self.assumed_bytes:
            return "unlimited"
        return format_size(self.known_bytes) if self.known_bytes else "none"


@dataclass(frozen=True, slots=True)
class Traffic:
    """What all trials of a plan send; ``paths`` are those between machines of the real network.

    In a lab, the links bound what the flows send together.
    """

    whole: Amount
    paths: Mapping[Path, Amount]
    in_lab: bool = False

    def times(self, factor: float) -> Traffic:
        """Return it as often as that."""
        paths = {path: amount.times(factor) for path, amount in self.paths.items()}
        return Traffic(self.whole.times(factor), paths, self.in_lab)

    @property
    def hosts(self) -> Mapping[str, tuple[Amount, Amount]]:
        """What each host sends and receives over the paths."""
        found: dict[str, tuple[Amount, Amount]] = {}
        for path, amount in self.paths.items():
            sent, received = found.get(path.source, (Amount(), Amount()))
            found[path.source] = sent + amount, received
            sent, received = found.get(path.to, (Amount(), Amount()))
            found[path.to] = sent, received + amount
        return found

    @property
    def between(self) -> Amount:
        """What all paths carry."""
        return sum(self.paths.values(), Amount())


def expected_traffic(prepared: Planned) -> Traffic:
    """Return the traffic of all trials of a plan."""
    plan = prepared.plan
    real = prepared.topology is None
    count = min(len(plan), LOOKED_AT if real else LOOKED_AT_IN_LAB)
    whole = Amount()
    paths: dict[Path, Amount] = {}
    for index in range(count):
        trial = plan.trial(index * len(plan) // count)
        rates = {} if real else _rates_in_lab(prepared, trial)
        for flow in trial.flows:
            amount = _amount(flow, rates.get(flow.plan.name))
            whole += amount
            if real and not prepared.network.is_one_machine(flow.plan.source, flow.plan.to):
                for path in _paths(flow):
                    paths[path] = paths.get(path, Amount()) + amount
    share = len(plan) / count
    return Traffic(
        whole.times(share),
        {path: amount.times(share) for path, amount in paths.items() if amount.most_bytes},
        not real,
    )


def _rates_in_lab(prepared: Planned, trial: BoundTrial) -> dict[str, float]:
    """Return the payload that the links of a lab carry for each flow, in bit/s, where known."""
    # A plan without a lab need not wait for the import of its room.
    from benchctl.engine.site.lab_site import planned_promises

    lab = prepared.plan.document.model.lab
    assert prepared.topology is not None
    assert lab is not None
    found = planned_promises(prepared.outside, lab_settings(prepared.topology, lab), trial)
    return {
        flow: sum(
            promise["throughput_bps"]
            for promise in promises.values()
            if "throughput_bps" in promise
        )
        for flow, promises in found.items()
    }


def most_times(plan: Plan) -> float:
    """Return how many times its first trials a plan may measure: a search, or more repeats."""
    more: float = plan.search.most if plan.search else 1
    return more * (plan.until.most / plan.repeats if plan.until is not None else 1)


def _amount(flow: BoundFlow, rate_bps: float | None) -> Amount:
    sent = flow.traffic_bytes
    if sent is not None and math.isfinite(sent):
        return Amount(sent)
    if not flow.demand.rate_bps:  # probes
        return Amount()
    if rate_bps:
        return Amount(rate_bps / 8 * flow.duration_s)
    return Amount(assumed_bytes=ASSUMED_BPS / 8 * flow.duration_s)


def _paths(flow: BoundFlow) -> list[Path]:
    there = Path(flow.plan.source, flow.plan.to)
    back = Path(*reversed(there))
    if flow.plan.direction is Direction.SEND:
        return [there]
    return [back] if flow.plan.direction is Direction.RECEIVE else [there, back]


def reached_outside(prepared: Planned) -> dict[str, str]:
    """Return the addresses outside this machine that the flows reach, by server or host.

    A lab has no way out.
    """
    if prepared.topology is not None:
        return {}
    network = prepared.network
    ends = dict.fromkeys(end for flow in prepared.plan.routes for end in (flow.source, flow.to))
    found = {}
    for name in ends:
        peer = network.peers.get(name)
        address = peer.host if peer else network.hosts[name].address
        if not _is_here(address):
            found[name] = address
    return found


def _is_here(address: str) -> bool:
    from benchctl.hosts.sent.ports import is_own

    try:
        return ip_address(address).is_loopback or is_own(address)
    except ValueError:  # A name may stand for any address.
        return address == "localhost"


def over_limit(prepared: Planned) -> str:
    """Return how much a plan may send, if nobody should have that by mistake; empty if less."""
    more = most_times(prepared.plan)
    amount = expected_traffic(prepared).between.times(more)
    if amount.most_bytes <= MOST_BYTES:
        return ""
    return f"{'at most ' * (more > 1)}{amount.at_assumed or amount}"


def check_traffic(prepared: Planned) -> None:
    """Raise UsageError if a plan may send too much."""
    if much := over_limit(prepared):
        raise UsageError(
            f"this would send {much}; more than {format_size(MOST_BYTES)} needs --yes",
            "benchctl plan shows the paths; --only, --repeat or a shorter duration sends less",
        )
