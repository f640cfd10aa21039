"""A lab in which the trials of a run take place.

It is built when a trial needs it, and kept while the trials need the same settings of its links.
Its links are verified before the first trial on it.
"""

from __future__ import annotations

import asyncio
import math
import platform
import re
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from benchctl.analysis.flow.laws import PathBounds
from benchctl.engine.site.site import Site
from benchctl.errors import LabError, LabKilledError
from benchctl.hosts.sent.facts import sysctls
from benchctl.lab.emulate.link import Change
from benchctl.lab.emulate.messages import DirectionCounters
from benchctl.lab.lab import Lab
from benchctl.lab.topology.doubts import doubts
from benchctl.lab.topology.expect import KernelBuffers
from benchctl.lab.topology.model import Emulator, LinkSettings, Topology
from benchctl.lab.topology.segments import Hop
from benchctl.lab.topology.topology import build_topology
from benchctl.lab.verify.strain import Carried, carried
from benchctl.lab.verify.verify import ceiling_bps, together, verify
from benchctl.plan.bound import BoundFlow, BoundTrial
from benchctl.plan.network import ends_of, inside
from benchctl.plan.promise import (
    LinkChange,
    Promises,
    bottlenecks,
    bounds,
    expected_values,
    loads_of,
    way_of,
)
from benchctl.run.planned import DeclaredNetwork, LabSettings, Network, PlannedChange
from benchctl.toml.source import parse_toml
from benchctl.units import format_rate

_BUSY = "this machine is too busy or too slow for this lab"

_NEW_KERNEL = (7, 0)
_Theory = tuple[
    Sequence[BoundFlow],
    Mapping[str, tuple[str, str]],
    Topology,
    KernelBuffers,
    Sequence[LinkChange],
]


def _changes(
    changes: Iterable[PlannedChange], duration_s: float, start_ns: int = 0
) -> list[LinkChange]:
    """Return the changes of links in a trial, on a clock that shows ``start_ns`` at its start."""
    return [
        (
            change.link,
            Change(
                at_ns=start_ns + int((change.at + change.at_share * duration_s) * 1e9),
                over_ns=int((change.ramp + change.ramp_share * duration_s) * 1e9),
                rate_bps=math.inf if change.rate == "unlimited" else change.rate,
                delay_s=change.delay,
                jitter_s=change.jitter,
                loss_ratio=change.loss,
            ),
        )
        for change in changes
    ]


def _kernel() -> KernelBuffers:
    """Return this kernel's limits on socket buffers; those of a new kernel if unknown."""
    numbers = re.match(r"(\d+)\.(\d+)", platform.release())
    version = (int(numbers[1]), int(numbers[2])) if numbers else _NEW_KERNEL
    known = sysctls()
    most = [float(known[name]) for name in ("rmem_max", "wmem_max") if name in known]
    receives = [
        float(known[name].split()[-1]) for name in ("rmem_max", "tcp_rmem") if name in known
    ]
    if not most or not receives:
        return KernelBuffers(version)
    return KernelBuffers(version, min(most), max(receives))


def _theory(
    outside: DeclaredNetwork,
    topology: Topology,
    trial: BoundTrial,
    changes: Iterable[PlannedChange],
) -> _Theory:
    ends = ends_of(outside, topology, trial.plan.flows)
    return trial.flows, ends, topology, _kernel(), _changes(changes, trial.plan.duration_s)


def planned_promises(
    outside: DeclaredNetwork, settings: LabSettings, trial: BoundTrial
) -> Mapping[str, Promises]:
    """Return what is expected of a trial's flows in a lab that is not built yet."""
    source = parse_toml(settings.text, Path(settings.path))
    topology = build_topology(source, trial.plan.lab)
    return expected_values(*_theory(outside, topology, trial, settings.changes))


