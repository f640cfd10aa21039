"""A tool as data: its roles, what it can do, how it is found, and what was found."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from benchctl.metrics import Direction, Metric


class Role(StrEnum):
    """The two ends of a flow: the client runs on ``from``, the server on ``to``."""

    CLIENT = "client"
    SERVER = "server"


@dataclass(frozen=True, slots=True)
class Capabilities:
    """What a backend can do, as data.

    ``directions``: the first is the default. ``headline``: the metric that its flows are known by
    in tables and plots; a rate says that they carry data, see `Backend.demand`. ``default_port``:
    where a server listens, None for tools that need none. ``needs_server``: benchctl starts
    `Backend.server` first, on a ``to`` host that it owns; where it is not set, the server runs
    there already, on its ``default_port``. ``second_port``: the server listens on two ports, see
    `Flow.second_port`. ``needs_root``: only root can run the tool; everybody is root on the hosts
    of a lab. ``waits_for_start``: the client can be started early and waits
    itself for `Flow.start_at_s`. ``restricts_clients``: its server accepts only clients of
    `Flow.allow`. ``metrics``: the names the backend may emit that are not in
    METRICS, described.
    """

    directions: tuple[Direction, ...]
    headline: str = "throughput_bps"
    protocols: tuple[str, ...] = ()
    default_port: int | None = None
    needs_server: bool = False
    second_port: bool = False
    needs_root: bool = False
    waits_for_start: bool = False
    restricts_clients: bool = False
    metrics: tuple[Metric, ...] = ()

    def port_beside(self, port: int | None) -> int | None:
        """Return the second port where none is looked for: the next one; None without a second."""
        if port is None or not self.second_port:
            return None
        return port + 1 if port < 65535 else port - 1


@dataclass(frozen=True, slots=True)
class Probe:
    """How to check for a program: run ``argv`` and read its version."""

    argv: tuple[str, ...]
    install: str
    """How to get the program, in one line: ``apt install iperf3``."""
    otherwise: Probe | None = None
    """What takes its place where it is missing or cannot be used."""


@dataclass(frozen=True, slots=True)
class Tool:
    """A program found on a host: its version and features."""

    version: str
    features: frozenset[str] = frozenset()
