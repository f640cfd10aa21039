"""A run as it is planned: its trials and their flows, where they run, and what holds for all."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from enum import StrEnum
from ipaddress import ip_address
from typing import Any, Literal, NamedTuple, Protocol

from msgspec import Struct

from benchctl.errors import MissingError
from benchctl.metrics import Direction, Metric
from benchctl.run.condition import Condition, EventRule, Relative

Scalar = str | int | float | bool
"""A value of an axis."""


class PacketCapture(Struct, frozen=True):
    """Which packets of a flow are recorded: at which ends, and how much of each and of all."""

    ends: tuple[str, ...]
    """``"from"``, ``"to"`` or both."""
    snap_bytes: int
    most_bytes: int

    @property
    def turned(self) -> PacketCapture:
        """The same at the same hosts, if the two ends change places."""
        other = {"from": "to", "to": "from"}
        return PacketCapture(
            tuple(other[end] for end in self.ends), self.snap_bytes, self.most_bytes
        )


class PlannedFlow(Struct, frozen=True):
    """One flow of a trial: names and parameters as written in the profile.

    ``delay_s`` is its own start, after the trial's common one. ``capture`` asks for its packets.
    """

    name: str
    backend: str
    source: str
    to: str
    interface: str | None
    direction: Direction
    delay_s: float
    parameters: Mapping[str, Any]
    capture: PacketCapture | None = None


class PlannedTrial(Struct, frozen=True):
    """One point of the matrix, one repeat.

    ``position`` counts from 0 in the order of execution, ``repeat`` from 1. ``lab`` holds settings
    of the topology for this point. ``duration_s`` is the expected time of its flows.
    """

    position: int
    repeat: int
    point: Mapping[str, Scalar]
    flows: tuple[PlannedFlow, ...]
    lab: Mapping[str, Any]
    duration_s: float
    deadline_s: float


class HostInterface(NamedTuple):
    """An interface of a host: a device, a source address, or both."""

    device: str | None = None
    address: str | None = None


class ExternalServer(NamedTuple):
    """A server that somebody else runs: its address, and the ports it may listen on."""

    host: str
    ports: tuple[int, int] | None


# After a cut TCP tries again at growing distances: the last within a cut of 10 s may be twice as
# far from its begin (RFC 6298, 5.5).
PATIENCE_S = 25.0


class SshTarget(NamedTuple):
    """How SSH reaches a host.

    ``destination`` is what ``ssh`` takes. The words of ``over`` go before ``ssh`` itself: those of
    the host of a lab on which it starts. ``sudo`` starts by sudo what needs root. ``options`` are
    words for ``ssh``, before the destination. After a silence of ``patience_s`` its connection is
    given up, here and there.
    """

    destination: str
    over: tuple[str, ...] = ()
    sudo: bool = False
    options: tuple[str, ...] = ()
    patience_s: float = PATIENCE_S


class FleetTarget(Struct, frozen=True):
    """A host of a fleet, by its name there: its own agent measures, and starts no command of us."""

    name: str


Reach = SshTarget | FleetTarget
"""How a remote host is reached."""


def way_of(reach: Reach) -> str:
    """Return how a host is reached, for people: ``ssh paris``, ``fleet paris``."""
    match reach:
        case SshTarget():
            return f"ssh {reach.destination}"
        case FleetTarget():
            return f"fleet {reach.name}"


def machine_reached(reach: Reach) -> str:
    """Return what tells the machine that is reached from others."""
    match reach:
        case SshTarget():
            return " ".join([*reach.over, reach.destination])
        case FleetTarget():
            return way_of(reach)


def patience_s(reach: Reach) -> float:
    """Return the longest silence of a host that a trial outlives and its deadline counts, in s."""
    return reach.patience_s if isinstance(reach, SshTarget) else PATIENCE_S


class Host(Struct, frozen=True):
    """A place where commands run.

    The other end of a flow reaches it at ``address``, and with IPv6 at ``address6``, which is empty
    if it has none. The words of ``prefix`` go before a command to run it there; empty for this
    machine. ``reach`` is set for a remote host. ``interfaces`` are its named interfaces.
    ``shares_ports`` means that other programs of this machine may listen there, so that a free port
    has to be found. ``taken_ports`` are known to be in use if that is not possible. ``ports`` are
    the first and the last on which servers may listen. If it is not ``reachable``, connections to
    it fail, so it is always the client. ``as_root`` is set for the commands that need root, where
    sudo gives them that. ``translated`` are addresses that lead to it and are not its own (NAT).
    """

    name: str
    address: str
    prefix: tuple[str, ...] = ()
    interfaces: Mapping[str, HostInterface] = {}
    shares_ports: bool = True
    taken_ports: frozenset[int] = frozenset()
    address6: str = ""
    reach: Reach | None = None
    reachable: bool = True
    ports: tuple[int, int] | None = None
    as_root: bool = False
    translated: frozenset[str] = frozenset()


LOCAL = Host("local", "127.0.0.1")


class Network(Struct, frozen=True):
    """Every host, peer and interface that the flows of a run may name.

    A peer takes precedence over a host of the same name: a server of the profile stays one that
    somebody else runs, even if a host of the lab has its name.
    """

    hosts: Mapping[str, Host]
    peers: Mapping[str, ExternalServer] = {}
    interfaces: Mapping[str, HostInterface] = {}

    def target(self, to: str) -> Host | None:
        """Return the host at the far end of a flow; None for a server that somebody else runs."""
        return None if to in self.peers else self.hosts[to]

    def is_one_machine(self, source: str, to: str) -> bool:
        """Return whether both ends of a flow are on one machine, and have its clock."""
        peer = self.peers.get(to)
        name = peer.host if peer else to
        if name in self.hosts:
            return self.hosts[name].reach == self.hosts.get(source, LOCAL).reach
        try:
            return peer is not None and (name == "localhost" or ip_address(name).is_loopback)
        except ValueError:  # a name
            return False

    def interface(self, flow: PlannedFlow) -> HostInterface:
        """Return a flow's interface; its own host's takes precedence over the profile's.

        Raises MissingError if its host has none of this name.
        """
        if flow.interface is None:
            return HostInterface()
        host = self.hosts[flow.source]
        interfaces = host.interfaces if host.reach else {**self.interfaces, **host.interfaces}
        if flow.interface not in interfaces:
            known = ", ".join(interfaces) or "none"
            raise MissingError(
                f'flow {flow.name}: host {flow.source} has no interface "{flow.interface}"',
                f"available: {known}",
            )
        return interfaces[flow.interface]


class DeclaredNetwork(Struct, frozen=True):
    """The network given by a profile without a lab.

    ``hosts`` maps names to hosts, or to the address of one that has nothing else.
    """

    hosts: Mapping[str, str | Host]
    peers: Mapping[str, ExternalServer] = {}
    interfaces: Mapping[str, HostInterface] = {}

    @property
    def remote(self) -> Mapping[str, Host]:
        """The hosts that SSH or a fleet reaches."""
        return {name: host for name, host in self._known.items() if host.reach}

    @property
    def network(self) -> Network:
        """The network that flows use without a lab."""
        return Network(self._known, self.peers, self.interfaces)

    @property
    def _known(self) -> Mapping[str, Host]:
        return {
            name: Host(name, host) if isinstance(host, str) else host
            for name, host in self.hosts.items()
        }


class PlannedChange(Struct, frozen=True):
    """A change of a link of the lab during a trial, with the names of the profile's keys.

    In SI units; ``at`` counts from the common start. None means unchanged. ``at_share`` and
    ``ramp_share`` of the trial's duration are added to ``at`` and ``ramp``.
    """

    at: float
    link: str
    ramp: float = 0.0
    rate: float | Literal["unlimited"] | None = None
    delay: float | None = None
    jitter: float | None = None
    loss: float | None = None
    at_share: float = 0.0
    ramp_share: float = 0.0


class LabSettings(Struct, frozen=True):
    """The topology file, and the profile's settings of the lab."""

    path: str
    text: str
    emulator: str | None
    verify: bool
    changes: tuple[PlannedChange, ...] = ()


