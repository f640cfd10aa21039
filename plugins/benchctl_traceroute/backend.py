"""The parameters of a traced route, the probe for its tools, and their commands.

mtr is preferred: it goes over the path again and again, for as long as asked, in parallel with
waiting for answers. Where it is missing, traceroute sends all probes to one hop, then to the next:
Linux's (Dmitry Butskoy) or that of FreeBSD and macOS. Others use the same letters otherwise.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from dataclasses import replace
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
    Parameters,
    Probe,
    Role,
    Tool,
)
from benchctl_traceroute.mtr import MtrParser
from benchctl_traceroute.text import TextParser
from benchctl_traceroute.trace import MOST_HOPS

# What every tool sends in its default probe: with headers 60 bytes of IPv4, 80 of IPv6.
PAYLOAD_BYTES = 32
_HEADER_BYTES = {4: 28, 6: 48}

# The parser keeps up to 300 bytes for each probe. It is a day over ten hops, ten rounds a minute.
MOST_PROBES = 200_000

# Linux's traceroute takes no more.
MOST_TEXT_PROBES = 10


class TracerouteParameters(Parameters):
    """How often the path is traced, with which probes, and how far."""

    # Enough to see a loss of some 10 % and several routes at once.
    count: int = Field(default=10, ge=1, description="probes to each hop; traceroute, where mtr is"
                       " missing, sends at most 10")  # fmt: skip
    # mtr's own, the shortest for other users than root, and what Linux's routers answer.
    interval: Duration = Field(
        default=1.0, ge=0.01, le=3600,
        description="time between two rounds over all hops; below 1 s mtr needs root, and routers"
        " leave more probes unanswered",
    )  # fmt: skip
    # An echo is answered by hosts that no rate limits; ports of UDP and TCP are often filtered.
    protocol: Literal["icmp", "udp", "tcp"] = Field(
        default="icmp",
        description="kind of probe: icmp (echo), udp (to ports without a service), tcp (SYN)",
    )
    port: int | None = Field(
        default=None, ge=1, le=65535,
        description="destination port of udp and tcp probes; default: for udp another one for each"
        " probe, for tcp 80",
    )  # fmt: skip
    # As traceroute and mtr; few paths of the internet are longer.
    max_hops: int = Field(default=30, ge=1, le=MOST_HOPS, description="hops to look at")
    dscp: Dscp | None = Field(default=None, description="DSCP value of the probes (RFC 2474)")
    ip_version: Literal["auto", 4, 6] = Field(
        default="auto", description="IP version, 4 or 6; auto: by the address"
    )
    # Longer than any path on earth.
    timeout: Duration = Field(
        default=2.0, ge=1, le=3600,
        description="how long to wait for an answer, in whole seconds; a probe without one by then"
        " counts as unanswered",
    )  # fmt: skip

    @field_validator("timeout")
    @classmethod
    def _whole_seconds(cls, value: float) -> float:
        if value != math.floor(value):
            raise ValueError("mtr and BSD's traceroute take whole seconds only")
        return value

    @model_validator(mode="after")
    def _possible(self) -> TracerouteParameters:
        if self.port is not None and self.protocol == "icmp":
            raise ValueError("port is for udp and tcp: an ICMP echo has none")
        if self.count * self.max_hops > MOST_PROBES:
            raise ValueError(
                f"{self.count} probes to each of {self.max_hops} hops are more than {MOST_PROBES}"
            )
        return self


class Traceroute(Backend[TracerouteParameters]):
    """The routers on a path by probes that expire there; the other end needs no software."""

    name = "traceroute"
    summary = "routers on the path, their answers, and round-trip time and loss to its end"
    parameters = TracerouteParameters
    capabilities = Capabilities(
        headline="rtt_s",
        directions=(Direction.ROUND_TRIP,),
        protocols=("icmp", "udp", "tcp"),
    )

    def probe(self, role: Role) -> Probe | None:
        if role is Role.SERVER:
            return None
        hint = "apt install mtr-tiny, or traceroute"
        return Probe(("mtr", "--version"), hint, Probe(("traceroute", "--version"), hint))

    def read_probe(self, role: Role, exit_code: int, output: str) -> Tool:
        if found := re.match(r"mtr (\d+)\.(\d+)", output):
            version = f"{found[1]}.{found[2]}"
            if (int(found[1]), int(found[2])) < (0, 88):
                raise ValueError(f"mtr {version} does not report each probe; 0.88 does")
            return Tool(f"mtr {version}", frozenset({"mtr"}))
        if found := re.search(r"Modern traceroute for Linux, version (\d[\w.]*)", output):
            return Tool(f"traceroute {found[1]}", frozenset({"linux"}))
        if "[-z pausemsecs]" in output and "[-P proto]" in output:
            found = re.search(r"Version (\S+)", output)
            return Tool(f"traceroute {found[1] if found else 'of BSD'}", frozenset({"bsd"}))
        says = output.strip().partition("\n")[0] or "nothing"
        raise ValueError(
            f"not mtr, and not the traceroute of Linux, macOS or FreeBSD; its output: {says[:80]}"
        )

    def client(self, flow: Flow[TracerouteParameters]) -> Command:
        params = flow.params
        if "mtr" in flow.tool.features:
            parser = MtrParser(
                flow.address, params.count, params.max_hops, params.interval, params.timeout,
                tcp=params.protocol == "tcp",
            )  # fmt: skip
            # Options of the user would change the output.
            return Command(
                (*_mtr(flow), flow.address), parser, {"MTR_OPTIONS": ""},
                wants_root=params.interval < 1.0,
            )  # fmt: skip
        if params.count > MOST_TEXT_PROBES:
            raise ValueError(
                f"traceroute sends at most {MOST_TEXT_PROBES} probes to a hop; install mtr for more"
            )
        # At this pace a path of the most hops takes as long as mtr takes for it.
        pace_s = params.interval / params.max_hops
        options = _linux(flow, pace_s) if "linux" in flow.tool.features else _bsd(flow, pace_s)
        text = TextParser(flow.address, params.count, params.max_hops, pace_s, params.timeout)
        # What is not UDP takes a raw socket. BSD's program has the set-user-ID bit.
        wants_root = params.protocol != "udp"
        return Command(("traceroute", *options, flow.address), text, wants_root=wants_root)

    def duration_s(self, params: TracerouteParameters) -> float:
        return params.count * params.interval + params.timeout

    def demand(self, params: TracerouteParameters) -> Demand:
        return replace(super().demand(params), payload_bytes=PAYLOAD_BYTES)


def _ip_version(flow: Flow[TracerouteParameters]) -> int:
    asked = flow.params.ip_version
    return asked if asked != "auto" else 6 if ":" in flow.address else 4


def _mtr(flow: Flow[TracerouteParameters]) -> list[str]:
    """Options of mtr; ``-U`` with the most hops: a round ends at the destination or there."""
    params = flow.params
    most, timeout = f"{params.max_hops}", f"{params.timeout:.0f}"
    length = PAYLOAD_BYTES + _HEADER_BYTES[_ip_version(flow)]
    options = ["mtr", "--raw", "-n", "-c", f"{params.count}", "-i", f"{params.interval:.6f}"]
    options += ["-m", most, "-U", most, "-Z", timeout, "-G", timeout, "-s", f"{length}"]
    options += {"icmp": [], "udp": ["-u"], "tcp": ["-T"]}[params.protocol]
    device = flow.source_device if flow.source_address is None else None
    asked = {
        "-P": params.port, "-Q": _type_of_service(params),
        "-a": flow.source_address, "-I": device,
    }  # fmt: skip
    return [*options, *_named_version(params), *_asked(asked)]


def _linux(flow: Flow[TracerouteParameters], pace_s: float) -> list[str]:
    """Options of Linux's traceroute, one probe at a time; it waits the whole time for each."""
    params = flow.params
    # From 10 on it would read milliseconds.
    pace = f"{pace_s:.6f}" if pace_s < 10 else f"{pace_s * 1000:.0f}"
    options = ["-n", "-q", f"{params.count}", "-m", f"{params.max_hops}", "-N", "1", "-z", pace]
    options += ["-w", f"{params.timeout:.0f},0,0"]
    options += {"icmp": ["-I"], "udp": ["-U"] if params.port else [], "tcp": ["-T"]}[
        params.protocol
    ]
    asked = {
        "-p": params.port, "-t": _type_of_service(params),
        "-s": flow.source_address, "-i": flow.source_device,
    }  # fmt: skip
    return [*options, *_named_version(params), *_asked(asked)]


