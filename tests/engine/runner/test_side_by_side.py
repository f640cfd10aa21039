"""Trials at the same time on this machine: ports, what ran beside, readers, strategies, errors."""

import asyncio
from contextlib import closing

import pytest
from engine.fakes import EPOCH
from msgspec.structs import replace
from waiting import COMMAND_S

from benchctl.backends import installed
from benchctl.engine.prepare.planning import planned as planned_profile
from benchctl.engine.prepare.stored_plan import record_plan
from benchctl.engine.runner.launch import launch
from benchctl.engine.runner.runner import Runner, RunnerParts
from benchctl.errors import MissingError
from benchctl.metrics import Direction
from benchctl.run.planned import (
    Hook,
    Parallel,
    PlannedFlow,
    PlannedRun,
    PlannedTrial,
    Settings,
    When,
)
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
    return asyncio.run(Runner(store, 1, installed(), RunnerParts(**options)).run())


def trials_of(store):
    with closing(Reader(store)) as reader:
        trials = list(reader.trials(1))
        return trials, {one.position: reader.flows(one.id)[0] for one in trials}


def overlap(one, other):
    return one.started_time < other.finished_time and other.started_time < one.finished_time


@pytest.fixture(scope="module")
def seen(tmp_path_factory):
    """Measure two trials at once at a host; returns the store, and what a reader saw meanwhile."""
    store = tmp_path_factory.mktemp("two") / "runs.sqlite"
    planned(store)
    events = []
    # The runner's lock is lost if its own process looks at it.
    with closing(launch(store, 1)) as runner, closing(Reader(store)) as reader:
        follower = Follower(reader, 1)
        while not follower.ended:
            runner.ended(0.02)
            events.extend(follower.poll())
    return store, events


def test_two_trials_at_a_host_have_ports_of_their_own_and_know_each_other(seen):
    trials, flows = trials_of(seen[0])
    assert [one.status for one in trials] == [Status.OK] * COUNT
    pairs = [(a, b) for a in trials for b in trials if a is not b and overlap(a, b)]
    assert pairs
    for one, other in pairs:
        assert flows[one.position].port != flows[other.position].port
        assert other.position in one.beside
    assert max(len(one.beside) for one in trials) <= 3  # it may meet one before and one after


def test_a_reader_sees_each_trial_whole_while_others_run(seen):
    store, events = seen
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


def test_of_one_trial_at_a_host_its_commands_run_around_its_own_trials_and_around_the_run(tmp_path):
    store, file = tmp_path / "runs.sqlite", tmp_path / "said"
    hooks = tuple(Hook("local", when, f"echo {when} >> {file}") for when in When)
    planned(store, per_host=1, hooks=hooks)
    assert measure(store) is Status.OK
    said = file.read_text().split()
    assert said == ["prepare_run", *["prepare", "cleanup"] * COUNT, "cleanup_run"]
    trials, _ = trials_of(store)
    assert [len(one.hooks) for one in trials] == [2] * COUNT
    assert all(one.beside == () for one in trials)
    assert not [1 for a in trials for b in trials if a is not b and overlap(a, b)]


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


TOPOLOGY = """
[hosts]
a = {}
b = {}
c = {}
d = {}
[routers]
left = {}
right = {}
[links]
a = { between = ["a", "left"] }
b = { between = ["b", "left"] }
c = { between = ["c", "right"] }
d = { between = ["d", "right"] }
core = { between = ["left", "right"], delay = "1ms" }
"""
PROFILE = """
[lab]
topology = "lab.toml"
[flows.main]
backend = "simpleperf"
duration = "400ms"
rate = "1Mbit"
[axes]
pair = { mesh = ["a", "b", "c", "d"] }
[[exclude]]
pair = ["b:a", "d:c", "a:d", "d:a", "b:c", "c:b", "c:a", "d:b"]
[run]
parallel = "hosts"
seed = 2
"""


@pytest.mark.netns
def test_in_a_lab_trials_share_no_link_and_all_links_are_verified_before_the_first(tmp_path):
    (tmp_path / "lab.toml").write_text(TOPOLOGY)
    (tmp_path / "p.toml").write_text(PROFILE)
    store = tmp_path / "runs.sqlite"
    run_id, _ = record_plan(planned_profile(str(tmp_path / "p.toml"), (), (), None, False), store)
    assert run_id == 1
    assert measure(store) is Status.OK
    trials, flows = trials_of(store)
    assert len(trials) == 4
    met = [(a, b) for a in trials for b in trials if a is not b and overlap(a, b)]
    assert met
    for one, other in met:
        ends = [{flows[t.position].source, flows[t.position].target} for t in (one, other)]
        assert ends[0].isdisjoint(ends[1])
        # Only those on one side of the core run beside each other.
        assert not all(each & {"a", "b"} and each & {"c", "d"} for each in ends)
    assert all(one.links == () or one.links[0]["link"] == "core" for one in trials)
