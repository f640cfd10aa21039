"""Checks whether the hosts of a profile reach each other as its flows need it."""

from __future__ import annotations

import asyncio
import errno
import json
import os
import sys
from collections.abc import Collection, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

from benchctl.api import Channel
from benchctl.engine.checks.machine import HealthFinding
from benchctl.errors import HostError
from benchctl.hosts.local.spawn import Process, Spawner, has_ended, run, stop
from benchctl.hosts.sent import port_check as door
from benchctl.hosts.sent import ports
from benchctl.hosts.sent.messages import KNOCKED
from benchctl.run.planned import Host

# To start an interpreter on a busy host, and all tries of ports, which are at the same time.
_READY_S, _KNOCKING_S = 10.0, 30.0
# The last line says why it failed.
_KEPT = 4096
# Of a range. A run uses the first free ones, as many as flows run at the same time.
MOST_TRIED = 16


@dataclass(frozen=True, slots=True)
class HostPair:
    """A client's host, and where a server of another host would listen."""

    source: Host
    target: Host
    address: str
    first_port: int
    last_port: int | None
    """None if it takes another port where the first one is in use."""


async def examine_pairs(
    pairs: Iterable[HostPair], spawner: Spawner
) -> dict[str, list[HealthFinding]]:
    """Try each by a connection and some datagrams; returns what was found, by source."""
    doors: dict[tuple[str, str, int], _Door] = {}
    of_source: dict[str, list[tuple[HostPair, _Door]]] = {}
    for pair in pairs:
        key = pair.target.name, pair.address, pair.first_port
        opened = doors.setdefault(key, _Door(pair))
        of_source.setdefault(pair.source.name, []).append((pair, opened))
    try:
        await asyncio.gather(*(host_door.open(spawner) for host_door in doors.values()))
        looks = [_knock(own_pairs, spawner) for own_pairs in of_source.values()]
        return dict(zip(of_source, await asyncio.gather(*looks), strict=True))
    finally:
        await asyncio.gather(*(host_door.close() for host_door in doors.values()))


async def try_pair(pair: HostPair, spawner: Spawner) -> Mapping[str, Any]:
    """Return what `door.probe_port` finds at one; empty if it cannot be tried."""
    opened = _Door(pair)
    try:
        await opened.open(spawner)
        found, _ = ([], "") if opened.problem else await _try([(pair, opened)], spawner)
    finally:
        await opened.close()
    return next(iter(found), {})


def remedy(source: str, name: str, closed: str, why: str) -> str:
    """Return what mends a port of a host that is not reached, by what ``source`` was told."""
    if os.strerror(errno.ENETUNREACH) in why:
        return f"correct hosts.{name}.address, or the routes of {source}"
    return (
        f"let firewalls pass {closed} there, or give hosts.{name}.ports that they pass, or "
        f"reachable = false"
    )


class _Door:
    """Ports that are open for as long as others try them."""

    def __init__(self, pair: HostPair) -> None:
        self._pair = pair
        self.ports: Sequence[int] = ()
        self.problem = ""
        self._process: Process | None = None

    async def open(self, spawner: Spawner) -> None:
        pair, said = self._pair, bytearray()
        at = pair.address
        if at in pair.target.translated:
            at = "::" if ":" in at else "0.0.0.0"
        ready = asyncio.Event()

        def take(_: Channel, data: bytes) -> None:
            said.extend(data)
            del said[:-_KEPT]
            if door.LISTENING.encode() in said:
                ready.set()

        try:
            most = 1 if pair.last_port is None else MOST_TRIED
            asked = at, pair.first_port, most, pair.last_port
            self.ports = await spawner.ask(pair.target, ports, "first_free", *asked)
            if not self.ports:
                self.problem = f"no port is free at {at}"
                return
            words = _words("listen", ((at, port) for port in self.ports))
            self._process = await spawner.start(pair.target, words, {}, take)
        except HostError as error:
            self.problem = error.message
            return
        except OSError as error:
            self.problem = error.strerror or str(error)
            return
        self._process.begin()
        if await has_ended(self._process, _READY_S, unless=ready) or not ready.is_set():
            lines = said.decode("utf-8", "replace").split("\n")
            self.problem = next(filter(None, reversed(lines)), "it did not listen")

    async def close(self) -> None:
        if self._process is not None:
            await stop(self._process, "SIGKILL")


def _words(what: str, places: Iterable[tuple[str, int]]) -> list[str]:
    words = (word for address, port in places for word in (address, str(port)))
    return [sys.executable, "-I", "-S", str(door.__file__), what, *words]


