"""The live screen and the runner: it is stopped, dies, and is resumed, here or elsewhere."""

from contextlib import closing
from signal import SIGINT, SIGUSR1
from unittest.mock import Mock

import pytest
from tui.driving import (
    Clock,
    drive,
    notices,
    open_live,
    open_replay,
    press,
    screen_shown,
    settle,
    shown,
)
from tui.made_runs import MadeRun

from benchctl.store.locks import Liveness
from benchctl.store.read import Reader
from benchctl.store.record import reopen_run


@pytest.mark.parametrize(("key", "number"), [("K", SIGUSR1), ("X", SIGINT)])
def test_skip_and_stop_ask_and_then_signal_the_runner(store, live, monkeypatch, key, number):
    sent = []
    monkeypatch.setattr("os.kill", lambda *what: sent.append(what))
    monkeypatch.setattr(Liveness, "runner_pid", lambda self, run_id: 4711)

    async def script(pilot):
        assert "?" in await press(pilot, key)
        await press(pilot, "n")
        await press(pilot, key, "escape")
        assert sent == []
        await press(pilot, key, "y")
        assert sent == [(4711, number)]
        assert notices(pilot) == ""

    drive(store, open_live(store, 1, Clock(live.now)), script, clock=Clock(live.now))


@pytest.mark.parametrize("key", "KX")
def test_a_run_that_ended_before_the_answer_is_said_to_have_ended(store, live, monkeypatch, key):
    monkeypatch.setattr(Liveness, "runner_pid", lambda self, run_id: None)

    async def script(pilot):
        await press(pilot, key, "y")
        assert "the run has ended" in notices(pilot)

    drive(store, open_live(store, 1, Clock(live.now)), script, clock=Clock(live.now))


def test_a_run_of_another_user_cannot_be_stopped_and_the_screen_says_so(store, live, monkeypatch):
    monkeypatch.setattr("os.kill", Mock(side_effect=PermissionError))
    monkeypatch.setattr(Liveness, "runner_pid", lambda self, run_id: 4711)

    async def script(pilot):
        await press(pilot, "X", "y")
        assert "this run belongs to another user" in notices(pilot)

    drive(store, open_live(store, 1, Clock(live.now)), script, clock=Clock(live.now))


def test_a_run_that_dies_while_it_is_watched_is_said_to_have_died(store, live, monkeypatch):
    async def script(pilot):
        assert "▶ running" in shown(pilot)
        assert "K Skip  X Stop  ?" in shown(pilot)
        monkeypatch.setattr(Liveness, "is_alive", lambda self, run_id: False)
        monkeypatch.setattr("benchctl.tui.model.feed.LOOK_S", 0.0)  # a second has passed
        await settle(pilot)
        assert "✗ died" in shown(pilot).splitlines()[0]
        assert "the runner died" in shown(pilot)
        assert "benchctl resume" in shown(pilot)
        assert "Values  r Resume  ? Keys" in await press(pilot, "x")

    drive(store, open_live(store, 1, Clock(live.now)), script, clock=Clock(live.now))


def stopped_run(store):
    """Return a run that was stopped in its second trial."""
    made = MadeRun(store)
    made.begin(pid=4711)
    made.begin_trial()
    made.measure(20.0)
    made.end_trial()
    made.begin_trial()
    made.measure(5.0)
    made.end_trial("interrupted")
    made.end("interrupted")
    return made


def test_a_planned_run_is_resumed_by_a_key_only_if_its_runner_does_not_come(store, alive):
    made = MadeRun(store)
    clock = Clock(made.now)

    async def script(pilot):
        clock.time = pilot.app.page.view.run.created_time + 1
        await settle(pilot)
        assert "planned" in shown(pilot)
        assert "Resume" not in shown(pilot)
        clock.time += 5
        await settle(pilot)
        assert "no runner has started this run" in shown(pilot)
        assert " r Resume " in shown(pilot)

    drive(store, open_live(store, 1, clock), script, clock=clock)
    made.close()


def test_a_closed_page_reads_nothing_more(store, live, monkeypatch):
    """What waits for a refresh is called by whichever screen is shown then."""

    async def script(pilot):
        page = pilot.app.page
        await press(pilot, "4")
        pilot.app.uninstall_screen(page)
        await page.remove()
        monkeypatch.setattr("benchctl.tui.model.feed.LOOK_S", 0.0)
        page.tick()
        page.fit()

    drive(store, open_live(store, 1, Clock(live.now)), script, clock=Clock(live.now))


@pytest.mark.parametrize("size", [(80, 24), (40, 12)])
def test_a_question_is_over_the_messages(store, live, size):
    async def script(pilot):
        for _ in range(9):
            pilot.app.notify("a message of\nthree lines\nor so")
        text = await press(pilot, "X")
        assert "Stop the run?" in text
        assert "y yes   n no" in text
        assert "a message of" in text

    drive(store, open_live(store, 1, Clock(live.now)), script, size=size)


