"""Which trials run at the same time: those that share no host, and keep to the limits of a person.

A trial is an edge of a multigraph between the hosts at its ends. Trials that run at once are a
matching, and rounds of trials of equal length are an edge colouring. It has at least as many
colours as the busiest host has edges, its degree. The best one has at most 3/2 of that (Shannon, J.
Math. Phys. 28, 1949), or that and the most edges of one pair (Vizing, Diskret. Analiz 3, 1964).

Trials do not take equally long, so nothing here waits for a round to end. `coloured` puts the
points of a repeat in the order of a colouring. `Matching` starts the first trial in that order that
fits, with two exceptions. A repeat waits until a quarter of the other points have started since its
point was last measured: figures of one point must be spread over time. And a trial that others have
overtaken for a whole repeat keeps its hosts, so that it is next. In simulation, with three repeats,
a full mesh of 20 hosts takes 1.08 times the bound. One of 60 hosts takes 1.05 times the bound.
"""

from __future__ import annotations

import math
import random
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from typing import NamedTuple

from benchctl.metrics import Direction
from benchctl.plan.bound import BoundFlow, BoundTrial
from benchctl.run.planned import LOCAL, Network, Parallel, PlannedFlow, machine_reached

# Half a repeat lets hosts idle for 10 % of the time, an eighth measures pairs twice in a row.
SPREAD = 0.25


class OpenTrial(NamedTuple):
    """A trial that may start, with what it needs for itself.

    ``hosts`` are the machines at the ends of its flows, ``links`` what no other trial may share.
    ``point`` numbers its point. ``rate_bps`` is what its flows send at most.
    """

    position: int
    hosts: frozenset[str]
    point: int = 0
    links: frozenset[str] = frozenset()
    rate_bps: float = 0.0


def machine_of(network: Network, name: str) -> str:
    """Return what tells the machine of a host or server from others: two names may be one."""
    host = network.target(name)
    if host is None:
        return f"server {network.peers[name].host}"
    if host.reach is not None:
        return machine_reached(host.reach)
    # The hosts of a lab share no ports; others are this machine, at any of its addresses.
    return LOCAL.name if host.shares_ports else host.name


def machines_of(network: Network, flows: Iterable[PlannedFlow]) -> frozenset[str]:
    """Return the machines at the ends of flows."""
    names = {name for flow in flows for name in (flow.source, flow.to)}
    return frozenset(machine_of(network, name) for name in names)


def open_trial(trial: BoundTrial, network: Network, point: int) -> OpenTrial:
    """Return what a trial needs for itself."""
    hosts = machines_of(network, trial.plan.flows)
    rate_bps = math.fsum(map(_rate_bps, trial.flows))
    return OpenTrial(trial.plan.position, hosts, point, rate_bps=rate_bps)


def _rate_bps(flow: BoundFlow) -> float:
    directions = 2 if flow.plan.direction is Direction.BOTH else 1
    demand = flow.demand
    return directions * demand.streams * demand.rate_bps


def coloured(points: Sequence[frozenset[str]], seed: int) -> list[int]:
    """Return the numbers of points in the order of an edge colouring, drawn by the seed.

    Each is given by its hosts. Points of a colour share none; the largest colours are first.
    """
    order = list(range(len(points)))
    random.Random(seed).shuffle(order)
    degree = Counter(host for hosts in points for host in hosts)
    # The busiest hosts have the least choice, so theirs are first.
    order.sort(key=lambda number: sorted(-degree[host] for host in points[number]))
    used: dict[str, int] = {}
    """The colours of each host, as the bits of a number."""
    colours: dict[int, list[int]] = {}
    for number in order:
        taken = 0
        for host in points[number]:
            taken |= used.get(host, 0)
        lowest = ~taken & (taken + 1)
        for host in points[number]:
            used[host] = used.get(host, 0) | lowest
        colours.setdefault(lowest, []).append(number)
    by_size = sorted(colours.values(), key=len, reverse=True)
    return [number for colour in by_size for number in colour]


