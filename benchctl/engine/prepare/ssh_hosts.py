"""The remote hosts of a profile: what is wrong with them, and where others reach them."""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Iterable, Iterator
from ipaddress import ip_address
from typing import TYPE_CHECKING

from msgspec.structs import replace

from benchctl.errors import MissingError, ProfileError
from benchctl.plan.network import names_of
from benchctl.profile.load import Document
from benchctl.profile.places import HostTable, host_in
from benchctl.profile.values import is_address
from benchctl.run.planned import (
    LOCAL,
    DeclaredNetwork,
    FleetTarget,
    Host,
    Network,
    PlannedFlow,
    SshTarget,
    When,
)
from benchctl.units import quoted

if TYPE_CHECKING:
    from benchctl.lab.topology.model import Topology

# It only reads files; a "Match exec" of the user's may take a while.
_CONFIG_S = 10.0
SSH = MissingError("no program ssh in the PATH", "apt install openssh-client")


def check_hosts(document: Document, topology: Topology | None) -> None:
    """Raise ProfileError for a host that nothing reaches, or whose commands have no host."""
    for name, host in document.model.hosts.items():
        for key, what, hint in _faults(document, name, host):
            raise document.error(("hosts", name, *key), what, hint)
        if topology is not None:
            _check_in_lab(document, name, host, topology)


def _faults(
    document: Document, name: str, host: HostTable
) -> Iterator[tuple[tuple[str, ...], str, str]]:
    """Yield key, message and hint of each thing that does not fit the others."""
    given = host.model_fields_set
    if host.fleet is not None:
        yield from _faults_in_fleet(document, name, host)
        return
    if host.ssh is not None:
        if name == LOCAL.name:
            yield ("ssh",), "local is this machine", "give the host another name"
        if "on" in given:
            yield ("on",), "ssh takes the place of on", "remove one of them"
        return
    for key in ("sudo", "patience", "interfaces"):
        if key in given:
            hint = "those of this machine are in [interfaces]" if key == "interfaces" else ""
            yield (key,), "is for a host with ssh", hint
    if document.model.lab is None and host.address is None and name != LOCAL.name:
        yield ("address",), "is missing", "or give ssh, if it is another machine"


def _faults_in_fleet(
    document: Document, name: str, host: HostTable
) -> Iterator[tuple[tuple[str, ...], str, str]]:
    """Yield what does not fit a host of a fleet, whose agent takes no command of a profile."""
    if name == LOCAL.name:
        yield ("fleet",), "local is this machine", "give the host another name"
    if document.model.lab is not None:
        yield ("fleet",), "a lab has hosts of its own", "leave out lab, or use --lab none"
    for key in ("on", "ssh", "sudo", "patience", *When):
        if key in host.model_fields_set:
            hint = "its owner lets it measure, and run no commands" if key in [*When] else ""
            yield (key,), "is not for a host of a fleet", hint
    if host.address is None:
        yield ("address",), "is missing", "give the address at which the other end reaches it"


def _check_in_lab(document: Document, name: str, host: HostTable, topology: Topology) -> None:
    names = names_of(topology)
    hooks = any(hook.host == name for hook in document.model.hooks)
    hint = f"hosts are: {', '.join(names)}"
    if hooks and host.ssh is None and name not in names:
        what = f'the lab has no host "{name}" to run its commands'
        raise document.error(("hosts", name), what, hint)
    if host.ssh is None:
        return
    if not any(service.ordinary for node in topology.nodes.values() for service in node.services):
        remedy = "let some serve with services = [{ ssh = 22 }], or use --lab none"
        raise document.error(("hosts", name, "ssh"), "no host of the lab serves SSH", remedy)
    if host.address is None and name not in names:
        what = f'is missing, and the lab has no host "{name}" to take it from'
        raise document.error(("hosts", name, "address"), what, hint)


def check_ways(document: Document, flows: Iterable[PlannedFlow], network: Network) -> None:
    """Raise ProfileError for a flow from a remote host to a loopback address of this machine."""
    for flow in flows:
        target = network.target(flow.to)
        _check_fleet(document, flow, network.hosts[flow.source], target)
        away = network.hosts[flow.source].reach is not None
        if away and target is not None and target.reach is None and _is_loopback(target.address):
            raise document.error(
                ("hosts", flow.to, "address"),
                f"{flow.source} cannot reach this machine at {target.address}",
                "give the address at which it can, or reachable = false if there is none",
            )


def _check_fleet(document: Document, flow: PlannedFlow, source: Host, target: Host | None) -> None:
    """Raise ProfileError for a flow that hosts of a fleet do not measure."""
    ends = [source] if target is None else [source, target]
    in_fleet = [isinstance(host.reach, FleetTarget) for host in ends]
    if not any(in_fleet):
        return
    what = f"flow {flow.name} from {flow.source} to {flow.to}"
    if not all(in_fleet):
        inside, outside = (
            host.name for _, host in sorted(zip(in_fleet, ends, strict=True), reverse=True)
        )
        hint = "measure between hosts of the fleet, or from one of them to a server"
        raise document.error(
            ("hosts", outside), f"{what}: {inside} is a host of a fleet, and {outside} is not", hint
        )
    if flow.capture is not None:
        hint = "set capture=false"
        raise document.error(("hosts", source.name), f"{what}: no fleet records packets", hint)


def _is_loopback(address: str) -> bool:
    return address == "localhost" or (is_address(address) and ip_address(address).is_loopback)


def reached(document: Document) -> DeclaredNetwork:
    """Return the network outside a lab, with what ``ssh`` knows of the hosts that it reaches.

    It is asked with ``-G``, which connects to nothing. Raises MissingError if there is no ``ssh``.
    """
    outside = document.model.outside
    if not any(isinstance(host.reach, SshTarget) for host in outside.remote.values()):
        return outside
    if shutil.which("ssh") is None:
        raise SSH
    if document.model.lab is not None:  # whose hosts are known by its topology
        return outside
    hosts = {
        name: host if host.address else replace(host, address=_address(document, name, host.reach))
        for name, host in outside.remote.items()
        if isinstance(host.reach, SshTarget)
    }
    return replace(outside, hosts={**outside.hosts, **hosts})


def _address(document: Document, name: str, reach: SshTarget) -> str:
    """Return the host that ``ssh`` connects to by its configuration."""
    argv = ("ssh", "-G", "--", reach.destination)
    try:
        done = subprocess.run(
            argv, stdin=subprocess.DEVNULL, capture_output=True, timeout=_CONFIG_S, check=False
        )
    except subprocess.TimeoutExpired:
        raise _wrong(document, name, "ssh -G did not end") from None
    if done.returncode:
        said = done.stderr.decode(errors="replace").strip().splitlines() or ["ssh -G failed"]
        if any(line.startswith("usage: ") for line in said):
            what = f"ssh does not take {quoted(reach.destination)}"
            raise document.error(("hosts", name, "ssh"), what, "is its port one from 1 to 65535?")
        raise _wrong(document, name, said[-1])
    for line in done.stdout.decode(errors="replace").splitlines():
        if line.startswith("hostname "):
            return line.removeprefix("hostname ")
    return host_in(reach.destination)


def _wrong(document: Document, name: str, what: str) -> ProfileError:
    return document.error(("hosts", name, "ssh"), what, "set the address of the host, too")
