"""``benchctl agent run``: the agent of this host, from its directory; systemd starts it again."""

from __future__ import annotations

import asyncio
import fcntl
import os
import signal
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from benchctl.errors import FleetError
from benchctl.fleet.admin.joining import HOST_FILE
from benchctl.fleet.carrier.opening import open_carrier
from benchctl.fleet.learned_keys import LearnedKeys
from benchctl.fleet.limits import read_limits
from benchctl.fleet.resident.addresses import address_towards
from benchctl.fleet.resident.agent import HostAgent, Identity
from benchctl.fleet.spool import Spool
from benchctl.fleet.trust.membership import next_start, read_membership
from benchctl.hosts.sent.hostlock import NAME
from benchctl.hosts.tasks import cancel

LIMITS_FILE = "agent.toml"


def main(folder: Path, *, lock: str = NAME) -> None:
    """Serve the fleet until SIGTERM or SIGINT. Raises FleetError, ProfileError for `agent.toml`."""
    with _alone(folder):
        asyncio.run(_serve(folder, lock))


@contextmanager
def _alone(folder: Path) -> Iterator[None]:
    """Hold the directory, whose spool and number of starts are one process's."""
    try:
        file = os.open(folder / "lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    except OSError as error:
        hint = "benchctl agent join makes it"
        raise FleetError(f"{folder}: {error.strerror}", hint) from None
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        raise FleetError(f"{folder}: another agent runs there") from None
    try:
        yield
    finally:
        os.close(file)


async def _serve(folder: Path, lock: str) -> None:
    member = read_membership(folder / HOST_FILE)
    keys = LearnedKeys(folder / HOST_FILE, member)
    limits = read_limits(folder / LIMITS_FILE)
    addresses = limits.addresses or address_towards(member.server.address)
    identity = Identity(
        member.fleet, member.name, member.key, keys.find, next_start(folder), addresses,
        keys.learn,
    )  # fmt: skip
    try:
        spool = Spool(folder / "spool")
    except OSError as error:
        raise FleetError(f"{folder / 'spool'}: {error.strerror}") from None
    ended = asyncio.Event()
    for number in (signal.SIGINT, signal.SIGTERM):
        asyncio.get_running_loop().add_signal_handler(number, ended.set)
    async with open_carrier(member.server, member.key, member.name) as carrier:
        agent = HostAgent(identity, carrier, spool, limits, folder, lock=lock)
        running = asyncio.ensure_future(agent.run())
        waiting = asyncio.ensure_future(ended.wait())
        print(f"{member.name} is a host of the fleet {member.fleet}", file=sys.stderr, flush=True)
        try:
            await asyncio.wait([running, waiting], return_when=asyncio.FIRST_COMPLETED)
            if running.done():
                running.result()
        finally:
            await cancel(running, waiting)
            spool.close()
