"""The parameters of owping, its probe, and its command.

**Output.** In one direction the packets themselves are read (``-R``): every figure comes from them,
and each is a sample. In both directions owping prints the packets of both without a separator, and
on one host not even the addresses differ; lost and duplicate packets make any split unreliable. So
both directions together are read from the summaries (``-M``), which have separate blocks. Their
buckets have the resolution of owping's clock (1 us), so the percentiles are exact to a microsecond.

**The peer.** benchctl does not start owampd, which needs a configuration directory, and on its own
port the right to bind it. It has to run on the ``to`` host already, for example as a service of the
lab.
"""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from ipaddress import ip_address
from typing import Literal

from pydantic import Field, field_validator, model_validator

from benchctl.api import (
    Backend,
    Capabilities,
    Command,
    Direction,
    Dscp,
    Duration,
    Flow,
    Parameters,
    Parser,
    Probe,
    Recording,
    Role,
    Size,
    Tool,
)
from benchctl_owping.machine import HEADER_BYTES, MachineParser
from benchctl_owping.raw import RawParser
from benchctl_owping.recorded import recorded

# The default duration of throughput tests; with the default interval it is owping's own 100.
DEFAULT_DURATION_S = 10.0

# owping's own, which it adds to its estimate of the round-trip time.
DEFAULT_TIMEOUT_S = 2.0

# owping sends a second after it has set up a session, and waits a second after the last timeout.
OVERHEAD_S = 2.0

# The parsers keep a few bytes for each packet, and owping prints nothing before all have arrived.
MOST_PACKETS = 1_000_000


class OwpingParameters(Parameters):
    """How many packets, how often, and with which properties.

    ``count`` and ``duration`` are both upper bounds and the one reached first ends the flow, so
    that a profile can give either and sweep ``duration`` over all flows of a trial. With neither,
    owping sends for 10 s.
    """

    count: int | None = Field(
        default=None, ge=1, description="maximum number of packets to send in each direction"
    )
    duration: Duration | None = Field(
        default=None, gt=0,
        description="maximum time to send, in seconds; default: 10 s, unless count is given",
    )  # fmt: skip
    # owping accepts a negative one and sends without a pause.
    interval: Duration = Field(
        default=0.1, ge=0.0001, le=3600,
        description="time between two packets, in seconds; the mean when it is exponential",
    )  # fmt: skip
    schedule: Literal["exponential", "fixed"] = Field(
        default="exponential",
        description="how intervals vary: exponential samples a path without bias (RFC 2330, 11.1)",
    )
    timeout: Duration | None = Field(
        default=None, ge=0.01, le=3600,
        description="a packet that takes longer is lost, in seconds; more than the clocks differ. "
        "default: 2 s plus the round-trip time",
    )  # fmt: skip
    # owping cuts padding above 65000 bytes silently.
    length: Size = Field(
        default=float(HEADER_BYTES), ge=HEADER_BYTES, le=HEADER_BYTES + 65000,
        description="UDP payload of each packet, in bytes: 14 of OWAMP's own, and padding",
    )  # fmt: skip
    dscp: Dscp | None = Field(default=None, description="DSCP value of the packets (RFC 2474)")
    ip_version: Literal["auto", 4, 6] = Field(
        default="auto", description="IP version, 4 or 6; auto: by the address"
    )
    test_ports: str | None = Field(
        default=None, pattern=r"^\d{1,5}-\d{1,5}$",
        description='UDP ports to use on this side, such as "8760-9960"; default: any',
    )  # fmt: skip
    # owping's clock counts microseconds, so finer buckets have no effect.
    bucket_width: Duration = Field(
        default=1e-6, ge=1e-6, le=0.01,
        description="resolution of the percentiles when both directions are measured, in seconds",
    )  # fmt: skip

    @field_validator("test_ports")
    @classmethod
    def _two_ports(cls, value: str | None) -> str | None:
        if value is not None:
            low, high = map(int, value.split("-"))
            if not 1 <= low < high <= 65535:
                raise ValueError(
                    "test_ports must be a range from a lower to a higher port, such as 8760-9960"
                )
        return value

    @model_validator(mode="after")
    def _bounded(self) -> OwpingParameters:
        if self.packets > MOST_PACKETS:
            raise ValueError(f"{self.packets} packets are more than {MOST_PACKETS}")
        return self

    @property
    def packets(self) -> int:
        """How many packets fit both bounds: those due at 0, interval, … before duration ends."""
        if self.duration is None and self.count is not None:
            return self.count
        # The margin keeps 2.1 s / 0.3 s, which is 7.000000000000001, from becoming eight.
        due = math.ceil((self.duration or DEFAULT_DURATION_S) / self.interval - 1e-9)
        return due if self.count is None else min(due, self.count)


class Owping(Backend[OwpingParameters]):
    """OWAMP with owping; the owampd must be running already."""

    name = "owping"
    summary = "one-way delay, its variation and loss by OWAMP, against a running owampd"
    parameters = OwpingParameters
    capabilities = Capabilities(
        headline="owd_s",
        directions=(Direction.BOTH, Direction.SEND, Direction.RECEIVE),
        protocols=("udp",),
        default_port=861,
    )

    def probe(self, role: Role) -> Probe | None:
        # benchctl does not start the owampd on the other host, and its version cannot be queried.
        if role is Role.SERVER:
            return None
        return Probe(("owping", "-h"), "install owamp-client from the perfSONAR repository")

    def read_probe(self, role: Role, exit_code: int, output: str) -> Tool:
        if found := re.search(r"^Version: (\S+)", output, re.MULTILINE):
            return Tool(found[1])
        raise ValueError("it does not report its version as owping 5 does")

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
            output = ["-M", "-b", _decimal(params.bucket_width)]
        else:
            parser = RawParser(params.packets, flow.direction)
            output = ["-R", "-t" if flow.direction is Direction.SEND else "-f"]
        argv = ("owping", *output, *_options(flow), _target(flow))
        return Command(argv, parser, {"LC_ALL": "C"}, "SIGINT")

    def recorded(self, data: bytes) -> Sequence[Recording] | None:
        return recorded(data, MOST_PACKETS)

    def duration_s(self, params: OwpingParameters) -> float:
        timeout_s = params.timeout or DEFAULT_TIMEOUT_S
        return OVERHEAD_S + params.packets * params.interval + timeout_s

    def traffic_bytes(self, params: OwpingParameters) -> float | None:
        # In each direction that is measured.
        return params.packets * params.length


def _options(flow: Flow[OwpingParameters]) -> list[str]:
    params = flow.params
    # A letter after the number selects the schedule, so the number must not have an exponent.
    fixed = "f" if params.schedule == "fixed" else ""
    options = ["-c", f"{params.packets}", "-i", f"{_decimal(params.interval)}{fixed}",
               "-s", f"{params.length - HEADER_BYTES:.0f}"]  # fmt: skip
    if params.timeout is not None:
        options += ["-L", _decimal(params.timeout)]
    if params.dscp is not None:
        options += ["-D", f"{params.dscp}"]
    if params.test_ports is not None:
        options += ["-P", params.test_ports]
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


def _decimal(value_s: float) -> str:
    """Write seconds to the nanosecond, without an exponent."""
    return f"{value_s:.9f}".rstrip("0").rstrip(".")
