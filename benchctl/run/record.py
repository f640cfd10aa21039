"""A run as the store holds it: one frozen type for each table, one field for each column.

Times are Unix times in seconds, and their names end in ``_time``; durations end in ``_s``.

New data is added without changing these. A new column goes to ``TABLES`` and ``ADDED`` of
`benchctl.store.schema` and has a default here; a new table goes to ``TABLES``. An existing store
gets both when it is next written to. Before that, readers find the default, or no such table:

- a trial added during a run is one more row (`benchctl.plan.strategy`); the strategy of a run is a
  key of its settings, for resume;
- facts of another host: a row of ``host``, read as ``hosts`` of the run. ``facts`` are those of
  host ``local``, where the runner is;
- a clock with its error: ``clocks`` of the trial, by host; ``counters`` likewise;
- a file of a run (a trace, a figure): a table by run, with its name, type and bytes;

An imported run has an ``origin``. Its trials have their status from the start, and never a runner;
each names its ``file``.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from enum import StrEnum
from typing import Annotated, Any, TypedDict

from msgspec import Meta, Struct

from benchctl.metrics import Breach, Vocabulary
from benchctl.run.packets import ConnectionFound, ExchangeFound, PairFound
from benchctl.run.planned import Hook, PlannedTrial, Scalar, Settings
from benchctl.run.status import Status

BASELINE = "baseline"
"""The tag of the run that others of its profile are compared with; of several, the newest is it."""
Facts = Mapping[str, Any]
"""The properties of a machine, as JSON-like data, without those that its system lacks."""


class HookOutcome(Hook, frozen=True):
    """A host's command that ran: its exit code (negative for a signal), and the end of its output.

    The code is None if it could not be started.
    """

    exit_code: int | None
    output: str

    @property
    def problem(self) -> str:
        """Why it failed, in one line; empty if it did not."""
        if self.exit_code == 0:
            return ""
        how = (
            "could not be started"
            if self.exit_code is None
            else f"ended with code {self.exit_code}"
        )
        if self.exit_code is not None and self.exit_code < 0:
            how = f"was ended by signal {-self.exit_code}"
        said = [line.strip() for line in self.output.splitlines() if line.strip()]
        return f"{self.when} on {self.host} {how}{f': {said[-1]}' if said else ''}"


RunName = Annotated[str, Meta(pattern=r"^[^./\0][^/\0]*\Z")]
"""Files and folders have it, and none leads out of theirs: a store may come from anyone."""


class RunOutline(Struct, frozen=True):
    """The columns of a run that a list of runs shows."""

    id: int
    name: RunName
    profile: str
    created_time: float
    status: Status
    trials: int
    tags: tuple[str, ...]


class ClockReading(Struct, frozen=True):
    """The clock of a remote host as it was known at one time.

    It is ``offset_s`` ahead of ours, and ``error_s`` is the most by which that may differ.
    ``drift`` is how much faster it runs; None if unknown. ``rtt_s`` is the least round trip.
    """

    offset_s: float
    error_s: float
    rtt_s: float
    drift: float | None = None


class HostConnection(Struct, frozen=True):
    """The connection of a run to a remote host.

    It was opened at ``since_time`` (Unix), and ``lost`` says why it has broken; empty while it
    works. ``clock`` is None until it is known.
    """

    since_time: float
    lost: str = ""
    clock: ClockReading | None = None


class Run(RunOutline, frozen=True):
    """One execution of a profile."""

    title: str
    started_time: float | None
    finished_time: float | None
    error: str
    seed: int
    settings: Settings
    profile_text: str
    profile_sha256: str
    facts: Facts
    runner_pid: int | None
    hooks: tuple[HookOutcome, ...] = ()
    origin: str = ""
    """What wrote the files that the run was imported from, such as iperf3; empty if measured."""
    hosts: Mapping[str, Facts] = {}
    """The facts of the remote hosts."""
    connections: Mapping[str, HostConnection] = {}
    """Those to the remote hosts, as they were last known."""
    person: str = ""
    """Who asked a fleet for it; empty if it was measured from this machine."""
    logged: int = 0
    """Of a fleet, the number of the last message of its writes that is in this store."""

    @property
    def vocabulary(self) -> Vocabulary:
        """Its metrics, including those that only its backends define."""
        return Vocabulary(self.settings.metrics, self.settings.headlines)

    @property
    def varying(self) -> tuple[str, ...]:
        """The axes that have more than one value, and the searched one."""
        searched = self.settings.search.axis if self.settings.search else ""
        return tuple(
            axis for axis, values in self.values.items() if len(values) > 1 or axis == searched
        )

    @property
    def values(self) -> Mapping[str, Sequence[Scalar]]:
        """The values of every axis, in the order of the profile."""
        return self.settings.values


LinkTraffic = TypedDict(
    "LinkTraffic",
    {
        "link": str, "from": str, "to": str,
        "arrived": int, "delivered": int, "dropped": int, "lost": int, "queued": int,
        "queue_max": int | None, "late": int | None, "missed": int | None, "refused": int | None,
        "late_max_s": float | None, "kept": bool,
    },
)  # fmt: skip
"""Counters of one direction of a link during a trial, in frames; None is not counted there.