class LabSite(Site):
    """A lab, rebuilt as the trials need it."""

    def __init__(
        self,
        outside: DeclaredNetwork,
        settings: LabSettings,
        note: Callable[[str], None],
    ) -> None:
        self._outside = outside
        self._source = parse_toml(settings.text, Path(settings.path))
        self._emulator = Emulator(settings.emulator) if settings.emulator else None
        self._verifies = settings.verify
        self._changes = settings.changes
        self.changes = bool(settings.changes)
        self.was_probed = False
        self._note = note
        self._lab: Lab | None = None
        self._killed = ""
        """How the last lab ended while it was built; empty if it was not."""
        self._wishes: Mapping[str, Any] | None = None
        self._verified: set[tuple[str, tuple[LinkSettings, LinkSettings]]] = set()
        self._loaded: set[frozenset[tuple[Hop, float]]] = set()
        self._ceiling_bps = 0.0
        self._before: dict[int, Mapping[Hop, DirectionCounters]] = {}
        """What the links of each trial that runs had counted at its start, by its position."""
        self._preparing = asyncio.Lock()
        self._duration_s = 0.0

    async def prepare(self, trial: BoundTrial) -> Network:
        async with self._preparing:
            return await self._prepare(trial)

    async def prepare_for(self, trials: Iterable[BoundTrial], at_once: int) -> Network:
        self.was_probed = False
        every = list(trials)
        lab = self._lab or await self._build(every[0])
        if self._verifies:
            await self._verify(lab, every, at_once)
        return inside(self._outside, lab.topology, lab.nodes)

    def links_of(self, trial: BoundTrial) -> frozenset[str]:
        assert self._lab is not None, "the lab is prepared for the trials before"
        keys = (hop.key for hop in self._hops(self._lab.topology, trial))
        return frozenset(f"{link} {direction}" for link, direction in keys)

    async def _prepare(self, trial: BoundTrial) -> Network:
        self._duration_s = trial.plan.duration_s
        self.was_probed = False
        if self._lab is not None and (self._changes or trial.plan.lab != self._wishes):
            await self.close()
        if reason := await self.failure_reason():
            self._note(f"{reason}; it is rebuilt")
            self._killed = ""
            await self.close()
        lab = self._lab or await self._build(trial)
        if self._verifies:
            await self._verify(lab, [trial])
        hops = self._hops(lab.topology, trial)
        self._before[trial.plan.position] = await asyncio.to_thread(lab.counted, hops)
        return inside(self._outside, lab.topology, lab.nodes)

    async def carried(self, trial: BoundTrial) -> Sequence[Carried]:
        before = self._before.pop(trial.plan.position, {})
        if self._lab is None:
            return ()
        try:
            return carried(before, await asyncio.to_thread(self._lab.counted, before))
        except LabError:
            return ()  # it failed, as its flows report

    async def counters(self, node: str) -> Mapping[str, Any]:
        if self._lab is None:
            return await super().counters(node)
        return await asyncio.to_thread(self._lab.node_counters, node)

    async def failure_reason(self) -> str:
        try:
            if self._lab is not None:
                await asyncio.to_thread(self._lab.check)
        except LabError as error:
            return error.message
        return self._killed

    async def _build(self, trial: BoundTrial) -> Lab:
        topology = build_topology(self._source, trial.plan.lab)
        building = asyncio.ensure_future(asyncio.to_thread(Lab.build, topology, self._emulator))
        try:
            await asyncio.wait([building])  # which does not cancel it
        finally:
            # A half-built lab cannot be removed, so a cancelled caller waits for it all the same.
            try:
                self._lab = lab = await building
            except LabKilledError as error:
                self._killed = error.message
                raise
        if self._wishes is None:
            for doubt in doubts(lab.topology):
                self._note(doubt)
            if not self._verifies:
                self._note(_emulated(lab))
        self._wishes = trial.plan.lab
        return lab

    async def _verify(self, lab: Lab, trials: Sequence[BoundTrial], at_once: int = 1) -> None:
        if not self._ceiling_bps:
            self._ceiling_bps = await asyncio.to_thread(ceiling_bps, lab.emulator)
            self._note(
                f"{_emulated(lab)}; one link carries at most {format_rate(self._ceiling_bps)} here"
            )
        hops = (hop for trial in trials for hop in self._hops(lab.topology, trial))
        for name in dict.fromkeys(hop.link.name for hop in hops):
            link = lab.topology.links[name]
            rates_bps = [s.rate_bps for s in link.settings if math.isfinite(s.rate_bps)]
            fastest_bps = max(rates_bps, default=0.0)
            if fastest_bps > self._ceiling_bps:
                raise LabError(
                    f"link {name} promises {format_rate(fastest_bps)}, but this machine emulates "
                    f"at most {format_rate(self._ceiling_bps)}",
                    "lower its rate, or remove the rate",
                )
            if (name, link.settings) in self._verified:
                continue
            self.was_probed = True
            for look in await asyncio.to_thread(verify, lab, [name]):
                if look.problem:
                    raise LabError(look.problem, _BUSY)
                if look.unverified:
                    what = ", ".join(look.unverified)
                    self._note(f"{look.leg.name}: not verified: {what}")
                # links without a host between them are verified as one
                seen = {name, *look.leg.links}
                self._verified.update((n, lab.topology.links[n].settings) for n in seen)
        await self._verify_together(lab, trials, at_once)

    async def _verify_together(self, lab: Lab, trials: Sequence[BoundTrial], at_once: int) -> None:
        """Load all links of the trials at the same time, as their flows will.

        Of trials that run at once, those that load their links the most.
        """
        each = [
            loads_of(
                trial.flows,
                ends_of(self._outside, lab.topology, trial.plan.flows),
                lab.topology,
                _kernel(),
            )
            for trial in trials
        ]
        each.sort(key=lambda load: sum(load.values()), reverse=True)
        loads: dict[Hop, float] = {}
        for load in each:
            if at_once and loads.keys().isdisjoint(load):
                loads |= load
                at_once -= 1
        if frozenset(loads.items()) in self._loaded:
            return
        self.was_probed = True
        found, meanwhile = await asyncio.to_thread(together, lab, loads)
        for measured in found:
            if measured.problem:
                raise LabError(measured.problem, _BUSY)
        for link in meanwhile:
            if link.strain:
                self._note(f"all links of the trial at once: {link.strain}")
        self._loaded.add(frozenset(loads.items()))

    def _hops(self, topology: Topology, trial: BoundTrial) -> list[Hop]:
        """Return the emulated links that the flows of a trial use, each with its directions."""
        ends = ends_of(self._outside, topology, trial.plan.flows)
        paths = [way_of(flow, ends, topology) for flow in trial.flows if flow.plan.name in ends]
        hops = [hop for path in paths for hop in (*path.there, *path.back)]
        return list(dict.fromkeys(hop for hop in hops if not hop.link.ideal))

    def begin(self, common_start: float) -> None:
        if self._lab is None:
            return
        start_ns = time.monotonic_ns() + int((common_start - time.time()) * 1e9)
        for link, change in _changes(self._changes, self._duration_s, start_ns):
            self._lab.change(link, change)

    def expected(self, trial: BoundTrial) -> Mapping[str, Promises]:
        return {} if self._lab is None else expected_values(*self._theory(self._lab, trial))

    def bottlenecks(self, trial: BoundTrial) -> Mapping[str, Mapping[str, str]]:
        return {} if self._lab is None else bottlenecks(*self._theory(self._lab, trial))

    def bounds(self, trial: BoundTrial) -> Mapping[str, Mapping[str, PathBounds]]:
        if self._lab is None:
            return {}
        flows, ends, topology, _, changes = self._theory(self._lab, trial)
        return bounds(flows, ends, topology, changes)

    def _theory(self, lab: Lab, trial: BoundTrial) -> _Theory:
        """Return what theory needs to know of a trial in a lab."""
        return _theory(self._outside, lab.topology, trial, self._changes)

    async def close(self) -> None:
        if self._lab is not None:
            lab, self._lab = self._lab, None
            await asyncio.to_thread(lab.close)


def _emulated(lab: Lab) -> str:
    """Report who emulates a lab's links, and why the kernel does not."""
    why_not = f" (not the kernel's: {lab.why_not_kernel})" if lab.why_not_kernel else ""
    return f"lab {lab.topology.name}: {lab.emulator} emulator{why_not}"
