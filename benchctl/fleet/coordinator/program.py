"""The coordinator's program: ``benchctl fleet coordinator DIR``."""

from __future__ import annotations

import asyncio
import logging
import os
import signal
import sys
from pathlib import Path

from benchctl.errors import BenchctlError
from benchctl.fleet.admin.directory import FleetDirectory
from benchctl.fleet.admin.joining import serve_members
from benchctl.fleet.carrier.opening import open_carrier
from benchctl.fleet.coordinator.coordinator import Coordinator, FleetMembers
from benchctl.fleet.messages import COORDINATOR

STORE = "benchctl.sqlite"


def main(path: Path, *, wait: bool = True) -> int:
    """Serve the fleet of a directory until SIGTERM or SIGINT; returns the exit code.

    It ends as if it were killed, after what was said: its runs go on, and the next coordinator goes
    on with them.
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
    members = FleetMembers(
        directory.members().fleet,
        directory.coordinator_key(),
        directory.find,
        lambda person: directory.members().people.get(person),
        lambda: sorted(directory.members().hosts),
        directory.keys,
    )
    ended = asyncio.Event()
    for number in (signal.SIGINT, signal.SIGTERM):
        asyncio.get_running_loop().add_signal_handler(number, ended.set)
    async with open_carrier(directory.server(), members.key, COORDINATOR) as carrier:
        coordinator = Coordinator(carrier, members, directory.path / STORE)
        serving = asyncio.create_task(coordinator.serve(wait=wait, say=_say))
        admitting_ = asyncio.create_task(serve_members(carrier, directory))
        ending = asyncio.create_task(ended.wait())
        try:
            await asyncio.wait([serving, ending], return_when=asyncio.FIRST_COMPLETED)
            if serving.done():
                serving.result()
            await coordinator.leave()
            sys.stdout.flush()
            sys.stderr.flush()
            os._exit(0)
        except* BenchctlError as errors:
            raise _first(errors) from None
        finally:
            for task in (serving, admitting_, ending):
                task.cancel()


def _first(errors: BaseExceptionGroup[BenchctlError]) -> BenchctlError:
    first = errors.exceptions[0]
    return _first(first) if isinstance(first, BaseExceptionGroup) else first


def _say(text: str) -> None:
    print(text, file=sys.stderr, flush=True)
