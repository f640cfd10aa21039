"""Samples in order of value as a run goes on: those that `benchctl plot` draws, and NumPy has."""

from contextlib import closing
from itertools import count

import numpy as np
import pytest
from tui.made_runs import MadeRun, whole_run

from benchctl.analysis.flow.figures import FlowFold
from benchctl.analysis.statistics import quantile
from benchctl.metrics import Sample
from benchctl.report.figures.figure import PictureKind
from benchctl.report.figures.making import Wanted, figures_of
from benchctl.report.report import read_report
from benchctl.report.timeline.traces import LineKey
from benchctl.store import single
from benchctl.store.bulk import Bulk
from benchctl.store.read import Reader
from benchctl.tui.model.feed import RunReader
from benchctl.tui.model.spreads import SpreadOf

RTT = LineKey("ping", "round-trip", "rtt_s")
RATE = LineKey("main", "send", "throughput_bps")
WINDOW = LineKey("main", "send", "cwnd_bytes")
SHARES = (0.5, 0.95, 0.99)


@pytest.fixture
def feed(store):
    opened = []

    def open_feed(position, metrics, split=(), run_id=1, **options):
        feed = RunReader(store, run_id, **options)
        opened.append(feed)
        while feed.poll(1.0):
            pass
        feed.look_at(position)
        feed.spread(SpreadOf(frozenset(metrics), frozenset(split)))
        read(feed)
        return feed

    yield open_feed
    for one in opened:
        one.close()


def read(feed, **options):
    polls = 1
    while feed.poll(1.0, **options):
        polls += 1
    return polls


def stored(store, position, metric):
    """Return the values of a metric in a trial by flow and stream, straight from the rows."""
    with closing(Reader(store)) as reader, closing(Bulk(store)) as bulk:
        trial = [*reader.trials(1)][position]
        flows = [flow.id for flow in reader.flows(trial.id)]
        return {
            (one.flow_id, one.stream): np.array(one.values[metric])
            for one in bulk.columns(flows, [metric])
        }


def drawn(store, kind, metric, **only):
    """Return the lines that `benchctl plot` draws of a part of the run."""
    with closing(Reader(store)) as reader:
        report = read_report(reader, reader.run(1))
        by = {axis: [value] for axis, value in only.items()}
        wanted = Wanted(kind=kind, y=[metric], only=by, by=["repeat"], columns=10**6)
        (figure, *_) = figures_of(reader, report, wanted)
    return figure.panels[0].lines


def test_delays_are_every_sample_of_the_trial(store, feed):
    whole_run(store)
    samples = feed(0, ["rtt_s"]).spreads.of(RTT)
    (values,) = stored(store, 0, "rtt_s").values()
    assert list(samples) == sorted(values)
    found = [quantile(samples, share) for share in SHARES]
    assert found == pytest.approx(np.percentile(values, [50, 95, 99]))


def test_a_cdf_has_the_steps_that_plot_draws(store, feed):
    whole_run(store)
    samples = feed(3, ["rtt_s"]).spreads.of(RTT)
    (line,) = drawn(store, PictureKind.CDF, "rtt_s", server="tashkent", streams="4")
    assert list(line.xs) == list(samples)
    assert line.ys[-1] == 1.0


def test_rates_are_the_sums_of_the_streams_as_plot_draws_them(store, feed):
    whole_run(store)
    samples = feed(1, ["throughput_bps"]).spreads.of(RATE)
    (line,) = drawn(store, PictureKind.CDF, "throughput_bps", server="paris", streams="4")
    assert list(samples) == pytest.approx(list(line.xs))
    assert list(samples) == pytest.approx(sorted(sum(stored(store, 1, "throughput_bps").values())))


@pytest.mark.parametrize("streams", [1, 2])
def test_the_mean_of_a_rate_is_that_over_time_as_its_figure(store, feed, streams):
    """Not that of the intervals: the last one may be very short."""
    made = MadeRun(store)
    made.begin()
    made.begin_trial()
    spans, rates = [(0.0, 1.0), (1.0, 2.0), (2.0, 2.002)], [90e6, 94e6, 2e6]
    fold = FlowFold()
    for stream in range(streams):
        for (start_s, end_s), rate in zip(spans, rates, strict=True):
            fold.add_sample("client", Sample(start_s, end_s, {"throughput_bps": rate}, stream))
            made.recorder.add_sample(
                made.flows["main"], "client", stream, "send", start_s, end_s, end_s, False,
                {"throughput_bps": rate},
            )  # fmt: skip
    made.recorder.update_flow(made.flows["main"], requested={"streams": streams})
    made.rates = [1.0]
    made.end_trial()
    made.end()
    made.close()
    samples = feed(0, ["throughput_bps"]).spreads.of(RATE)
    mean_bps = streams * np.average(rates, weights=np.diff(spans).ravel())
    assert samples.mean == pytest.approx(mean_bps)
    assert fold.figures()["send", "throughput_bps"].value == pytest.approx(mean_bps)
    assert len(samples) == 3


