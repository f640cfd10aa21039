"""The network of this machine as flows need it: devices, addresses and free ports."""

from __future__ import annotations

import asyncio
import errno
import itertools
import socket
import subprocess
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from ipaddress import ip_address
from pathlib import Path
from typing import Any

from msgspec.structs import replace

from benchctl.api import Capabilities
from benchctl.errors import HostError, MissingError
from benchctl.hosts.local.spawn import Spawner
from benchctl.hosts.sent import ports
from benchctl.plan.bound import BoundFlow
from benchctl.run.planned import Host, Network, Reach

# Another program may take a port between this look and the start of the server, which then moves to
# the next one at once.
_OFFERED = 3
# A SYN that was lost is sent again after 1 s.
LISTENS_S = 3.0
# For a round trip on loopback.
_PING_S = 2.0


def check_interfaces(network: Network) -> None:
    """Raise MissingError if the profile names a device that this machine does not have."""
    there = [name for _, name in socket.if_nameindex()]
    for name, interface in network.interfaces.items():
        if interface.device is not None and interface.device not in there:
            raise MissingError(
                f'interface "{name}": this machine has no device "{interface.device}"',
                f"available: {', '.join(there)}; choose one with --set "
                f"interfaces.{name}.device=NAME",
            )


def check_congestion_control(name: str) -> None:
    """Raise ValueError if the kernel of this machine does not have a congestion control.

    A kernel that may load it has it (tcp_set_congestion_control in net/ipv4/tcp_cong.c). Whether
    this user may choose it is seen when a flow does.
    """
    option = getattr(socket, "TCP_CONGESTION", None)
    if option is None:
        return
    with socket.socket(socket.AF_INET, socket.SOCK_STREAM) as probe:
        try:
            probe.setsockopt(socket.IPPROTO_TCP, option, name.encode())
        except OSError as error:
            if error.errno == errno.ENOENT:
                there = Path("/proc/sys/net/ipv4/tcp_available_congestion_control")
                known = f"; it has {', '.join(there.read_text().split())}" if there.exists() else ""
                raise ValueError(f"congestion_control: this kernel has no {name}{known}") from None


async def with_own_address(host: Host, spawner: Spawner, note: Callable[[str], None]) -> Host:
    """Return a remote host with addresses for names, and which of them are not its own.

    ``note`` takes a word on those. Raises HostError.
    """
    host = await with_address(host)
    others = [address for address in (host.address, host.address6) if address]
    others = [other for other in others if not await spawner.ask(host, ports, "is_own", other)]
    if others and host.reachable:
        note(
            f"host {host.name} does not have the address {' and '.join(others)} itself, so its "
            "servers listen at all that it has; if no NAT leads there, correct its address"
        )
    return replace(host, translated=frozenset(others))


def note_same_machines(hosts: Iterable[Host], note: Callable[[str], None]) -> None:
    """Say which hosts are one machine."""
    for host, other in same_machines(hosts):
        note(
            f"hosts {host.name} and {other.name} are one machine, {host.address}: "
            "what flows between them crosses no network"
        )


def same_machines(hosts: Iterable[Host]) -> Iterator[tuple[Host, Host]]:
    """Yield pairs of hosts that have the same address, each as its own."""
    known: dict[str, Host] = {}
    for host in hosts:
        if host.address in host.translated or ip_address(host.address).is_loopback:
            continue
        first = known.setdefault(host.address, host)
        if first is not host:
            yield first, host


async def with_address(host: Host) -> Host:
    """Return a remote host with the addresses that its name has here.

    The host's own name is often one of its loopback addresses there, where a server would listen in
    vain. Raises HostError for a name that is not known.
    """
    with suppress(ValueError):
        ip_address(host.address)
        return host
    loop = asyncio.get_running_loop()
    try:
        found = await loop.getaddrinfo(host.address, None, type=socket.SOCK_STREAM)
    except (OSError, UnicodeError) as error:
        why = getattr(error, "strerror", None) or str(error)
        raise HostError(
            f'host {host.name}: no address of "{host.address}" is known here: {why}',
            "set its address to the one at which the others reach it",
        ) from None
    of_version = {family: str(place[0]) for family, _, _, _, place in reversed(found)}
    address6 = host.address6 or of_version.get(socket.AF_INET6, "")
    return replace(host, address=of_version.get(socket.AF_INET, address6), address6=address6)


def check_name(name: str) -> None:
    """Raise MissingError if a name or address of a host is not known here."""
    try:
        socket.getaddrinfo(name, None, type=socket.SOCK_DGRAM)
    except (OSError, UnicodeError) as error:
        why = getattr(error, "strerror", None) or str(error)
        raise MissingError(
            f"the name {name} is not known here: {why}", "check the name and DNS, or use an address"
        ) from None


