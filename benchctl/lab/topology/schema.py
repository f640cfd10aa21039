"""What a topology file may say: every table and key, with its meaning, unit and default.

Only the shape is checked here. What needs to see several elements at once (names that exist, one
address for one interface, a path between every pair) is checked by `topology`.
"""

from __future__ import annotations

from ipaddress import IPv4Interface, IPv6Interface
from typing import Annotated, Any

from pydantic import AfterValidator, BeforeValidator, Field, model_validator

from benchctl.api import Duration, Rate, Ratio
from benchctl.lab.topology.model import Emulator
from benchctl.toml.table import Ports, TomlTable


def _not_negative(value: Any) -> Any:
    if isinstance(value, str) and value.lstrip().startswith("-"):
        raise ValueError(f'"{value}" is negative')
    return value


def _not_zero(rate_bps: float) -> float:
    if rate_bps == 0:
        raise ValueError(
            'a rate must be above zero; for a link that carries nothing, set loss = "100%"'
        )
    return rate_bps


def _two(nodes: list[str]) -> list[str]:
    if len(nodes) != 2:
        raise ValueError("a link joins exactly two nodes")
    return nodes


def _listed(value: Any) -> Any:
    return [value] if isinstance(value, str) else value


def _one_each(addresses: list[IPv4Interface | IPv6Interface]) -> Any:
    if len({address.version for address in addresses}) < len(addresses):
        raise ValueError("give one address of each IP version at most")
    return addresses


Addresses = Annotated[
    list[
        Annotated[IPv4Interface, Field(strict=False)]
        | Annotated[IPv6Interface, Field(strict=False)]
    ],
    BeforeValidator(_listed, json_schema_input_type=str | list[str]),
    AfterValidator(_one_each),
]
LinkRate = Annotated[Rate, BeforeValidator(_not_negative), AfterValidator(_not_zero)]
Delay = Annotated[Duration, BeforeValidator(_not_negative)]
# RFC 6928 lets a host start with 10 segments; Linux takes up to 65535 in this metric's 16 bits.
Window = Annotated[int, Field(ge=1, le=65535)]
_Scalar = str | int


class DirectionTable(TomlTable):
    """Settings of one direction of a link."""

    rate: LinkRate | None = Field(
        None, description="rate in bits per second, counting whole Ethernet frames"
    )
    delay: Delay | None = Field(None, description="one-way delay")
    jitter: Delay | None = Field(
        None, description="largest deviation from the delay, uniformly distributed; reorders frames"
    )
    loss: Ratio | None = Field(None, description="share of frames lost")
    queue: int | None = Field(None, ge=1, description="queue length, in frames")


class LinkTable(DirectionTable):
    """A cable between two nodes; bare, unless a setting makes it an emulated link."""

    between: Annotated[list[str], AfterValidator(_two)] = Field(
        description='the two nodes; "laptop:wired" also names the interface',
        json_schema_extra={"minItems": 2, "maxItems": 2},
    )
    # IPv4 needs 68 (RFC 791); a jumbo frame of 9000 is what networks use at most.
    mtu: int = Field(1500, ge=68, le=9000, description="largest IP packet, in bytes")
    toward: dict[str, DirectionTable] = Field(
        {}, description="settings that differ in the direction toward a node"
    )
    addresses: dict[str, Addresses] = Field(
        {},
        description='address of each node, such as "10.0.0.1/24", or a list of one of IPv4 and one '
        "of IPv6; default: assigned automatically",
    )


class RouteTable(TomlTable):
    """A route in place of the one worked out."""

    to: str = Field(description='destination: a network, a node, or "default"')
    via: str = Field(description="next hop: a neighbour, by name or address")
    initcwnd: Window | None = Field(None, description="initial congestion window, in segments")


class ServiceTable(TomlTable):
    """A program that runs on a host while the lab stands."""

    iperf3: Ports | None = Field(None, description="starts an iperf3 server on each of these ports")
    ssh: Ports | None = Field(
        None,
        description="starts an OpenSSH server on each of these ports, for the other hosts of the "
        "lab",
    )
    command: list[str] | None = Field(
        None, min_length=1, description="program and arguments to start"
    )
    ports: Ports | None = Field(
        None, description="TCP ports that the command listens on when it is ready"
    )

    @model_validator(mode="after")
    def _one_program(self) -> ServiceTable:
        given = [name for name in ("iperf3", "ssh", "command") if getattr(self, name) is not None]
        if len(given) != 1:
            raise ValueError("give one of iperf3, ssh and command")
        if self.ports and given != ["command"]:
            raise ValueError(f"ports belongs to command; {given[0]} has its own")
        if any("\0" in word for word in self.command or ()):
            raise ValueError("an argument of command contains a NUL character")
        return self


class RouterTable(TomlTable):
    """A node that forwards packets."""

    sysctl: dict[str, _Scalar] = Field(
        {},
        description="kernel settings of its network namespace: tcp_sack, or in full "
        "net.ipv4.tcp_sack",
    )
    routes: list[RouteTable] = Field([], description="routes that replace the computed ones")


class TopologyHostTable(RouterTable):
    """A node where commands run."""

    aliases: list[str] = Field([], description="additional names, valid inside the lab only")
    initcwnd: Window | None = Field(
        None, description="initial congestion window of its TCP connections, in segments"
    )
    services: list[ServiceTable] = Field(
        [], description="programs that run as long as the lab exists"
    )


class SwitchTable(TomlTable):
    """A node that joins its links to one subnet."""


class TopologyFile(TomlTable):
    """A whole topology file."""

    title: str = Field("", description="one-line title")
    emulator: Emulator = Field(
        Emulator.AUTO,
        strict=False,
        description="emulator of the links: kernel, user or auto",
    )
    local: str | None = Field(
        None, description="host that `local` means in profiles; default: the first"
    )
    seed: int = Field(1, ge=0, description="seed of loss and jitter")
    ipv4: bool = Field(True, description="whether nodes have IPv4 addresses")
    ipv6: bool = Field(False, description="whether nodes have IPv6 addresses")
    sysctl: dict[str, _Scalar] = Field({}, description="kernel settings of every host and router")
    hosts: dict[str, TopologyHostTable] = Field(
        min_length=1, description="hosts, which run commands"
    )
    routers: dict[str, RouterTable] = Field({}, description="routers, which forward packets")
    switches: dict[str, SwitchTable] = Field({}, description="switches, which forward frames")
    links: dict[str, LinkTable] = Field({}, description="links between hosts, routers and switches")
