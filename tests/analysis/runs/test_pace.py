"""How long the rest of a run takes, while attempts are repeated, too."""

import pytest
from msgspec.structs import replace

from benchctl.analysis.runs.pace import RunningTrial, Timing, left_s, wait_s
from benchctl.run.planned import Parallel, Settings

SETTINGS = Settings({}, "grouped", (), attempts=3, backoff_s=2.0)


@pytest.mark.parametrize(
    ("attempt", "since_s", "left_s"), [(1, 0.5, 1.5), (2, 0.5, 3.5), (2, 9.0, 0.0)]
)
def test_the_rest_of_a_doubled_wait_is_left(attempt, since_s, left_s):
    assert wait_s(SETTINGS, attempt, since_s) == left_s


def test_no_wait_for_a_starting_server_is_longer_than_the_profile_allows():
    assert wait_s(SETTINGS, 20_000, 0.0) == 4.0


def test_each_failed_attempt_lengthens_the_rest():
    """Three trials of 10 s, and attempts of 1 s that fail: nothing else is known yet."""
    told = [
        left_s(0.0, [RunningTrial(10, 0.0, 0.0)], 2, 20, (), SETTINGS),
        left_s(1.0, [RunningTrial(10, 0.0, 0.0, 2.0)], 2, 20, (), SETTINGS),
        left_s(3.0, [RunningTrial(10, 0.0, 3.0)], 2, 20, (), SETTINGS),
        left_s(4.0, [RunningTrial(10, 0.0, 3.0, 4.0)], 2, 20, (), SETTINGS),
    ]
    assert told == [30, 12 + 2 * (10 + 3), 10 + 2 * (10 + 3), 14 + 2 * (10 + 8)]


def test_a_trial_is_taken_to_last_as_those_before_it():
    """They took 15 s of planned 10 s, as their attempts were repeated."""
    ended = [Timing(10, 0.0, 15.0), Timing(10, 15.0, 30.0)]
    running = [RunningTrial(10, 30.0, 30.0)]
    assert left_s(32.0, running, 0, 0, ended, SETTINGS) == 13
    assert left_s(44.0, running, 1, 10, ended, SETTINGS) == 1 + 15
    resumed = [RunningTrial(10, 3_600.0, 3_600.0)]
    assert left_s(3_600.0, resumed, 0, 0, ended, SETTINGS) == 10


def test_trials_side_by_side_share_what_is_left():
    """Two run, one for 4 s, and two are to come; each takes 1 s more than planned."""
    beside = replace(SETTINGS, parallel=Parallel(2, at_once=2))
    running = [RunningTrial(10, 16.0, 16.0), RunningTrial(10, 20.0, 20.0)]
    ended = [Timing(10, 0.0, 11.0), Timing(10, 1.0, 12.0)]
    assert left_s(20.0, running, 2, 20, ended, beside) == (7 + 11 + 2 * 11) / 2
    more = replace(SETTINGS, parallel=Parallel(9, at_once=9))
    assert left_s(20.0, running, 0, 0, (), more) == (6 + 10) / 2