class Severity(StrEnum):
    """What an expectation that is not met means for the exit code."""

    ERROR = "error"
    WARNING = "warning"


class Expectation(Struct, frozen=True):
    """Bounds on the mean of a metric over the repeats of a point, or what may happen in its flows.

    If ``flow`` is None, every flow that has the metric must meet it. ``where`` maps axes to the
    value that a point must have; empty for every point. ``at_least`` and ``at_most`` are in the
    metric's SI unit, ``least`` and ``most`` relative to a reference. ``aggregate`` is what each
    repeat's distribution is reduced to; empty for its mean. ``proven`` is whether it is only met,
    or not: what the repeats do not show counts as not met. With ``events``, ``metric`` is empty.
    """

    metric: str
    flow: str | None = None
    where: Mapping[str, Scalar] = {}
    at_least: float | None = None
    at_most: float | None = None
    aggregate: str = ""
    least: Relative | None = None
    most: Relative | None = None
    events: tuple[EventRule, ...] = ()
    severity: Severity = Severity.ERROR
    proven: bool = False

    @property
    def figure(self) -> str:
        """The metric with its aggregate, as a profile writes it."""
        return f"{self.metric}.{self.aggregate}" if self.aggregate else self.metric


class Reported(Struct, frozen=True):
    """Figures by metric that others reported, in SI units.

    ``flow`` and ``direction`` are None if they apply to all; ``where`` maps axes to the value that
    a point must have.
    """

    flow: str | None
    direction: Direction | None
    where: Mapping[str, Scalar]
    metrics: Mapping[str, float]


