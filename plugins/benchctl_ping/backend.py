"""The parameters of ping, its probe, and its command.

Two families are supported. iputils (Linux) answers ``-V`` with its name. The ping of macOS and
FreeBSD has no ``-V``: it prints its usage and sends nothing, and the usage identifies the family.
BusyBox, GNU inetutils and OpenBSD use the same letters for other options. Where one of those or no
ping at all is installed, `echo` takes its place, which has the options of iputils.
"""

from __future__ import annotations

import math
import re
import sys
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Literal

from pydantic import Field, field_validator, model_validator

from benchctl.api import (
    Backend,
    Capabilities,
    Command,
    Demand,
    Direction,
    Dscp,
    Duration,
    Flow,
    Fold,
    Metric,
    Parameters,
    Probe,
    Recording,
    Role,
    Size,
    Tool,
)
from benchctl_ping.parser import PingParser
from benchctl_ping.recorded import recorded

# The default duration of throughput tests, so that ping beside one covers it.
DEFAULT_DURATION_S = 10.0

# From this version on iputils has -3: every round-trip time to the microsecond. Older ones print
# three digits, so whole milliseconds from 100 ms on.
EXACT_SINCE = "20240905"

# Without replies ping floods with a hundred probes a second, the least of a flood.
# Older iputils lets only root send faster; newer ones have 2 ms, macOS 100 ms.
EVERYBODYS_INTERVAL_S = 0.2
FLOOD_INTERVAL_S = 0.01

# -I and -S leave out site-packages and the environment: it needs neither, and starts faster.
_OWN = (sys.executable, "-I", "-S", str(Path(__file__).with_name("echo.py")))

# The parser keeps a byte for each probe. It is three hours at the shortest interval.
MOST_PROBES = 10_000_000

METRICS = (
    Metric("ttl", "time to live of the reply on arrival; it changes when the return path changes",
           Fold.DISTRIBUTION),
    Metric("rtt_mdev_s", "standard deviation of the round-trip times, as ping reports it",
           Fold.VALUE, "lower"),
)  # fmt: skip


class PingParameters(Parameters):
    """How many probes, how often, and with which properties.

    ``count`` and ``duration`` are both upper bounds and the one reached first ends the flow. So a
    profile can give either, and can sweep ``duration`` over all flows of a trial even if a ping
    flow has a ``count``. With neither, ping runs for 10 s.
    """

    count: int | None = Field(default=None, ge=1, description="maximum number of probes to send")
    duration: Duration | None = Field(
        default=None, gt=0,
        description="maximum time to send, in seconds; default: 10 s, unless count is given",
    )  # fmt: skip
    # Five a second, because older iputils lets only root send faster.
    interval: Duration = Field(
        default=0.2, ge=0.001, le=3600,
        description="time between two probes, in whole milliseconds; below 2 ms needs root on "
        "Linux (200 ms before iputils 20210722), below 100 ms on macOS, below 1 s on FreeBSD",
    )  # fmt: skip
    # The tool's own, which makes 64 bytes of ICMP. Below 16 bytes ping prints no round-trip time;
    # an IPv4 packet holds at most 65507.
    length: Size = Field(
        default=56.0, ge=16, le=65507,
        description="payload of each probe, in bytes; 16 of them hold the send time",
    )  # fmt: skip
    dscp: Dscp | None = Field(default=None, description="DSCP value of the probes (RFC 2474)")
    ip_version: Literal["auto", 4, 6] = Field(
        default="auto", description="IP version, 4 or 6; auto: by the address"
    )
    # Longer than any path on earth; iputils would wait for 10 s.
    timeout: Duration = Field(
        default=2.0, ge=0.001, le=3600,
        description="how long to wait for a reply after the last probe, in seconds; BSD counts "
        "later replies as lost; iputils waits for two round-trip times once it has had a reply",
    )  # fmt: skip
    ttl: int | None = Field(
        default=None, ge=1, le=255, description="time to live (hop limit) of the probes"
    )
    dont_fragment: bool = Field(
        default=False, description="forbid fragmentation, here and on the path"
    )

    flood: bool = Field(
        default=False,
        description="send the next probe at each reply, at least 100 a second, and record the"
        " summary only; in a lab only, and with count",
    )

    @field_validator("interval")
    @classmethod
    def _whole_milliseconds(cls, value: float) -> float:
        # Every ping truncates the rest, and at 0 ms iputils floods.
        if not math.isclose(value * 1000, round(value * 1000), rel_tol=1e-9):
            raise ValueError("ping takes times in whole milliseconds only")
        return value

    @model_validator(mode="after")
    def _bounded(self) -> PingParameters:
        if self.flood and (self.count is None or self.duration is not None):
            raise ValueError("flood is bounded by count, and not by duration")
        if self.probes > MOST_PROBES:
            raise ValueError(f"{self.probes} probes are more than {MOST_PROBES}")
        return self

    @property
    def probes(self) -> int:
        """How many probes fit both bounds: those due at 0, interval, … before duration ends."""
        if self.duration is None and self.count is not None:
            return self.count
        # The margin keeps 2.1 s / 0.3 s, which is 7.000000000000001, from becoming eight.
        due = math.ceil((self.duration or DEFAULT_DURATION_S) / self.interval - 1e-9)
        return due if self.count is None else min(due, self.count)


