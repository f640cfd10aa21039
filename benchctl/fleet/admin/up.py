"""A fleet for a trial on one machine: server and coordinator as children, which end with it."""

from __future__ import annotations

import asyncio
import signal
import sys
from collections.abc import Callable
from contextlib import suppress
from typing import Final

from benchctl.errors import FleetError
from benchctl.fleet.admin.directory import FleetDirectory
from benchctl.fleet.admin.server import ENDS_WITH_US, TrialServer

_AGAIN_S: Final = 1.0


async def up(directory: FleetDirectory, say: Callable[[str], None]) -> None:
    """Run a fleet until SIGINT or SIGTERM; whatever of it dies is started again.

    Raises FleetError or MissingError if the server does not start.
    """
    ended = asyncio.Event()
    loop = asyncio.get_running_loop()
    for number in (signal.SIGINT, signal.SIGTERM):
        loop.add_signal_handler(number, ended.set)
    async with TrialServer(directory) as server:
        fleet = directory.members()
        say(f"The fleet {fleet.fleet} runs at {fleet.address}; Ctrl-C ends it.")
        keeping = [
            asyncio.create_task(_keep_server(server, say)),
            asyncio.create_task(_keep_coordinator(directory, say)),
        ]
        ending = asyncio.create_task(ended.wait())
        try:
            await asyncio.wait([ending, *keeping], return_when=asyncio.FIRST_COMPLETED)
        finally:
            for task in (*keeping, ending):
                task.cancel()
            results = await asyncio.gather(*keeping, return_exceptions=True)
        for result in results:
            if isinstance(result, Exception):
                raise result


async def _keep_server(server: TrialServer, say: Callable[[str], None]) -> None:
    while True:
        assert server.process is not None
        await server.process.wait()
        say("The server has died, and is started again.")
        while True:
            await asyncio.sleep(_AGAIN_S)
            try:
                await server.__aenter__()
                break
            except FleetError as error:  # a machine that is busy
                say(f"The server did not start: {error.message}; trying again.")


async def _keep_coordinator(directory: FleetDirectory, say: Callable[[str], None]) -> None:
    while True:
        process = await asyncio.create_subprocess_exec(
            *ENDS_WITH_US, sys.executable, "-P", "-m", "benchctl", "fleet", "coordinator",
            str(directory.path), stdin=asyncio.subprocess.DEVNULL, start_new_session=True,
        )  # fmt: skip
        try:
            code = await process.wait()
        finally:
            if process.returncode is None:
                process.terminate()
                with suppress(TimeoutError):
                    await asyncio.wait_for(process.wait(), 10)
                if process.returncode is None:
                    process.kill()
                    await process.wait()
        say(f"The coordinator has ended (exit code {code}), and is started again.")
        await asyncio.sleep(_AGAIN_S)
