"""The profile of a first look at one host: round trips idle and under load, throughput."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from benchctl.metrics import Direction
from benchctl.units import quoted

HERE = ("local", "localhost", "127.0.0.1", "::1")
"""Names of this machine, where benchctl starts the server itself."""
# Enough replies for a median, and short: the load follows.
_IDLE = "2s"
_INTERVAL = "200ms"


@dataclass(frozen=True, slots=True)
class Quick:
    """What to look at: a host, with which tool, and for how long each time."""

    host: str
    backend: str
    directions: Sequence[Direction]
    duration: str
    port: int | None = None
    udp_rate: str | None = None
    pings: bool = True

    @property
    def text(self) -> str:
        """The profile, in TOML."""
        here = self.host in HERE and self.port is None
        port = f", port = {self.port}" if self.port is not None else ""
        server = f"[servers]\nserver = {{ host = {quoted(self.host)}{port} }}\n\n"
        ping = f"""
[flows.ping]
backend = "ping"
interval = {quoted(_INTERVAL)}
"""
        lines = ",\n".join(f"    {{ {step} }}" for step in self._steps())
        return f"""\
title = {quoted(f"Quick look at {self.host}")}

{"" if here else server}[defaults]
to = {quoted("local" if here else "server")}
duration = {quoted(self.duration)}

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

    def _steps(self) -> list[str]:
        """Return the values of the axis: one for each trial."""
        beside = ', "ping"' if self.pings else ""
        steps = []
        if self.pings:
            steps = [f'label = "idle", flows = ["ping"], "ping.duration" = {quoted(_IDLE)}']
        for way in self.directions:
            steps.append(f'label = "{way}", flows = ["load"{beside}], "load.direction" = "{way}"')
        if self.udp_rate is not None:
            udp = f'"load.protocol" = "udp", "load.rate" = {quoted(self.udp_rate)}'
            steps.append(f'label = "udp", flows = ["load"{beside}], {udp}')
        return steps