def _bsd(flow: Flow[TracerouteParameters], pace_s: float) -> list[str]:
    """Options of macOS and FreeBSD; raises ValueError for what their traceroute cannot do."""
    params = flow.params
    if _ip_version(flow) == 6:
        raise ValueError("this traceroute supports IPv4 only; install mtr")
    options = ["-n", "-q", f"{params.count}", "-m", f"{params.max_hops}"]
    options += ["-z", f"{pace_s * 1000:.0f}", "-w", f"{params.timeout:.0f}"]
    options += ["-P", params.protocol]
    port = 80 if params.protocol == "tcp" and params.port is None else params.port
    if port is not None:
        options += ["-e"]
    asked = {
        "-p": port, "-t": _type_of_service(params),
        "-s": flow.source_address, "-i": flow.source_device,
    }  # fmt: skip
    return [*options, *_asked(asked)]


def _asked(options: Mapping[str, object]) -> list[str]:
    """Return the options that have a value, each before it."""
    given = {option: value for option, value in options.items() if value is not None}
    return [word for option, value in given.items() for word in (option, f"{value}")]


def _type_of_service(params: TracerouteParameters) -> int | None:
    return None if params.dscp is None else params.dscp << 2


def _named_version(params: TracerouteParameters) -> list[str]:
    return [] if params.ip_version == "auto" else [f"-{params.ip_version}"]