class Ping(Backend[PingParameters]):
    """ICMP echo with the system's ping; the other end needs no software."""

    name = "ping"
    summary = "round-trip time and loss by ICMP echo"
    parameters = PingParameters
    capabilities = Capabilities(
        headline="rtt_s", directions=(Direction.ROUND_TRIP,), protocols=("icmp",), metrics=METRICS
    )

    def probe(self, role: Role) -> Probe | None:
        if role is Role.SERVER:
            return None
        return Probe(
            ("ping", "-V"), "apt install iputils-ping", Probe((*_OWN, "-V"), "comes with benchctl")
        )

    def read_probe(self, role: Role, exit_code: int, output: str) -> Tool:
        if found := re.search(r"iputils[ -]s?(\d{8})", output):
            version = found[1]
            exact = {"exact"} if version >= EXACT_SINCE else set()
            return Tool(version, frozenset({"iputils", *exact}))
        if own := re.fullmatch(r"echo (\S+)\s*", output):
            return Tool(f"{own[1]}, benchctl's own", frozenset({"iputils", "own"}))
        if "[-S src_addr]" in output and "[-z tos]" in output:
            if "boundif" in output:
                return Tool("macOS", frozenset({"bsd", "device"}))
            return Tool("BSD", frozenset({"bsd"}))
        says = output.strip().partition("\n")[0] or "nothing"
        raise ValueError(f"not the ping of iputils, macOS or FreeBSD; its output: {says}")

    def client(self, flow: Flow[PingParameters]) -> Command:
        iputils = "iputils" in flow.tool.features
        options = _iputils(flow) if iputils else _bsd(flow)
        params = flow.params
        # iputils counts its probes from 1, the others from 0.
        parser = PingParser(params.probes, params.interval, first_seq=1 if iputils else 0)
        program = _OWN if "own" in flow.tool.features else ("ping",)
        # Of benchctl's own, the kernel may give an ICMP socket to root alone.
        wants_root = params.flood or params.interval < EVERYBODYS_INTERVAL_S or program == _OWN
        return Command(
            (*program, *options, flow.address), parser, {"LC_ALL": "C"}, "SIGINT",
            wants_root=wants_root,
        )  # fmt: skip

    def recorded(self, data: bytes) -> Sequence[Recording] | None:
        return recorded(data, MOST_PROBES)

    def duration_s(self, params: PingParameters) -> float:
        return params.probes * (FLOOD_INTERVAL_S if params.flood else params.interval)

    def demand(self, params: PingParameters) -> Demand:
        return replace(super().demand(params), lab_only=params.flood)

    def traffic_bytes(self, params: PingParameters) -> float | None:
        return params.probes * params.length


def _common(params: PingParameters) -> list[str]:
    interval = f"{params.interval:.3f}"
    # ping multiplies by 1000 and truncates: "1.001" becomes 1000 ms, "1.0011" the intended 1001.
    if int(float(interval) * 1000) != round(params.interval * 1000):
        interval += "1"
    # A flood prints dots, which are no lines, unless it is quiet.
    pace = ["-f", "-q"] if params.flood else ["-i", interval]
    return ["-n", "-c", f"{params.probes}", *pace, "-s", f"{params.length:.0f}"]


def _iputils(flow: Flow[PingParameters]) -> list[str]:
    """Options of iputils; ``-D`` timestamps every line, ``-O`` reports probes not yet answered."""
    params = flow.params
    options = ["-D", "-O", *_common(params), "-W", f"{params.timeout:.3f}"]
    if "exact" in flow.tool.features:
        options += ["-3"]
    if params.dscp is not None:
        options += ["-Q", f"{params.dscp << 2}"]
    if params.ttl is not None:
        options += ["-t", f"{params.ttl}"]
    if params.dont_fragment:
        options += ["-M", "do"]
    if params.ip_version != "auto":
        options += [f"-{params.ip_version}"]
    for source in (flow.source_address, flow.source_device):
        if source is not None:
            options += ["-I", source]
    return options


def _bsd(flow: Flow[PingParameters]) -> list[str]:
    """Options of macOS and FreeBSD; raises ValueError for what their ping cannot do."""
    params = flow.params
    if params.ip_version == 6 or ":" in flow.address:
        raise ValueError("this ping supports IPv4 only")
    options = [*_common(params), "-W", f"{params.timeout * 1000:.0f}"]
    if params.dscp is not None:
        options += ["-z", f"{params.dscp << 2}"]
    if params.ttl is not None:
        options += ["-m", f"{params.ttl}"]
    if params.dont_fragment:
        options += ["-D"]
    if flow.source_address is not None:
        options += ["-S", flow.source_address]
    if flow.source_device is not None:
        if "device" not in flow.tool.features:
            raise ValueError("this ping cannot bind to a device; set the address of the interface")
        options += ["-b", flow.source_device]
    return options
