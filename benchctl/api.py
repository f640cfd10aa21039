"""Everything that the author of a backend imports.

A backend wraps one tool and does no I/O. It declares the parameters of the tool, builds the command
for each end of a flow, and parses the output of the command into events. benchctl
finds the programs, starts them on the right hosts, feeds their output to the parsers, watches
their time and stops them. So a backend works on this machine and in every lab, and is tested
by replaying recorded output (`replay`).

A minimal backend is a subclass of `Backend` with a `Parameters` model, a `client` command and a
parser; docs/plugins.md builds one step by step. A package offers it under the entry point group
``benchctl.backends``; a single file offers it as the module's variable ``BACKEND``.

Quantities are in SI base units: seconds, bits per second, bytes, ratios. Names carry their unit.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from itertools import pairwise
from typing import Annotated, Any, Generic, TypeVar

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, WithJsonSchema

from benchctl.metrics import METRICS, Direction, Fold, Metric, Sample, Summary
from benchctl.units import (
    parse_duration,
    parse_rate,
    parse_ratio,
    parse_size,
    write_duration,
    write_rate,
    write_size,
)

__all__ = [
    "API_VERSION", "METRICS", "OLDEST_API_VERSION",
    "Backend", "Capabilities", "Channel", "Command", "Demand", "Direction", "Dscp",
    "Duration", "Effective", "Event", "Failure", "FailureKind", "Field", "Flow", "Fold",
    "LineParser", "Metric", "Parameters", "Parser", "ParserError", "Probe", "Rate", "Ratio",
    "Ready", "Recording", "Role", "Sample", "Size", "Started", "Summary", "Tool", "Warn", "replay",
    "write_duration", "write_rate", "write_size",
]  # fmt: skip

API_VERSION = 1
"""The version of this contract. Names, and methods with a default, are added without a new one."""
OLDEST_API_VERSION = 1
"""The oldest version whose plugins still work."""


# --- quantities ------------------------------------------------------------------------------


def _quantity(parse: Any, example: str, pattern: str) -> tuple[Any, Any]:
    schema = {"type": "string", "pattern": pattern, "examples": [example]}
    return BeforeValidator(parse), WithJsonSchema(schema)


_N = r"^[0-9]*\.?[0-9]+ ?"
Duration = Annotated[float, *_quantity(parse_duration, "10s", rf"{_N}(ns|[uµμ]s|ms|s|min|h|d)$")]
"""Seconds; written ``"10s"``, ``"250ms"``, ``"5min"``."""
Rate = Annotated[float, *_quantity(parse_rate, "100Mbit", rf"{_N}[kKMGT]?bit(/s)?$|^unlimited$")]
"""Bits per second; written ``"100Mbit"``, or ``"unlimited"`` for infinity."""
Size = Annotated[float, *_quantity(parse_size, "256K", rf"{_N}([kMGT]?B|[KMG](iB)?|TiB)$")]
"""Whole bytes; written ``"1448B"``, ``"64kB"`` (SI), ``"256K"`` or ``"256KiB"`` (binary)."""
Ratio = Annotated[float, *_quantity(parse_ratio, "2%", rf"{_N}%$")]
"""A fraction of one; written ``"2%"``."""

# RFC 2474 (cs), 2597 (af), 3246 (ef), 5865 (va), 8622 (le).
_DSCP = {
    **{f"cs{n}": 8 * n for n in range(8)},
    **{f"af{c}{drop}": 8 * c + 2 * drop for c in range(1, 5) for drop in range(1, 4)},
    "ef": 46,
    "va": 44,
    "le": 1,
}


def _read_dscp(value: object) -> int:
    if isinstance(value, str) and value.lower() in _DSCP:
        return _DSCP[value.lower()]
    if isinstance(value, int) and not isinstance(value, bool) and 0 <= value <= 63:
        return value
    raise ValueError(f"{value!r} is not a DSCP: 0 to 63, or one of {', '.join(_DSCP)}")


_DSCP_SCHEMA = {"anyOf": [{"type": "integer", "minimum": 0, "maximum": 63}, {"enum": [*_DSCP]}]}
Dscp = Annotated[int, BeforeValidator(_read_dscp), WithJsonSchema(_DSCP_SCHEMA)]
"""A differentiated services codepoint, 0 to 63; written as a number or as ``"ef"``, ``"af41"``."""


class Parameters(BaseModel):
    """Base of a backend's parameters: frozen; an unknown name or another type is an error.

    TOML has types, so ``"4"`` is not a number; use `typing.Literal` for a choice of words. Every
    field needs a description, and a quantity one of the types above. If two backends
    have the same parameter, they use the same name, so that one axis sweeps both:
    ``duration``, ``interval``, ``omit``, ``streams``, ``window``, ``rate``, ``bytes``, ``count``,
    ``length``, ``protocol``, ``congestion_control``, ``mss``, ``dscp``, ``no_delay``,
    ``ip_version``.
    """

    model_config = ConfigDict(extra="forbid", frozen=True, strict=True)


class Role(StrEnum):
    """The two ends of a flow: the client runs on ``from``, the server on ``to``."""

    CLIENT = "client"
    SERVER = "server"


# --- events ----------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Ready:
    """The server accepts clients from now on. A server's parser yields it once."""