class Matching:
    """Chooses what to start next of the trials that are open, by the limits of a run.

    Whoever runs them says when each has ended, or is open again.
    """

    def __init__(self, limits: Parallel, network: Network, points: int, *, spreads: bool) -> None:
        """``points`` is how many a repeat has; with ``spreads``, repeats keep their distance."""
        self._limits = limits
        self._points = max(1, points)
        self._distance = int(SPREAD * points) if spreads else 0
        self._sites = [
            (site.most, frozenset(machine_of(network, name) for name in site.hosts))
            for site in limits.sites
        ]
        self._open: dict[int, OpenTrial] = {}
        self._due: dict[int, int] = {}
        """How many others may start before each, in the order."""
        self._again: set[int] = set()
        """Those that had started, and are open again."""
        self.running: dict[int, OpenTrial] = {}
        """By position."""
        self._hosts: Counter[str] = Counter()
        self._links: Counter[str] = Counter()
        self._crossing: Counter[int] = Counter()
        self._rate_bps = 0.0
        self._started = 0
        self._last: dict[int, int] = {}
        """How many trials had started before the last one of each point."""

    @property
    def open(self) -> Collection[OpenTrial]:
        """The trials that have not started, in order."""
        return self._open.values()

    def add(self, trial: OpenTrial) -> None:
        """Add a trial after all others."""
        self._due[trial.position] = max(self._started, len(self._due))
        self._open[trial.position] = trial

    def drop(self, position: int) -> None:
        """Forget an open trial."""
        del self._open[position]

    def ended(self, position: int, *, again: bool = False) -> None:
        """Free what a trial had; ``again`` opens it once more, at its place in the order."""
        trial = self.running.pop(position)
        self._count(trial, -1)
        if again:
            self._again.add(position)
            later = {key: other for key, other in self._open.items() if key > position}
            for key in later:
                del self._open[key]
            self._open |= {position: trial, **later}

    def start(self, is_ready: Callable[[OpenTrial], bool] = lambda _: True) -> OpenTrial | None:
        """Start the next trial that fits, of those that are ready; None if none is."""
        most = self._limits.most
        if most is not None and len(self.running) >= most:
            return None
        per_host = self._limits.per_host
        full = {host for host, count in self._hosts.items() if count >= per_host}
        kept: set[str] = set()
        near: OpenTrial | None = None
        for trial in self._open.values():
            if not (trial.hosts.isdisjoint(full) and self._fits(trial)):
                late = self._started - self._due[trial.position] >= self._points
                if late and kept.isdisjoint(trial.hosts) and is_ready(trial):
                    full |= trial.hosts
                    kept |= trial.hosts
            elif is_ready(trial):
                if self._is_far(trial):
                    return self._start(trial)
                near = near or trial
        # Nothing would ever bring it further away.
        return self._start(near) if near is not None and not self.running else None

    def _fits(self, trial: OpenTrial) -> bool:
        """Return whether what a trial needs beside its hosts is left."""
        return (
            not any(self._links[link] for link in trial.links)
            and all(self._crossing[site] < self._sites[site][0] for site in self._crosses(trial))
            and self._has_rate_left(trial)
        )

    def _has_rate_left(self, trial: OpenTrial) -> bool:
        most_bps = self._limits.most_rate_bps
        return most_bps is None or self._rate_bps + trial.rate_bps <= most_bps or not self.running

    def _crosses(self, trial: OpenTrial) -> Iterator[int]:
        """Yield the sites whose uplink a trial uses: one of its ends is there, another is not."""
        for number, (_, hosts) in enumerate(self._sites):
            if not trial.hosts <= hosts and not trial.hosts.isdisjoint(hosts):
                yield number

    def _is_far(self, trial: OpenTrial) -> bool:
        if trial.position in self._again:
            return True
        last = self._last.get(trial.point)
        return last is None or self._started - last > self._distance

    def _start(self, trial: OpenTrial) -> OpenTrial:
        del self._open[trial.position]
        self.running[trial.position] = trial
        self._count(trial, 1)
        self._last[trial.point] = self._started
        self._started += 1
        return trial

    def _count(self, trial: OpenTrial, step: int) -> None:
        for host in trial.hosts:
            self._hosts[host] += step
        for link in trial.links:
            self._links[link] += step
        for site in self._crosses(trial):
            self._crossing[site] += step
        # Infinities have no difference.
        self._rate_bps = math.fsum(other.rate_bps for other in self.running.values())


def first_batch(limits: Parallel, network: Network, trials: Iterable[OpenTrial]) -> list[OpenTrial]:
    """Return the trials that run at once at the start of a run."""
    matching = Matching(limits, network, 1, spreads=False)
    for trial in trials:
        matching.add(trial)
    return list(iter(matching.start, None))


def least_s(
    limits: Parallel, network: Network, trials: Iterable[tuple[OpenTrial, float]], at_once: int
) -> float:
    """Return the least time that trials take, each given with its own, of which few run at once.

    No host and no uplink has more to do than it can in that time. For a full mesh this is the time
    of all trials divided by half the hosts, rounded down.
    """
    matching = Matching(limits, network, 1, spreads=False)
    hosts: Counter[str] = Counter()
    uplinks: Counter[int] = Counter()
    whole_s = 0.0
    for trial, lasts_s in trials:
        whole_s += lasts_s
        for host in trial.hosts:
            hosts[host] += lasts_s  # type: ignore[assignment]
        for site in matching._crosses(trial):
            uplinks[site] += lasts_s  # type: ignore[assignment]
    busy_s = max(hosts.values(), default=0.0) / limits.per_host
    crossing_s = [uplinks[number] / site.most for number, site in enumerate(limits.sites)]
    return max(whole_s / max(1, at_once), busy_s, *crossing_s, 0.0)
