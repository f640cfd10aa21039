"""The coordinator's program: ``benchctl fleet coordinator DIR``."""

from __future__ import annotations

import asyncio
import logging
import os
import signal
import sys
import time
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path

from benchctl.errors import BenchctlError
from benchctl.fleet.admin.directory import FleetDirectory
from benchctl.fleet.admin.joining import serve_members
from benchctl.fleet.carrier.opening import open_carrier
from benchctl.fleet.coordinator.coordinator import Coordinator, FleetMembers
from benchctl.fleet.coordinator.lease import LostLeaseError
from benchctl.fleet.messages import COORDINATOR
from benchctl.fleet.trust.signing import KnownKey

STORE = "benchctl.sqlite"
_LOOK_S, _CONNECT_S = 0.5, 10.0


def main(path: Path, *, wait: bool = True) -> int:
    """Serve the fleet of a directory until SIGTERM or SIGINT; returns the exit code.

    It ends as if it were killed, after what was said: its runs go on, and the next coordinator goes
    on with them. So it does when that has taken over already.
    """
    logging.basicConfig(level=logging.INFO, format="%(message)s", stream=sys.stderr)
    code = 0
    try:
        asyncio.run(_serve(FleetDirectory(path), wait=wait))
    except BenchctlError as error:
        print("; ".join(filter(None, [error.message, error.hint])), file=sys.stderr)
        code = error.exit_code
    return code


async def _serve(directory: FleetDirectory, *, wait: bool) -> None:
    known = _Members(directory)
    members = FleetMembers(
        directory.members().fleet,
        directory.coordinator_key(),
        known.find,
        lambda person: directory.members().people.get(person),
        lambda: sorted(directory.members().hosts),
        directory.keys,
    )
    ended = asyncio.Event()
    for number in (signal.SIGINT, signal.SIGTERM):
        asyncio.get_running_loop().add_signal_handler(number, ended.set)
    async with open_carrier(directory.server(), members.key, COORDINATOR) as carrier:
        with suppress(ConnectionError):  # then it says so, and tries on
            await carrier.wait_connected(_CONNECT_S)
        coordinator = Coordinator(carrier, members, directory.path / STORE, on_lost=_end_at_once)
        serving = asyncio.create_task(coordinator.serve(wait=wait, say=_say))
        admitting_ = asyncio.create_task(serve_members(carrier, directory))
        ending = asyncio.create_task(ended.wait())
        try:
            await asyncio.wait([serving, ending], return_when=asyncio.FIRST_COMPLETED)
            if serving.done():
                serving.result()
            await coordinator.leave()
            _exit(0)
        except* BenchctlError as errors:
            raise _first(errors) from None
        finally:
            for task in (serving, admitting_, ending):
                task.cancel()


class _Members:
    """The keys of a directory's members, looked up anew now and then.

    A thousand are asked for in a second. A member that is new is known at once, and one that is
    withdrawn is to be out soon.
    """

    def __init__(self, directory: FleetDirectory) -> None:
        self._directory = directory
        self._keys: Mapping[str, KnownKey] = {}
        self._until_s = 0.0

    def find(self, key: str) -> KnownKey | None:
        """Return the key that an envelope names."""
        if (now_s := time.monotonic()) > self._until_s or key not in self._keys:
            self._keys, self._until_s = self._directory.known_keys(), now_s + _LOOK_S
        return self._keys.get(key)


def _first(errors: BaseExceptionGroup[BenchctlError]) -> BenchctlError:
    first = errors.exceptions[0]
    return _first(first) if isinstance(first, BaseExceptionGroup) else first


def _end_at_once(error: LostLeaseError) -> None:
    """End before any run notices: all that it wrote now would be in the way of its new owner."""
    _say(error.message)
    _exit(error.exit_code)


def _exit(code: int) -> None:
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(code)


def _say(text: str) -> None:
    print(text, file=sys.stderr, flush=True)
