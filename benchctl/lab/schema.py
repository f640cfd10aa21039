"""What a topology file may say: every table and key, with its meaning, unit and default.

Only the shape is checked here. What needs to see several elements at once (names that exist, one
address for one interface, a path between every pair) is checked by `topology`.
"""

from __future__ import annotations

from ipaddress import IPv4Interface
from typing import Annotated, Any

from pydantic import AfterValidator, BeforeValidator, Field, model_validator

from benchctl.api import Duration, Rate, Ratio
from benchctl.lab.model import Emulator
from benchctl.profile.model import Table
from benchctl.profile.values import Ports


def _not_negative(value: Any) -> Any:
    if isinstance(value, str) and value.lstrip().startswith("-"):
        raise ValueError(f'"{value}" is below zero')
    return value


def _not_zero(rate_bps: float) -> float:
    if rate_bps == 0:
        raise ValueError('a rate of zero; for a link that carries nothing say loss = "100%"')
    return rate_bps


def _two(nodes: list[str]) -> list[str]:
    if len(nodes) != 2:
        raise ValueError("a link has two ends: two nodes")
    return nodes


LinkRate = Annotated[Rate, BeforeValidator(_not_negative), AfterValidator(_not_zero)]
Delay = Annotated[Duration, BeforeValidator(_not_negative)]
# RFC 6928 lets a host start with 10 segments; Linux takes up to 65535 in this metric's 16 bits.
Window = Annotated[int, Field(ge=1, le=65535)]
Scalar = str | int


class DirectionTable(Table):
    """Settings of one direction of a link."""

    rate: LinkRate | None = Field(None, description="whole Ethernet frames, in bits per second")
    delay: Delay | None = Field(None, description="one-way propagation delay")
    jitter: Delay | None = Field(
        None, description="the delay varies so much to either side, uniformly; frames may reorder"
    )
    loss: Ratio | None = Field(None, description="frames lost on the way")
    queue: int | None = Field(None, ge=1, description="frames that may wait; default 1000")


class LinkTable(DirectionTable):
    """A cable between two nodes; bare, unless a setting makes it an emulated link."""

    between: Annotated[list[str], AfterValidator(_two)] = Field(
        description='the two nodes; "laptop:wired" also names the interface',
        json_schema_extra={"minItems": 2, "maxItems": 2},
    )
    # IPv4 needs 68 (RFC 791); a jumbo frame of 9000 is what networks use at most.
    mtu: int = Field(1500, ge=68, le=9000, description="largest IP packet, in bytes")
    toward: dict[str, DirectionTable] = Field(
        {}, description="settings of the direction toward a node, where they differ"
    )
    addresses: dict[str, Annotated[IPv4Interface, Field(strict=False)]] = Field(
        {}, description='addresses by node, "10.0.0.1/24"; worked out where not given'
    )


class RouteTable(Table):
    """A route in place of the one worked out."""

    to: str = Field(description='a network, a node, or "default"')
    via: str = Field(description="a neighbour, by name or address")
    initcwnd: Window | None = Field(None, description="initial congestion window, in segments")


class ServiceTable(Table):
    """A program that runs on a host while the lab stands."""

    iperf3: Ports | None = Field(None, description="an iperf3 server on every port of a range")
    command: list[str] | None = Field(None, min_length=1, description="program and arguments")
    ports: Ports | None = Field(None, description="TCP ports that it listens on once it is ready")

    @model_validator(mode="after")
    def _one_program(self) -> ServiceTable:
        if (self.iperf3 is None) == (self.command is None):
            raise ValueError("give iperf3 or command, one of them")
        if self.iperf3 and self.ports:
            raise ValueError("ports goes with command; iperf3 says its own")
        if any("\0" in word for word in self.command or ()):
            raise ValueError("a word of command holds NUL, which ends a word for every program")
        return self


class RouterTable(Table):
    """A node that forwards packets."""

    sysctl: dict[str, Scalar] = Field(
        {}, description="kernel settings of its own network: tcp_sack, or in full net.ipv4.tcp_sack"
    )
    routes: list[RouteTable] = Field([], description="routes in place of those worked out")


class HostTable(RouterTable):
    """A node where commands run."""

    aliases: list[str] = Field([], description="more names, known inside the lab only")
    initcwnd: Window | None = Field(
        None, description="initial congestion window of its connections, in segments"
    )
    services: list[ServiceTable] = Field([], description="programs that run while the lab stands")


class SwitchTable(Table):
    """A node that joins its links to one subnet."""


class TopologyFile(Table):
    """A whole topology file."""

    title: str = Field("", description="one line for people")
    emulator: Emulator = Field(
        Emulator.AUTO,
        strict=False,
        description="who delays and drops frames: kernel, user, or auto",
    )
    local: str | None = Field(
        None, description="the host that profiles mean by local; the first where not given"
    )
    seed: int = Field(1, ge=0, description="of loss and jitter")
    sysctl: dict[str, Scalar] = Field({}, description="kernel settings of every host and router")
    hosts: dict[str, HostTable] = Field(min_length=1, description="where commands run")
    routers: dict[str, RouterTable] = Field({}, description="forward packets")
    switches: dict[str, SwitchTable] = Field({}, description="forward frames")
    links: dict[str, LinkTable] = Field({}, description="what joins them")
