"""Strategies choose the next trial by the results so far."""

import sys

import pytest
from analysis.search.sample_tries import SEARCH, ended, tried

from benchctl.plan.strategy import strategy_of
from benchctl.run.planned import Settings, Until
from benchctl.run.status import Status

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
        yield ended(position, repeat + 1, {"streams": streams}, {metric: value}, status=status)


def strategy(given, **settings):
    chosen = strategy_of(Settings({}, "interleaved", (), **settings))
    for one in given:
        chosen.take(one)
    return chosen


def following(points, **options):
    trial = strategy(results(points, **options), until=UNTIL).next()
    return trial and (trial.point["streams"], trial.repeat)


def test_without_a_wish_there_is_no_strategy():
    assert strategy_of(Settings({}, "interleaved", ())) is None


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
    added = strategy(results({1: SCATTERED}), until=UNTIL).next()
    assert (added.flows, added.deadline_s, added.point) == (last.trial.flows, 9.0, {"streams": 1})


CAPACITIES = {"near": 29.15e6, "far": 400e6}


def searched(repeats=1, stop_after=None):
    """Return the points of a whole search, or of the part that a resumed one has to go on with."""
    first = [
        tried(position, {"path": path, "rate": "31.62Mbit"}, CAPACITIES[path], repeat)
        for position, (repeat, path) in enumerate(
            (repeat, path) for repeat in range(1, repeats + 1) for path in CAPACITIES
        )
    ]
    given, chosen = first, strategy(first, search=SEARCH)
    while (trial := chosen.next()) and len(given) != stop_after:
        assert trial.flows[0].parameters["rate"] == trial.point["rate"]
        capacity_bps = CAPACITIES[trial.point["path"]]
        given = [*given, tried(len(given), trial.point, capacity_bps, trial.repeat)]
        chosen.take(given[-1])
    return given


def test_every_point_has_its_own_search_and_they_take_turns():
    paths = [one.trial.point["path"] for one in searched()]
    assert paths[:12] == ["near", "far"] * 6
    assert set(paths[12:]) <= {"far"}


def test_every_repeat_is_a_search_of_its_own():
    repeats = [one.trial.repeat for one in searched(repeats=3)]
    assert repeats[:6] == [1, 1, 2, 2, 3, 3]
    assert repeats.count(1) == repeats.count(2) == repeats.count(3) == len(searched())


@pytest.mark.parametrize("stop_after", range(2, 11))
def test_a_search_that_is_resumed_anywhere_goes_on_as_if_it_never_stopped(stop_after):
    whole = [one.trial.point for one in searched()]
    part = searched(stop_after=stop_after)
    again = strategy(part, search=SEARCH).next()
    following = whole[stop_after] if stop_after < len(whole) else None
    assert (again and again.point) == following


def calls_of(work):
    """Return how many functions some work calls: what it costs, on any machine."""
    calls = 0

    def count(frame, event, _):
        nonlocal calls
        calls += event in ("call", "c_call")

    before = sys.getprofile()
    sys.setprofile(count)
    try:
        work()
    finally:
        sys.setprofile(before)
    return calls


def test_a_result_is_taken_once_so_a_thousand_trials_cost_hardly_more_than_each_alone():
    until = Until("throughput_bps", 1e-9, 3, 1000)
    trials = list(results(dict.fromkeys(range(25), (100.0, 120.0) * 20)))
    chosen = strategy_of(Settings({}, "interleaved", (), until=until))

    def take(some):
        for one in some:
            chosen.take(one)
            assert chosen.next() is not None

    take(trials[:-50])
    # To take all of them anew calls several functions for each.
    assert calls_of(lambda: take(trials[-50:])) / 50 < len(trials)
