"""Checks whether this machine can measure well, and gives the remedy if it can't."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from benchctl.api import Role
from benchctl.backends import Registry
from benchctl.engine.checks.tools import look
from benchctl.errors import MissingError
from benchctl.hosts.sent import facts
from benchctl.lab import capability
from benchctl.units import format_duration, format_size

# A window of 16 MiB fills 1 Gbit/s over 130 ms; less caps a long fat path (RFC 6349, 3.3.1).
_ENOUGH_BUFFER = 16 * 2**20
# A core that is busy with other work affects every figure.
_BUSY_LOAD = 0.5


@dataclass(frozen=True, slots=True)
class HealthFinding:
    """The result of one check. ``level`` is ok, or note if the user should act."""

    subject: str
    level: str
    text: str
    remedy: str = ""


def examine(registry: Registry) -> list[HealthFinding]:
    """Look at the machine, the lab's needs and the tools."""
    return [*of_machine(facts.collect()), *_lab(), *_tools(registry)]


def of_machine(about: dict[str, Any]) -> list[HealthFinding]:
    """Judge a machine by its facts."""
    return [*_system(about), *_tcp(about), *_clock(about)]


def _system(about: dict[str, Any]) -> Iterator[HealthFinding]:
    python = f", Python {about['python']}" if "python" in about else ""
    yield HealthFinding("kernel", "ok", f"{about['system']} {about['kernel']}{python}")
    if "load_1min" not in about:
        return
    load, cores = about["load_1min"], about["cpu"]["count"]
    text = f"load {load} on {cores} cores"
    if load > cores * _BUSY_LOAD:
        yield HealthFinding(
            "load", "note", text, "other programs are running and will affect the results"
        )
    else:
        yield HealthFinding("load", "ok", text)


def _tcp(about: dict[str, Any]) -> Iterator[HealthFinding]:
    sysctls = about["sysctls"]
    if "tcp_congestion_control" in sysctls:
        there = sysctls["tcp_available_congestion_control"]
        text = f"{sysctls['tcp_congestion_control']} (available: {there})"
        yield HealthFinding("congestion control", "ok", text)
    for name, limit in (("tcp_rmem", "receive buffer"), ("tcp_wmem", "send buffer")):
        if name not in sysctls:
            continue
        most = int(sysctls[name].split()[2])
        text = f"up to {format_size(most)}"
        if most < _ENOUGH_BUFFER:
            least, default, _ = sysctls[name].split()
            setting = f"net.ipv4.{name}='{least} {default} {_ENOUGH_BUFFER}'"
            remedy = f"fast long-distance paths need more: sysctl -w {setting}"
            yield HealthFinding(limit, "note", text, remedy)
        else:
            yield HealthFinding(limit, "ok", text)


def _clock(about: dict[str, Any]) -> Iterator[HealthFinding]:
    clock = about["clock"]
    if not clock:
        return
    error = format_duration(clock["max_error_s"])
    if clock["synchronized"]:
        yield HealthFinding("clock", "ok", f"synchronized, error at most {error}")
    else:
        yield HealthFinding(
            "clock", "note", "not synchronized",
            "one-way delays have an unknown offset; run chrony or ntpd on both hosts",
        )  # fmt: skip


def _lab() -> Iterator[HealthFinding]:
    for ability in capability.examine():
        level = "ok" if ability.there else "note"
        yield HealthFinding(ability.name, level, ability.text, ability.remedy)


def _tools(registry: Registry) -> Iterator[HealthFinding]:
    tools = look(registry, {(name, Role.CLIENT) for name in registry.candidates})
    for (name, _), tool in tools.items():
        if isinstance(tool, MissingError):
            yield HealthFinding(name, "note", tool.message, tool.hint)
        else:
            yield HealthFinding(name, "ok", tool.version or "there")
