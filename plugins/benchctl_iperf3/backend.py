"""Finds iperf3, builds its commands, and chooses the output format of its version."""

from __future__ import annotations

import math
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
from benchctl_iperf3.errors import ended
from benchctl_iperf3.parameters import Iperf3Parameters, interval_s, length_bytes
from benchctl_iperf3.recorded import recorded
from benchctl_iperf3.stream import JsonStream
from benchctl_iperf3.text import TextClient, TextServer
from benchctl_iperf3.version import VERSION, tool_of

# --bidir came with 3.7, and the text has not changed since.
OLDEST = (3, 7)

# The build options that `iperf3 --version` reports, beside what its version implies.
_BUILT_WITH = {
    "bind to device": "bind-device",
    "TCP congestion algorithm setting": "congestion-control",
    "sendfile / zerocopy": "zero-copy",
    "authentication": "authentication",
    "SCTP": "sctp",
    "support IPv4 don't fragment": "dont-fragment",
}

_DIRECTION_FLAGS = {Direction.SEND: (), Direction.RECEIVE: ("-R",), Direction.BOTH: ("--bidir",)}

# The only place besides a terminal from which iperf3 reads the password (src/iperf_api.c).
PASSWORD_VARIABLE = "IPERF3_PASSWORD"

_PROTOCOL_FLAGS = {
    "tcp": (),
    # The packet counter has 32 bits otherwise, which last for 80 minutes at 10 Gbit/s.
    "udp": ("-u", "--udp-counters-64bit"),
    "sctp": ("--sctp",),
    "mptcp": ("--mptcp",),
}

# Assumed for an unknown network, when a byte count has no rate.
_ASSUMED_BPS = 10e6


class Iperf3(Backend[Iperf3Parameters]):
    """TCP and UDP throughput by iperf3, 3.7 or newer."""

    name = "iperf3"
    summary = "TCP and UDP throughput, loss and jitter, one way or both (iperf3)"
    parameters = Iperf3Parameters
    capabilities = Capabilities(
        directions=tuple(_DIRECTION_FLAGS),
        protocols=("tcp", "udp", "sctp", "mptcp"),
        default_port=5201,
        needs_server=True,
    )

    def probe(self, role: Role) -> Probe:
        return Probe(
            ("iperf3", "--version"),
            "apt install iperf3, dnf install iperf3 or brew install iperf3",
        )

    def read_probe(self, role: Role, exit_code: int, output: str) -> Tool:
        match = VERSION.search(output)
        if exit_code or not match:
            raise ValueError(f"iperf3 --version says {output.strip()[:80]!r} ({ended(exit_code)})")
        if (int(match[1]), int(match[2])) < OLDEST:
            least = ".".join(map(str, OLDEST))
            raise ValueError(f"iperf3 {match[1]}.{match[2]} is too old; the minimum is {least}")
        tool = tool_of(output)
        built = {name for words, name in _BUILT_WITH.items() if words in output}
        return replace(tool, features=tool.features | built)

    def client(self, flow: Flow[Iperf3Parameters]) -> Command:
        _check(flow)
        live = "json-stream" in flow.tool.features
        argv = (
            "iperf3",
            *("-c", flow.address, "-p", str(flow.port)),
            *_DIRECTION_FLAGS[flow.direction],
            *_measurement(flow),
            *_sockets(flow),
            *(("--json-stream",) if live else _text_flags(flow)),
            *flow.params.options,
        )
        password = flow.params.password_file
        return Command(
            argv,
            JsonStream(flow) if live else TextClient(flow),
            secrets={PASSWORD_VARIABLE: password} if password is not None else {},
        )

    def server(self, flow: Flow[Iperf3Parameters]) -> Command:
        where = ("-B", flow.address, "-p", str(flow.port))
        # With JSON, a server prints nothing before its client connects, so it uses text.
        argv: tuple[str, ...] = ("iperf3", "-s", *where, "-i", "0", "--forceflush")
        if not flow.lasting:
            interval = ("-i", f"{interval_s(flow):g}")
            argv = ("iperf3", "-s", "-1", *where, *interval, *_text_flags(flow))
        return Command(argv, TextServer(flow), stop_signal="SIGTERM")

    def recorded(self, data: bytes) -> Sequence[Recording] | None:
        return recorded(data)

    def duration_s(self, params: Iperf3Parameters) -> float:
        return params.omit + (params.duration or _transfer_s(params))

    def demand(self, params: Iperf3Parameters) -> Demand:
        demand = super().demand(params)
        if params.protocol == "udp" or demand.payload_bytes is None:
            return demand
        return replace(demand, payload_bytes=None)  # what is written to a stream is no packet

    def traffic_bytes(self, params: Iperf3Parameters) -> float | None:
        return super().traffic_bytes(params) if params.bytes is None else params.bytes


