"""The network of this machine as flows need it: devices, addresses and free ports."""

from __future__ import annotations

import asyncio
import itertools
import socket
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from contextlib import suppress
from ipaddress import ip_address
from typing import Any

from msgspec.structs import replace

from benchctl.errors import HostError, MissingError
from benchctl.hosts import ports
from benchctl.hosts.spawn import Spawner
from benchctl.plan.bound import BoundFlow
from benchctl.run.planned import Host, Network, Reach

# Another program may take a port between this look and the start of the server, which then moves to
# the next one at once.
_OFFERED = 3


def check_interfaces(network: Network) -> None:
    """Raise MissingError if the profile names a device that this machine does not have."""
    there = [name for _, name in socket.if_nameindex()]
    for name, way in network.interfaces.items():
        if way.device is not None and way.device not in there:
            raise MissingError(
                f'interface "{name}": this machine has no device "{way.device}"',
                f"available: {', '.join(there)}; choose one with --set "
                f"interfaces.{name}.device=NAME",
            )


async def with_addresses(
    network: Network, hosts: Iterable[Host], spawner: Spawner, note: Callable[[str], None]
) -> Network:
    """Return a network whose hosts elsewhere have addresses for names. Raises HostError.

    Also whether those are their own; ``note`` takes which are not.
    """
    found = {}
    for named in hosts:
        host = await with_address(named)
        others = [one for one in (host.address, host.address6) if one]
        others = [one for one in others if not await spawner.ask(host, ports, "is_own", one)]
        if others and host.reachable:
            note(
                f"host {host.name} does not have the address {' and '.join(others)} itself, so its "
                "servers listen at all that it has; if no NAT leads there, correct its address"
            )
        found[host.name] = replace(host, translated=frozenset(others))
    for one, other in same_machines(found.values()):
        note(
            f"hosts {one.name} and {other.name} are one machine, {one.address}: what flows between "
            "them crosses no network"
        )
    return replace(network, hosts={**network.hosts, **found})


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
    """Return a host elsewhere with the addresses that its name has here.

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


FreePorts = dict[tuple[Reach | None, tuple[Any, ...]], list[int]]
"""What hosts elsewhere answered: to ask again for each trial would take a round trip."""


async def ports_of(
    flow: BoundFlow,
    network: Network,
    taken: Collection[int],
    spawner: Spawner,
    known: FreePorts,
) -> Sequence[int | None]:
    """Return the ports to try, in order: a peer's range, or the first free ones of our host.

    A tool whose server benchctl does not start uses the tool's default port. ``taken`` are ports of
    other flows of the trial, ``known`` those that hosts elsewhere have offered. Raises MissingError
    if no port is available.
    """
    default = flow.backend.capabilities.default_port
    if default is None:
        return [None]
    host = network.target(flow.plan.to)
    if host is None:
        low, high = network.peers[flow.plan.to].ports or (default, default)
        return list(range(low, high + 1))
    if not flow.backend.capabilities.needs_server:
        return [default]
    if not host.shares_ports:
        used = {*taken, *host.taken_ports}
        return [next(port for port in itertools.count(default) if port not in used)]
    address = flow.listens_at(host)
    first, last = host.ports or (default, None)
    count = _OFFERED + len(taken)
    question = address, first, count, last
    free = known.get((host.reach, question)) if host.reach else None
    if free is None:
        free = await spawner.ask(host, ports, "first_free", *question)
        known[host.reach, question] = free
    if not (offered := [port for port in free if port not in taken][:_OFFERED]):
        hint = "a host must have an address of this machine; declare other machines under [servers]"
        if host.reach is not None:
            hint = f"{address} must be an address of its own: set hosts.{flow.plan.to}.address"
        raise MissingError(
            f"flow {flow.plan.name}: no free port at {address}, host {flow.plan.to}", hint
        )
    return offered
