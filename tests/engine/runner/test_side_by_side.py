"""Trials at the same time on this machine: ports, what ran beside, readers, strategies, errors."""

import asyncio
from contextlib import closing

import pytest
from engine.fakes import EPOCH
from msgspec.structs import replace
from waiting import COMMAND_S

from benchctl.backends import installed
from benchctl.engine.runner.launch import launch
from benchctl.engine.runner.runner import Runner
from benchctl.errors import MissingError
from benchctl.metrics import Direction
from benchctl.run.planned import Parallel, PlannedFlow, PlannedRun, PlannedTrial, Settings
from benchctl.run.status import Status
from benchctl.store.follow import FlowStarted, Follower, RunEnded, TrialEnded, TrialStarted
from benchctl.store.read import Reader
from benchctl.store.record import create_run

FLOW = PlannedFlow(
    "main", "simpleperf", "local", "local", None, Direction.SEND, 0.0,
    {"duration": "400ms", "rate": "1Mbit", "interval": "100ms"},
)  # fmt: skip
COUNT = 4


def planned(store, *, per_host=2, flow=FLOW, **settings):
    """Write a run of four points, of which two run at once."""
    trials = [PlannedTrial(n, 1, {"n": n}, (flow,), {}, 0.4, COMMAND_S) for n in range(COUNT)]
    parallel = Parallel(2, per_host, at_once=2)
    settings = Settings(
        {"n": tuple(range(COUNT))}, "interleaved", (), parallel=parallel, **settings
    )
    create_run(store, PlannedRun("p", "", 1, settings, trials, ""), EPOCH)


def measure(store, **options):
    return asyncio.run(Runner(store, 1, installed(), **options).run())


def trials_of(store):
    with closing(Reader(store)) as reader:
        trials = list(reader.trials(1))
        return trials, {one.position: reader.flows(one.id)[0] for one in trials}


def overlap(one, other):
    return one.started_time < other.finished_time and other.started_time < one.finished_time


def test_two_trials_at_a_host_have_ports_of_their_own_and_know_each_other(tmp_path):
    store = tmp_path / "runs.sqlite"
    planned(store)
    assert measure(store) is Status.OK
    trials, flows = trials_of(store)
    pairs = [(a, b) for a in trials for b in trials if a is not b and overlap(a, b)]
    assert pairs
    for one, other in pairs:
        assert flows[one.position].port != flows[other.position].port
        assert other.position in one.beside
    assert max(len(one.beside) for one in trials) <= 3  # it may meet one before and one after


def test_one_trial_at_a_host_is_the_default(tmp_path):
    store = tmp_path / "runs.sqlite"
    planned(store, per_host=1)
    assert measure(store) is Status.OK
    trials, _ = trials_of(store)
    assert all(one.beside == () for one in trials)
    assert not [1 for a in trials for b in trials if a is not b and overlap(a, b)]


def test_a_reader_sees_each_trial_whole_while_others_run(tmp_path):
    store = tmp_path / "runs.sqlite"
    planned(store)
    events = []
    # The runner's lock is lost if its own process looks at it.
    with closing(launch(store, 1)) as runner, closing(Reader(store)) as reader:
        follower = Follower(reader, 1)
        while not follower.ended:
            runner.ended(0.02)
            events.extend(follower.poll())
    order = [(type(one), one.trial.position) for one in events if hasattr(one, "trial")]
    for position in range(COUNT):
        own = [kind for kind, of in order if of == position]
        assert own[:2] == [TrialStarted, FlowStarted]
        assert own[-1] is TrialEnded
        assert own.count(TrialEnded) == own.count(TrialStarted) == 1
    started = [of for kind, of in order if kind is TrialStarted]
    assert started != sorted(started) or order.index((TrialStarted, started[1])) < order.index(
        (TrialEnded, started[0])
    )
    assert isinstance(events[-1], RunEnded)
    with closing(Reader(store)) as reader:  # afterwards the same, trial after trial
        again = list(Follower(reader, 1).poll())
    key = lambda one: (type(one).__name__, str(one))  # noqa: E731
    ends = (TrialEnded, RunEnded)
    assert sorted(map(key, filter(lambda one: isinstance(one, ends), again))) == sorted(
        map(key, filter(lambda one: isinstance(one, ends), events))
    )


class Twice:
    """Adds two more trials, one after the other."""

    def __init__(self):
        self.taken = 0

    def take(self, ended):
        self.taken += 1

    def next(self):
        if self.taken >= COUNT + 2:
            return None
        return PlannedTrial(0, 2, {"n": 0}, (FLOW,), {}, 0.4, COMMAND_S)


def test_trials_that_a_strategy_adds_run_when_nothing_else_does(tmp_path):
    store = tmp_path / "runs.sqlite"
    planned(store)
    assert measure(store, strategy=Twice()) is Status.OK
    trials, _ = trials_of(store)
    assert [one.status for one in trials] == [Status.OK] * (COUNT + 2)
    assert [one.beside for one in trials[COUNT:]] == [(), ()]


def test_what_no_trial_can_do_without_ends_the_run_and_leaves_the_rest_to_resume(tmp_path):
    store = tmp_path / "runs.sqlite"
    planned(store, flow=replace(FLOW, backend="absent"))
    with pytest.raises(MissingError, match="absent"):
        measure(store)
    trials, _ = trials_of_planned(store)
    assert all(one.status is Status.PLANNED for one in trials)


def trials_of_planned(store):
    with closing(Reader(store)) as reader:
        return list(reader.trials(1)), reader.run(1)
