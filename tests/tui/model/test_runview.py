"""The fold of a run's events, live and afterwards, without Textual."""

import subprocess
import sys
from contextlib import closing
from pkgutil import walk_packages

import pytest
from tui.made_runs import BEGIN, MadeRun, make_whole_run, whole_run

import benchctl.tui.draw
import benchctl.tui.model
from benchctl.store.bulk import Bulk
from benchctl.store.follow import Follower
from benchctl.store.locks import Liveness
from benchctl.store.read import Reader
from benchctl.store.record import Recorder, reopen_run
from benchctl.tui.model.results import Results
from benchctl.tui.model.runview import RunView


class Watched:
    """A view that follows a run in a store."""

    def __init__(self, path, run_id=1):
        self.reader = Reader(path)
        self.bulk = Bulk(path)
        self.follower = Follower(self.reader, run_id, samples=False)
        self.view = RunView(self.reader.run(run_id), self.bulk.outlines(run_id))

    def poll(self):
        self.view.run = self.reader.run(self.view.run.id)
        for event in self.follower.poll():
            self.view.apply(event)
        return self.view


@pytest.fixture
def watch(tmp_path):
    opened = []

    def open_one(path=tmp_path / "runs.sqlite"):
        opened.append(Watched(path))
        return opened[-1]

    yield open_one
    for one in opened:
        one.reader.close()
        one.bulk.close()


def statuses(view, time):
    return [trial.status_at(time) for trial in view.trials]


def test_a_run_that_is_over_can_be_seen_at_any_of_its_moments(tmp_path, watch):
    whole_run(tmp_path / "runs.sqlite")
    view = watch().poll()
    assert view.ended
    assert view.status_at(BEGIN + 30) == "running"
    assert statuses(view, BEGIN + 30) == ["ok", "running", *["planned"] * 6]
    assert (view.current_at(BEGIN + 30), view.done_at(BEGIN + 30)) == (1, 1)
    assert view.trials[1].elapsed_s(BEGIN + 30) == 9.0
    assert view.current_at(BEGIN - 1) == -1
    assert view.done_at(BEGIN - 1) == 0
    # Between two trials the one before is shown, and has ended.
    assert (view.current_at(BEGIN + 20.5), view.done_at(BEGIN + 20.5)) == (0, 1)
    end = BEGIN + 1000
    assert statuses(view, end)[5:] == ["failed", "ok", "ok"]
    assert view.status_at(end) == "failed"
    assert (view.done_at(end), view.left_s(end)) == (8, 0.0)


def test_a_live_run_grows_as_it_is_measured(tmp_path, alive, watch):
    made = MadeRun(tmp_path / "runs.sqlite")
    watched = watch()
    assert watched.poll().status_at(made.now) == "planned"
    made.begin()
    made.begin_trial()
    made.measure(5.0)
    view = watched.poll()
    assert view.status_at(made.now) == "running"
    assert statuses(view, made.now) == ["running", *["planned"] * 7]
    assert view.trials[0].flows["main"].figures == {}
    made.measure(15.0)
    made.end_trial()
    view = watched.poll()
    assert statuses(view, made.now)[:2] == ["ok", "planned"]
    assert ("send", "throughput_bps") in view.trials[0].flows["main"].figures
    made.close()


def test_a_trial_that_fails_before_its_start_counts_from_its_end(tmp_path, alive, watch):
    """As one whose tool could not be asked for its version."""
    made = MadeRun(tmp_path / "runs.sqlite")
    made.begin()
    made.begin_trial()
    made.measure(5.0)
    made.end_trial()
    failed = {"status": "failed", "error": "host tokyo: gone", "finished_time": made.now}
    made.recorder.update_trial(made.trials[1].id, **failed)
    view = watch().poll()
    assert (view.current_at(made.now), view.done_at(made.now)) == (1, 2)
    assert (view.current_at(made.now - 0.1), view.done_at(made.now - 0.1)) == (0, 1)
    made.close()


def test_another_attempt_takes_the_place_of_the_one_before(tmp_path, alive, watch):
    made = MadeRun(tmp_path / "runs.sqlite")
    made.begin()
    made.begin_trial()
    watched = watch()
    made.begin_trial(attempt=2)
    made.position = 0
    assert watched.poll().trials[0].flows["main"].flow.attempt == 2
    made.close()


