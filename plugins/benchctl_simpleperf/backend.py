"""The backend: which simpleperf commands a flow needs."""

from __future__ import annotations

import re
import sys
from pathlib import Path

from benchctl.api import (
    METRICS,
    Backend,
    Capabilities,
    Command,
    Direction,
    Flow,
    Probe,
    Role,
    Tool,
)
from benchctl_simpleperf.parameters import SimpleperfParameters
from benchctl_simpleperf.parser import EventsParser

__all__ = ["BACKEND", "Simpleperf"]

# -I and -S leave out site-packages and the environment: the tool needs neither, and starts sooner.
_PROGRAM = (sys.executable, "-I", "-S", str(Path(__file__).parent / "simpleperf" / "__main__.py"))


class Simpleperf(Backend[SimpleperfParameters]):
    """The built-in throughput tool."""

    name = "simpleperf"
    summary = "throughput over TCP with the built-in tool"
    parameters = SimpleperfParameters
    capabilities = Capabilities(
        directions=(Direction.SEND,),
        protocols=("tcp",),
        default_port=8088,
        needs_server=True,
    )

    def probe(self, role: Role) -> Probe:
        return Probe((*_PROGRAM, "--version"), install="comes with benchctl")

    def read_probe(self, role: Role, exit_code: int, output: str) -> Tool:
        found = re.search(r"^simpleperf (\S+)$", output, re.MULTILINE)
        if exit_code or not found:
            raise ValueError(f"it ended with {exit_code}: {output.strip()[:200]}")
        return Tool(found[1])

    def client(self, flow: Flow[SimpleperfParameters]) -> Command:
        params = flow.params
        argv = [*_PROGRAM, "-c", "--plain", "--events", "-I", flow.address, "-p", str(flow.port)]
        if params.bytes is None:
            argv += ["-t", f"{params.duration:g}"]
        else:
            argv += ["-n", f"{params.bytes:.0f}"]
        argv += ["-i", f"{params.interval:g}", "-P", str(params.streams)]
        if flow.source_address:
            argv += ["-b", flow.source_address]
        return Command(tuple(argv), self._parser())

    def server(self, flow: Flow[SimpleperfParameters]) -> Command:
        where = ("-b", flow.address, "-p", str(flow.port))
        return Command((*_PROGRAM, "-s", "--one-off", "--events", *where), self._parser())

    def duration_s(self, params: SimpleperfParameters) -> float:
        return params.duration

    def traffic_bytes(self, params: SimpleperfParameters) -> float | None:
        return params.bytes

    def _parser(self) -> EventsParser:
        own = {metric.name for metric in self.capabilities.metrics}
        return EventsParser(own | METRICS.keys())


BACKEND = Simpleperf()