@dataclass(frozen=True, slots=True)
class Started:
    """The Unix time of the tool's own second 0 (``epoch_s``), as the tool reports it.

    From a server it is the second 0 of the data that the server sends, by the server's clock.
    """

    epoch_s: float


@dataclass(frozen=True, slots=True)
class Effective:
    """Settings in effect, beside the requested ones: ``{"window_bytes": 425984, ...}``."""

    settings: Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Warn:
    """Something that the user should know about this flow; the measurement is valid."""

    message: str


class FailureKind(StrEnum):
    """Why a flow failed; decides whether another attempt makes sense."""

    BUSY = "busy"
    """The server runs another measurement: try the next port, then wait."""
    UNREACHABLE = "unreachable"
    """No connection: refused, no route, timed out, unknown name."""
    REFUSED = "refused"
    """The peer answered and rejected the request; a second attempt is useless."""
    PARAMETER = "parameter"
    """The tool does not accept a parameter here; a second attempt is useless."""
    PEER = "peer"
    """The peer disappeared or violated the protocol during the measurement."""
    TOOL = "tool"
    """The tool itself failed, or gave no result."""

    @property
    def retryable(self) -> bool:
        """Whether another attempt may succeed."""
        return self not in (FailureKind.PARAMETER, FailureKind.REFUSED)


@dataclass(frozen=True, slots=True)
class Failure:
    """The measurement failed. Samples seen before are kept; the flow is marked failed."""

    kind: FailureKind
    message: str
    hint: str = ""


Event = Ready | Started | Sample | Summary | Effective | Warn | Failure


# --- parsers ---------------------------------------------------------------------------------


class ParserError(Exception):
    """The only exception that a parser may raise: this is not output of the tool."""


class Channel(StrEnum):
    """Where bytes came from."""

    STDOUT = "stdout"
    STDERR = "stderr"


class Parser(ABC):
    """Parses the output of one command into events, however the bytes are split.

    A parser has no state outside itself. It never blocks, keeps a
    bounded amount of unparsed input, and raises only `ParserError`.
    """

    @abstractmethod
    def feed(self, data: bytes, channel: Channel = Channel.STDOUT) -> Sequence[Event]:
        """Take the next bytes of a channel and return the events they complete."""

    @abstractmethod
    def close(self, exit_code: int) -> Sequence[Event]:
        """Take the end of the command and return the last events.

        ``exit_code`` is negative when a signal ended the command (``-15`` for SIGTERM).
        """


class LineParser(Parser):
    """A parser for tools that print lines: write `line`, and `end` if needed.

    Lines are decoded as UTF-8 with replacement and lose their line end. A line longer than
    ``max_line`` bytes raises ParserError.
    """

    max_line = 1 << 20

    def __init__(self) -> None:
        self._pending = {Channel.STDOUT: b"", Channel.STDERR: b""}

    @abstractmethod
    def line(self, text: str, channel: Channel) -> Iterable[Event]:
        """Return the events of one whole line."""

    def end(self, exit_code: int) -> Iterable[Event]:
        """Return the events of the command's end; called after the last line."""
        return ()

    def feed(self, data: bytes, channel: Channel = Channel.STDOUT) -> Sequence[Event]:
        *lines, rest = (self._pending[channel] + data).split(b"\n")
        if any(len(raw) > self.max_line for raw in (*lines, rest)):
            raise ParserError(f"a line of more than {self.max_line} bytes on {channel}")
        self._pending[channel] = rest
        return [event for raw in lines for event in self._decode(raw, channel)]

    def close(self, exit_code: int) -> Sequence[Event]:
        rest = [
            event
            for channel, raw in self._pending.items()
            if raw
            for event in self._decode(raw, channel)
        ]
        self._pending = dict.fromkeys(self._pending, b"")
        return [*rest, *self.end(exit_code)]

    def _decode(self, raw: bytes, channel: Channel) -> Iterable[Event]:
        return self.line(raw.decode("utf-8", "replace").rstrip("\r"), channel)


