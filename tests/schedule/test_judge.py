"""What is new after a scheduled run is told once, with all that it is about."""

import random
from contextlib import closing
from types import SimpleNamespace

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace
from store.store_support import NOW, measured_run

from benchctl.analysis.runs.outcomes import Answer, Outcome
from benchctl.analysis.runs.summary import SummaryRow
from benchctl.analysis.statistics import spread
from benchctl.metrics import Vocabulary
from benchctl.report.report import read_report
from benchctl.run.planned import Severity
from benchctl.schedule.book import What, with_added
from benchctl.schedule.judge import (
    LEAST_LEVEL,
    MOST_APART,
    news_of_failures,
    news_of_levels,
    read_news,
)
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


class Path:
    """Figures of runs as one host after the other would measure them, without a store."""

    def __init__(self):
        self.runs, self.tables, self.told = [], [], []

    def measured(self, figures):
        """Add a run of figures by (point, metric)."""
        time = NOW + len(self.runs) * HOURS_S
        self.runs.append(
            SimpleNamespace(name=f"r{len(self.runs)}", started_time=time, vocabulary=Vocabulary())
        )
        self.tables.append(
            [
                SummaryRow({"pair": pair}, "main", "send", metric, [value], spread([value]))
                for (pair, metric), value in figures.items()
            ]
        )

    def judged(self, ends=None):
        news = [*news_of_levels(self.runs, self.tables, self.told, ends)]
        self.told += [replace(one, time=self.runs[-1].started_time) for one in news]
        return news


@pytest.mark.parametrize("seed", [0, 1, 4, 6, 10, 15])
def test_what_changed_together_and_is_found_one_after_the_other_is_one_change(seed):
    """UDP at a rate over a link that becomes slower: loss and rate say so before jitter does."""
    rng, path = random.Random(seed), Path()
    for run in range(36):
        figures = {}
        for pair in ("lima oslo", "lima bonn"):
            slow = pair == "lima oslo" and run >= 20
            loss = (0.2 if slow else 0.01) * rng.gauss(1, 0.1)
            figures[pair, "loss_ratio"] = loss
            figures[pair, "throughput_bps"] = 5e6 * (1 - loss) * rng.gauss(1, 0.03)
            figures[pair, "jitter_s"] = (0.8e-3 if slow else 0.4e-3) * rng.lognormvariate(0, 0.2)
        path.measured(figures)
        path.judged()
    assert [one.what for one in path.told].count(What.CHANGE) == 1
    (change,) = with_added(path.told)
    assert {figure["point"]["pair"] for figure in change.figures} == {"lima oslo"}
    metrics = [figure["metric"] for figure in change.figures]
    assert len({*metrics}) == len(metrics) >= 2
    assert all(figure["name"] in change.text for figure in change.figures)


def noisy(rng, level, changed):
    return level * rng.gauss(1.3 if changed else 1, 0.001)


def begun_at(change):
    (figure,) = change.figures
    return int(figure["since_run"].removeprefix("r"))


PAIRS = ("a b", "b a", "a c", "c d", "local c", "local d")


@given(
    st.integers(18, 26), st.integers(-4, 7),
    st.sampled_from([(PAIRS[0], one) for one in PAIRS[:4]] + [PAIRS[4:]]), st.booleans(),
)  # fmt: skip
def test_only_a_change_at_the_same_time_at_one_of_the_same_hosts_is_added(
    begun, later, pairs, named
):
    (first, second), rng, path = pairs, random.Random(begun), Path()
    ends = {("main", (("pair", both),)): (*both.split(),) for both in PAIRS}
    for run in range(34):
        path.measured({(first, "throughput_bps"): noisy(rng, 1e6, run >= begun)})
    (change,) = path.judged(ends if named else None)
    for run, table in enumerate(path.tables):
        value = noisy(rng, 0.01, run >= begun + later)
        table.append(
            SummaryRow({"pair": second}, "main", "send", "rtt_s", [value], spread([value]))
        )
    common = ({*first.split()} & {*second.split()}) - {"local"} if named else {first} & {second}
    alike = first == second or (named and len(common) == 2)
    apart = LEAST_LEVEL if alike else MOST_APART if common else -1
    for news in path.judged(ends if named else None):
        if abs(begun_at(news) - begun_at(change)) <= apart:
            assert (news.what, news.told_with) == (What.ADDED, change.run)
            assert len(with_added(path.told)) == 1
        else:
            assert (news.what, news.told_with) == (What.CHANGE, "")
            assert len(with_added(path.told)) == 2
    assert path.judged() == []


def test_figures_of_two_flows_between_the_same_hosts_are_one_change():
    rng, path = random.Random(1), Path()
    ends = {(flow, ()): ("a", "b") for flow in ("bulk", "probe")}
    for run in range(34):
        path.measured({})
        for flow, metric in (("bulk", "throughput_bps"), ("probe", "rtt_s")):
            value = [noisy(rng, 1e6, run >= 21)]
            if flow == "bulk" or run != 22:  # the probe was away once, and is late
                path.tables[-1].append(SummaryRow({}, flow, "send", metric, value, spread(value)))
        path.judged(ends)
    assert [one.what for one in path.told] in ([What.CHANGE], [What.CHANGE, What.ADDED])
    assert {figure["flow"] for one in path.told for figure in one.figures} == {"bulk", "probe"}


def test_a_level_that_is_noisier_than_the_one_before_is_one_change():
    rng, path = random.Random(2), Path()
    for run in range(60):
        loss = rng.uniform(0.1, 0.3) if run >= 20 else rng.uniform(0.005, 0.015)
        path.measured({("a b", "loss_ratio"): loss})
        path.judged()
    assert len(path.told) == 1


def test_a_change_back_is_news_even_soon_after():
    rng, path = random.Random(1), Path()
    news = []
    for run in range(34):
        path.measured({("a b", "rtt_s"): noisy(rng, 0.01, 20 <= run < 26)})
        news += path.judged()
    assert [one.what for one in news] == [What.CHANGE, What.CHANGE]


def test_disturbed_trials_in_a_row_are_no_change_where_others_are_disturbed_alike():
    """Of thousands of paths, some have four in a row."""
    rng, path = random.Random(1), Path()
    for run in range(40):
        slow = {f"a h{n}": 0.5 if (run + n) % 17 == 0 else 1.0 for n in range(20)}
        slow["a b"] = 0.5 if 20 <= run < 25 else 1.0
        slow["a c"] = 0.8 if run >= 26 else 1.0
        figures = {(pair, "throughput_bps"): 1e9 * share * rng.gauss(1, 0.03)
                   for pair, share in slow.items()}  # fmt: skip
        path.measured(figures)
        path.judged()
    (change,) = path.told
    assert [figure["point"]["pair"] for figure in change.figures] == ["a c"]
    assert int(change.run.removeprefix("r")) <= 30