def test_a_window_is_every_sample_of_every_stream_and_of_each_on_request(store, feed):
    whole_run(store)
    spreads = feed(1, ["cwnd_bytes"], split=["main"]).spreads
    values = stored(store, 1, "cwnd_bytes")
    assert list(spreads.of(WINDOW)) == sorted(np.concatenate([*values.values()]))
    for (_, stream), own in values.items():
        assert list(spreads.of(WINDOW._replace(stream=stream))) == sorted(own)


def test_a_moment_shows_what_had_come_until_then_backwards_too(store, feed):
    whole_run(store)
    feed = feed(0, ["rtt_s"])
    (values,) = stored(store, 0, "rtt_s").values()
    with closing(Reader(store)) as reader:
        ping = next(f for f in reader.flows(next(iter(reader.trials(1))).id) if f.name == "ping")
        ends = [one.end_s for one in reader.samples(ping.id) if "rtt_s" in one.metrics]
    for moment_s in (10.0, 3.2, 15.0, 0.1, 30.0):
        feed.spread(SpreadOf(frozenset(["rtt_s"]), until_s=moment_s))
        read(feed)
        wanted = sorted(v for v, end_s in zip(values, ends, strict=True) if end_s < moment_s)
        assert list(feed.spreads.of(RTT) or ()) == wanted


def test_samples_of_a_trial_that_runs_come_as_they_are_measured(store, feed, alive):
    made = MadeRun(store)
    made.begin(pid=1)
    made.begin_trial()
    made.measure(5.0)
    feed = feed(0, ["rtt_s"])
    before = len(feed.spreads.of(RTT))
    made.measure(5.0)
    read(feed)
    assert len(feed.spreads.of(RTT)) > before
    made.close()
    (values,) = stored(store, 0, "rtt_s").values()
    assert list(feed.spreads.of(RTT)) == sorted(values)


def test_rates_wait_for_the_streams_that_were_asked_for(store, feed, alive):
    made = MadeRun(store)
    made.begin(pid=1)
    made.begin_trial()
    made.end_trial()
    made.begin_trial()
    told = {"throughput_bps": 1e6}
    for stream in range(3):
        made.recorder.add_sample(made.flows["main"], "client", stream, "send", 0, 1, 1, False, told)
    made.recorder.flush()
    feed = feed(1, ["throughput_bps"])
    assert feed.spreads.of(RATE) is None
    made.recorder.add_sample(made.flows["main"], "client", 3, "send", 0, 1, 1, False, told)
    made.recorder.flush()
    read(feed)
    assert list(feed.spreads.of(RATE)) == [4e6]
    made.close()


def test_another_attempt_starts_anew(store, feed, alive):
    made = MadeRun(store)
    made.begin(pid=1)
    made.begin_trial()
    made.measure(5.0)
    feed = feed(0, ["rtt_s"])
    made.begin_trial(attempt=2)
    made.measure(2.0)
    made.close()
    read(feed)
    assert len(feed.spreads.of(RTT)) <= 4


def test_a_long_history_is_read_in_small_steps(store, feed, monkeypatch):
    whole_run(store)
    monkeypatch.setattr(single, "MOST", 4)
    clock = count()
    feed = feed(1, ["rtt_s", "cwnd_bytes"], timer=lambda: float(next(clock)))
    feed.spread(SpreadOf(frozenset(["cwnd_bytes"])))
    assert not feed.settled
    assert read(feed) > 10
    assert feed.settled
    assert len(feed.spreads.of(WINDOW)) == 4 * 40


def test_what_is_not_wanted_any_more_is_not_read(store, feed):
    whole_run(store)
    feed = feed(0, ["rtt_s"])
    assert not feed.spread(SpreadOf(frozenset(["rtt_s"])))
    assert not feed.spread(SpreadOf())
    assert feed.spreads is None
