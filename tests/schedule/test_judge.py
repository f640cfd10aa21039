"""What is new after a scheduled run is told once, with all that it is about."""

import random
from contextlib import closing

import pytest
from msgspec.structs import replace
from store.store_support import NOW, measured_run

from benchctl.analysis.runs.outcomes import Answer, Outcome
from benchctl.report.report import read_report
from benchctl.run.planned import Severity
from benchctl.schedule.book import What
from benchctl.schedule.judge import news_of_failures, read_news
from benchctl.store.read import Reader

HOURS_S = 6 * 3600


class Scheduled:
    """Runs of a schedule in a store, judged one after the other."""

    def __init__(self, store):
        self.store, self.rng = store, random.Random(35)
        self.told, self.count = [], 0

    def measure(self, *levels):
        """Measure pairs at these levels, None for one that fails; returns what is new."""
        now = NOW + self.count * HOURS_S
        self.count += 1
        repeats = {
            n: [level and self.rng.gauss(level, level * 0.02) for _ in range(2)]
            for n, level in enumerate(levels)
        }
        measured_run(self.store, repeats, now=now)
        with closing(Reader(self.store)) as reader:
            runs = sorted(reader.runs(), key=lambda run: run.created_time)
            news = read_news(reader, runs, self.told)
        self.told += [replace(one, time=now) for one in news]
        return news


@pytest.fixture
def scheduled(tmp_path):
    return Scheduled(tmp_path / "runs.sqlite")


def test_a_change_is_told_once_with_all_its_figures_and_its_end_too(scheduled):
    for _ in range(24):
        assert scheduled.measure(100e6, 100e6, 50e6) == []
    news = [one for _ in range(16) for one in scheduled.measure(80e6, 80e6, 50e6)]
    (change,) = news
    assert change.what is What.CHANGE
    assert [figure["point"] for figure in change.figures] == [{"n": "0"}, {"n": "1"}]
    assert {figure["verdict"] for figure in change.figures} == {"worse"}
    assert all(figure["relative"] == pytest.approx(-0.2, abs=0.03) for figure in change.figures)
    assert change.text.startswith("throughput of main at n=0 worse: 99.4 Mbit/s -> 79.9 Mbit/s")
    (back,) = [one for _ in range(6) for one in scheduled.measure(100e6, 100e6, 50e6)]
    assert {figure["verdict"] for figure in back.figures} == {"better"}


def test_an_expectation_that_is_not_met_is_told_of_like_a_failure(scheduled):
    scheduled.measure(1e6)
    with closing(Reader(scheduled.store)) as reader:
        report = read_report(reader, reader.find("last"))
    unmet = [Outcome("rtt_s <= 1ms", False, Answer.NOT_MET, why="rtt_s is 2.03 ms")]
    (failing,) = news_of_failures(replace(report, outcomes=unmet), [])
    assert (failing.what, failing.reasons) == (What.FAILING, ("not met: rtt_s <= 1ms",))
    assert not [*news_of_failures(replace(report, outcomes=unmet), [failing])]
    warned = [replace(unmet[0], severity=Severity.WARNING)]
    assert [one.what for one in news_of_failures(replace(report, outcomes=warned), [failing])] == [
        What.RECOVERED
    ]


def test_what_fails_is_told_when_it_begins_and_when_it_ends(scheduled):
    news = [
        [one.what for one in scheduled.measure(*levels)]
        for levels in ((1e6, 1e6), (1e6, None), (1e6, None), (1e6, 1e6), (1e6, 1e6))
    ]
    assert news == [[], [What.FAILING], [], [What.RECOVERED], []]
    assert scheduled.told[0].text == "failed (2 trials)"
