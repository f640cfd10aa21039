"""Checks whether the hosts of a profile can measure, and gives the remedy for each that can't."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import suppress

from msgspec.structs import replace

from benchctl.api import Role
from benchctl.engine.checks.machine import HealthFinding, of_machine
from benchctl.engine.checks.needed_hosts import needed_hosts
from benchctl.engine.checks.network import same_machines, with_address, with_own_address
from benchctl.engine.checks.reachability import HostPair, examine_pairs
from benchctl.engine.checks.sessions import check_sessions
from benchctl.engine.checks.tools import ROOT_THERE, Toolbox, captured_at
from benchctl.engine.prepare.planning import Planned
from benchctl.errors import HostError, MissingError, UsageError
from benchctl.hosts.hosts import Hosts
from benchctl.hosts.link import HostLink
from benchctl.hosts.sent import facts, ports
from benchctl.hosts.ssh.ssh import INSTALL
from benchctl.hosts.tasks import run_to_end
from benchctl.run.planned import Host, Network, way_of
from benchctl.run.record import ClockReading
from benchctl.units import format_duration

REACH = "reach"
"""The subject of the first finding of each host: a note if it cannot be reached."""
# More than what clocks that are set by hand differ from each other.
_FAR_OFF_S = 1.0

_End = tuple[str, Role]
"""A backend, and its role on a host."""


def examine_hosts(prepared: Planned) -> Mapping[str, Sequence[HealthFinding]]:
    """Look at every host of a profile that SSH reaches, all at the same time.

    Raises UsageError if there is none, or if they are in a lab that does not exist yet.
    """
    if not prepared.outside.remote:
        raise UsageError("no host of this profile has ssh", "benchctl doctor checks this machine")
    if prepared.topology is not None:
        raise UsageError("the hosts of a lab exist only during a run", "add --lab none")
    return run_to_end(_examine(prepared))


async def _examine(prepared: Planned) -> dict[str, list[HealthFinding]]:
    ends = _ends(prepared)
    found = prepared.outside.remote
    async with Hosts() as hosts:
        toolbox = Toolbox(hosts)
        looks = [
            _examine_host(host, hosts, toolbox, prepared, ends.get(name, ()))
            for name, host in found.items()
        ]
        findings = dict(zip(found, await asyncio.gather(*looks), strict=True))
        network = prepared.outside.network
        known = {name: host for name, host in network.hosts.items() if host.reach is None}
        for name, first in ((name, all_[0]) for name, all_ in findings.items()):
            with suppress(HostError):  # of which it was said
                if first.level == "ok":
                    known[name] = await with_own_address(found[name], hosts, lambda _: None)
        for host, twin in same_machines(host for host in known.values() if host.reach):
            text = f"it is {host.name}, too: what flows between them crosses no network"
            remedy = f"correct ssh or address of hosts.{host.name} or hosts.{twin.name}"
            findings[twin.name].append(HealthFinding("machine", "note", text, remedy))
        for name in found.keys() - _needed(prepared):
            text, remedy = "none uses it", "remove it, or name it in a flow or an axis"
            findings[name].append(HealthFinding("flows", "note", text, remedy))
        pairs = _pairs(prepared, replace(network, hosts=known))
        for name, further in (await examine_pairs(pairs, hosts)).items():
            findings.setdefault(name, []).extend(further)
        return findings


def _needed(prepared: Planned) -> set[str]:
    hosts = needed_hosts(prepared.network, prepared.plan.routes, prepared.hooks)
    return {host.name for host in hosts}


def _ends(prepared: Planned) -> dict[str, set[_End]]:
    """Return what runs on each host."""
    found: dict[str, set[_End]] = {}
    for flow in prepared.plan.routes:
        found.setdefault(flow.source, set()).add((flow.backend, Role.CLIENT))
        if prepared.registry.load(flow.backend).capabilities.needs_server:
            found.setdefault(flow.to, set()).add((flow.backend, Role.SERVER))
    return found


def _pairs(prepared: Planned, network: Network) -> Iterator[HostPair]:
    """Yield the hosts of flows, if both are known here and one is remote."""
    versions = prepared.plan.ip_versions or {4}
    known = set()
    for flow in prepared.plan.routes:
        source, target = network.hosts.get(flow.source), network.hosts.get(flow.to)
        needs_server = prepared.registry.load(flow.backend).capabilities.needs_server
        if flow.to in network.peers or not needs_server or source is None or target is None:
            continue
        addresses = [target.address6 or target.address] if 6 in versions else []
        addresses += [target.address] if 4 in versions else []
        for address in addresses if source.reach != target.reach else ():
            for first, last in _ranges(target, prepared, [(flow.backend, Role.SERVER)]):
                if (key := (flow.source, flow.to, address, first)) not in known:
                    known.add(key)
                    yield HostPair(source, target, address, first, last)


async def _examine_host(
    host: Host, hosts: Hosts, toolbox: Toolbox, prepared: Planned, ends: Collection[_End]
) -> list[HealthFinding]:
    assert host.reach is not None
    findings: list[HealthFinding] = []
    subject = REACH
    try:
        link = await hosts.link(host)
        clock = (await link.timed()).reading(time.time())
        about = await link.ask(facts, "collect")
        trip = f"{way_of(host.reach)}, round trip {format_duration(clock.rtt_s)}"
        findings = [HealthFinding(REACH, "ok", trip), *of_machine(about), _offset(clock)]
        if link.missing_features:
            findings.append(HealthFinding("python", "note", link.missing_features, INSTALL))
            subject = "sessions"
            await check_sessions(hosts, [host], prepared.plan, prepared.network, prepared.registry)
        subject = "address"
        if host.reachable and any(role is Role.SERVER for _, role in ends):
            host = await with_address(host)
            findings += [await _listening(host, link, prepared, ends)]
        subject = "packets"
        captured = {
            host.name
            for flow in prepared.plan.routes
            for host in captured_at(flow, prepared.network)
        }
        if host.name in captured:
            why = await toolbox.why_no_packets(host)
            level, remedy = ("note", ROOT_THERE) if why else ("ok", "")
            findings.append(HealthFinding(subject, level, why or "they can be recorded", remedy))
    except HostError as error:
        return [*findings, HealthFinding(subject, "note", error.message, error.hint)]
    for name, role in sorted(ends):
        backend = prepared.registry.load(name)
        subject = f"{name} {role}"
        try:
            tool = await toolbox.find(backend, role, host)
        except MissingError as error:
            findings.append(HealthFinding(subject, "note", error.message, error.hint))
        else:
            findings.append(HealthFinding(subject, "ok", tool.version or "there"))
    return findings


def _offset(clock: ClockReading) -> HealthFinding:
    ahead = "ahead of" if clock.offset_s > 0 else "behind"
    offset, error = format_duration(abs(clock.offset_s)), format_duration(clock.error_s)
    text = f"{offset} {ahead} ours, ± {error}"
    if abs(clock.offset_s) - clock.error_s > _FAR_OFF_S:
        remedy = "set one of the two: run chrony or ntpd on both"
        return HealthFinding("clock offset", "note", text, remedy)
    return HealthFinding("clock offset", "ok", text)


async def _listening(
    host: Host, link: HostLink, prepared: Planned, ends: Collection[_End]
) -> HealthFinding:
    """Return whether a server can listen where the others look for it."""
    for address in filter(None, (host.address, host.address6)):
        if not await link.ask(ports, "is_own", address):
            return HealthFinding(
                "address", "note", f"{address} is not its own: servers listen at all that it has",
                "correct its address, unless a NAT leads there",
            )  # fmt: skip
        for first, last in _ranges(host, prepared, ends):
            if not await link.ask(ports, "first_free", address, first, 1, last):
                allowed = "" if host.ports is None else f", ports {host.ports[0]}-{host.ports[1]}"
                return HealthFinding(
                    "address", "note", f"no server can listen at {address}{allowed}",
                    "give it ports that nothing else uses there",
                )  # fmt: skip
    return HealthFinding("address", "ok", f"servers can listen at {host.address}")


def _ranges(
    host: Host, prepared: Planned, ends: Collection[_End]
) -> Iterator[tuple[int, int | None]]:
    if host.ports is not None:
        yield host.ports
        return
    for name, role in ends:
        port = prepared.registry.load(name).capabilities.default_port
        if role is Role.SERVER and port is not None:
            yield port, None
