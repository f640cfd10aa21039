"""The parameters of owping, its probe, and its commands.

**Output.** In one direction the packets themselves are read (``-R``): every figure comes from them,
and each is a sample. In both directions owping prints the packets of both without a separator, and
on one host not even the addresses differ; lost and duplicate packets make any split unreliable. So
both directions together are read from the summaries (``-M``), which have separate blocks. Their
buckets have the resolution of owping's clock (1 us), so the percentiles are exact to a microsecond.

**The peer.** On its own hosts benchctl starts owampd, with directories of its own (`daemon`).
"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterable, Sequence
from dataclasses import replace
from ipaddress import ip_address
from pathlib import Path

from pydantic import Field

from benchctl.api import (
    Backend,
    Capabilities,
    Channel,
    Command,
    Demand,
    Direction,
    Duration,
    Event,
    Failure,
    FailureKind,
    Flow,
    LineParser,
    Parser,
    Probe,
    Ready,
    Recording,
    Role,
    Tool,
)
from benchctl_owamp.parameters import MOST_PACKETS, OneWayParameters, decimal, test_ports
from benchctl_owping.complaints import Complaints
from benchctl_owping.machine import MachineParser
from benchctl_owping.raw import RawParser
from benchctl_owping.recorded import recorded

_DAEMON = str(Path(__file__).with_name("daemon.py"))

_LOG_NAME = re.compile(r"^owampd\[\d+\]: ")

# owping's own, which it adds to its estimate of the round-trip time.
DEFAULT_TIMEOUT_S = 2.0

# owping sends a second after it has set up a session, and waits a second after the last timeout.
OVERHEAD_S = 2.0


class OwpingParameters(OneWayParameters):
    """Those of every tool of OWAMP, and owping's own."""

    # owping's clock counts microseconds, so finer buckets have no effect.
    bucket_width: Duration = Field(
        default=1e-6, ge=1e-6, le=0.01,
        description="resolution of the percentiles when both directions are measured, in seconds",
    )  # fmt: skip


class Owping(Backend[OwpingParameters]):
    """OWAMP with owping, and owampd on hosts of benchctl's own."""

    name = "owping"
    summary = "one-way delay, its variation and loss by OWAMP, with owping and owampd"
    parameters = OwpingParameters
    capabilities = Capabilities(
        headline="owd_s",
        directions=(Direction.BOTH, Direction.SEND, Direction.RECEIVE),
        protocols=("udp",),
        default_port=861,
        needs_server=True,
    )

    def probe(self, role: Role) -> Probe:
        if role is Role.CLIENT:
            return Probe(("owping", "-h"), "install owamp-client from the perfSONAR repository")
        remedy = "install owamp-server from the perfSONAR repository; one that runs already is a "
        return Probe(("owampd", "-h"), f"{remedy}server under [servers]")

    def read_probe(self, role: Role, exit_code: int, output: str) -> Tool:
        if found := re.search(r"^Version: (\S+)", output, re.MULTILINE):
            return Tool(found[1])
        raise ValueError("it does not report its version as owping and owampd 5 do")

    def client(self, flow: Flow[OwpingParameters]) -> Command:
        params = flow.params
        # owping reports this like an unreachable host.
        if params.ip_version not in ("auto", _version_of(flow.address) or params.ip_version):
            raise ValueError(
                f"{flow.address} is not an IPv{params.ip_version} address: remove ip_version or "
                "change the address"
            )
        parser: Parser
        if flow.direction is Direction.BOTH:
            both = (Direction.SEND, Direction.RECEIVE)
            parser = MachineParser(params.packets, both)
            output = ["-M", "-b", decimal(params.bucket_width)]
        else:
            parser = RawParser(params.packets, flow.direction)
            output = ["-R", "-t" if flow.direction is Direction.SEND else "-f"]
        argv = ("owping", *output, *_options(flow), _target(flow))
        return Command(argv, parser, {"LC_ALL": "C"}, "SIGINT")

    def server(self, flow: Flow[OwpingParameters]) -> Command:
        if flow.params.mode != "open":
            raise ValueError(
                "benchctl starts owampd without users: run it yourself and declare it as a server "
                f"under [servers] for mode {flow.params.mode}"
            )
        argv = [sys.executable, "-I", "-S", _DAEMON, flow.address, str(flow.port)]
        if ports := test_ports(None, flow.server_ports):
            argv.append(ports)
        return Command(tuple(argv), DaemonParser(), {"LC_ALL": "C"}, "SIGTERM", stays=True)

    def recorded(self, data: bytes) -> Sequence[Recording] | None:
        return recorded(data, MOST_PACKETS)

    def duration_s(self, params: OwpingParameters) -> float:
        timeout_s = params.timeout or DEFAULT_TIMEOUT_S
        return OVERHEAD_S + params.packets * params.interval + timeout_s

    def traffic_bytes(self, params: OwpingParameters) -> float | None:
        # In each direction that is measured.
        return params.packets * params.payload_bytes

    def demand(self, params: OwpingParameters) -> Demand:
        return replace(super().demand(params), payload_bytes=params.payload_bytes)


class DaemonParser(LineParser):
    """owampd says when it listens, or why it does not."""

    def __init__(self) -> None:
        super().__init__()
        self._complaints = Complaints()
        self._ready = False

    def line(self, text: str, channel: Channel) -> Iterable[Event]:
        if channel is Channel.STDERR:
            self._complaints.add(_LOG_NAME.sub("", text))
        elif text.startswith("owampd listens on "):
            self._ready = True
            yield Ready()

    def end(self, exit_code: int) -> Iterable[Event]:
        if not self._ready:
            said = "; ".join(self._complaints.texts[:3]) or f"exit code {exit_code}"
            yield Failure(FailureKind.TOOL, f"owampd does not listen: {said}")


def _options(flow: Flow[OwpingParameters]) -> list[str]:
    params = flow.params
    # A letter after the number selects the schedule, so the number must not have an exponent.
    fixed = "f" if params.schedule == "fixed" else ""
    options = ["-c", f"{params.packets}", "-i", f"{decimal(params.interval)}{fixed}",
               "-s", f"{params.padding_bytes}"]  # fmt: skip
    if params.mode != "open":
        options += ["-A", params.mode[0].upper(), "-u", f"{params.username}",
                    "-k", f"{params.key_file}"]  # fmt: skip
    if params.timeout is not None:
        options += ["-L", decimal(params.timeout)]
    if params.dscp is not None:
        options += ["-D", f"{params.dscp}"]
    if ports := test_ports(params.test_ports, flow.client_ports):
        options += ["-P", ports]
    if params.ip_version != "auto":
        options += [f"-{params.ip_version}"]
    if flow.source_address is not None:
        options += ["-S", flow.source_address]
    if flow.source_device is not None:
        options += ["-B", flow.source_device]
    return options


def _target(flow: Flow[OwpingParameters]) -> str:
    host = f"[{flow.address}]" if ":" in flow.address else flow.address
    return host if flow.port is None else f"{host}:{flow.port}"


def _version_of(address: str) -> int | None:
    """Return the IP version of an address; None for a name, which may have both."""
    try:
        return ip_address(address).version
    except ValueError:
        return None