def replay(
    parser: Parser,
    stdout: bytes,
    stderr: bytes = b"",
    exit_code: int = 0,
    cuts: Iterable[int] = (),
) -> list[Event]:
    """Feed recorded output to a parser, split at the given offsets of ``stdout``; for tests.

    Events must not depend on the cuts. Raises what the parser raises.
    """
    bounds = [0, *sorted(cut for cut in cuts if 0 < cut < len(stdout)), len(stdout)]
    events: list[Event] = []
    for start, stop in pairwise(bounds):
        events += parser.feed(stdout[start:stop])
    if stderr:
        events += parser.feed(stderr, Channel.STDERR)
    return [*events, *parser.close(exit_code)]


# --- recordings ------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Recording:
    """One measurement that a tool wrote to a file some time ago, see `Backend.recorded`.

    ``events`` are those of its parser: a fault of the file is a `Warn` among them, and a
    measurement that failed, or whose end is missing, has its `Failure`. ``parameters`` are the
    settings that the file reports, with the names and values of a profile (`write_size` and
    others); one that is None is known of other files only. ``source`` and ``target`` name the two
    ends as far as known, ``port`` is the server's. ``started_time`` is the second 0 as Unix time;
    None if the file does not report it. ``facts`` are those of the host that measured, such as
    ``{"hostname": ..., "kernel": ...}``.
    """

    events: Sequence[Event]
    direction: Direction = Direction.SEND
    parameters: Mapping[str, Any] = field(default_factory=dict)
    source: str = ""
    target: str = ""
    port: int | None = None
    started_time: float | None = None
    facts: Mapping[str, Any] = field(default_factory=dict)


# --- backends --------------------------------------------------------------------------------

P = TypeVar("P", bound=Parameters)


@dataclass(frozen=True, slots=True)
class Capabilities:
    """What a backend can do, as data.

    ``directions``: the first is the default. ``headline``: the metric that its flows are known by
    in tables and plots; a rate says that they carry data, see `Backend.demand`. ``default_port``:
    where a server listens, None for tools that need none. ``needs_server``: benchctl starts
    `Backend.server` first, on a ``to`` host that it owns; where it is not set, the server runs
    there already, on its ``default_port``. ``needs_root``: only root can run the tool; everybody is
    root on the hosts of a lab. ``waits_for_start``: the client can be started early and waits
    itself for `Flow.start_at_s`. ``restricts_clients``: its server accepts only clients of
    `Flow.allow`. ``metrics``: the names the backend may emit that are not in
    METRICS, described.
    """

    directions: tuple[Direction, ...]
    headline: str = "throughput_bps"
    protocols: tuple[str, ...] = ()
    default_port: int | None = None
    needs_server: bool = False
    needs_root: bool = False
    waits_for_start: bool = False
    restricts_clients: bool = False
    metrics: tuple[Metric, ...] = ()


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


@dataclass(frozen=True, slots=True)
class Flow(Generic[P]):
    """One measurement, as a backend sees it.

    ``address`` is where the client finds the server, ``port`` the one that this attempt uses
    (None where the backend has no port). ``source_address`` and ``source_device`` are set when
    the flow names an interface. ``owns_server`` says that benchctl runs the server too,
    ``one_clock`` that both ends are on one machine. ``tool`` is what `read_probe` found on the host
    where the command will run. ``start_at_s`` (Unix time) is set only for backends that wait
    themselves. ``lasting`` asks for a server for clients of others (``benchctl serve``): it keeps
    running, prints for people, and has its own limits; ``allow`` are the networks whose clients it
    accepts, empty for all. A server that ends all the same is started again.
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
    start_at_s: float | None = None
    lasting: bool = False
    allow: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Command:
    """A program to run, and the parser of its output.

    ``stop_signal`` makes it stop early and report what it has: ``"SIGINT"`` or ``"SIGTERM"``.
    A program is looked up in the host's PATH; Python's own is ``sys.executable``. ``secrets`` are
    environment variables, each with the file of this machine whose first line is its value:
    benchctl reads it when the command starts, and records only ``argv``. ``stays`` is set of a
    server that does not end after its client: then nobody waits for that.
    """

    argv: tuple[str, ...]
    parser: Parser
    env: Mapping[str, str] = field(default_factory=dict)
    stop_signal: str = "SIGINT"
    secrets: Mapping[str, str] = field(default_factory=dict)
    stays: bool = False


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
