"""What a profile may say: every table and key, with its meaning, unit and default.

The models only say what is well formed. Parameters of backends are open here (`FlowTable` lets
any key through) and are checked against the backend's own model when a plan is made.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from enum import StrEnum
from typing import Annotated, Any, Literal

from pydantic import (
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Discriminator,
    Field,
    Tag,
    model_validator,
)

from benchctl.api import Duration, Rate, Ratio, Size
from benchctl.metrics import Direction
from benchctl.profile.figures import ExpectTable, ReportedTable
from benchctl.profile.places import HostTable, InterfaceTable, Patience, ServerTable, SiteTable
from benchctl.profile.values import (
    AxisScalar,
    AxisScalars,
    AxisValue,
    Bound,
    FlowName,
    Moment,
    Name,
    RateRange,
    TargetNames,
)
from benchctl.run.planned import LOCAL, PATIENCE_S, DeclaredNetwork, Hook, When
from benchctl.toml.table import TomlTable
from benchctl.units import quoted

# --- what one trial measures -----------------------------------------------------------------


class CaptureTable(TomlTable):
    """Which packets of a flow are recorded."""

    snaplen: Size = Field(
        # The longest heads of IP and TCP over IPv4, and of TCP with the usual options over IPv6.
        96.0, ge=40, le=65535,
        description="bytes to keep of each packet, from its IP head on",
    )  # fmt: skip
    hosts: list[Literal["from", "to"]] = Field(
        ["from", "to"], min_length=1, max_length=2,
        description="ends at which to record; default: both, of which a server of others is none",
    )  # fmt: skip
    # Half a minute of 1500-byte frames at 500 Mbit/s, and of their acknowledgements.
    max: Size = Field(
        float(200 << 20),
        ge=1e5,
        le=1e12,
        description="most bytes of packets to keep of each attempt and end",
    )


def _capture_as_table(value: object) -> object:
    if isinstance(value, bool):
        return {} if value else None
    if isinstance(value, dict):
        return value
    raise ValueError("must be true, false, or a table")


class _OrBoolean:
    """Says in the schema of a table that a boolean stands for it; pydantic 2.11 can't by itself."""

    def __get_pydantic_json_schema__(self, core: Any, handler: Any) -> dict[str, Any]:
        (table,) = (branch for branch in handler(core)["anyOf"] if branch != {"type": "null"})
        return {"anyOf": [{"type": "boolean"}, table]}


CaptureForm = Annotated[CaptureTable | None, BeforeValidator(_capture_as_table), _OrBoolean()]


class DefaultsTable(BaseModel):
    """What holds for every flow; a key that is not here is a parameter of the flows' backends."""

    model_config = ConfigDict(extra="allow", frozen=True, strict=True)

    from_: str = Field("local", alias="from", description="host that runs the client")
    to: str = Field(
        "local",
        description="the other end: a host, on which benchctl starts the server, or one of "
        "[servers]",
    )
    interface: str | None = Field(None, description="interface to use, one of [interfaces]")
    direction: Direction | None = Field(
        None,
        strict=False,
        description="send, receive, both or round-trip, as seen from the host in `from`; default: "
        "the first that the backend supports",
    )
    delay: Duration = Field(0.0, description="how long after the common start this flow starts")
    capture: CaptureForm = Field(
        None,
        description="record its packets at both ends, for benchctl packets; true, or a table of "
        "snaplen, hosts and max",
    )


class FlowTable(DefaultsTable):
    """One flow; every key that is not here is a parameter of its backend."""

    backend: str = Field(description="the tool: iperf3, ping, simpleperf, owping or a plugin")


FLOW_KEYS = tuple(field.alias or name for name, field in FlowTable.model_fields.items())


# --- the matrix ------------------------------------------------------------------------------


class AxisTable(TomlTable):
    """One swept parameter, in long form: what it sets, and its values."""

    sets: TargetNames | None = Field(
        None,
        description='keys that the axis sets, such as "to", "streams" or "main.window"; default: '
        "the name of the axis",
    )
    values: list[AxisValue] | None = Field(
        None, min_length=1, description="values of the axis; needed without mesh"
    )
    mesh: list[Name] | None = Field(
        None,
        description="hosts of which every ordered pair is a value, which sets from and to",
    )

    @model_validator(mode="after")
    def _one_form(self) -> AxisTable:
        if (self.values is None) == (self.mesh is None):
            raise ValueError("give either values or mesh")
        if self.mesh is not None and self.sets is not None:
            raise ValueError("a mesh sets from and to, and nothing else")
        if self.mesh is not None and len(self.mesh) < 2:
            raise ValueError("a mesh needs at least two hosts")
        names = self.mesh or []
        if twice := next((name for name in names if names.count(name) > 1), None):
            raise ValueError(f"{quoted(twice)} is twice in its mesh")
        return self

    @property
    def items(self) -> Sequence[Any]:
        """The values as written; those of a mesh are labelled, ``paris:tokyo``."""
        return self.values if self.values is not None else pairs(self.mesh or ())


