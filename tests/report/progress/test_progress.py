"""The progress line: how long a run still takes; and what else a terminal shows of it."""

import io

import pytest
from msgspec.structs import replace
from report import sample_report
from store.store_support import NOW, new_run

from benchctl.report.progress.progress import LiveProgress
from benchctl.report.progress.terminal import shows_progress
from benchctl.run.status import Status
from benchctl.store.follow import FlowEnded, FlowStarted, RunResumed, TrialEnded, TrialStarted
from benchctl.store.read import Reader

TRIALS = 5


class Watched:
    """A run whose trials are planned for a second each, and the line that shows it."""

    def __init__(self, run, trial, environment):
        self.stream = io.StringIO()
        self.now = NOW
        self.left = TRIALS
        self.run = run
        self._trial = trial
        self.progress = LiveProgress(
            run, self.stream, environment, lambda: (self.left, float(self.left)), lambda: self.now
        )

    def trial(self, begins, ends):
        """Let a trial begin and end at seconds after the start of the run; returns it."""
        trial = replace(
            self._trial,
            started_time=begins and NOW + begins,
            finished_time=ends and NOW + ends,
        )
        self.progress.show(TrialStarted(trial))
        if ends:
            self.left -= 1
            self.now = NOW + ends
            self.progress.show(TrialEnded(trial))
        return trial

    def drawn(self):
        """Draw once, and return what was written for it."""
        before = self.stream.tell()
        self.progress.tick()
        return self.stream.getvalue()[before:]


@pytest.fixture
def watch(tmp_path):
    """Watch a run in a terminal with some variables."""
    run_id, _ = new_run(tmp_path / "runs.sqlite", trials=TRIALS)
    reader = Reader(tmp_path / "runs.sqlite")
    opened = []

    def start(**environment):
        watched = Watched(reader.run(run_id), next(reader.trials(run_id)), environment)
        opened.append(watched.progress)
        return watched

    yield start
    for progress in opened:
        progress.close()
    reader.close()


def test_before_the_first_end_the_time_left_is_the_plan(watch):
    watched = watch()
    assert watched.progress.time_left() == "5 s left"
    watched.trial(0.5, None)
    watched.now = NOW + 1.6
    assert watched.progress.time_left() == "4 s left"


def test_an_attempt_that_failed_lengthens_the_rest(watch):
    watched = watch()
    trial, flow = watched.trial(0.5, None), sample_report.flow("main", Status.FAILED).flow
    flow = replace(flow, finished_time=NOW)
    watched.progress._run = replace(
        watched.run, settings=replace(watched.run.settings, backoff_s=3.0)
    )
    watched.progress.show(FlowEnded(trial, flow, {}))
    watched.now = NOW + 1
    # The next attempt ends 2.5 s later than the plan has it, and so may the four trials after it.
    assert watched.progress.time_left() == "17 s left"
    watched.progress.show(FlowStarted(replace(trial, started_time=NOW + 3), flow))
    watched.now = NOW + 3.5
    assert watched.progress.time_left() == "14 s left"


def test_the_trials_of_a_resumed_run_are_those_that_are_left_when_it_begins(watch):
    watched = watch(TERM="xterm")
    watched.left = 2  # it had failed trials, which are planned again
    watched.progress.show(RunResumed(watched.run, frozenset({0})))
    assert watched.progress.time_left() == "2 s left"
    assert "benchctl 0/2, 2 s left" in watched.drawn()


def test_the_time_left_is_by_what_trials_took_from_end_to_end(watch):
    watched = watch()
    watched.trial(2.0, 3.0)
    watched.trial(3.34, 4.34)
    # Each takes a third of a second of set-up beside its planned second.
    assert watched.progress.time_left() == "4 s left"


def test_one_trial_that_waited_for_hours_does_not_count(watch):
    watched = watch()
    for begins in (1.0, 2.0, 7200.0):
        watched.trial(begins, begins + 1)
    watched.trial(7201.0, 7202.0)
    assert watched.progress.time_left() == "1 s left"


def test_a_trial_that_ended_before_it_began_says_nothing(watch):
    watched = watch()
    watched.trial(1.5, 1.0)
    assert watched.progress.time_left() == "4 s left"


def test_the_title_of_the_terminal_shows_it_and_is_restored(watch):
    watched = watch(TERM="xterm-256color")
    assert "\x1b[22;2t" in watched.stream.getvalue()
    watched.trial(0.5, 1.5)
    assert "\x1b]2;benchctl 1/5, 4 s left\x1b\\" in watched.drawn()
    assert "\x1b]2" not in watched.drawn()  # it has not changed
    watched.progress.close()
    assert watched.stream.getvalue().endswith("\x1b[23;2t")


def test_a_terminal_that_takes_it_shows_the_progress_until_the_end(watch):
    watched = watch(TERM="xterm", WT_SESSION="1")
    watched.trial(0.5, 1.5)
    assert "\x1b]9;4;1;20\x1b\\" in watched.drawn()
    watched.progress.close()
    assert watched.stream.getvalue().endswith("\x1b]9;4;0;\x1b\\")


@pytest.mark.parametrize("term", ["linux", "dumb"])
def test_a_console_without_a_title_gets_none(watch, term):
    watched = watch(TERM=term)
    watched.trial(0.5, 1.5)
    assert "\x1b]" not in watched.drawn()


@pytest.mark.parametrize(
    ("environment", "shown"),
    [
        ({"WT_SESSION": "1"}, True),
        ({"ConEmuANSI": "ON"}, True),
        ({"TERM_PROGRAM": "ghostty"}, True),
        ({"TERM_PROGRAM": "iTerm.app", "TERM_PROGRAM_VERSION": "3.6.6"}, True),
        # Earlier ones show it as a message.
        ({"TERM_PROGRAM": "iTerm.app", "TERM_PROGRAM_VERSION": "3.5.10"}, False),
        ({"TERM_PROGRAM": "iTerm.app"}, False),
        ({"VTE_VERSION": "7900"}, True),
        ({"VTE_VERSION": "7006"}, False),
        ({"KONSOLE_VERSION": "260400"}, True),
        ({"KONSOLE_VERSION": "251203"}, False),
        ({"TERM_PROGRAM": "tmux", "TMUX": "x", "WT_SESSION": "1"}, False),
        ({"TERM": "xterm-kitty"}, False),
        ({}, False),
    ],
)
def test_only_a_terminal_known_to_take_it_gets_progress(environment, shown):
    assert shows_progress(environment) is shown