def _transfer_s(params: Iperf3Parameters) -> float:
    rate_bps = params.rate * params.streams
    bits = (params.bytes or 0.0) * 8
    # Versions from 3.16 on stop at the end of an interval.
    return bits / (_ASSUMED_BPS if math.isinf(rate_bps) else rate_bps) + params.interval


def _measurement(flow: Flow[Iperf3Parameters]) -> tuple[str, ...]:
    params = flow.params
    flags: list[str] = ["-i", f"{interval_s(flow):g}"]
    if params.bytes is not None:
        flags += ["-n", f"{params.bytes:.0f}"]
    else:
        flags += ["-t", f"{params.duration:.0f}"]
    if params.omit:
        flags += ["-O", f"{params.omit:.0f}"]
    if params.streams > 1:
        flags += ["-P", str(params.streams)]
    flags += _PROTOCOL_FLAGS[params.protocol]
    if math.isfinite(params.rate):
        burst = "" if params.burst is None else f"/{params.burst}"
        flags += ["-b", f"{params.rate:.0f}{burst}"]
    elif params.protocol == "udp":
        flags += ["-b", "0"]
    if (length := length_bytes(flow)) is not None:
        flags += ["-l", f"{length:.0f}"]
    return tuple(flags)


def _sockets(flow: Flow[Iperf3Parameters]) -> tuple[str, ...]:
    params = flow.params
    flags: list[str] = ["--connect-timeout", f"{params.connect_timeout * 1e3:.0f}"]
    if params.window is not None:
        flags += ["-w", f"{params.window:.0f}"]
    if params.mss is not None:
        flags += ["-M", f"{params.mss:.0f}"]
    if params.congestion_control is not None:
        flags += ["-C", params.congestion_control]
    if params.dscp:
        # In old versions --dscp sets the whole TOS byte (seen in 3.7 and 3.9).
        flags += ["-S", str(params.dscp << 2)]
    if params.ip_version != "auto":
        flags += [f"-{params.ip_version}"]
    if params.no_delay:
        flags += ["-N"]
    if params.zero_copy:
        flags += ["-Z"]
    if params.dont_fragment:
        flags += ["--dont-fragment"]
    if params.source_port is not None:
        flags += ["--cport", str(params.source_port)]
    if params.username is not None and params.public_key is not None:
        flags += ["--username", params.username, "--rsa-public-key-path", params.public_key]
    if flow.source_address is not None:
        flags += ["-B", flow.source_address]
    if flow.source_device is not None:
        flags += ["--bind-dev", flow.source_device]
    return tuple(flags)


def _text_flags(flow: Flow[Iperf3Parameters]) -> tuple[str, ...]:
    flags = ("-V", "-f", "k", "--forceflush")
    # For UDP the debug output has a message for each reordered packet, without a line end.
    detailed = "debug-levels" in flow.tool.features and flow.params.protocol != "udp"
    return (*flags, "--debug=1") if detailed else flags


def _check(flow: Flow[Iperf3Parameters]) -> None:
    """Raise ValueError for what this iperf3 cannot do."""
    params = flow.params
    needs = (
        ("bind-device", flow.source_device is not None, "bind to a device: name an address"),
        ("congestion-control", params.congestion_control is not None, "set congestion_control"),
        ("zero-copy", params.zero_copy, "do zero_copy"),
        ("long-omit", params.omit > 60, "omit more than 60 s: that is for 3.18 and later"),
        (
            "large-mss",
            (params.mss or 0) > 9216,
            "set an mss beyond 9216 B: that is for 3.21 and later",
        ),
        ("authentication", params.username is not None, "send a password: built without OpenSSL"),
        ("sctp", params.protocol == "sctp", "measure SCTP: built without it"),
        ("mptcp", params.protocol == "mptcp", "measure MPTCP: that is for 3.19 and later"),
        ("dont-fragment", params.dont_fragment, "set dont_fragment"),
    )
    for feature, asked, what in needs:
        if asked and feature not in flow.tool.features:
            raise ValueError(f"iperf3 {flow.tool.version} here cannot {what}")
