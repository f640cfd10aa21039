"""Several runs in one process: each is stopped, ends and is alive by itself."""

import asyncio
import fcntl
import subprocess
import sys
from contextlib import closing

import pytest
from engine.fakes import EPOCH
from msgspec.structs import replace
from waiting import COMMAND_S

from benchctl.backends import installed
from benchctl.engine.runner.runner import Runner, RunnerParts
from benchctl.metrics import Direction
from benchctl.run.planned import PlannedFlow, PlannedRun, PlannedTrial, Settings
from benchctl.run.status import Status
from benchctl.store.locks import Liveness
from benchctl.store.read import Reader
from benchctl.store.record import create_run

FLOW = PlannedFlow(
    "main", "simpleperf", "local", "local", None, Direction.SEND, 0.0, {"bytes": "1MB"}
)
TRIAL = PlannedTrial(0, 1, {"streams": 1}, (FLOW,), {}, 0.2, COMMAND_S)
ALIVE = """
import sys
from pathlib import Path
from benchctl.store.locks import Liveness
print([Liveness(Path(sys.argv[1])).is_alive(number) for number in (1, 2, 3)])
"""
pytestmark = pytest.mark.skipif(
    not hasattr(fcntl, "F_OFD_SETLK"), reason="this system has no locks of open files"
)


def alive(store):
    done = subprocess.run(
        [sys.executable, "-c", ALIVE, str(store)], capture_output=True, text=True, check=True
    )
    return done.stdout.strip()


async def hear(store, run_id, text):
    """Wait until a run says something."""
    async with asyncio.timeout(COMMAND_S):
        while True:
            with closing(Reader(store)) as reader:
                if any(text in note.text for note in reader.notes(run_id)):
                    return
            await asyncio.sleep(0.02)


def test_of_three_runs_one_ends_one_is_stopped_and_the_third_is_alive(tmp_path):
    store = tmp_path / "runs.sqlite"
    settings = Settings({"streams": (1,)}, "", ())
    for _ in range(3):
        trials = [TRIAL, replace(TRIAL, position=1, repeat=2)]
        create_run(store, PlannedRun("p", "", 1, settings, trials, ""), EPOCH)
    liveness = Liveness(store, together=True)
    parts = RunnerParts(liveness, None)
    runners = [Runner(store, number, installed(), parts=parts) for number in (1, 2, 3)]

    async def main():
        with liveness.hold(4) as turn:  # the turn is kept from them until all are there
            assert turn.take()
            runs = [asyncio.ensure_future(runner.run()) for runner in runners]
            for number in (1, 2, 3):
                await hear(store, number, "another run is being measured")
            assert alive(store) == "[True, True, True]"
            runners[1].signals.stop.set()
            assert await runs[1] is Status.INTERRUPTED
            assert alive(store) == "[True, False, True]"
            with closing(Reader(store)) as reader:
                assert reader.is_alive(reader.run(3)), "as seen from this process"
            assert alive(store) == "[True, False, True]", "to ask costs no lock"
            turn.give_back()
        done, _ = await asyncio.wait([runs[0], runs[2]], return_when=asyncio.FIRST_COMPLETED)
        ended = (runs[0], runs[2]).index(done.pop())
        if not all(run.done() for run in runs):
            assert alive(store) == ("[False, False, True]", "[True, False, False]")[ended]
        assert [await run for run in runs] == [Status.OK, Status.INTERRUPTED, Status.OK]
        assert alive(store) == "[False, False, False]"

    asyncio.run(main())
    with closing(Reader(store)) as reader:
        assert [trial.status for trial in reader.trials(2)] == [Status.PLANNED] * 2
        assert reader.run(1).runner_pid is None
