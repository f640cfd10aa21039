"""The hosts of a fleet, as `benchctl fleet hosts` shows them. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from msgspec import to_builtins

from benchctl.fleet.admin.members import Members
from benchctl.fleet.person_messages import HostReport
from benchctl.fleet.trust.certificates import DAY_S, SAID_AHEAD_DAYS
from benchctl.units import format_ago, format_duration, format_size

SPARE_SPOOLS = 4
LEAST_FREE_BYTES = 2 << 30
"""The streams may take so much, and the store grows, too."""

HEADS = ("host", "state", "version", "clock", "seen")


def host_rows(hosts: Sequence[HostReport], now_s: float) -> list[tuple[str, ...]]:
    """Return a row for each host: name, state, version, clock and when it was heard of."""
    return [
        (
            host.name,
            state(host),
            host.heartbeat.version if host.heartbeat else "-",
            clock(host),
            "never" if not host.heard_s else format_ago(max(0.0, now_s - host.heard_s)),
        )
        for host in hosts
    ]


def state(host: HostReport) -> str:
    """Return what a host does: away, idle, or what it measures."""
    if not host.heard_s:
        return "never seen"
    if host.is_away:
        return "away"
    runs = dict.fromkeys(end.run for end in host.heartbeat.running) if host.heartbeat else {}
    return f"measures {', '.join(runs)}" if runs else "idle"


def clock(host: HostReport) -> str:
    """Return by how much a host's clock is ahead, and whether its kernel says that it is set."""
    if host.heartbeat is None or host.offset_s is None or host.offset_error_s is None:
        return "-"
    kernel = host.heartbeat.clock
    sign = "-" if host.offset_s < 0 else "+"
    offset, error = format_duration(abs(host.offset_s)), format_duration(host.offset_error_s)
    set_by = "" if kernel.get("synchronized", True) else ", not synchronized"
    return f"{sign}{offset} ± {error}{set_by}"


def host_notes(hosts: Sequence[HostReport], now_s: float) -> list[str]:
    """Return what is to be done: certificates that end, disks and spools that become full."""
    notes = []
    ends = [
        host.heartbeat.certificate_ends_s
        for host in hosts
        if host.heartbeat and host.heartbeat.certificate_ends_s
    ]
    if ends and (left_s := min(ends) - now_s) < SAID_AHEAD_DAYS * DAY_S:
        notes.append(
            f"the server's certificate ends in {max(0.0, left_s) / DAY_S:.0f} days:"
            " benchctl fleet renew"
        )
    for host in hosts:
        if host.heartbeat is None:
            continue
        spool = host.heartbeat.spool
        if spool.free_bytes + spool.used_bytes < SPARE_SPOOLS * spool.most_bytes:
            notes.append(f"{host.name}: its disk has only {format_size(spool.free_bytes)} left")
        if spool.used_bytes > spool.most_bytes / 2:
            held = f"{format_size(spool.used_bytes)} of {format_size(spool.most_bytes)}"
            notes.append(f"{host.name}: its spool holds {held} that the store lacks")
        if spool.dropped:
            notes.append(f"{host.name}: its spool was full, and dropped {spool.dropped} messages")
    return notes


def disk_note(free_bytes: float, store_bytes: float, age_s: float) -> str:
    """Return when the coordinator's disk will be full at the store's mean growth; "" if late."""
    growth = store_bytes / max(age_s, DAY_S)
    left_s = free_bytes / growth if growth else float("inf")
    if left_s >= SAID_AHEAD_DAYS * DAY_S and free_bytes >= LEAST_FREE_BYTES:
        return ""
    days = f", which lasts {left_s / DAY_S:.0f} days" if growth else ""
    return f"the coordinator's disk has {format_size(free_bytes)} left{days}"


def details(host: HostReport) -> list[str]:
    """Return what a host can do and may, as lines: its tools and its owner's limits."""
    beat = host.heartbeat
    if beat is None:
        return []
    tools = ", ".join(f"{plugin.name} {plugin.version}" for plugin in beat.plugins)
    lines = [f"tools: {tools or 'none'}", *(f"limit: {line}" for line in beat.limits)]
    return [f"{host.name}: {line}" for line in lines]


def with_members(hosts: Sequence[HostReport], members: Members) -> list[HostReport]:
    """Add the hosts that have joined, or may, and that the coordinator has not heard of."""
    heard = {host.name for host in hosts}
    silent = sorted((members.hosts.keys() | members.invited.keys()) - heard)
    return [*hosts, *(HostReport(name, is_away=True) for name in silent)]


def host_object(host: HostReport) -> Mapping[str, Any]:
    """Return a host as JSON has it."""
    fields: dict[str, Any] = to_builtins(host)
    return {"state": state(host)} | fields
