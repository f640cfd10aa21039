"""What a profile may say: every table and key, with its meaning, unit and default.

The models only say what is well formed. Parameters of backends are open here (`FlowTable` lets
any key through) and are checked against the backend's own model when a plan is made.
"""

from __future__ import annotations

import re
from enum import StrEnum
from typing import Annotated, Any, Literal

from pydantic import AfterValidator, BaseModel, BeforeValidator, ConfigDict, Field, model_validator

from benchctl.api import Direction, Duration, Rate, Ratio

Scalar = str | int | float | bool


class Table(BaseModel):
    """Base of every table: an unknown key is an error."""

    model_config = ConfigDict(extra="forbid", frozen=True, populate_by_name=True)


def _read_ports(value: object) -> object:
    if isinstance(value, int) and not isinstance(value, bool):
        return (value, value)
    if isinstance(value, str) and (match := re.fullmatch(r"(\d+)(?:-(\d+))?", value)):
        return (int(match[1]), int(match[2] or match[1]))
    raise ValueError(f'{value!r} is not a port; write 5201 or "5201-5210"')


def _check_ports(ports: tuple[int, int]) -> tuple[int, int]:
    low, high = ports
    if not (1 <= low <= 65535 and 1 <= high <= 65535):
        raise ValueError(f"port {low if not 1 <= low <= 65535 else high} is not within 1 to 65535")
    if low > high:
        raise ValueError(f"the range {low}-{high} runs backwards")
    return ports


Ports = Annotated[
    tuple[int, int],
    BeforeValidator(_read_ports, json_schema_input_type=int | str),
    AfterValidator(_check_ports),
]


class Server(Table):
    """A peer that somebody else runs; benchctl only connects to it."""

    host: str = Field(description="name or address", min_length=1)
    port: Ports | None = Field(
        None, description='port or range ("9200-9240"); a busy port moves on to the next'
    )
    note: str = Field("", description="for people: place, owner, rules")
    capacity: Rate | None = Field(None, description="rate of its access link, as announced")


class Interface(Table):
    """A way out of a host, under the name a person gives it: wired, wireless."""

    device: str | None = Field(None, description="network device, such as eth0")
    address: str | None = Field(None, description="source address to bind")
    note: str = Field("", description="for people")

    @model_validator(mode="after")
    def _something(self) -> Interface:
        if self.device is None and self.address is None:
            raise ValueError("give a device, an address, or both")
        return self


class Host(Table):
    """A place where commands run, beside "local" and the hosts of a lab."""

    on: Literal["local"] = Field("local", description="where its commands run: this machine")
    address: str = Field(description="the address at which the other end reaches it")


class FlowTable(BaseModel):
    """One flow; every key that is not here is a parameter of its backend."""

    model_config = ConfigDict(extra="allow", frozen=True, populate_by_name=True)

    backend: str = Field(description="the tool: iperf3, ping, simpleperf, owping or a plugin")
    source: str = Field("local", alias="from", description="host that measures")
    to: str = Field(
        "local", description="a host (benchctl starts the peer there) or a server of [servers]"
    )
    interface: str | None = Field(None, description="a name of [interfaces]")
    direction: Direction | None = Field(
        None, description="send, receive, both or round-trip, seen from the measuring host"
    )
    delay: Duration = Field(
        0.0, description="time from the trial's common start to this flow's own"
    )


FLOW_KEYS = tuple(field.alias or name for name, field in FlowTable.model_fields.items())


class Axis(Table):
    """One swept parameter, in long form: what it sets, and its values."""

    sets: str | list[str] = Field(description='targets, such as "to", "streams", "main.window"')
    values: list[Scalar | dict[str, Any]] = Field(min_length=1)


AxisValues = Annotated[list[Scalar | dict[str, Any]], Field(min_length=1)]


class Order(StrEnum):
    """In which order the trials run."""

    SEQUENTIAL = "sequential"
    INTERLEAVED = "interleaved"
    SHUFFLED = "shuffled"


class RunTable(Table):
    """How the trials are run."""

    repeats: int = Field(1, ge=1, description="how often every point is measured")
    # Interleaved spreads slow drift of the network over all points at no cost.
    order: Order = Field(
        Order.INTERLEAVED,
        description="sequential (all repeats of a point, then the next), interleaved (all points, "
        "then all again) or shuffled (seeded)",
    )
    seed: int | None = Field(
        None, ge=0, description="of the order and of back-off; drawn and recorded where not given"
    )
    pause: Duration = Field(0.0, description="rest between two trials")
    # Three: a busy public server is often free again within two back-offs.
    attempts: int = Field(3, ge=1, le=100, description="tries of one trial")
    backoff: Duration = Field(
        2.0, description="wait before the second attempt; doubles each time, with jitter"
    )
    deadline: Duration | None = Field(
        None, description="longest time of one attempt; default is what its flows need, and 15 s"
    )


class Change(Table):
    """A setting of a link that changes while a trial runs."""

    at: Duration = Field(description="time after the trial's common start")
    link: str = Field(description="name of a link of the topology")
    ramp: Duration = Field(0.0, description="time over which the new value is reached, linearly")
    rate: Rate | None = None
    delay: Duration | None = None
    jitter: Duration | None = None
    loss: Ratio | None = None


class LabTable(Table):
    """The virtual network in which the flows run."""

    topology: str = Field(description="topology file, relative to this profile")
    emulator: Literal["auto", "kernel", "user"] = Field(
        "auto", description="who delays and drops packets: the kernel's netem, or benchctl"
    )
    verify: bool = Field(True, description="measure the links used before the first trial")
    changes: list[Change] = Field([], description="settings that change during every trial")


class Expectation(Table):
    """A bound that every point has to meet; one that does not makes the run end with code 1."""

    metric: str = Field(description="metric name, such as throughput_bps")
    flow: str | None = Field(None, description="only this flow")
    where: dict[str, Scalar] = Field({}, description="only points with these axis values")
    at_least: Scalar | None = Field(None, description="least mean over the repeats, with unit")
    at_most: Scalar | None = Field(None, description="greatest mean over the repeats, with unit")

    @model_validator(mode="after")
    def _some_bound(self) -> Expectation:
        if self.at_least is None and self.at_most is None:
            raise ValueError("give at_least, at_most, or both")
        return self


class Profile(Table):
    """A whole profile."""

    title: str = Field("", description="one line for people")
    description: str = Field("", description="what is measured and why")
    extends: str | None = Field(None, description="profile that this one builds on")
    servers: dict[str, Server] = Field({}, description="peers that somebody else runs")
    interfaces: dict[str, Interface] = Field({}, description="ways out of the measuring host")
    hosts: dict[str, Host] = Field({}, description="places where commands run")
    defaults: dict[str, Any] = Field({}, description="parameters of every flow that takes them")
    flows: dict[str, FlowTable] = Field(min_length=1, description="what one trial measures")
    axes: dict[str, AxisValues | Axis] = Field({}, description="the swept parameters")
    zip: list[dict[str, AxisValues]] = Field(
        [], description="groups of axes that go together, value by value"
    )
    exclude: list[dict[str, Scalar | list[Scalar]]] = Field([], description="points to leave out")
    include: list[dict[str, Scalar]] = Field([], description="points to add")
    run: RunTable = Field(RunTable(), description="how the trials are run")
    lab: LabTable | None = Field(None, description="the virtual network to measure in")
    expect: list[Expectation] = Field([], description="bounds to meet")