async def _knock(pairs: Sequence[tuple[HostPair, _Door]], spawner: Spawner) -> list[HealthFinding]:
    """Try the ports that one host needs."""
    opened = [(pair, host_door) for pair, host_door in pairs if not host_door.problem]
    found, said = await _try(opened, spawner)
    findings = []
    for pair, host_door in pairs:
        if host_door.problem:
            findings.append(
                _untried(pair, f"no server could be started there: {host_door.problem}")
            )
        elif not found:
            last = (said.strip().splitlines() or ["it did not end"])[-1]
            findings.append(_untried(pair, f"{pair.source.name} could not try it: {last}"))
    remaining = iter(found)
    of_ports = [
        (pair, dict(zip(host_door.ports, remaining, strict=False))) for pair, host_door in opened
    ]
    return findings + [_judged(pair, entries) for pair, entries in of_ports if entries]


async def _try(
    opened: Sequence[tuple[HostPair, _Door]], spawner: Spawner
) -> tuple[Sequence[Mapping[str, Any]], str]:
    """Return what was found at open ports, nothing if that failed, and what was said."""
    said = ""
    if opened:
        source = opened[0][0].source
        places = ((pair.address, port) for pair, host_door in opened for port in host_door.ports)
        with suppress(OSError, ValueError):  # it took too long, or the host is lost
            _, said = await run(spawner, source, _words("knock", places), _KNOCKING_S)
            found = json.loads(said)
            KNOCKED.check(found)
            return found, said
    return [], said


def _untried(pair: HostPair, why: str) -> HealthFinding:
    return HealthFinding(f"to {pair.target.name}", "note", f"not tried: {why}")


def _judged(pair: HostPair, found: Mapping[int, Mapping[str, Any]]) -> HealthFinding:
    """Return in one finding what was found at ports."""
    subject, name = f"to {pair.target.name}", pair.target.name
    closed: dict[str, list[int]] = {}
    kinds: dict[str, None] = {}
    for port, entry in found.items():
        failed = {kind.upper(): entry[kind] for kind in ("tcp", "udp") if entry[kind]}
        if failed:
            reasons = ", ".join(f"{kind} {why}" for kind, why in failed.items())
            closed.setdefault(reasons, []).append(port)
            kinds.update(dict.fromkeys(failed))
    passed = [port for port, entry in found.items() if not (entry["tcp"] or entry["udp"])]
    parts = [f"{_written(passed)} by TCP and UDP"] if passed else []
    parts += [f"{_written(at)}: {reasons}" for reasons, at in closed.items()]
    text = f"{pair.address} {'; '.join(parts)}{_tried(pair, found)}"
    if closed:
        mends = remedy(pair.source.name, name, " and ".join(sorted(kinds)), ", ".join(closed))
        return HealthFinding(subject, "note", text, mends)
    known = [entry for entry in found.values() if "mtu_bytes" in entry]
    if not known:
        return HealthFinding(subject, "ok", text)
    worst = min(known, key=lambda entry: (entry["mtu_holds"], entry["mtu_bytes"]))
    mtu = f"{worst['mtu_bytes']} bytes"
    if not worst["mtu_holds"]:
        return HealthFinding(
            subject, "note", f"{text}, but packets of {mtu} are lost, and nothing says so",
            "let ICMP pass, or lower the MTU of the device to that of the path",
        )  # fmt: skip
    return HealthFinding(subject, "ok", f"{text}, path MTU {mtu}")


def _tried(pair: HostPair, found: Collection[int]) -> str:
    """Return how many ports of a range were tried, and which were not because they are in use."""
    if pair.last_port is None or pair.last_port == pair.first_port:
        return ""
    looked_at = range(pair.first_port, pair.last_port + 1)
    count = len(looked_at)
    if len(found) == MOST_TRIED:
        looked_at = range(pair.first_port, max(found) + 1)
    used = [port for port in looked_at if port not in found]
    in_use = f"; in use: {_written(used)}" if used else ""
    return f" ({len(found)} of {count} tried{in_use})"


def _written(ports: Sequence[int]) -> str:
    """Return ports in words: ``port 5201``, ``ports 5201-5203, 5210``."""
    parts: list[list[int]] = []
    for port in ports:
        if parts and port == parts[-1][-1] + 1:
            parts[-1].append(port)
        else:
            parts.append([port])
    words = (f"{part[0]}-{part[-1]}" if len(part) > 1 else f"{part[0]}" for part in parts)
    return f"port{'s' * (len(ports) > 1)} {', '.join(words)}"
