"""The backend: builds the simpleperf commands of a flow."""

from __future__ import annotations

import math
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
from benchctl_simpleperf.parameters import OWN_METRICS, SimpleperfParameters, pauses_of
from benchctl_simpleperf.parser import ClientParser, LastingServerParser, ServerParser

# -I and -S leave out site-packages and the environment: the tool needs neither, and starts faster.
_PROGRAM = (sys.executable, "-I", "-S", str(Path(__file__).parent / "simpleperf" / "__main__.py"))
_DIRECTION_FLAGS = {Direction.SEND: (), Direction.RECEIVE: ("-R",), Direction.BOTH: ("--both",)}
# Assumed for an unknown network, when a byte count has no rate.
_ASSUMED_BPS = 10e6


class Simpleperf(Backend[SimpleperfParameters]):
    """The built-in throughput tool."""

    name = "simpleperf"
    summary = "TCP and UDP throughput, loss, jitter and TCP's own figures, built in"
    parameters = SimpleperfParameters
    capabilities = Capabilities(
        directions=tuple(_DIRECTION_FLAGS),
        protocols=("tcp", "udp"),
        default_port=8088,
        needs_server=True,
        waits_for_start=True,
        restricts_clients=True,
        metrics=OWN_METRICS,
    )

    def probe(self, role: Role) -> Probe:
        return Probe((*_PROGRAM, "--version"), install="comes with benchctl")

    def read_probe(self, role: Role, exit_code: int, output: str) -> Tool:
        found = re.search(r"^simpleperf (\S+)$", output, re.MULTILINE)
        if exit_code or not found:
            raise ValueError(f"simpleperf --version ended with {exit_code}: {output.strip()[:200]}")
        return Tool(found[1])

    def client(self, flow: Flow[SimpleperfParameters]) -> Command:
        if flow.params.plain and flow.direction is not Direction.SEND:
            raise ValueError("the plain protocol can only send: direction is send")
        if flow.params.pause_reading and not flow.owns_server:
            raise ValueError("pause_reading belongs to a server that benchctl starts itself")
        if flow.params.pause_reading and flow.direction is Direction.RECEIVE:
            raise ValueError("pause_reading is for servers that receive: direction is send or both")
        argv = (
            *(*_PROGRAM, "-c", "--events", "-I", flow.address, "-p", str(flow.port)),
            *_DIRECTION_FLAGS[flow.direction],
            *_measurement(flow.params),
            *_sockets(flow),
        )
        return Command(argv, ClientParser(METRICS.keys() | {own.name for own in OWN_METRICS}))

    def server(self, flow: Flow[SimpleperfParameters]) -> Command:
        allowed = (word for network in flow.allow for word in ("--allow", network))
        where = ("-b", flow.address, "-p", str(flow.port))
        if flow.lasting:
            return Command((*_PROGRAM, "-s", *where, *allowed), LastingServerParser())
        # Only the server of plain streams knows when data arrived.
        plain = flow.params.plain
        shown = ("-i", _number(flow.params.interval)) if plain else ()
        version = _ip_version(flow.params)
        # The profile gives the amount, and whoever runs it has agreed.
        rate = ("--max-rate", "unlimited")
        argv = (*_PROGRAM, "-s", "--one-off", "--events", *where, *version, *shown, *rate, *allowed)
        for at_s, length_s in _pauses(flow.params):
            argv += ("--pause-reading", f"{_number(at_s)}:{_number(length_s)}")
        return Command(argv, ServerParser(METRICS.keys(), samples=plain))

    def duration_s(self, params: SimpleperfParameters) -> float:
        if params.duration is not None:
            return params.omit + params.duration
        paused_s = sum(length_s for _, length_s in _pauses(params))
        return params.omit + _transfer_s(params) + paused_s

    def traffic_bytes(self, params: SimpleperfParameters) -> float | None:
        return super().traffic_bytes(params) if params.bytes is None else params.bytes


def _transfer_s(params: SimpleperfParameters) -> float:
    rate_bps = params.rate * params.streams
    bits = (params.bytes or 0.0) * 8
    return bits / (_ASSUMED_BPS if math.isinf(rate_bps) else rate_bps)


def _measurement(params: SimpleperfParameters) -> tuple[str, ...]:
    flags = ["-i", _number(params.interval), "-P", str(params.streams)]
    if params.bytes is not None:
        flags += ["-n", _number(params.bytes)]
    else:
        flags += ["-t", _number(params.duration or 0.0)]
    if params.plain:
        return (*flags, "--plain")
    flags += ["-l", _number(params.length)]
    if params.omit:
        flags += ["-O", _number(params.omit)]
    if params.protocol == "udp":
        flags += ["-u", "-r", _number(params.rate)]
    elif math.isfinite(params.rate):
        flags += ["-r", _number(params.rate)]
    if params.zero_copy:
        flags += ["-Z"]
    if params.probe is not None:
        flags += ["--probe", _number(params.probe)]
    return tuple(flags)


def _sockets(flow: Flow[SimpleperfParameters]) -> tuple[str, ...]:
    params = flow.params
    flags = ["--connect-timeout", _number(params.connect_timeout)]
    windows = {
        "-w": params.window,
        "--client-window": params.client_window,
        "--server-window": params.server_window,
    }
    for flag, window in windows.items():
        if window is not None:
            flags += [flag, _number(window)]
    if params.mss is not None:
        flags += ["-M", _number(params.mss)]
    if params.congestion_control is not None:
        flags += ["-C", params.congestion_control]
    if params.dscp:
        flags += ["--dscp", str(params.dscp)]
    flags += _ip_version(params)
    if params.no_delay:
        flags += ["-N"]
    if flow.source_address is not None:
        flags += ["-b", flow.source_address]
    if flow.source_device is not None:
        flags += ["--device", flow.source_device]
    if flow.start_at_s is not None:
        flags += ["--start-at", f"{flow.start_at_s:.6f}"]
    return tuple(flags)


def _pauses(params: SimpleperfParameters) -> list[tuple[float, float]]:
    return [] if params.pause_reading is None else pauses_of(params.pause_reading)


def _ip_version(params: SimpleperfParameters) -> tuple[str, ...]:
    return () if params.ip_version == "auto" else (f"-{params.ip_version}",)


def _number(value: float) -> str:
    """Write a number in full, without redundant digits."""
    return "unlimited" if math.isinf(value) else f"{value:.6f}".rstrip("0").rstrip(".")


BACKEND = Simpleperf()
