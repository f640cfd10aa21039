"""The backend: builds the simpleowamp commands of a flow."""

from __future__ import annotations

import re
import sys
from dataclasses import replace
from pathlib import Path

from benchctl.api import (
    Backend,
    Capabilities,
    Command,
    Demand,
    Direction,
    Flow,
    Fold,
    Metric,
    Probe,
    Role,
    Tool,
)
from benchctl_owamp.parameters import OwampParameters, decimal, test_ports
from benchctl_owamp.parser import ClientParser, ServerParser

_TOOL = str(Path(__file__).parent / "simpleowamp" / "__main__.py")
# -I and -S leave out site-packages and the environment: without keys the tool needs neither, and
# starts faster.
_PROGRAM = (sys.executable, "-I", "-S", _TOOL)
# `cryptography` is in site-packages.
_WITH_KEYS = (sys.executable, "-I", _TOOL)

# The tool sends a second after it has set up the sessions, and fetches the results at the end.
OVERHEAD_S = 2.0
# The tool's own, which it adds to its estimate of the round-trip time.
DEFAULT_TIMEOUT_S = 2.0

METRICS = (
    Metric("sending_late_p99_s", "99th percentile of how late packets were sent",
           Fold.VALUE, "lower"),
)  # fmt: skip


class Owamp(Backend[OwampParameters]):
    """The built-in peer of OWAMP, TWAMP and STAMP."""

    name = "owamp"
    summary = "one-way delay, its variation and loss by OWAMP, TWAMP or STAMP, built in"
    parameters = OwampParameters
    capabilities = Capabilities(
        headline="owd_s",
        directions=(Direction.BOTH, Direction.SEND, Direction.RECEIVE),
        protocols=("udp",),
        default_port=861,
        needs_server=True,
        restricts_clients=True,
        metrics=METRICS,
    )

    def probe(self, role: Role) -> Probe:
        return Probe((*_PROGRAM, "--version"), install="comes with benchctl")

    def read_probe(self, role: Role, exit_code: int, output: str) -> Tool:
        found = re.search(r"^simpleowamp (\S+)$", output, re.MULTILINE)
        if exit_code or not found:
            raise ValueError(
                f"simpleowamp --version ended with {exit_code}: {output.strip()[:200]}"
            )
        return Tool(found[1])

    def client(self, flow: Flow[OwampParameters]) -> Command:
        params = flow.params
        directions: tuple[Direction, ...] = (flow.direction,)
        if flow.direction is Direction.BOTH:
            directions = (Direction.SEND, Direction.RECEIVE)
        if params.protocol != "owamp":
            if flow.direction is not Direction.BOTH:
                raise ValueError(f"{params.protocol} sends every packet back: direction is both")
            directions = (Direction.ROUND_TRIP,)
        if not flow.owns_server and (params.clock_offset or params.clock_drift):
            raise ValueError(
                "clock_offset and clock_drift belong to a server that benchctl starts itself"
            )
        argv = (*_start(params), "ping", "--json", flow.address, "-p", str(flow.port),
                *_protocol(flow), *_packets(flow))  # fmt: skip
        return Command(argv, ClientParser(params.packets, directions))

    def server(self, flow: Flow[OwampParameters]) -> Command:
        params = flow.params
        argv = [*_start(params), "serve", "-b", flow.address, "-p", str(flow.port),
                "--protocol", params.protocol]  # fmt: skip
        if ports := test_ports(None, flow.server_ports):
            argv += ["--test-ports", ports]
        argv += [word for network in flow.allow for word in ("--allow", network)]
        if not flow.lasting:
            # The profile gives the amount, and whoever runs it has agreed.
            argv += [*_limits(params, self.duration_s(params)), *_clock(params)]
            if params.protocol == "stamp" and params.mode != "open":
                argv += ["--key-file", f"{params.key_file}"]
            elif params.mode != "open":
                raise ValueError(
                    "benchctl starts servers without users: run simpleowamp serve --users FILE "
                    f"yourself and declare it under [servers] for mode {params.mode}"
                )
        return Command(tuple(argv), ServerParser(), stop_signal="SIGTERM", stays=True)

    def duration_s(self, params: OwampParameters) -> float:
        timeout_s = params.timeout or DEFAULT_TIMEOUT_S
        return OVERHEAD_S + params.packets * params.interval + timeout_s

    def traffic_bytes(self, params: OwampParameters) -> float | None:
        # In each direction that is measured.
        return float(params.packets * params.payload_bytes)

    def demand(self, params: OwampParameters) -> Demand:
        return replace(super().demand(params), payload_bytes=params.payload_bytes, protocol="udp")


def _start(params: OwampParameters) -> tuple[str, ...]:
    return _PROGRAM if params.mode == "open" else _WITH_KEYS


def _protocol(flow: Flow[OwampParameters]) -> list[str]:
    params = flow.params
    options = ["--protocol", params.protocol, *_keys(params)]
    if params.protocol == "owamp":
        options += ["--direction", str(flow.direction)]
    if params.ip_version != "auto":
        options += [f"-{params.ip_version}"]
    if flow.source_address is not None:
        options += ["-b", flow.source_address]
    if flow.source_device is not None:
        options += ["--device", flow.source_device]
    return options


def _keys(params: OwampParameters) -> list[str]:
    if params.mode == "open":
        return []
    user = [] if params.username is None else ["--user", params.username]
    return ["--mode", params.mode, *user, "--key-file", f"{params.key_file}"]


def _packets(flow: Flow[OwampParameters]) -> list[str]:
    params = flow.params
    schedule = "periodic" if params.schedule == "fixed" else "exponential"
    options = ["-c", f"{params.packets}", "-i", decimal(params.interval), "--schedule", schedule,
               "-s", f"{params.padding_bytes}"]  # fmt: skip
    if params.timeout is not None:
        options += ["-L", decimal(params.timeout)]
    if params.dscp is not None:
        options += ["--dscp", f"{params.dscp}"]
    if ports := test_ports(params.test_ports, flow.client_ports):
        options += ["--test-ports", ports]
    return options


def _limits(params: OwampParameters, duration_s: float) -> list[str]:
    """Return the limits of a server for one flow, whose sum of intervals may well be longer."""
    packets = f"{2 * params.packets}"
    return ["--max-rate", "unlimited", "--max-rate-per-client", "unlimited",
            "--max-packet-rate-per-client", str(10**6),  # More than it can read.
            "--max-packets", packets, "--max-packets-per-client", packets,
            "--max-time", decimal(10 * duration_s)]  # fmt: skip


def _clock(params: OwampParameters) -> list[str]:
    options = []
    if params.clock_offset:
        options += ["--clock-offset", f"{decimal(params.clock_offset)}s"]
    if params.clock_drift:
        options += ["--clock-drift", f"{decimal(params.clock_drift * 60e3)}ms/min"]
    return options


BACKEND = Owamp()
