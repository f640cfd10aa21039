"""What a run is to show, on the live screen and in the summary: as it is at every moment."""

from contextlib import closing

import pytest
from tui.driving import Clock, drive, open_page, open_replay, press, shown
from tui.made_runs import BEGIN, plan_flow

from benchctl.analysis.runs.stopping import is_known_to
from benchctl.analysis.statistics import spread
from benchctl.run.condition import EventRule
from benchctl.run.planned import Expectation, PlannedRun, PlannedTrial, Settings, Until
from benchctl.run.record import Figure, FlowEvent, Happening
from benchctl.store.record import Recorder, create_run
from benchctl.tui.model.feed import RunReader
from benchctl.tui.model.results import Results

UNTIL = Until("throughput_bps", 0.02, 2, 6)
RATES = [90e6, 97e6, 96.5e6, 96e6, 96.2e6, 96.1e6]
EXPECTED = (
    Expectation("throughput_bps", at_least=94e6),
    Expectation("", events=(EventRule("drop", wanted=False),)),
)
DROP = FlowEvent("send", "throughput_bps", Happening.DROP, 4.0, None, 9e7, 1e7, 0.99)


@pytest.fixture
def repeated(store):
    """Return a store with a run of a point, repeated six times of 10 s; the fourth has a drop."""
    settings = Settings({"streams": (1,)}, "interleaved", EXPECTED, until=UNTIL)
    flow = plan_flow("main", "iperf3", "send")
    plan = [PlannedTrial(n, n + 1, {"streams": 1}, (flow,), {}, 10.0, 20.0) for n in range(6)]
    create_run(store, PlannedRun("a1", "", 1, settings, plan, ""), BEGIN)
    with closing(Recorder(store, 1)) as recorder:
        recorder.update_run(status="running", started_time=BEGIN)
        for n, rate_bps in enumerate(RATES):
            begin = BEGIN + 10 * n
            recorder.update_trial(n + 1, status="running", started_time=begin)
            flow_id = recorder.add_flow(
                n + 1, attempt=1, name="main", backend="iperf3", source="local", target="paris",
                direction="send", status="ok", client=[], server=[], requested={},
            )  # fmt: skip
            recorder.add_figures(flow_id, {("send", "throughput_bps"): Figure(rate_bps, "tool")})
            if n == 3:
                recorder.add_events(flow_id, [DROP])
            recorder.update_trial(n + 1, status="ok", finished_time=begin + 10)
        recorder.update_run(status="ok", finished_time=BEGIN + 60)
    return store


def goals(store, at_s):
    with closing(RunReader(store, 1)) as feed:
        while feed.poll(1.0):
            pass
        results = Results(feed.view, feed.report_at, lambda: feed.ends_read)
        return [(str(one.state), one.trials) for one in results.goals_at(BEGIN + at_s)]


def test_goals_are_those_of_the_trials_that_had_ended(repeated):
    assert goals(repeated, 5) == []
    # A single repeat decides; no event in too few intervals is no proof.
    assert goals(repeated, 15) == [
        ("repeating", "1 of at most 6"), ("not met", "1"), ("undecided", "1"),
    ]  # fmt: skip
    assert [state for state, _ in goals(repeated, 25)] == ["repeating", "undecided", "undecided"]
    assert [state for state, _ in goals(repeated, 45)] == ["repeating", "undecided", "not met"]


def test_at_the_end_a_figure_is_known_or_not_as_the_repeats_say(repeated):
    known = is_known_to(RATES, UNTIL.share, UNTIL.most)
    half = spread(RATES).half / spread(RATES).mean
    assert known == (half <= UNTIL.share)  # the last look asks for the plain interval
    assert goals(repeated, 60)[0] == ("known" if known else "not known", "6 of at most 6")


@pytest.mark.parametrize("size", [(80, 24), (120, 40), (200, 60)])
def test_the_interval_now_and_wanted_is_on_the_live_screen_at_every_size(repeated, size):
    async def script(pilot):
        text = shown(pilot)
        assert "trial 4 of at most 6" in text
        assert "▶ repeating 3 of at most 6, ±" in text
        assert "now, ±2 % wanted" in text

    drive(repeated, open_replay(repeated, 1, Clock(), 35.0), script, size=size, clock=Clock())


def test_the_list_of_goals_has_each_with_its_figures(repeated):
    async def script(pilot):
        assert "goals: 2 undecided, 1 repeating; l lists them" in shown(pilot)
        await press(pilot, "l")
        text = await press(pilot, "l")
        assert "▶ repeating" in text
        assert "? undecided  throughput_bps of main at streams=1" in text
        assert "at least 94.0 Mbit/s" in text

    drive(repeated, open_replay(repeated, 1, Clock(), 35.0), script, size=(140, 30), clock=Clock())


def test_a_frozen_screen_keeps_its_goals_and_the_end_has_those_of_the_summary(repeated):
    clock = Clock()

    async def script(pilot):
        await press(pilot, "space")
        frozen = shown(pilot)
        clock.time += 20
        assert await press(pilot, "question_mark", "escape") == frozen
        await press(pilot, "space")
        clock.time += 60
        await press(pilot, "question_mark", "escape")
        assert "goals: 1 not met, 1 undecided, 1 not known" in shown(pilot)

    drive(repeated, open_replay(repeated, 1, clock, 35.0), script, size=(120, 40), clock=clock)

    async def summary(pilot):
        assert "goals: 1 not met, 1 undecided, 1 not known" in shown(pilot)
        text = await press(pilot, "l")
        assert "✗ not known  throughput of main at streams=1" in text

    drive(repeated, open_page(repeated, "summary", 1), summary, size=(120, 40))
