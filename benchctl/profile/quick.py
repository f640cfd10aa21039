"""The profile of a first look at one host: round trips idle and under load, throughput."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass

from benchctl.metrics import Direction
from benchctl.units import quoted

HERE = ("local", "localhost", "127.0.0.1", "::1")
"""Names of this machine, where benchctl starts the server itself."""
_INTERVAL = "200ms"
# The load begins when so many pings show the idle path (`analysis.flow.loaded`).
_BEFORE_S = 1.2
# As many as most tests of a path use: one connection often does not fill it.
_STREAMS = 4
_UDP = "3s"
# Probes of responsiveness, and the readings of the load's own round-trip times beside them.
_PROBE = "100ms"


@dataclass(frozen=True, slots=True)
class Quick:
    """What to look at: a host, with which tool, and for how long each time.

    ``duration_s`` is that of each direction. ``accepts`` are the names of the tool's parameters.
    ``ssh`` is whether benchctl logs in to the host and starts the server there.
    """

    host: str
    backend: str
    directions: Sequence[Direction]
    duration_s: float
    port: int | None = None
    udp_rate: str | None = None
    pings: bool = True
    ssh: bool = False
    accepts: Collection[str] = ()

    @property
    def text(self) -> str:
        """The profile, in TOML."""
        ping = f"""
[flows.ping]
backend = "ping"
interval = {quoted(_INTERVAL)}
"""
        lines = ",\n".join(f"    {{ {step} }}" for step in self._steps())
        return f"""\
title = {quoted(f"Quick look at {self.host}")}

{self._server}[defaults]
to = {quoted("local" if self._is_here else "server")}

[flows.load]
backend = {quoted(self.backend)}
{ping if self.pings else ""}
[axes]
measure = [
{lines},
]

[run]
order = "sequential"
"""

    @property
    def _is_here(self) -> bool:
        return self.host in HERE and self.port is None and not self.ssh

    @property
    def _server(self) -> str:
        if self._is_here:
            return ""
        if self.ssh:
            return f"[hosts]\nserver = {{ ssh = {quoted(self.host)} }}\n\n"
        port = f", port = {self.port}" if self.port is not None else ""
        return f"[servers]\nserver = {{ host = {quoted(self.host)}{port} }}\n\n"

    def _steps(self) -> list[str]:
        """Return the values of the axis: one for each trial."""
        steps = []
        load = [f'"load.duration" = "{self.duration_s:g}s"']
        flows = '"load"'
        if self.pings:
            flows += ', "ping"'
            load.append(f'"load.delay" = "{_BEFORE_S:g}s"')
            load.append(f'"ping.duration" = "{_BEFORE_S + self.duration_s:g}s"')
        if "streams" in self.accepts:
            load += [f'"load.streams" = {_STREAMS}', f'"load.interval" = {quoted(_PROBE)}']
        if "probe" in self.accepts:
            load.append(f'"load.probe" = {quoted(_PROBE)}')
        for direction in self.directions:
            label = f'label = "{direction}", flows = [{flows}]'
            words = [label, f'"load.direction" = "{direction}"', *load]
            steps.append(", ".join(words))
        if self.udp_rate is not None:
            rate = f'"load.protocol" = "udp", "load.rate" = {quoted(self.udp_rate)}'
            udp = f'"load.duration" = {quoted(_UDP)}, {rate}'
            steps.append(f'label = "udp", flows = ["load"], {udp}')
        return steps