def pairs(names: Sequence[str]) -> list[dict[str, str]]:
    """Return every ordered pair of hosts as a labelled value of an axis.

    Names have no colon, so that labels are as different as the pairs.
    """
    return [
        {"label": f"{source}:{target}", "from": source, "to": target}
        for source, target in itertools.permutations(names, 2)
    ]


def _list_as_long_form(value: object) -> object:
    if isinstance(value, list):
        return {"values": value}
    if isinstance(value, dict):
        return value
    raise ValueError('must be a list of values, or a table with "values" or "mesh"')


AxisForm = Annotated[
    AxisTable,
    BeforeValidator(
        _list_as_long_form,
        json_schema_input_type=Annotated[list[AxisValue], Field(min_length=1)] | AxisTable,
    ),
]


class SearchTable(BaseModel):
    """A searched axis; the key that is not here is its target, such as ``rate``."""

    model_config = ConfigDict(extra="allow", frozen=True, strict=True)
    __pydantic_extra__: dict[str, RateRange] = Field(init=False)

    while_: Bound = Field(alias="while", description="what holds at a rate that passes")
    # A better known rate takes longer tries, too: see `overflow_s` of a plan.
    precision: Ratio = Field(
        0.01, ge=1e-4, le=0.5,
        description="ratio of the lowest rate that fails to the highest that passes, less 1",
    )  # fmt: skip
    # A single burst of loss must not decide.
    confirm: int = Field(2, ge=1, le=100, description="how many tries must agree at each of both")
    # Bisection from 1 Mbit/s to 1 Gbit/s at 1 % takes 13; the others are for rates that waver.
    most: int = Field(20, ge=1, le=10_000, description="maximum number of tries at each point")

    @property
    def target(self) -> str:
        """The searched parameter, as an axis names it."""
        return next(iter(self.__pydantic_extra__))

    @property
    def range_bps(self) -> tuple[float, float]:
        """The lowest and the highest rate."""
        return self.__pydantic_extra__[self.target]

    @model_validator(mode="after")
    def _one_target(self) -> SearchTable:
        if len(self.__pydantic_extra__) != 1:
            raise ValueError('give one rate to search, such as rate = "1Mbit..1Gbit"')
        return self


class Order(StrEnum):
    """In which order the trials run."""

    SEQUENTIAL = "sequential"
    INTERLEAVED = "interleaved"
    SHUFFLED = "shuffled"


class UntilTable(TomlTable):
    """Repeats until a figure is known well enough."""

    until: Ratio = Field(
        gt=0, description="half the 95 % interval of the mean, relative to the mean"
    )
    of: str = Field(description="metric, such as throughput_bps; of every flow that has it")
    # Two values cannot show that a third would differ more.
    least: int = Field(3, ge=3, le=1_000_000, description="minimum number of repeats")
    # Twice as narrow an interval takes four times as many; at 20 most are as narrow as they get.
    most: int = Field(20, ge=3, le=1_000_000, description="maximum number of repeats")

    @model_validator(mode="after")
    def _in_order(self) -> UntilTable:
        if self.least > self.most:
            raise ValueError("least is greater than most")
        return self


# Tags in brackets: they are no part of the key that an error names.
Repeats = Annotated[
    Annotated[int, Field(ge=1, le=1_000_000), Tag("[number]")]
    | Annotated[UntilTable, Tag("[table]")],
    Discriminator(lambda value: "[table]" if isinstance(value, dict | UntilTable) else "[number]"),
]


AtOnce = Annotated[
    Annotated[int, Field(ge=1, le=10_000), Tag("[number]")]
    | Annotated[Literal["hosts"], Tag("[word]")],
    Discriminator(lambda value: "[word]" if isinstance(value, str) else "[number]"),
]


