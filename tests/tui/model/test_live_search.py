"""The live screen of a search: its tries are trials, and what they found so far is the result."""

from contextlib import closing

import pytest
from tui.driving import Clock, drive, open_replay, press, shown
from tui.made_runs import BEGIN, plan_flow

from benchctl.errors import StoreError
from benchctl.report.report import read_report
from benchctl.report.text.searches import search_table
from benchctl.run.condition import parse_condition
from benchctl.run.planned import PlannedRun, PlannedTrial, Search, Settings
from benchctl.run.record import Figure, FlowEvent, Happening
from benchctl.store.read import Reader
from benchctl.store.record import Recorder, create_run
from benchctl.tui.model.feed import RunReader
from benchctl.tui.model.results import Results
from benchctl.units import parse_rate

SEARCH = Search(
    "rate", {"main": "rate"}, 1e6, 1e9, parse_condition("loss_ratio < 0.1%"), 0.02, 1, 20
)
# Each with its loss; that of the last shows only in the delay of its probes.
TRIES = [("31.6Mbit", 0.08), ("29Mbit", 0.0), ("30.2Mbit", 0.01), ("29.5Mbit", 0.0)]
RISING = FlowEvent("send", "owd_s", Happening.RISING_DELAY, 1.0, 9.0, 0.01, 0.2)


@pytest.fixture
def searched(store):
    """Return a store with a search of four tries of 10 s, one after the other."""
    flow = plan_flow("main", "simpleperf", "send")
    settings = Settings({"rate": ("1Mbit..1Gbit",)}, "interleaved", (), search=SEARCH)
    plan = [
        PlannedTrial(n, 1, {"rate": rate}, (flow,), {}, 10.0, 20.0)
        for n, (rate, _) in enumerate(TRIES)
    ]
    create_run(store, PlannedRun("a1", "", 1, settings, plan, ""), BEGIN)
    with closing(Recorder(store, 1)) as recorder:
        recorder.update_run(status="running", started_time=BEGIN)
        for n, (rate, loss) in enumerate(TRIES):
            begin = BEGIN + 10 * n
            rate_bps = parse_rate(rate)
            recorder.update_trial(n + 1, status="running", started_time=begin)
            flow_id = recorder.add_flow(
                n + 1, attempt=1, name="main", backend="simpleperf", source="local",
                target="local", direction="send", status="ok", client=[], server=[],
                requested={"rate": rate_bps},
            )  # fmt: skip
            figures = {"sent_bps": rate_bps, "throughput_bps": rate_bps * (1 - loss),
                       "loss_ratio": loss}  # fmt: skip
            recorder.add_figures(
                flow_id, {("send", m): Figure(v, "tool") for m, v in figures.items()}
            )
            if rate == TRIES[-1][0]:
                recorder.add_events(flow_id, [RISING])
            recorder.update_trial(n + 1, status="ok", finished_time=begin + 10)
        recorder.update_run(status="ok", finished_time=BEGIN + 40)
    return store


@pytest.fixture
def results(searched):
    with closing(RunReader(searched, 1)) as feed:
        while feed.poll(1.0):
            pass
        yield Results(feed.view, feed.report_at, lambda: feed.ends_read)


@pytest.mark.parametrize(
    ("at_s", "found"),
    [
        (15, ("-", "31.6 Mbit/s", "loss 8 %", "1", "no")),
        (25, ("29.0 Mbit/s", "31.6 Mbit/s", "loss 8 %", "2", "no")),
        # The delay of its probes rose, which is in no list of trials.
        (45, ("29.0 Mbit/s", "29.5 Mbit/s", "OWD of main rose by 190 ms", "4", "yes")),
    ],
)
def test_what_the_tries_so_far_found_is_the_result(results, at_s, found):
    table = results.at(BEGIN + at_s)
    assert table.heads == ("highest rate", "fails at", "by", "tries", "confirmed")
    assert table.rows == (found,)


def test_the_result_is_that_of_the_summary_and_on_the_live_screen(searched, results):
    with closing(Reader(searched)) as reader:
        assert results.at(BEGIN + 100) == search_table(read_report(reader, reader.run(1)))

    async def script(pilot):
        assert "highest rate" in shown(pilot)
        assert "29.5 Mbit/s" in shown(pilot)

    drive(searched, open_replay(searched, 1, Clock(), 45.0), script, size=(120, 40), clock=Clock())


def test_the_bracket_narrows_from_try_to_try(results):
    def goal(at_s):
        (one,) = results.goals_at(BEGIN + at_s)
        return str(one.state), one.what, one.trials, one.figures

    assert goal(15) == (
        "searching", "highest rate", "1 of at most 20",
        "between 1.00 Mbit/s (not tried) and 31.6 Mbit/s, 31.6 times, 2 % wanted;"
        " fails by loss 8 %",
    )  # fmt: skip
    assert goal(25)[3].startswith("between 29.0 Mbit/s and 31.6 Mbit/s, 8.97 % apart, 2 % wanted")
    assert goal(45)[0] == "found"
    assert goal(45)[3].startswith("between 29.0 Mbit/s and 29.5 Mbit/s, 1.72 % apart, 2 % wanted")


@pytest.mark.parametrize("size", [(80, 24), (120, 40), (200, 60)])
def test_the_bracket_is_on_the_live_screen_at_every_size(searched, size):
    async def script(pilot):
        text = shown(pilot)
        assert "trial 3 of at most 20" in text
        assert "▶ searching 2 of at most 20, between 29.0 Mbit/s and 31.6 Mbit/s" in text

    drive(searched, open_replay(searched, 1, Clock(), 25.0), script, size=size, clock=Clock())


@pytest.mark.parametrize(
    ("at_s", "known", "left_s"), [(-1, 1, 10), (5, 1, 5), (15, 2, 5), (35, 4, 5), (45, 4, 0)]
)
def test_a_replay_knows_only_the_tries_that_were_known_then(searched, at_s, known, left_s):
    with closing(RunReader(searched, 1)) as feed:
        while feed.poll(1.0):
            pass
        view = feed.view
        assert (view.known_at(BEGIN + at_s), view.left_s(BEGIN + at_s)) == (known, left_s)

    async def script(pilot):
        rates = [rate for rate, _ in TRIES if f" {rate} " in shown(pilot)]
        assert rates == [rate for rate, _ in TRIES[:known]]

    page = open_replay(searched, 1, Clock(), max(0.0, at_s))
    drive(searched, page, script, size=(120, 40), clock=Clock())


def test_a_replay_goes_on_to_the_next_try_by_a_key(searched):
    async def script(pilot):
        await press(pilot, "enter")
        assert "Trial 2 of 2" in shown(pilot)
        await press(pilot, "escape", "]")
        assert "trial 3 of at most 20" in shown(pilot)
        await press(pilot, "enter")
        assert "Trial 3 of 3" in shown(pilot)

    drive(searched, open_replay(searched, 1, Clock(), 15.0), script, size=(120, 40), clock=Clock())


def test_a_store_that_cannot_be_read_is_tried_again_and_no_try_is_lost(searched, monkeypatch):
    with closing(RunReader(searched, 1)) as feed:
        results = Results(feed.view, feed.report_at, lambda: feed.ends_read)

        def locked(*_, **__):
            raise StoreError("database is locked", "")

        with monkeypatch.context() as patch:
            patch.setattr(Reader, "trials", locked)
            with pytest.raises(StoreError):
                feed.poll(1.0)
        while feed.poll(1.0):
            pass
        assert results.goals_at(BEGIN + 45)[0].trials == "4 of at most 20"