class When(StrEnum):
    """When a host's command runs; these are the keys of a profile's host, too."""

    PREPARE_RUN = "prepare_run"
    PREPARE = "prepare"
    CLEANUP = "cleanup"
    CLEANUP_RUN = "cleanup_run"


class Hook(Struct, frozen=True):
    """A shell command that runs on a host before or after each trial or the run."""

    host: str
    when: When
    command: str


class Until(Struct, frozen=True):
    """Every point is repeated until half the interval of a metric is under a share of its mean.

    Of every flow that has the metric; from ``least`` to ``most`` repeats.
    """

    metric: str
    share: float
    least: int
    most: int


class Search(Struct, frozen=True):
    """At every point of the other axes, the highest rate is searched at which a condition holds.

    ``axis`` is the searched one; ``sets`` maps the flows that it concerns to their parameter.
    ``precision`` is the ratio of the lowest failing to the highest passing rate, less 1;
    ``confirm`` how many tries must agree at both; ``most`` bounds the tries of a point.
    ``overflow_s`` is how long an excess of the precision takes to overflow the queues of a lab;
    None if they are not known.
    """

    axis: str
    sets: Mapping[str, str]
    low_bps: float
    high_bps: float
    condition: Condition
    precision: float
    confirm: int
    most: int
    overflow_s: float | None = None


class Uplink(Struct, frozen=True):
    """Hosts behind one uplink, which at most ``most`` trials use at the same time."""

    name: str
    hosts: tuple[str, ...]
    most: int


class Parallel(Struct, frozen=True):
    """How many trials of a run are measured at the same time, of those that its limits let.

    At most ``most`` in all, and ``per_host`` at each host. Their flows send at most
    ``most_rate_bps`` together. None is no limit. ``at_once`` is how many run at the start.
    """

    most: int | None
    per_host: int = 1
    sites: tuple[Uplink, ...] = ()
    most_rate_bps: float | None = None
    at_once: int = 1


# Beyond all waits, and a float can still hold it.
_MOST_DOUBLINGS = 100


class Settings(Struct, frozen=True):
    """The settings that all trials of a run share.

    ``values`` are those of every axis, in the order of the profile; of the searched one its range.
    ``network`` is the one outside the lab. ``metrics`` are those that only its backends define,
    ``headlines`` the headline metric of each backend's flows, so that readers of the run need no
    plugin. ``server_wait_s`` is how long a server may take to start. With ``gives_up``, a
    peer that never answered ends the run. A trial waits for a host of a fleet for ``host_wait_s``
    at most. ``parallel`` is None if one trial runs at a time. Fields with a default are missing
    from older stores.
    """

    values: Mapping[str, tuple[Scalar, ...]]
    order: str
    expect: tuple[Expectation, ...]
    attempts: int = 1
    backoff_s: float = 0.0
    pause_s: float = 0.0
    network: DeclaredNetwork = DeclaredNetwork({LOCAL.name: LOCAL.address})
    lab: LabSettings | None = None
    reported: tuple[Reported, ...] = ()
    metrics: tuple[Metric, ...] = ()
    headlines: Mapping[str, str] = {}
    server_wait_s: float = 0.0
    hooks: tuple[Hook, ...] = ()
    until: Until | None = None
    search: Search | None = None
    gives_up: bool = False
    parallel: Parallel | None = None
    host_wait_s: float = 1800.0

    @property
    def at_once(self) -> int:
        """How many trials are measured at the same time, at most."""
        return 1 if self.parallel is None else self.parallel.at_once

    def wait_s(self, failed: int) -> float:
        """Return the wait in seconds after the ``failed``-th failure, from 1: doubled each time."""
        return self.backoff_s * 2.0 ** min(failed - 1, _MOST_DOUBLINGS)


class PlannedTrials(Protocol):
    """Trials generated on demand: a hundred thousand need little memory."""

    def __len__(self) -> int: ...

    def __iter__(self) -> Iterator[PlannedTrial]: ...


class PlannedRun(Struct, frozen=True):
    """A whole run before it is recorded."""

    profile: str
    title: str
    seed: int
    settings: Settings
    trials: PlannedTrials
    profile_text: str

    @property
    def profile_sha256(self) -> str:
        """Hash of the profile's text, in hexadecimal."""
        import hashlib

        return hashlib.sha256(self.profile_text.encode()).hexdigest()