``kept`` is whether the emulator's own delay and loss leave the figures valid.
"""


class InterfaceCounters(Struct, frozen=True):
    """What passed an interface, and what it dropped."""

    rx_bytes: int
    rx_packets: int
    rx_errors: int
    rx_dropped: int
    tx_bytes: int
    tx_packets: int
    tx_errors: int
    tx_dropped: int


class CpuUse(Struct, frozen=True):
    """How busy the processors of a host were: of all ``cores``, and core ``busiest``.

    Of the time of that core, software interrupts had ``softirq_ratio``, and the hypervisor took
    ``steal_ratio``.
    """

    cores: int
    busy_ratio: float
    busiest: int
    busiest_ratio: float
    softirq_ratio: float
    steal_ratio: float


class HostCounters(Struct, frozen=True):
    """What the kernel of a host counted in ``lasted_s`` from before a trial's start to its end.

    ``interfaces`` are those that something passed; ``counts`` have the names of
    `benchctl.hosts.sent.counters`. ``unread`` says why there are none; empty if there are.
    """

    lasted_s: float
    interfaces: Mapping[str, InterfaceCounters] = {}
    counts: Mapping[str, int] = {}
    cpu: CpuUse | None = None
    unread: str = ""


class FairWindow(Struct, frozen=True):
    """Jain's index of a trial's flows in a part of the time that all of them share.

    ``start_s`` and ``end_s`` count from the beginning of that time.
    """

    start_s: float
    end_s: float
    jain: float


class Trial(PlannedTrial, frozen=True, kw_only=True):
    """A trial and its outcome."""

    id: int
    run_id: int
    status: Status
    error: str
    started_time: float | None
    finished_time: float | None
    start_skew_s: float | None
    fairness_jain: float | None
    links: tuple[LinkTraffic, ...] = ()
    hooks: tuple[HookOutcome, ...] = ()
    fair_windows: tuple[FairWindow, ...] = ()
    file: str = ""
    """The file that it was imported from, as it was named."""
    file_sha256: str = ""
    clocks: Mapping[str, ClockReading] = {}
    """Those of the remote hosts, at the end of its last attempt."""
    counters: Mapping[str, HostCounters] = {}
    """What the hosts at the ends of its flows counted during its last attempt."""
    beside: tuple[int, ...] = ()
    """The positions of the trials that ran beside its last attempt."""


class Figure(Struct, frozen=True):
    """A final figure of one metric, of a flow or of one of its streams, in SI base units.

    ``value`` is the figure, or the mean of a distribution whose other figures are in ``spread``
    (min, median, p95, max). ``origin`` is "tool" for the tool's own, "samples" for ours, "other
    end" for those of the end that otherwise does not count.

    ``broken`` is the law (`benchctl.analysis.flow.laws`) that the tool's figure breaks. If another
    source has the figure, this is that source's, and ``rejected`` is the tool's; otherwise it is
    the tool's, and does not count. ``resolution`` is the step in which the value is known.
    """

    value: float
    origin: str
    spread: Mapping[str, float] = {}
    broken: Breach | None = None
    rejected: float | None = None
    resolution: float | None = None

    @property
    def counts(self) -> bool:
        """Whether means, comparisons, expectations and searches may use it."""
        return self.broken is None or self.rejected is not None


class TracedHop(Struct, frozen=True):
    """What answered at one distance on a flow's way, see `benchctl.metrics.TracedRoute`.

    ``addresses`` have their numbers of answers; ``figures`` are those of its stream, by metric.
    """

    addresses: Mapping[str, int]
    figures: Mapping[str, Figure] = {}


class RecordedPackets(Struct, frozen=True):
    """A file of the packets that passed one host while a flow ran, or of a trace that was kept.

    ``file`` is relative to the directory of the store; of a trace, whose ``host`` is not known and
    empty, it is absolute, and its size and the Unix time of its last change say whether it still is
    the same. ``dropped`` packets came too fast for the recorder, and ``left_out`` ones were beyond
    the size that was asked for. ``findings`` are those of its connections, the largest first;
    their times count from ``began_time`` (Unix). Of a flow that measures by another protocol than
    TCP, they control it, and ``exchanges`` are what it measures, the largest first.
    """

    host: str
    file: str
    packets: int
    dropped: int
    left_out: int
    began_time: float = 0.0
    findings: tuple[ConnectionFound, ...] = ()
    exchanges: tuple[ExchangeFound, ...] = ()
    size_bytes: int = 0
    changed_time: float = 0.0

    @property
    def text(self) -> str:
        """How many there are, and how many are missing."""
        text = f"{self.packets:,} packets"
        if self.dropped:
            text += f", {self.dropped:,} lost by the recorder"
        if self.left_out:
            text += f", {self.left_out:,} more than it was to keep"
        return text


class RecordedFlow(Struct, frozen=True):
    """One attempt of one flow.

    ``bottlenecks`` are the links of the lab that limit it by theory, by direction; empty where its
    own rate or window does. ``route`` is the way that its probes took, if it traced it.
    ``captures`` are its packets, by host, if they were recorded; ``paired`` is what those of both
    ends say together of each connection. ``protocol`` is that of its data, empty if not known.
    """

    id: int
    trial_id: int
    attempt: int
    name: str
    backend: str
    source: str
    target: str
    direction: str
    port: int | None
    status: Status
    failure: str
    error: str
    hint: str
    client: tuple[str, ...]
    server: tuple[str, ...]
    requested: Mapping[str, Any]
    effective: Mapping[str, Any]
    expected: Mapping[str, Mapping[str, float]]
    started_time: float | None
    finished_time: float | None
    exit_code: int | None
    stderr: str
    bottlenecks: Mapping[str, str] = {}
    route: tuple[TracedHop, ...] = ()
    captures: tuple[RecordedPackets, ...] = ()
    paired: tuple[PairFound, ...] = ()
    protocol: str = ""


Figures = Mapping[tuple[str, str], Figure]
"""Figures by (direction, metric)."""


def counting(figures: Figures) -> Figures:
    """Return the figures that count: those that no law forbids."""
    if all(figure.counts for figure in figures.values()):
        return figures
    return {key: figure for key, figure in figures.items() if figure.counts}


class Happening(StrEnum):
    """The kind of an event within a flow."""

    RAMP_UP = "delayed ramp-up"
    DROP = "drop"
    RECOVERY = "recovery"
    STALL = "stall"
    OSCILLATION = "oscillation"
    RISING_DELAY = "rising delay"
    CLOCK_STEP = "clock step"
    DELAY_STEP = "delay step"


class FlowEvent(Struct, frozen=True):
    """Something that happened within a flow, seen in a rate or delay; in SI base units.

    ``at_s`` and ``until_s`` count from the flow's second 0; ``until_s`` is None for a change of
    level. ``level_before`` and ``level_after`` are the levels around a change; around and within a
    stall; the low and the high one of an oscillation, whose period is ``period_s``. ``confidence``
    is 1 less the chance that noise looks so; None for a stall, which is no estimate. ``beside`` has
    the flow's other metrics at this time.
    """

    direction: str
    metric: str
    kind: Happening
    at_s: float
    until_s: float | None
    level_before: float
    level_after: float
    confidence: float | None = None
    period_s: float | None = None
    beside: Mapping[str, float] = {}


class Note(Struct, frozen=True):
    """A note about a run, one of its trials or flows."""

    id: int
    trial_id: int | None
    flow_id: int | None
    time: float
    level: str
    text: str
