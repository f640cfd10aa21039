"""The contract of a backend: one tool, without I/O."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import Any, Generic

from benchctl.api.flow import Command, Demand, Flow
from benchctl.api.parameters import P
from benchctl.api.recording import Recording
from benchctl.api.tool import Capabilities, Probe, Role, Tool
from benchctl.metrics import METRICS, Fold


class Backend(ABC, Generic[P]):
    """One tool. Subclasses set the attributes and write the methods, without I/O."""

    api_version: int = 1
    """The version of `benchctl.api` that the plugin was written for; one that has none is of 1."""
    name: str
    summary: str
    """What the tool measures, in one line."""
    parameters: type[P]
    capabilities: Capabilities

    @abstractmethod
    def probe(self, role: Role) -> Probe | None:
        """Return how to look for the program of a role; None when it needs none."""

    @abstractmethod
    def read_probe(self, role: Role, exit_code: int, output: str) -> Tool:
        """Read what the probe printed (stdout, then stderr).

        Raises ValueError with the reason when the program cannot be used.
        """

    @abstractmethod
    def client(self, flow: Flow[P]) -> Command:
        """Return the command that measures; it runs on the ``from`` host.

        Raises ValueError when this tool's version cannot do what the flow asks.
        """

    def server(self, flow: Flow[P]) -> Command | None:
        """Return the peer's command; None when the backend needs none.

        It runs on the ``to`` host and should end by itself after one client, unless the flow is
        ``lasting``.
        """
        return None

    def recorded(self, data: bytes) -> Sequence[Recording] | None:
        """Return the measurements in a file of the tool's output, for ``benchctl import``.

        None if the file is not the tool's, by its content; this one knows no file. Raises
        ParserError if it is the tool's and cannot be read.
        """
        return None

    @abstractmethod
    def duration_s(self, params: P) -> float:
        """Return the expected time of the client from its start to its end, omit included."""

    def traffic_bytes(self, params: P) -> float | None:
        """Return the payload bytes the flow will send, or None when only the network decides.

        By default, the rate of `demand` over the whole duration, and None for a probe.
        """
        demand = self.demand(params)
        rate_bps = demand.rate_bps * demand.streams
        return rate_bps * self.duration_s(params) / 8 if 0 < rate_bps < math.inf else None

    def demand(self, params: P) -> Demand:
        """Return what a flow asks of the network.

        This one reads the names that `Parameters` lists. Without ``rate``, a flow whose headline is
        a rate sends all that the network takes, and any other one is a probe.
        """
        given = vars(params)  # model_dump() takes longer, and so does a lookup of what is missing

        def number(name: str, otherwise: Any) -> Any:
            return given[name] if type(given.get(name)) in (int, float) else otherwise

        headline = METRICS.get(self.capabilities.headline)
        for metric in self.capabilities.metrics:
            if metric.name == self.capabilities.headline:
                headline = metric
        carries = headline is not None and headline.fold is Fold.RATE
        protocol = str(given.get("protocol", next(iter(self.capabilities.protocols), "tcp")))
        segments = carries and protocol == "tcp"
        return Demand(
            rate_bps=number("rate", math.inf if carries else 0.0),
            streams=number("streams", 1),
            window_bytes=number("window", None),
            protocol=protocol,
            payload_bytes=None if segments else number("length", None),
            mss_bytes=number("mss", math.inf),
            ip_version={"4": 4, "6": 6}.get(str(given.get("ip_version"))),
            omitted_s=number("omit", 0.0),
            client_window_bytes=number("client_window", None),
            server_window_bytes=number("server_window", None),
        )