def test_the_time_left_counts_what_the_last_trials_took_beyond_their_plan(tmp_path, alive, watch):
    made = MadeRun(tmp_path / "runs.sqlite")
    made.begin()
    watched = watch()
    # Eight trials of 20 s and a pause of 1 s before each of those to come.
    assert watched.poll().left_s(made.now) == 8 * 20 + 8
    made.begin_trial()
    made.measure(5.0)
    assert watched.poll().left_s(made.now) == 15 + 7 * 20 + 7
    made.now += 25  # it ends 10 s later than planned
    made.end_trial()
    assert watched.poll().left_s(made.now) == pytest.approx(7 * 20 * 1.5 + 7)
    made.close()


def test_a_trial_whose_attempt_failed_takes_its_whole_time_again(tmp_path, alive, watch):
    made = MadeRun(tmp_path / "runs.sqlite")
    made.begin()
    made.begin_trial()
    made.measure(5.0)
    for flow_id in made.flows.values():
        made.recorder.update_flow(flow_id, status="failed", finished_time=made.now)
    made.recorder.flush()
    watched = watch()
    # The next attempt begins 2 s after the failure. The other trials may lose 7 s, too.
    assert watched.poll().left_s(made.now + 0.5) == 1.5 + 8 * 20 + 7 * (1 + 5 + 2)
    assert watched.poll().left_s(made.now + 60) == 8 * 20 + 7 * (1 + 5 + 60)
    made.now += 2
    made.begin_trial(attempt=2)
    assert watched.poll().left_s(made.now + 12) == 8 + 7 * 20 + 7 * (1 + 5 + 2)
    made.close()


def test_a_runner_that_died_is_said_to_have_died(tmp_path, watch):
    made = MadeRun(tmp_path / "runs.sqlite")
    made.begin()
    made.begin_trial()
    made.measure(5.0)
    view = watch().poll()
    assert view.died
    assert view.status_at(made.now) == "died"
    made.close()


def test_notes_are_known_from_when_they_were_written(tmp_path, watch):
    whole_run(tmp_path / "runs.sqlite")
    view = watch().poll()
    assert [note.text for note in view.notes_at(BEGIN + 64)] == ["moved the aerial"]
    assert len(view.notes_at(BEGIN + 1000)) == 2
    assert view.notes_at(BEGIN) == []


def test_the_results_so_far_are_those_of_the_trials_that_have_ended(tmp_path, watch):
    whole_run(tmp_path / "runs.sqlite")
    view = watch().poll()
    results = Results(view, view.report_at)
    assert results.at(BEGIN + 10) is None
    first = results.at(BEGIN + 30)
    assert [row[:4] for row in first.rows] == [
        ("paris", "1", "main", "send"), ("paris", "1", "ping", "round-trip"),
    ]  # fmt: skip
    last = results.at(BEGIN + 1000)
    assert len(last.rows) == 8
    assert results.at(BEGIN + 1001) is last
    assert results.at(BEGIN + 30).rows == first.rows


def test_what_is_shown_and_drawn_needs_no_terminal_library():
    modules = [
        info.name
        for room in (benchctl.tui.model, benchctl.tui.draw)
        for info in walk_packages(room.__path__, f"{room.__name__}.")
    ]
    assert len(modules) > 15
    code = (
        f"import sys, {', '.join(modules)}; "
        "print({name.partition('.')[0] for name in sys.modules} & {'textual', 'rich'})"
    )
    told = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert told.stdout == "set()\n"


def test_a_failed_trial_that_is_measured_again_is_the_current_one_and_no_result_is_lost(
    tmp_path, watch, monkeypatch
):
    path = tmp_path / "runs.sqlite"
    made = make_whole_run(path)
    monkeypatch.setattr(Liveness, "is_alive", lambda self, run_id: True)
    watching = watch()
    view = watching.poll()
    whole = len(view.report_at(made.now).trials)
    left_s = view.left_s(made.now)
    reopen_run(path, 1, failed=True)
    watching.poll()
    assert (view.trials[5].status, view.ended) == ("planned", False)
    assert view.left_s(made.now) > left_s
    assert len(view.report_at(made.now).trials) == whole - 1
    with closing(Recorder(path, 1)) as recorder:
        recorder.update_run(status="running")
        recorder.update_trial(6, status="running", started_time=made.now + 5)
        watching.poll()
        assert view.current_at(made.now + 6) == 5
        assert len(view.report_at(made.now + 6).trials) == whole - 1
        recorder.update_trial(6, status="ok", finished_time=made.now + 7)
        watching.poll()
    assert view.done_at(made.now + 8) == 8
    assert len(view.report_at(made.now + 8).trials) == whole
