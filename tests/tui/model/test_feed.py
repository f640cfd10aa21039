"""A run is read from its store in small steps, and reading continues after an error."""

from itertools import count, islice

import pytest
from tui.made_runs import BEGIN, MadeRun, plan_flow, whole_run

from benchctl.errors import StoreError
from benchctl.report.timeline.traces import LineKey, TimeWindow
from benchctl.run.planned import PlannedRun, PlannedTrial, Settings
from benchctl.store import bulk
from benchctl.store.bulk import Bulk
from benchctl.store.record import create_run
from benchctl.tui.model.feed import RunReader


class Timer:
    """A timer that moves on by a second with each look."""

    def __init__(self):
        self.time = 0.0

    def __call__(self):
        self.time += 1.0
        return self.time


@pytest.fixture
def feed_of(store):
    opened = []

    def open_feed(timer=lambda: 0.0):
        opened.append(RunReader(store, 1, timer))
        return opened[-1]

    yield open_feed
    for feed in opened:
        feed.close()


def read_all(feed):
    polls = 1
    while feed.poll(0.03):
        polls += 1
    return polls


THROUGHPUT = LineKey("main", "send", "throughput_bps")


def test_flows_are_numbered_in_the_order_of_the_profile_whatever_the_order_of_the_trials(
    store, feed_of
):
    profile = ("web", "bulk", "voice", "ping-web", "ping-bulk", "ping-voice")
    chosen = (
        ("voice", "ping-voice"), ("web", "bulk", "ping-web", "ping-bulk"),
        ("web", "voice", "ping-web", "ping-voice"),
    )  # fmt: skip
    flows = [tuple(plan_flow(name, "ping", "round-trip") for name in names) for names in chosen]
    trials = [PlannedTrial(n, 1, {}, some, {}, 1.0, 2.0) for n, some in enumerate(flows)]
    create_run(store, PlannedRun("p", "", 1, Settings({}, "sequential", ()), trials, ""), BEGIN)
    order = feed_of().view.flows
    assert sorted(order) == sorted(profile)
    assert all([name for name in order if name in names] == list(names) for names in chosen)


def test_trials_that_no_profile_can_have_still_number_every_flow(store, feed_of):
    one, two = plan_flow("one", "ping", "round-trip"), plan_flow("two", "ping", "round-trip")
    trials = [
        PlannedTrial(n, 1, {}, some, {}, 1.0, 2.0)
        for n, some in enumerate(((one, two), (two, one)))
    ]
    create_run(store, PlannedRun("p", "", 1, Settings({}, "sequential", ()), trials, ""), BEGIN)
    assert feed_of().view.flows == ["one", "two"]


def test_a_flow_that_no_plan_names_has_a_number_too(store, feed_of, alive):
    made = MadeRun(store)
    made.begin()
    made.begin_trial()
    made.begin_flow("added", "ping", "round-trip", None)
    feed = feed_of()
    read_all(feed)
    made.close()
    assert feed.view.flows == ["main", "ping", "added"]


def test_a_long_history_is_read_over_many_polls(store, feed_of, monkeypatch):
    monkeypatch.setattr(bulk, "BATCH", 10)
    whole_run(store)
    feed = feed_of(timer=Timer())
    assert feed.poll(0.0)
    read_all(feed)
    assert feed.view.ended
    feed.look_at(1)
    assert feed.poll(0.0)
    assert 0 < feed.share_read < 1
    assert not feed.settled
    assert read_all(feed) > 10
    assert feed.share_read == 1.0
    assert feed.settled
    # Four streams of 40 intervals, one sample of ping beside each.
    assert feed.traces.line(THROUGHPUT).total() / feed.traces.line(THROUGHPUT).mean() == 20.0
    assert feed.traces.end_s == 20.0


def test_what_is_measured_meanwhile_comes_with_the_next_poll(store, alive, feed_of):
    made = MadeRun(store)
    made.begin()
    made.begin_trial()
    made.measure(2.0)
    feed = feed_of()
    read_all(feed)
    feed.look_at(feed.view.latest)
    read_all(feed)
    assert feed.traces.end_s == 2.0
    made.measure(3.0)
    read_all(feed)
    assert feed.traces.end_s == 5.0
    made.close()


def test_without_changes_nothing_is_read(store, feed_of, monkeypatch):
    whole_run(store)
    feed = feed_of()
    read_all(feed)
    feed.look_at(0)
    read_all(feed)
    monkeypatch.setattr(Bulk, "sources", None)
    assert not feed.poll(0.03)


def test_another_attempt_begins_the_lines_anew(store, alive, feed_of):
    made = MadeRun(store)
    made.begin()
    made.begin_trial()
    made.measure(4.0)
    feed = feed_of()
    read_all(feed)
    feed.look_at(0)
    read_all(feed)
    made.begin_trial(attempt=2)
    made.measure(1.0)
    read_all(feed)
    assert feed.traces.end_s == 1.0
    made.close()


