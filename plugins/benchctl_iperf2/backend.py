"""Finds iperf 2 and builds its commands.

Text, and not CSV (``-y C``): CSV has the bytes and the rate of an interval, whose times have one
decimal, and nothing of retransmissions, windows, round trips, delays and what the kernel made of a
requested buffer; a UDP client leaves out the server's report. With ``-f b`` text has every byte.
"""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from dataclasses import replace

from benchctl.api import (
    Backend,
    Capabilities,
    Command,
    Demand,
    Direction,
    Flow,
    Probe,
    Recording,
    Role,
    Tool,
)
from benchctl_iperf2.client import ClientReport
from benchctl_iperf2.parameters import OWN_METRICS, Iperf2Parameters
from benchctl_iperf2.server import ServerReport

# --trip-times, --reverse, --full-duplex, and the reports that are read here.
OLDEST = (2, 1)
_VERSION = re.compile(r"^iperf version (\d{1,4})\.(\d{1,4})(\S{0,40})", re.MULTILINE)
# A server says that it listens just before it does (my_listen in src/Listener.cpp).
_RETRIES = 5
# Assumed for an unknown network, when a byte count has no rate.
_ASSUMED_BPS = 10e6


class Iperf2(Backend[Iperf2Parameters]):
    """TCP and UDP by iperf 2, 2.1 or newer; its servers may be of any version."""

    name = "iperf2"
    summary = "TCP and UDP throughput, loss and one-way delay, against iperf 2 servers too"
    parameters = Iperf2Parameters
    capabilities = Capabilities(
        directions=(Direction.SEND, Direction.RECEIVE, Direction.BOTH),
        protocols=("tcp", "udp"),
        default_port=5001,
        needs_server=True,
        metrics=OWN_METRICS,
    )

    def probe(self, role: Role) -> Probe:
        return Probe(("iperf", "-v"), "apt install iperf, dnf install iperf or brew install iperf")

    def read_probe(self, role: Role, exit_code: int, output: str) -> Tool:
        match = _VERSION.search(output)
        if not match:
            raise ValueError(f"iperf -v says {output.strip()[:80]!r}")
        if (int(match[1]), int(match[2])) < OLDEST:
            least = ".".join(map(str, OLDEST))
            raise ValueError(f"iperf {match[1]}.{match[2]} is too old; the minimum is {least}")
        return Tool(f"{match[1]}.{match[2]}{match[3]}")

    def client(self, flow: Flow[Iperf2Parameters]) -> Command:
        _check(flow)
        params = flow.params
        device = "" if flow.source_device is None else f"%{flow.source_device}"
        argv = (
            *("iperf", "-c", f"{flow.address}{device}", "-p", str(flow.port)),
            *("-C" if params.compatible else "-e", "-f", "b", "-i", f"{params.interval:g}"),
            *_direction(flow),
            *_amount(params),
            *_sockets(flow, sends=flow.direction is not Direction.RECEIVE),
            *_of_client(flow),
        )
        return Command(argv, ClientReport(flow, params.interval))

    def server(self, flow: Flow[Iperf2Parameters]) -> Command:
        params = flow.params
        where = ("iperf", "-s", "-B", flow.address, "-p", str(flow.port))
        if flow.lasting:
            version = ("-V",) if ":" in flow.address else ()
            return Command((*where, *version), ServerReport(flow), stop_signal="SIGTERM")
        argv = (
            *where,
            *("-P", str(params.streams), "-e", "-f", "b", "-i", f"{params.interval:g}"),
            *_sockets(flow, sends=flow.direction is not Direction.SEND),
        )
        return Command(argv, ServerReport(flow, params.interval), stop_signal="SIGTERM")

    def recorded(self, data: bytes) -> Sequence[Recording] | None:
        from benchctl_iperf2.recorded import recorded

        return recorded(data)

    def duration_s(self, params: Iperf2Parameters) -> float:
        if params.duration is not None:
            return params.duration
        rate_bps = params.rate * params.streams
        return (params.bytes or 0.0) * 8 / (_ASSUMED_BPS if math.isinf(rate_bps) else rate_bps)

    def demand(self, params: Iperf2Parameters) -> Demand:
        demand = super().demand(params)
        if params.protocol == "udp" or demand.payload_bytes is None:
            return demand
        return replace(demand, payload_bytes=None)  # what is written to a stream is no packet

    def traffic_bytes(self, params: Iperf2Parameters) -> float | None:
        return super().traffic_bytes(params) if params.bytes is None else params.bytes


def _check(flow: Flow[Iperf2Parameters]) -> None:
    """Raise ValueError for what iperf 2 cannot do in this direction, or with this server."""
    params = flow.params
    if params.compatible and flow.direction is not Direction.SEND:
        raise ValueError("iperf 2 can only send with compatible")
    if params.dual_test and flow.direction is not Direction.BOTH:
        raise ValueError("dual_test needs both directions")
    receives = flow.direction is Direction.RECEIVE
    if params.congestion_control is not None and receives and not flow.owns_server:
        raise ValueError("iperf 2 cannot set congestion_control of a server that runs already")


def _direction(flow: Flow[Iperf2Parameters]) -> tuple[str, ...]:
    params = flow.params
    flags = ("--trip-times",) if params.trip_times else ()
    if flow.direction is Direction.RECEIVE:
        return (*flags, "-R")
    if flow.direction is Direction.BOTH and params.dual_test:
        port = params.listen_port or (flow.port or 0) % 65535 + 1
        return (*flags, "-d", "-L", str(port))
    return (*flags, "--full-duplex") if flow.direction is Direction.BOTH else flags


def _amount(params: Iperf2Parameters) -> tuple[str, ...]:
    flags: list[str] = []
    if params.bytes is not None:
        flags += ["-n", f"{params.bytes / params.streams:.0f}"]
    else:
        flags += ["-t", _seconds(params.duration or 0.0)]
    if params.streams > 1:
        flags += ["-P", str(params.streams)]
    if math.isfinite(params.rate):
        flags += ["-b", f"{params.rate:.0f}"]
    return tuple(flags)


def _seconds(duration_s: float) -> str:
    """Write a duration so that iperf, which cuts 100 times its value off, gets it whole."""
    ticks = round(duration_s * 100)
    return str(ticks // 100) if ticks % 100 == 0 else f"{ticks / 100 + 0.005:.3f}"


def _sockets(flow: Flow[Iperf2Parameters], *, sends: bool) -> tuple[str, ...]:
    """Return the options of an end's sockets; ``sends`` says whether data leave them."""
    params = flow.params
    flags: list[str] = ["-u"] if params.protocol == "udp" else []
    if params.length is not None:
        flags += ["-l", f"{params.length:.0f}"]
    if params.window is not None:
        flags += ["-w", f"{params.window:.0f}"]
    if params.mss is not None:
        flags += ["-M", f"{params.mss:.0f}"]
    if params.congestion_control is not None and sends:
        flags += ["-Z", params.congestion_control]
    if params.no_delay:
        flags += ["-N"]
    if params.ip_version == 6 or ":" in flow.address:
        flags += ["-V"]
    return tuple(flags)


def _of_client(flow: Flow[Iperf2Parameters]) -> tuple[str, ...]:
    """Return the options that only a client has."""
    flags: list[str] = []
    if flow.params.dscp:
        flags += ["-S", f"0x{flow.params.dscp << 2:x}"]
    if flow.source_address is not None:
        flags += ["-B", flow.source_address]
    if flow.owns_server and flow.params.protocol == "tcp":
        flags += ["--connect-retries", str(_RETRIES)]
    return tuple(flags)
