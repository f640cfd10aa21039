"""Whether an end may run on a host: by its owner's limits, its plugins, and what runs already."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Collection, Mapping
from datetime import datetime

from benchctl.api import Role, Tool
from benchctl.backends import Registry
from benchctl.engine.trial.ends import EndSpec, schema_of, version_of
from benchctl.errors import MissingError
from benchctl.fleet.host_messages import Plugin, PreparedEnd
from benchctl.fleet.limits import (
    ASSUMED_LINK_BPS,
    NOTHING,
    EndAmount,
    HostLoad,
    Limits,
    amount_of,
    refusal,
)
from benchctl.fleet.messages import EndRef
from benchctl.fleet.resident.day import DayBytes
from benchctl.hosts.sent import facts

_NO_TOOL = Tool("")


class HostPermits:
    """Judges the ends that the coordinator plans here.

    Args:
        host: the name of this host.
        registry: the backends that are installed here.
        limits: those of the host's owner.
        day: what was planned on this day.
        resolve: finds the addresses of a name here.
    """

    def __init__(
        self,
        host: str,
        registry: Registry,
        limits: Limits,
        day: DayBytes,
        resolve: Callable[[str], Awaitable[Collection[str]]],
    ) -> None:
        self._host, self._registry, self._limits, self._day = host, registry, limits, day
        self._resolve = resolve
        self.fleet_addresses: Collection[str] = ()
        """Those of the fleet's hosts, as the coordinator says."""
        self._targets: Mapping[EndRef, Collection[str]] = {}
        self._amounts: dict[EndRef, EndAmount] = {}
        """What the ends that have not ended send and receive."""
        self._before = self._amounts
        self._link_bps = _link_bps()
        self.plugins = self._known_plugins()

    async def targets(self, spec: EndSpec) -> Collection[str]:
        """Return the addresses of an end's other end."""
        other = spec.peer if spec.role is Role.SERVER else spec.address
        return await self._resolve(other) if other else ()

    def consider(self, targets: Mapping[EndRef, Collection[str]]) -> None:
        """Take the addresses of the other ends of those that are judged next, one by one."""
        self._targets, self._before = targets, {**self._amounts}

    def refusal(self, prepared: PreparedEnd) -> str:
        """Return why one of those may not run; if it may, what it uses counts from now on."""
        why, amount = self._judge(prepared.ref, prepared.spec, self._targets.get(prepared.ref, ()))
        if not why:
            self._amounts[prepared.ref] = amount
        return why

    def take_back(self) -> None:
        """Count none of those that were considered last: they were refused together."""
        self._amounts = self._before

    def begin(self, ref: EndRef) -> None:
        """Count an end on this day, too: it is started."""
        self._day.add(self._amounts[ref].bytes)

    def end(self, ref: EndRef) -> None:
        """Count an end no more: it is over."""
        self._amounts.pop(ref, None)

    def why_not(self, ref: EndRef, spec: EndSpec, targets: Collection[str]) -> str:
        """Return why an end would be refused now; empty if it would not."""
        return self._judge(ref, spec, targets)[0]

    def _judge(self, ref: EndRef, spec: EndSpec, targets: Collection[str]) -> tuple[str, EndAmount]:
        """Return why an end may not run here, empty if it may, and what it sends and receives."""
        name = self._host
        here = next((plugin for plugin in self.plugins if plugin.name == spec.backend), None)
        if here is None:
            return f"host {name} has no backend {spec.backend}", NOTHING
        if here.why_not:
            return f"host {name}: {here.why_not}", NOTHING
        if (spec.version, spec.schema) != (here.version, here.schema):
            ours = f"{here.version or 'a file'} ({here.schema[:8]})"
            theirs = f"{spec.version or 'a file'} ({spec.schema[:8]})"
            return f"host {name} has {spec.backend} {ours}, and the coordinator {theirs}", NOTHING
        backend = self._registry.load(spec.backend)
        try:
            flow = spec.flow(backend, _NO_TOOL)
            amount = amount_of(backend, flow.params, self._link_bps)
        except ValueError as error:
            return f"host {name}: {error}", NOTHING
        load = HostLoad(
            sum(end_amount.rate_bps for end_amount in self._amounts.values()),
            self._day.bytes,
            sum(
                end_amount.bytes
                for other, end_amount in self._amounts.items()
                if _is_one_trial(other, ref)
            ),
        )
        why = refusal(
            self._limits, spec, backend, flow.params, targets, self.fleet_addresses,
            load, self._link_bps, datetime.now().astimezone(),
        )  # fmt: skip
        return f"host {name}: {why}" if why else "", amount

    def _known_plugins(self) -> list[Plugin]:
        found = []
        for name in sorted(self._registry.candidates):
            try:
                backend = self._registry.load(name)
            except MissingError as error:
                found.append(Plugin(name, "", "", error.message[:1024]))
                continue
            why_not = ""
            if self._limits.backends is not None and name not in self._limits.backends:
                why_not = f"its owner does not allow the backend {name}"
            found.append(Plugin(name, version_of(backend), schema_of(backend), why_not))
        return found


def _is_one_trial(ref: EndRef, other: EndRef) -> bool:
    """Return whether two ends are of one attempt at a trial."""
    return (ref.run, ref.trial, ref.attempt) == (other.run, other.trial, other.attempt)


def _link_bps() -> float:
    speeds = [
        float(interface["speed_bps"])
        for interface in facts.interfaces().values()
        if "speed_bps" in interface
    ]
    return max(speeds, default=ASSUMED_LINK_BPS)
