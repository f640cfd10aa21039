"""The figures and words of a run at a moment."""

from contextlib import closing

import numpy as np
import pytest
from tui.made_runs import BEGIN, MadeRun, whole_run

from benchctl.analysis.flow.figures import FlowFold
from benchctl.metrics import Sample
from benchctl.report.lines.spans import to_text
from benchctl.run.record import Figure
from benchctl.store.read import Reader
from benchctl.tui.draw.views import status
from benchctl.tui.model.feed import RunReader
from benchctl.tui.model.playhead import Playhead


@pytest.fixture
def feed_of(tmp_path):
    opened = []

    def open_feed(position=None):
        feed = RunReader(tmp_path / "runs.sqlite", 1)
        opened.append(feed)
        while feed.poll(1.0):
            pass
        if position is not None:
            feed.look_at(position)
            while feed.poll(1.0):
                pass
        return feed

    yield open_feed
    for feed in opened:
        feed.close()


def told(feed, position, time):
    return {tile.name: tile.value for tile in status.tiles(feed.view, feed.traces, position, time)}


def test_the_big_figures_are_those_of_the_moment(tmp_path, feed_of):
    whole_run(tmp_path / "runs.sqlite")
    feed = feed_of(position=0)
    early, late = told(feed, 0, BEGIN + 2), told(feed, 0, BEGIN + 15)
    assert early["elapsed"] == "0:02"
    assert late["elapsed"] == "0:15"
    assert early["throughput"] != late["throughput"]
    assert late["mean"] != early["mean"]
    assert late["loss"].endswith("%")
    assert int(late["resent"]) >= int(early["resent"])
    assert late["left"] == "2:32"


def test_the_mean_and_the_sums_after_the_end_are_those_of_all_samples(tmp_path, feed_of):
    made = MadeRun(tmp_path / "runs.sqlite")
    made.begin()
    made.begin_trial()
    made.measure(20.0)
    mean = sum(made.rates) / len(made.rates)
    made.end_trial()
    made.end()
    made.close()
    figures = told(feed_of(position=0), 0, made.now + 100)
    assert figures["mean throughput"] == f"{mean / 1e6:.1f} Mbit/s"
    assert not {"throughput", "mean", "left"} & {*figures}


def test_before_the_first_trial_there_are_no_figures(tmp_path, alive, feed_of):
    made = MadeRun(tmp_path / "runs.sqlite")
    made.begin()
    made.close()
    figures = told(feed_of(), -1, BEGIN + 1)
    assert figures == {"left": "2:48", "elapsed": "0:01"}


def test_several_flows_with_a_rate_are_shown_as_their_sum(tmp_path, alive, feed_of):
    made = MadeRun(tmp_path / "runs.sqlite")
    made.begin()
    made.begin_trial()
    made.measure(20.0)
    made.flows["main"] = made.begin_flow("twin", "iperf3", "send", 5202)
    made.sampled_s = 0.0
    made.measure(20.0)
    made.close()
    figures = told(feed_of(position=0), 0, BEGIN + 15)
    assert float(figures["all 2 flows"].split()[0]) == pytest.approx(2 * 94.1, rel=0.1)


def test_no_tile_mixes_unlike_flows_and_each_says_what_it_shows(tmp_path, alive, feed_of):
    made = MadeRun(tmp_path / "runs.sqlite")
    made.begin()
    made.begin_trial()
    other = {
        "udp": made.begin_flow("udp", "simpleperf", "send", 5202),
        "back": made.begin_flow("back", "iperf3", "receive", 5203),
        "far": made.begin_flow("far", "ping", "round-trip", None),
    }
    for name, direction, figures in (
        ("udp", "send", {"throughput_bps": 50e6, "packets_sent": 100.0, "packets_lost": 30.0}),
        ("back", "receive", {"throughput_bps": 1e6}),
        ("far", "round-trip", {"rtt_s": 0.9}),
    ):
        for second in range(20):
            made.recorder.add_sample(
                other[name], "client", 0, direction, second, second + 1.0, second + 1.0, False,
                figures,
            )  # fmt: skip
    made.measure(20.0)
    made.close()
    figures = told(feed_of(position=0), 0, BEGIN + 15)
    assert float(figures["rate of a"].split()[0]) == pytest.approx(94.1, rel=0.1)
    assert float(figures["RTT of b"].split()[0]) == pytest.approx(22.4, rel=0.1)
    assert figures["max loss"] == "30 %"