class RunTable(TomlTable):
    """How the trials are run."""

    repeats: Repeats = Field(1, description="how many times each point is measured, or until when")
    # Interleaved spreads slow drift of the network over all points at no cost.
    order: Order = Field(
        Order.INTERLEAVED,
        strict=False,
        description="sequential (all repeats of a point, then the next point), interleaved (every "
        "point once, then every point again) or shuffled (random, by the seed)",
    )
    seed: int | None = Field(
        None,
        ge=0,
        lt=2**63,
        description="seed of the order and of back-off; default: random, and recorded",
    )
    pause: Duration = Field(0.0, description="pause between two trials")
    # Three: a busy public server is often free again within two back-offs.
    attempts: int = Field(3, ge=1, le=100, description="maximum number of attempts per trial")
    backoff: Duration = Field(
        2.0,
        description="wait before the second attempt; doubles with each attempt, with jitter",
    )
    host_wait: Duration = Field(
        1800.0, description="how long a trial waits for a host of a fleet that is away"
    )
    deadline: Duration | None = Field(
        None,
        gt=0,
        description="maximum duration of one attempt; default: the duration of its flows plus 15 s,"
        " and plus the patience with its hosts with ssh",
    )
    patience: Patience = Field(
        PATIENCE_S,
        description="longest silence of the connection to a host with ssh that a trial outlives; "
        "then it is given up, and what runs there ends",
    )
    # One: whoever measures two hosts seldom wants others to disturb them.
    parallel: AtOnce = Field(
        1,
        description='maximum number of trials at the same time; "hosts": as many as share no host',
    )
    per_host: int = Field(
        1, ge=1, le=1_000, description="maximum number of trials at the same time on one host"
    )
    total_rate: Rate | None = Field(
        None, gt=0, description="maximum rate of all flows that run at the same time"
    )


class ChangeTable(TomlTable):
    """A setting of a link that changes while a trial runs."""

    at: Moment = Field(
        description="time after the trial's common start, or a share of the trial's duration"
    )
    link: str = Field(description="name of a link of the topology")
    ramp: Moment = Field(
        "0s", description="time over which the values change linearly, or such a share"
    )
    rate: Rate | None = Field(None, description="new rate")
    delay: Duration | None = Field(None, description="new one-way delay")
    jitter: Duration | None = Field(None, description="new jitter of the delay")
    loss: Ratio | None = Field(None, description="new share of packets lost")

    @model_validator(mode="after")
    def _something(self) -> ChangeTable:
        if (self.rate, self.delay, self.jitter, self.loss) == (None, None, None, None):
            raise ValueError("give a rate, delay, jitter or loss")
        return self


class LabTable(TomlTable):
    """The virtual network in which the flows run."""

    topology: str = Field(
        min_length=1,
        description='topology file, relative to this profile; "none": no lab, nor that of the base',
    )
    emulator: Literal["auto", "kernel", "user"] | None = Field(
        None, description="emulator that delays and drops packets; default: that of the topology"
    )
    verify: bool = Field(True, description="verify the links in use before the first trial")
    changes: list[ChangeTable] = Field([], description="settings that change during every trial")


# --- the whole -------------------------------------------------------------------------------


class Profile(TomlTable):
    """A whole profile."""

    title: str = Field("", description="one-line title")
    description: str = Field("", description="what is measured and why")
    extends: str | None = Field(
        None,
        description="profile that this one extends: a path, or a name",
    )
    servers: dict[Name, ServerTable] = Field({}, description="servers that somebody else runs")
    interfaces: dict[Name, InterfaceTable] = Field(
        {}, description="network interfaces to measure over"
    )
    hosts: dict[Name, HostTable] = Field({}, description="hosts that run commands")
    sites: dict[Name, SiteTable] = Field(
        {}, description="hosts behind one uplink, when trials run at the same time"
    )
    defaults: DefaultsTable = Field(
        DefaultsTable(), description="parameters of all flows that accept them"
    )
    flows: dict[FlowName, FlowTable] = Field(
        min_length=1, description="measurements of one trial, which start together"
    )
    axes: dict[Name, AxisForm] = Field({}, description="parameters to sweep")
    zip: list[Annotated[dict[Name, AxisForm], Field(min_length=1)]] = Field(
        [], description="groups of axes that advance together"
    )
    search: SearchTable | None = Field(
        None, description="parameter whose highest passing rate is searched at every point"
    )
    exclude: list[Annotated[dict[str, AxisScalars], Field(min_length=1)]] = Field(
        [], description="points to exclude"
    )
    include: list[Annotated[dict[str, AxisScalar], Field(min_length=1)]] = Field(
        [], description="points to add"
    )
    run: RunTable = Field(RunTable(), description="how the trials are run")
    lab: LabTable | None = Field(None, description="the virtual network to measure in")
    expect: list[ExpectTable] = Field([], description="bounds that the results must meet")
    reported: list[ReportedTable] = Field(
        [], description="figures that others reported, for comparison"
    )

    @property
    def hooks(self) -> tuple[Hook, ...]:
        """The commands of the hosts, in the order in which they run."""
        return tuple(
            Hook(name, when, command)
            for when in When
            for name, host in self.hosts.items()
            if (command := getattr(host, when)) is not None
        )

    @property
    def outside(self) -> DeclaredNetwork:
        """The network that the flows may use where there is no lab."""
        hosts = {name: host.planned(name, self.run.patience) for name, host in self.hosts.items()}
        return DeclaredNetwork(
            {LOCAL.name: LOCAL.address, **hosts},
            {name: server.planned for name, server in self.servers.items()},
            {name: interface.planned for name, interface in self.interfaces.items()},
        )
