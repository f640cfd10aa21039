"""A run continues with the trials that its strategy adds, and stops and resumes among them."""

import asyncio
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
from benchctl.store.follow import Follower, RunEnded, TrialEnded
from benchctl.store.read import Reader
from benchctl.store.record import create_run, reopen_run

FLOW = PlannedFlow(
    "main", "simpleperf", "local", "local", None, Direction.SEND, 0.0,
    {"bytes": "1MB"},
)  # fmt: skip
TRIAL = PlannedTrial(0, 1, {"streams": 1}, (FLOW,), {}, 0.2, COMMAND_S)


@pytest.fixture
def store(tmp_path):
    """A store with one planned run of one trial."""
    path = tmp_path / "runs.sqlite"
    settings = Settings({"streams": (1,)}, "", ())
    create_run(path, PlannedRun("p", "", 1, settings, [TRIAL], ""), EPOCH)
    return path


class Doubling:
    """Doubles the streams until there are four, as long as data moves."""

    def __init__(self):
        self.taken = []

    def take(self, ended):
        assert ended.flows[0].figures["send", "throughput_bps"].value > 0
        self.taken.append(ended.trial.position)

    def next(self):
        streams = 2 ** len(self.taken)
        if streams > 4:
            return None
        flow = replace(FLOW, parameters={**FLOW.parameters, "streams": streams})
        return replace(TRIAL, point={"streams": streams}, flows=(flow,))


def measure(store, **options):
    return asyncio.run(Runner(store, 1, installed(), RunnerParts(**options)).run())


def points(store):
    with closing(Reader(store)) as reader:
        trials = list(reader.trials(1))
        assert reader.run(1).trials == len(trials)
        return [(trial.position, trial.point["streams"], trial.status) for trial in trials]


def test_a_strategy_adds_trials_by_what_the_last_ones_showed(store):
    strategy = Doubling()
    assert measure(store, strategy=strategy) is Status.OK
    assert points(store) == [(n, 2**n, Status.OK) for n in range(3)]
    assert strategy.taken == [0, 1, 2]
    with closing(Reader(store)) as reader:
        events = list(Follower(reader, 1, samples=False).poll())
    assert sum(isinstance(event, TrialEnded) for event in events) == 3
    assert isinstance(events[-1], RunEnded)


def test_a_run_that_is_stopped_and_resumed_goes_on_with_its_strategy(store):
    class Stopping(Doubling):
        def next(self):
            runner.signals.stop.set()
            return super().next()

    runner = Runner(store, 1, installed(), RunnerParts(strategy=Stopping()))
    assert asyncio.run(runner.run()) is Status.INTERRUPTED
    assert points(store) == [(0, 1, Status.OK), (1, 2, Status.PLANNED)]
    reopen_run(store, 1)
    assert measure(store, strategy=Doubling()) is Status.OK
    assert points(store) == [(n, 2**n, Status.OK) for n in range(3)]