def test_a_run_that_is_resumed_elsewhere_lives_again_on_the_screen(store, live, monkeypatch):
    clock = Clock(live.now)

    async def script(pilot):
        monkeypatch.setattr(Liveness, "is_alive", lambda self, run_id: False)
        monkeypatch.setattr("benchctl.tui.model.feed.LOOK_S", 0.0)  # a second has passed
        clock.time += 89
        await settle(pilot)
        assert "the runner died; 7 of 8 trials are left" in shown(pilot)
        assert "no sample for" not in shown(pilot)
        reopen_run(store, 1)
        monkeypatch.setattr(Liveness, "is_alive", lambda self, run_id: True)
        await settle(pilot)
        assert "· planned  trial 1/8" in shown(pilot)
        assert "died" not in shown(pilot)
        live.begin(pid=4712)
        live.now = clock.time
        live.begin_trial(attempt=2)
        live.measure(10.0)
        clock.time = live.now
        await settle(pilot)
        assert "▶ running  trial 2/8" in shown(pilot)
        assert "10 s" in shown(pilot)
        for word in ("died", "no sample", "Resume"):
            assert word not in shown(pilot)
        live.end_trial()
        while live.position < 7:
            live.begin_trial()
            live.measure(2.0)
            live.end_trial()
        live.end()
        clock.time = live.now
        await settle(pilot)
        assert "✓ ok  trial 8/8" in shown(pilot)

    drive(store, open_live(store, 1, clock), script, clock=clock)


@pytest.mark.parametrize("is_live", [True, False])
def test_a_key_resumes_a_stopped_run_from_the_screen(store, monkeypatch, is_live):
    made = stopped_run(store)
    clock, started = Clock(made.now), []
    monkeypatch.setattr(
        "benchctl.engine.runner.launch._start", lambda *what: started.append(what) or Mock()
    )

    async def script(pilot):
        assert "the run was stopped; 7 of 8 trials are left" in shown(pilot)
        assert " r Resume " in shown(pilot)
        await press(pilot, "r")
        assert [what[:2] for what in started] == [(store, 1)]
        assert "7 trials left" in notices(pilot)
        made.begin(pid=4712)
        monkeypatch.setattr(Liveness, "is_alive", lambda self, run_id: True)
        made.begin_trial(attempt=2)
        made.measure(3.0)
        clock.time = made.now
        await settle(pilot)
        assert screen_shown(pilot) == "Live"
        assert "▶ running  trial 2/8" in shown(pilot)
        assert "Resume" not in shown(pilot)
        await press(pilot, "r")
        assert len(started) == 1

    page = open_live(store, 1, clock) if is_live else open_replay(store, 1, clock, 1e6)
    drive(store, page, script, clock=clock, size=(120, 30))
    made.close()


def test_screens_that_are_ended_start_the_run_that_they_resume(store, ended_at_start):
    made = stopped_run(store)
    clock = Clock(made.now)

    async def script(pilot):
        await press(pilot, "r")
        assert ended_at_start == ["held", "ended"]

    drive(store, open_live(store, 1, clock), script, clock=clock, size=(120, 30))
    made.close()


def test_failed_trials_are_measured_again_after_a_question(store, monkeypatch):
    made = MadeRun(store, repeats=1)
    made.begin(pid=4711)
    for status in ("ok", "failed", "ok", "timed_out"):
        made.begin_trial()
        made.measure(20.0)
        made.end_trial(status)
    made.end("failed")
    clock, started = Clock(made.now), []
    monkeypatch.setattr(
        "benchctl.engine.runner.launch._start", lambda *what: started.append(what) or Mock()
    )

    async def script(pilot):
        assert " r Resume " in shown(pilot)
        assert "Measure the failed trials again?" in await press(pilot, "r")
        await press(pilot, "n")
        assert not started
        await press(pilot, "r", "y")
        assert [what[:2] for what in started] == [(store, 1)]
        with closing(Reader(store)) as reader:
            statuses = [trial.status for trial in reader.trials(1)]
        assert statuses == ["ok", "planned", "ok", "planned"]

    drive(store, open_live(store, 1, clock), script, clock=clock, size=(120, 30))
    made.close()


def test_a_run_that_may_not_be_resumed_says_why(store, monkeypatch):
    made = stopped_run(store)
    made.close()
    monkeypatch.setattr(
        "benchctl.engine.runner.launch.distrust_run", lambda *_: "it belongs to mallory"
    )

    async def script(pilot):
        await press(pilot, "r")
        assert "it belongs to mallory" in notices(pilot)
        assert "--trust" in notices(pilot)

    drive(store, open_live(store, 1, Clock(made.now)), script, clock=Clock(made.now))


def test_a_replay_of_a_run_that_goes_on_says_so_and_can_follow_it(store, monkeypatch):
    made = stopped_run(store)
    clock = Clock(made.now)

    async def script(pilot):
        assert "the run goes on" not in shown(pilot)
        reopen_run(store, 1)
        made.begin(pid=4712)
        monkeypatch.setattr(Liveness, "is_alive", lambda self, run_id: True)
        await settle(pilot)
        assert "the run goes on: f follows it" in await press(pilot, "space")
        await press(pilot, "f")
        assert screen_shown(pilot) == "Live"

    drive(store, open_replay(store, 1, clock, 2.0), script, clock=clock)
    made.close()
