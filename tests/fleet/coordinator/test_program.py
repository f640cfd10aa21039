"""The coordinator's program over a real server: a second one waits, and takes over for good."""

import asyncio
import os
import signal
import sys

from fleet.fleet_support import Fleet, need_server

from benchctl.errors import FleetError
from benchctl.fleet.person import opened
from benchctl.fleet.person_messages import ListQueue, Queue

SOON_S = 60


async def coordinator(directory):
    """Start the program; returns it when it has said its first line."""
    process = await asyncio.create_subprocess_exec(
        sys.executable, "-P", "-m", "benchctl", "fleet", "coordinator", str(directory.path),
        stdin=asyncio.subprocess.DEVNULL, stderr=asyncio.subprocess.PIPE,
    )  # fmt: skip
    return process, (await asyncio.wait_for(process.stderr.readline(), SOON_S)).decode().strip()


async def answers(file):
    async with asyncio.timeout(SOON_S), opened(file, SOON_S) as (link, _):
        while True:
            try:
                return await link.ask(ListQueue(), Queue, 2)
            except FleetError:
                await asyncio.sleep(0.2)


def test_a_second_coordinator_takes_over_from_one_that_stands_still_and_then_ends(tmp_path):
    need_server()

    async def main():
        fleet = Fleet(tmp_path)
        fleet.directory.invite_person("carol", "view", tmp_path / "carol.fleet")
        async with fleet.server():
            first, said = await coordinator(fleet.directory)
            assert said == "ready"
            second, said = await coordinator(fleet.directory)
            assert said.startswith("another coordinator of this fleet runs; this one takes over")
            assert (await answers(tmp_path / "carol.fleet")).runs == ()
            os.kill(first.pid, signal.SIGSTOP)
            said = await asyncio.wait_for(second.stderr.readline(), SOON_S)
            assert said.decode().strip() == "ready"
            assert (await answers(tmp_path / "carol.fleet")).runs == ()
            os.kill(first.pid, signal.SIGCONT)
            _, said = await asyncio.wait_for(first.communicate(), SOON_S)
            assert said.decode().endswith("another coordinator has taken over this fleet\n")
            assert first.returncode == 4
            second.terminate()
            assert await asyncio.wait_for(second.wait(), SOON_S) == 0

    asyncio.run(main())
