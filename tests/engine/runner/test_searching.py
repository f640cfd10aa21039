"""A search runs for real, over loopback: stopped and resumed it goes on, and its store is whole."""

import asyncio
from contextlib import closing

import pytest
from engine.fakes import EPOCH

from benchctl.backends import installed
from benchctl.engine.runner.runner import Runner, RunnerParts
from benchctl.plan.plan import make_plan, planned_run
from benchctl.plan.strategy import Searching
from benchctl.profile.load import load_profile
from benchctl.report.report import read_report
from benchctl.run.status import Status
from benchctl.store.copies import salvage
from benchctl.store.read import Reader
from benchctl.store.record import create_run, reopen_run

# A single write, and far below what any machine sends: the whole range passes, in three tries.
PROFILE = """
[flows.main]
backend = "simpleperf"
bytes = "20kB"
[search]
rate = "2kbit..20kbit"
while = "throughput_bps > 1bit"
precision = "20%"
"""


@pytest.fixture
def store(tmp_path):
    profile = tmp_path / "search.toml"
    profile.write_text(PROFILE)
    registry = installed()
    document = load_profile(str(profile))
    plan = make_plan(document, registry)
    path = tmp_path / "runs.sqlite"
    create_run(path, planned_run(plan, document.model.outside, None, registry), EPOCH)
    return path


class Stopping(Searching):
    """A search that is stopped from outside when it has added its first try."""

    signals = None

    def next(self):
        self.signals.stop.set()
        return super().next()


def measure(store, strategy=None):
    runner = Runner(store, 1, installed(), RunnerParts(strategy=strategy))
    if strategy is not None:
        strategy.signals = runner.signals
    return asyncio.run(runner.run())


def found(store):
    with closing(Reader(store)) as reader:
        (one,) = read_report(reader, reader.run(1)).found
        trials = [(trial.point["rate"], trial.status) for trial in reader.trials(1)]
        assert reader.run(1).trials == len(trials)
        return one.finding, trials


def test_a_range_that_passes_is_found_in_three_tries(store):
    assert measure(store) is Status.OK
    finding, trials = found(store)
    assert (finding.outcome, finding.confirmed, finding.passing_bps) == ("at_least", True, 20e3)
    assert trials == [("6.32kbit", Status.OK), ("20kbit", Status.OK), ("20kbit", Status.OK)]


def test_a_search_that_is_stopped_and_resumed_finds_the_same_and_leaves_a_whole_store(store):
    with closing(Reader(store)) as reader:
        stopping = Stopping(reader.run(1).settings.search)
    assert measure(store, stopping) is Status.INTERRUPTED
    finding, trials = found(store)
    assert (finding.outcome, len(trials)) == ("open", 2)
    reopen_run(store, 1)
    assert measure(store) is Status.OK
    finding, trials = found(store)
    assert (finding.outcome, finding.confirmed, len(trials)) == ("at_least", True, 3)
    assert salvage.check(store).problems == []
