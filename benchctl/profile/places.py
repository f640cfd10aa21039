"""The tables of a profile that name places: servers of others, interfaces, and hosts."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import AfterValidator, Field, model_validator

from benchctl.api import Duration, Rate
from benchctl.profile.values import Address, HostName, Name
from benchctl.run.planned import (
    LOCAL,
    ExternalServer,
    FleetTarget,
    Host,
    HostInterface,
    Reach,
    SshTarget,
)
from benchctl.toml.table import Ports, TomlTable
from benchctl.units import quoted

# What OpenSSH refuses in a host since 9.6, and what a shell that ProxyCommand starts would read.
_UNSAFE = frozenset("'`\"$\\;&<>|(){}")


def check_destination(text: str) -> str:
    """Return a destination of ssh unchanged: ``[user@]host``, or ``ssh://[user@]host[:port]``.

    Raises ValueError for one that ssh would read as an option, or hand to a shell.
    """
    user, _, host = text.removeprefix("ssh://").rpartition("@")
    if text.startswith("-") or user.startswith("-") or host.startswith("-"):
        raise ValueError(f"{quoted(text)} begins as an option does")
    if not host:
        raise ValueError(f"{quoted(text)} names no host")
    # A domain's user has a backslash: CORP\\ann.
    if bad := next((c for c in text if c.isspace() or not c.isprintable()), None):
        raise ValueError(f"{quoted(text)} must not contain {quoted(bad)}")
    if bad := next((c for c in user.replace("\\", "") + host if c in _UNSAFE), None):
        raise ValueError(f"{quoted(text)} must not contain {quoted(bad)}")
    return text


def host_in(destination: str) -> str:
    """Return the host that a destination of ssh names, without user and port."""
    host = destination.rpartition("@")[2]
    if destination.startswith("ssh://"):
        host = destination.removeprefix("ssh://").rpartition("@")[2].rstrip("/")
        name, _, port = host.rpartition(":")
        host = name if name and port.isdigit() and (":" not in name or "]" in name) else host
    return host.removeprefix("[").removesuffix("]")


Destination = Annotated[str, AfterValidator(check_destination)]
"""What ``ssh`` takes as its destination."""


class ServerTable(TomlTable):
    """A peer that somebody else runs; benchctl only connects to it."""

    host: HostName = Field(description="host name or IP address")
    port: Ports | None = Field(
        None,
        description='port, or a range of ports ("9200-9240") to try in turn when the server is '
        "busy; default: the backend's port",
    )
    note: str = Field("", description="free text: location, owner, terms of use")
    capacity: Rate | None = Field(
        None, description="advertised rate of its access link; informational"
    )

    @property
    def planned(self) -> ExternalServer:
        """The server as flows find it."""
        return ExternalServer(self.host, self.port)


class InterfaceTable(TomlTable):
    """A way out of a host, under the name a person gives it: wired, wireless."""

    device: str | None = Field(None, min_length=1, description="network device, such as eth0")
    address: Address | None = Field(None, description="source address to bind")
    note: str = Field("", description="for people")

    @model_validator(mode="after")
    def _something(self) -> InterfaceTable:
        if self.device is None and self.address is None:
            raise ValueError("give a device, an address, or both")
        return self

    @property
    def planned(self) -> HostInterface:
        """The interface as flows use it."""
        return HostInterface(self.device, self.address)


class SiteTable(TomlTable):
    """Hosts behind one uplink, when trials run at the same time."""

    hosts: list[Name] = Field(min_length=1, description="hosts behind the uplink")
    # As of a host: two trials would share the rate that they are to measure.
    trials: int = Field(
        1, ge=1, le=10_000, description="maximum number of trials that use the uplink at once"
    )


# A ping is sent each second, and a busy host may answer a little late. A command that nobody waits
# for any more is not to run for longer than ten minutes.
Patience = Annotated[Duration, Field(ge=3, le=600)]


class HostTable(TomlTable):
    """A place where commands run: besides those named here, "local" and the hosts of a lab."""

    on: Literal["local"] = Field(
        "local", description="where its commands run: local is this machine"
    )
    ssh: Destination | None = Field(
        None,
        description="where its commands run, instead of on: on the host that ssh reaches as this",
    )
    fleet: Literal[True] | Name | None = Field(
        None,
        description="measured by its own agent, as a host of the fleet: true, or its name there if "
        "that is another one",
    )
    address: HostName | None = Field(
        None,
        description="address at which the other end reaches it; default: what ssh connects to; "
        "needed except for local, with ssh and in a lab",
    )
    address6: Address | None = Field(
        None, description="its IPv6 address, for flows that ask for IPv6"
    )
    sudo: bool = Field(
        False, description="start what needs root by sudo, which must not ask for a password"
    )
    patience: Patience | None = Field(
        None,
        description="longest silence of its connection that a trial outlives, of a host with ssh; "
        "default: run.patience",
    )
    reachable: bool = Field(
        True,
        description="whether others can open connections to it; if not, it is always the client",
    )
    ports: Ports | None = Field(
        None,
        description='port, or range of ports ("5300-5320"), on which servers may listen there, and '
        "to which OWAMP's test packets go; default: from the backend's port on, and any",
    )
    interfaces: dict[Name, InterfaceTable] = Field(
        {}, description="network interfaces of a host with ssh"
    )
    prepare: str | None = Field(
        None, min_length=1, description="shell command to run here before each attempt at a trial"
    )
    cleanup: str | None = Field(
        None, min_length=1, description="shell command to run here after each attempt at a trial"
    )
    prepare_run: str | None = Field(
        None, min_length=1, description="shell command to run here before the first trial"
    )
    cleanup_run: str | None = Field(
        None, min_length=1, description="shell command to run here after the last trial"
    )

    def planned(self, name: str, patience_s: float) -> str | Host:
        """Return the host as a run keeps it: its address alone, if it has nothing else.

        The address of a host with ssh is empty if the profile gives none. ``patience_s`` is that of
        the run.
        """
        if self.fleet is not None:
            reach = FleetTarget(name if self.fleet is True else self.fleet)
            return self._host(name, self.address or "", reach)
        if self.ssh is None:
            address = self.address or LOCAL.address
            plain = self.address6 is None and self.ports is None and self.reachable
            return address if plain else self._host(name, address, None)
        by_ssh = SshTarget(self.ssh, sudo=self.sudo, patience_s=self.patience or patience_s)
        return self._host(name, self.address or "", by_ssh)

    def _host(self, name: str, address: str, reach: Reach | None) -> Host:
        return Host(
            name,
            address,
            address6=self.address6 or "",
            interfaces={name: interface.planned for name, interface in self.interfaces.items()},
            reach=reach,
            reachable=self.reachable,
            ports=self.ports,
        )
