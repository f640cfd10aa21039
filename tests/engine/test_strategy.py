"""Strategies choose the next trial by the results so far."""

import pytest

from benchctl.metrics import Direction
from benchctl.plan.strategy import Result, strategy_of
from benchctl.run.planned import PlannedFlow, Settings, Until
from benchctl.run.record import Trial
from benchctl.run.status import Status

FLOW = PlannedFlow("main", "fake", "local", "local", None, Direction.SEND, 0.0, {})
UNTIL = Until("throughput_bps", 0.02, 3, 6)
SETTLED, SCATTERED = (100.0, 100.0001, 100.0), (100.0, 120.0, 80.0)


def results(points, *, metric="throughput_bps", status=Status.OK):
    """Return trials, interleaved over points, each with its values in order."""
    rounds = max(map(len, points.values()))
    trials = [
        (point, repeat, values[repeat])
        for repeat in range(rounds)
        for point, values in points.items()
        if repeat < len(values)
    ]
    for position, (streams, repeat, value) in enumerate(trials):
        trial = Trial(
            id=position + 1, run_id=1, position=position, repeat=repeat + 1,
            point={"streams": streams}, flows=(FLOW,), lab={}, duration_s=1.0, deadline_s=9.0,
            status=status, error="", started_time=None, finished_time=None, start_skew_s=None,
            fairness_jain=None,
        )  # fmt: skip
        yield Result(trial, {("main", "send", metric): value})


def following(points, until=UNTIL, **options):
    settings = Settings({"streams": tuple(points)}, "interleaved", (), until=until)
    trial = strategy_of(settings)(results(points, **options))
    return trial and (trial.point["streams"], trial.repeat)


def test_without_a_wish_no_trial_is_added():
    assert following({1: SCATTERED}, until=None) is None


def test_a_point_that_scatters_is_repeated_and_one_that_is_known_is_not():
    assert following({1: SETTLED, 2: SCATTERED}) == (2, 4)
    assert following({1: SETTLED, 2: SETTLED}) is None


def test_the_point_with_the_fewest_repeats_is_next_and_the_first_of_them():
    assert following({1: SCATTERED, 2: SCATTERED}) == (1, 4)
    assert following({1: (*SCATTERED, 90.0), 2: SCATTERED}) == (2, 4)


def test_the_most_repeats_are_the_end():
    assert following({1: SCATTERED * 2}) is None


@pytest.mark.parametrize("other", [{"status": Status.FAILED}, {"metric": "rtt_s"}])
def test_trials_that_show_nothing_are_repeated_up_to_the_most(other):
    assert following({1: SETTLED}, **other) == (1, 4)
    assert following({1: SETTLED * 2}, **other) is None


def test_the_added_trial_is_the_last_one_of_its_point_but_for_its_number():
    *_, last = results({1: SCATTERED})
    added = strategy_of(Settings({}, "", (), until=UNTIL))(results({1: SCATTERED}))
    assert (added.flows, added.deadline_s, added.position) == (last.trial.flows, 9.0, 3)