def test_silence_is_said_and_for_how_long(tmp_path, alive, feed_of):
    made = MadeRun(tmp_path / "runs.sqlite")
    made.begin()
    made.begin_trial()
    made.measure(5.0)
    made.close()
    feed = feed_of(position=0)
    trial = feed.view.trials[0]
    assert status.silence(feed.view, feed.traces, trial, made.now + 1.0) == ""
    assert status.silence(feed.view, feed.traces, trial, made.now + 7.25) == "no sample for 7.20 s"
    assert status.silence(feed.view, feed.traces, None, made.now + 7) == ""


def test_what_went_wrong_stands_first(tmp_path, feed_of):
    made = MadeRun(tmp_path / "runs.sqlite")
    made.begin()
    for _ in range(3):
        made.note("late", "warning")
    made.recorder.update_run(error="store: disk full")
    made.close()
    lines = to_text(status.remarks(feed_of().view, BEGIN + 10)).splitlines()
    assert lines[0].startswith("✗ the runner died")
    assert "benchctl resume" in lines[0]
    assert lines[1:] == ["✗ store: disk full", "! warning 3x: late"]


def test_why_a_trial_failed_is_told_with_what_helps(tmp_path, feed_of):
    whole_run(tmp_path / "runs.sqlite")
    first, *_ = to_text(status.remarks(feed_of().view, BEGIN + 400, 5)).splitlines()
    assert first == "✗ trial 6 failed: main: the server is busy; try again later"


def test_warnings_that_differ_in_their_numbers_are_one_line_and_remarks_are_not(tmp_path, feed_of):
    made = MadeRun(tmp_path / "runs.sqlite")
    made.begin()
    for number in (1, 2):
        made.note(f"trial {number}: {number}.5 ms late")
        made.note(f"moved by {number} m", "remark")
    made.note("another")
    made.end()
    made.close()
    assert to_text(status.remarks(feed_of().view, BEGIN + 10)).splitlines() == [
        "! warning: another", "✎ remark: moved by 2 m",
        "! warning 2x, the last: trial 2: 2.5 ms late", "✎ remark: moved by 1 m",
    ]  # fmt: skip


def test_a_run_that_no_runner_takes_up_is_said_to_wait(tmp_path, feed_of):
    MadeRun(tmp_path / "runs.sqlite").close()
    view = feed_of().view
    assert status.remarks(view, BEGIN + 1) == []
    assert "no runner has started this run" in to_text(status.remarks(view, BEGIN + 60))


def test_the_title_says_where_a_replay_stands_and_that_a_live_screen_is_frozen(tmp_path, feed_of):
    whole_run(tmp_path / "runs.sqlite")
    view = feed_of().view
    time = [BEGIN + 5]
    head = Playhead(lambda: time[0], BEGIN, view.run.finished_time)
    time[0] += 12
    assert to_text([status.standing(view, head)]) == "▶ running  trial 1/8  ▶ x1 12.0/152.0 s"
    head.toggle()
    assert "❚❚ paused" in to_text([status.standing(view, head)])
    head.seek(BEGIN + 1e6)
    assert "■ end" in to_text([status.standing(view, head)])
    live = Playhead(lambda: time[0])
    assert to_text([status.standing(view, live)]) == "▶ running  trial 1/8"
    live.toggle()
    assert to_text([status.standing(view, live)]) == "▶ running  trial 1/8  ❚❚ 17.0/152.0 s"
    view.ended = False
    assert "FROZEN, data goes on" in to_text([status.standing(view, live)])
    assert "FROZEN, the run has ended" in to_text([status.standing(view, live, goes_on=False)])


def test_the_list_of_trials_has_states_points_and_the_figures_of_every_flow(tmp_path, feed_of):
    whole_run(tmp_path / "runs.sqlite")
    view = feed_of().view
    columns = status.trial_columns(view)
    heads = ["", "#", "server", "streams", "rep", "a main", "b ping"]
    assert [column.head for column in columns] == heads
    assert [column.fixed for column in columns] == [True] * 5 + [False] * 2

    def texts(index, time):
        return [span.text for span in status.trial_row(view, index, time)]

    end = BEGIN + 1000
    assert texts(0, end) == ["✓", "1", "paris", "1", "1", "90.1 Mbit/s", "21.1 ms"]
    assert texts(5, end) == ["✗", "6", "paris", "4", "2", "failed: main: the server is busy"]
    assert texts(0, BEGIN + 1) == ["▶", "1", "paris", "1", "1", "running"]
    assert texts(7, BEGIN + 1)[0::5] == ["·", "planned"]


