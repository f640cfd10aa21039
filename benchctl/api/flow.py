"""A flow as a backend sees it, the command that measures it, and what it asks of the network."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Generic

from benchctl.api.parameters import P
from benchctl.api.parser import Parser
from benchctl.api.tool import Tool
from benchctl.metrics import Direction


@dataclass(frozen=True, slots=True)
class Flow(Generic[P]):
    """One measurement, as a backend sees it.

    ``address`` is where the client finds the server, ``port`` the one that this attempt uses
    (None where the backend has no port). ``second_port`` is the other port of a server that listens
    on two: a free one where benchctl looks for such, else the one after ``port``; None where the
    backend does not declare it. ``source_address`` and ``source_device`` are set when the flow
    names an interface. ``owns_server`` says that benchctl runs the server too,
    ``one_clock`` that both ends are on one machine. ``tool`` is what `read_probe` found on the host
    where the command will run. ``client_ports`` and ``server_ports`` are the first and the
    last port at which the host of that end can be reached, None for any: what listens there keeps
    to them. ``start_at_s`` (Unix time) is set only for backends that wait
    themselves. ``expected_bps`` is the throughput that a lab's theory expects, of the slower
    direction; None where nobody knows it. ``lasting`` asks for a server for clients of others
    (``benchctl serve``): it keeps running, prints for people, and has its own limits. One that ends
    all the same is started again. ``allow`` are the networks whose clients a server accepts, empty
    for all.
    """

    params: P
    direction: Direction
    address: str
    port: int | None
    tool: Tool
    owns_server: bool = False
    one_clock: bool = False
    source_address: str | None = None
    source_device: str | None = None
    client_ports: tuple[int, int] | None = None
    server_ports: tuple[int, int] | None = None
    start_at_s: float | None = None
    expected_bps: float | None = None
    lasting: bool = False
    allow: tuple[str, ...] = ()
    second_port: int | None = None


@dataclass(frozen=True, slots=True)
class Command:
    """A program to run, and the parser of its output.

    ``stop_signal`` makes it stop early and report what it has: ``"SIGINT"`` or ``"SIGTERM"``.
    A program is looked up in the host's PATH; Python's own is ``sys.executable``. ``secrets`` are
    environment variables, each with the file of this machine whose first line is its value:
    benchctl reads it when the command starts, and records only ``argv``. ``stays`` is set of a
    server that does not end after its client: then nobody waits for that. ``wants_root`` is set of
    one with options that may need root: sudo gives it that where the host has ``sudo = true``.
    """

    argv: tuple[str, ...]
    parser: Parser
    env: Mapping[str, str] = field(default_factory=dict)
    stop_signal: str = "SIGINT"
    secrets: Mapping[str, str] = field(default_factory=dict)
    stays: bool = False
    wants_root: bool = False


@dataclass(frozen=True, slots=True)
class Demand:
    """What a flow asks of the network, in each direction that it measures.

    benchctl computes the theoretical values of a lab from it, and the address to use.
    ``rate_bps`` is the payload that each stream sends at most: infinite where only the network
    limits it, 0 for probes, whose traffic is too little to count. ``window_bytes`` is the socket
    buffer of each stream, None for the kernel's own; ``client_window_bytes`` and
    ``server_window_bytes`` are those of one end, by default the same. ``protocol`` is ``"tcp"``,
    ``"udp"`` or another. ``payload_bytes`` is the payload of one packet, None where TCP cuts the
    data into segments, which ``mss_bytes`` bounds. ``ip_version`` is 4 or 6, None where the address
    decides.
    ``omitted_s`` is the time to leave out at the start. ``lab_only`` is for traffic that no real
    network should carry: a profile without a lab is rejected.
    """

    rate_bps: float = math.inf
    streams: int = 1
    window_bytes: float | None = None
    protocol: str = "tcp"
    payload_bytes: float | None = None
    mss_bytes: float = math.inf
    ip_version: int | None = None
    omitted_s: float = 0.0
    lab_only: bool = False
    client_window_bytes: float | None = None
    server_window_bytes: float | None = None

    def __post_init__(self) -> None:
        for end in ("client_window_bytes", "server_window_bytes"):
            if getattr(self, end) is None:
                object.__setattr__(self, end, self.window_bytes)