def test_lines_are_read_anew_however_little_time_there_is_for_events(store, alive, feed_of):
    made = MadeRun(store)
    made.begin()
    made.begin_trial()
    made.measure(4.0)
    feed = feed_of(timer=count(step=1e-6).__next__)
    read_all(feed)
    feed.look_at(0)
    read_all(feed)
    made.begin_trial(attempt=2)
    made.measure(1.0)
    while feed.poll(0.0):  # one event for each look
        pass
    assert feed.traces.end_s == 1.0
    made.close()


def test_streams_are_read_when_they_are_asked_for_and_the_old_lines_stay_meanwhile(store, feed_of):
    whole_run(store)
    feed = feed_of()
    read_all(feed)
    feed.look_at(1)
    read_all(feed)
    before = feed.traces
    feed.look_at(1, split={"main"})
    assert feed.traces is before
    read_all(feed)
    assert feed.traces is not before
    assert len(feed.traces.keys("throughput_bps")) == 5
    feed.look_at(1, split={"main"})
    assert feed.settled


def test_streams_that_are_asked_for_on_a_frozen_screen_are_those_of_the_attempt_it_shows(
    store, alive, feed_of
):
    made = MadeRun(store)
    made.begin()
    made.begin_trial()
    made.measure(4.0)
    feed = feed_of()
    read_all(feed)
    feed.look_at(0)
    read_all(feed)
    made.begin_trial(attempt=2)
    made.measure(1.0)
    feed.look_at(0, split={"main"})
    while feed.poll(0.03, new=False):
        pass
    assert (feed.settled, feed.traces.end_s) == (True, 4.0)
    assert len(feed.traces.keys("throughput_bps")) == 2
    read_all(feed)
    assert feed.traces.end_s == 1.0
    made.close()


def test_a_window_is_read_in_more_detail_beside_the_whole(store, feed_of):
    whole_run(store)
    feed = feed_of()
    read_all(feed)
    feed.look_at(0)
    read_all(feed)
    feed.magnify(TimeWindow(5.0, 2.0, 7.0))
    assert feed.plotted is feed.traces
    read_all(feed)
    assert feed.plotted is not feed.traces
    assert feed.plotted.line(THROUGHPUT).bounds(0.0, 4.9) is None
    assert feed.traces.line(THROUGHPUT).bounds(0.0, 4.9) is not None
    feed.magnify(feed.whole)
    assert feed.plotted is feed.traces


def test_a_locked_store_is_an_error_and_the_next_poll_goes_on(store, feed_of, monkeypatch):
    whole_run(store)
    feed = feed_of()
    read_all(feed)
    feed.look_at(1)

    def locked(*_):
        raise StoreError("store: database is locked")

    monkeypatch.setattr(Bulk, "extent", locked)
    with pytest.raises(StoreError):
        feed.poll(0.03)
    monkeypatch.undo()
    read_all(feed)
    assert feed.settled
    assert feed.traces.end_s == 20.0


@pytest.mark.parametrize("part", ["extent", "batches"])
def test_a_frozen_screen_reads_on_after_an_error_and_knows_when_it_has_read_all(
    store, alive, feed_of, monkeypatch, part
):
    made = MadeRun(store)
    made.begin()
    made.begin_trial()
    made.measure(4.0)
    feed = feed_of()
    read_all(feed)
    feed.look_at(0)
    read_all(feed)
    made.measure(1.0)
    feed.look_at(0, split={"main"})

    def locked(*_):
        raise StoreError("store: database is locked")

    with monkeypatch.context() as patch:
        patch.setattr(Bulk, part, locked)
        with pytest.raises(StoreError):
            feed.poll(0.03, new=False)
        assert not feed.settled
    while feed.poll(0.03, new=False):
        pass
    assert (feed.settled, feed.traces.end_s) == (True, 4.0)
    read_all(feed)
    assert (feed.settled, feed.traces.end_s) == (True, 5.0)
    made.close()


def test_a_store_that_breaks_while_it_is_read_loses_no_sample(store, feed_of, monkeypatch):
    monkeypatch.setattr(bulk, "BATCH", 10)
    whole_run(store)
    feed = feed_of()
    read_all(feed)
    whole = Bulk.batches

    def broken(self, *what):
        yield from islice(whole(self, *what), 2)
        raise StoreError("store: disk I/O error")

    feed.look_at(1)
    with monkeypatch.context() as patch:
        patch.setattr(Bulk, "batches", broken)
        with pytest.raises(StoreError):
            read_all(feed)
    assert 0 < feed.share_read < 1
    read_all(feed)
    assert feed.traces.line(THROUGHPUT).total() / feed.traces.line(THROUGHPUT).mean() == 20.0


def test_the_last_time_of_a_run_is_its_end_or_when_it_last_told_something(store, feed_of):
    made = MadeRun(store)
    assert feed_of().last_time() == made.now
    made.begin()
    made.begin_trial()
    made.measure(4.0)
    assert feed_of().last_time() == made.began + 4.0
    made.end_trial()
    assert feed_of().last_time() == made.began + 4.0
    made.now += 100
    made.end()
    assert feed_of().last_time() == made.now
    made.close()