def test_both_ways_of_a_flow_have_a_column_and_a_flow_that_a_trial_lacks_has_no_figure(
    tmp_path, feed_of
):
    made = MadeRun(tmp_path / "runs.sqlite")
    made.begin()
    made.begin_trial()
    made.measure(2.0)
    back = {("receive", "throughput_bps"): Figure(1e9, "tool")}
    made.recorder.add_figures(made.flows["main"], back)
    made.end_trial()
    made.flows = {}
    made.position += 1
    trial = made.trials[made.position]
    made.recorder.update_trial(trial.id, status="running", started_time=made.now)
    made.flows["ping"] = made.begin_flow("ping", "ping", "round-trip", None)
    made.rates = [1.0]
    made.end_trial()
    made.end()
    made.close()
    view = feed_of().view
    heads = [column.head for column in status.trial_columns(view)]
    assert heads[-3:] == ["A main receive", "a main send", "b ping"]
    figures = [span.text for span in status.trial_row(view, 1, BEGIN + 1000)][-3:]
    assert figures[:2] == ["-", "-"]
    assert figures[2].endswith("ms")


def test_the_figure_of_a_trial_is_its_own_whatever_its_direction(tmp_path, feed_of):
    made = MadeRun(tmp_path / "runs.sqlite")
    made.begin()
    for direction in ("send", "receive"):
        made.begin_trial()
        figures = {(direction, "throughput_bps"): Figure(len(direction) * 1e6, "tool")}
        made.recorder.add_figures(made.flows["main"], figures)
        made.end_trial()
    made.end()
    made.close()
    view = feed_of().view
    assert [column.head for column in status.trial_columns(view)][-1:] == ["a main"]
    rows = [status.trial_row(view, index, BEGIN + 1000) for index in (0, 1)]
    assert [row[-1].text for row in rows] == ["4.00 Mbit/s", "7.00 Mbit/s"]


@pytest.mark.parametrize(("seconds", "text"), [(0, "0:00"), (75.9, "1:15"), (3730, "1:02:10")])
def test_times_are_shown_as_a_clock_does(seconds, text):
    assert status.clock(seconds) == text


def test_one_way_delays_have_a_figure_for_each_direction(tmp_path, feed_of):
    made = MadeRun(tmp_path / "runs.sqlite")
    made.begin()
    made.begin_trial()
    for way, owd_s in (("send", 0.012), ("receive", 0.034)):
        made.recorder.add_sample(
            made.flows["main"], "server", 0, way, 0.0, 0.5, 0.5, False, {"owd_s": owd_s}
        )
    made.recorder.flush()
    made.close()
    figures = told(feed_of(position=0), 0, made.now + 1)
    assert {name: figures[name] for name in figures if "OWD" in name} == {
        "mean OWD of a send": "12.0 ms", "mean OWD of A receive": "34.0 ms",
    }  # fmt: skip


def test_the_mean_delay_after_the_end_is_that_of_the_table(tmp_path, feed_of):
    """Every sample of every stream counts once, as docs/output.md has it, the last one too."""
    store = tmp_path / "runs.sqlite"
    made = MadeRun(store)
    made.begin()
    made.begin_trial()
    fold = FlowFold()
    for stream, rtt_s in enumerate((0.0011, 0.0013, 0.0014, 0.0027)):
        for start_s, end_s in ((0.0, 1.0), (1.0, 2.0), (2.0, 2.01)):
            value = rtt_s * (1 + start_s * stream)
            sample = Sample(start_s, end_s, {"tcp_rtt_s": value}, stream)
            fold.add_sample("client", sample)
            made.recorder.add_sample(
                made.flows["main"], "client", stream, "send", start_s, end_s, end_s, False,
                sample.metrics,
            )  # fmt: skip
    made.rates, made.now = [1.0], made.now + 3.0
    made.end_trial()
    made.recorder.update_flow(made.flows["main"], requested={"streams": 4})
    made.end()
    made.close()
    with closing(Reader(store)) as reader:
        written = [one.metrics["tcp_rtt_s"] for one in reader.samples(made.flows["main"])]
    mean_s = np.mean(written)
    assert fold.figures()["send", "tcp_rtt_s"].value == pytest.approx(mean_s)
    assert told(feed_of(position=0), 0, made.now + 100)["mean TCP RTT"] == f"{mean_s * 1e3:.2f} ms"