def listening(address: str, ports: Sequence[int]) -> dict[int, str]:
    """Return which TCP ports of a host accept a connection: with an empty text, else with why not.

    All are tried at the same time, each address of the host for `LISTENS_S` at most.
    """

    def look(port: int) -> str:
        try:
            with socket.create_connection((address, port), LISTENS_S):
                return ""
        except TimeoutError:
            return f"silent for {LISTENS_S:g} s"
        except OSError as error:
            return (error.strerror or str(error)).lower()

    with ThreadPoolExecutor(len(ports)) as pool:
        return dict(zip(ports, pool.map(look, ports), strict=True))


def may_ping() -> bool:
    """Return whether this user may send pings: the system's ping, or else any program."""
    with suppress(OSError, subprocess.TimeoutExpired):
        argv = ["ping", "-c", "1", "127.0.0.1"]
        if not subprocess.run(argv, capture_output=True, timeout=_PING_S, check=False).returncode:
            return True
    with suppress(OSError):
        socket.socket(socket.AF_INET, socket.SOCK_DGRAM, socket.IPPROTO_ICMP).close()
        return True
    return False


def unanswered(address: str, said: str) -> str:
    """Return at which layer a host does not answer: its route, its port, or all.

    ``said`` is what a tool said of it. A datagram socket that connects looks for a route, and sends
    nothing.
    """
    try:
        found = socket.getaddrinfo(address, None, type=socket.SOCK_DGRAM)
    except OSError as error:
        return f"the name {address} is not known here: {error.strerror}"
    for family, kind, protocol, _, place in found:
        with socket.socket(family, kind, protocol) as probe:
            try:
                probe.connect((place[0], 9, *place[2:]))
            except OSError as error:
                return f"there is no route to {place[0]} from here: {error.strerror}"
    if "refused" in said.lower():
        return f"{address} refuses the connection: no server listens at that port"
    return f"{address} is silent: it is off, or a firewall drops what is sent to it"


ServerPorts = tuple[int | None, int | None]
"""The port of a flow, and the second one of a server that listens on two."""
FreePorts = dict[tuple[Reach | None, tuple[Any, ...]], list[int]]
"""What remote hosts answered: to ask again for each trial would take a round trip."""


async def ports_of(
    flow: BoundFlow,
    network: Network,
    taken: Collection[int],
    spawner: Spawner,
    known: FreePorts,
) -> Sequence[ServerPorts]:
    """Return the ports to try, in order: a peer's range, or the first free ones of our host.

    A tool whose server benchctl does not start uses the tool's default port. Where no free port is
    looked for, a second one is the next. ``taken`` are ports of other flows of the trial, ``known``
    those that remote hosts have offered. Raises MissingError if no port is available.
    """
    can = flow.backend.capabilities
    default = can.default_port
    if default is None:
        return [(None, None)]
    host = network.target(flow.plan.to)
    if host is None:
        low, high = network.peers[flow.plan.to].ports or (default, default)
        return [(port, can.port_beside(port)) for port in range(low, high + 1)]
    if not can.needs_server:
        return [(default, can.port_beside(default))]
    if not host.shares_ports:
        used = {*taken, *host.taken_ports}
        return _paired((port for port in itertools.count(default) if port not in used), can, 1)
    address = flow.listens_at(host)
    first, last = host.ports or (default, None)
    count = _OFFERED * (1 + can.second_port) + len(taken)
    question = address, first, count, last
    free = known.get((host.reach, question)) if host.reach else None
    if free is None:
        free = await spawner.ask(host, ports, "first_free", *question)
        known[host.reach, question] = free
    if not (offered := _paired((port for port in free if port not in taken), can, _OFFERED)):
        hint = "a host must have an address of this machine; declare other machines under [servers]"
        if host.reach is not None:
            hint = f"{address} must be an address of its own: set hosts.{flow.plan.to}.address"
        lacking = "no two free ports at" if can.second_port else "no free port at"
        raise MissingError(f"flow {flow.plan.name}: {lacking} {address}, host {flow.plan.to}", hint)
    return offered


def _paired(free: Iterator[int], can: Capabilities, count: int) -> Sequence[ServerPorts]:
    """Return the ports of some tries; no two tries share one, as either may be busy."""
    others = free if can.second_port else itertools.repeat(None)
    pairs = zip(free, others, strict=False)
    return [*itertools.islice(pairs, count)]
