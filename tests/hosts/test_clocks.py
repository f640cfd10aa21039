"""What is known of a far clock holds, and its error is never understated."""

import math
from random import Random

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from benchctl.hosts.clocks import MOST_APART, MOST_DRIFT, OURS, HostClock


def watch(clock, *, offset_s, drift=0.0, path_s=0.01, jitter_s=0.0, seed=1, begin_s=0.0, trips=20,
          every_s=1.0):  # fmt: skip
    """Let a clock see round trips over a path whose two ways vary on their own."""
    random = Random(seed)
    for number in range(trips):
        left_s = begin_s + number * every_s
        there_s, back_s = (path_s + random.expovariate(1) * jitter_s for _ in range(2))
        at_s = left_s + there_s
        clock.add(left_s, at_s + offset_s + drift * at_s, at_s + back_s)
    return left_s


def test_a_clock_that_was_never_asked_is_ours():
    assert OURS.theirs(1000.5) == OURS.ours(1000.5) == 1000.5
    assert OURS.reading(1000.5).error_s == 0


def test_an_offset_is_exact_where_both_ways_take_the_same_time():
    clock = HostClock()
    end_s = watch(clock, offset_s=12.5)
    assert clock.reading(end_s).offset_s == pytest.approx(12.5, abs=1e-9)
    assert clock.reading(end_s).rtt_s == pytest.approx(0.02)


def test_the_least_of_each_way_counts_though_no_trip_had_both():
    clock = HostClock()
    clock.add(0.0, 0.010 + 7.0, 0.110)
    clock.add(1.0, 1.100 + 7.0, 1.110)
    reading = clock.reading(1.1)
    assert reading.offset_s == pytest.approx(7.0, abs=1e-4)
    assert 0.010 <= reading.error_s <= 0.0107
    assert reading.rtt_s == pytest.approx(0.110)


def test_what_was_seen_over_another_way_is_forgotten():
    clock = HostClock()
    watch(clock, offset_s=12.5, path_s=0.001)
    clock.forget()
    assert len(clock) == 0
    end_s = watch(clock, offset_s=12.5, path_s=0.02)
    assert clock.reading(end_s).rtt_s == pytest.approx(0.04)


@pytest.mark.parametrize("seed", range(20))
def test_a_jittery_path_is_seen_through(seed):
    """A single trip of 20 with 5 ms of jitter each way is wrong by 0.7 ms."""
    clock = HostClock()
    end_s = watch(clock, offset_s=0.0, path_s=0.02, jitter_s=0.005, seed=seed, trips=100,
                  every_s=0.05)  # fmt: skip
    assert abs(clock.reading(end_s).offset_s) < 3e-4


offsets = st.floats(-1000, 1000)
drifts = st.floats(-MOST_DRIFT, MOST_DRIFT)


corrected = st.floats(-MOST_APART, MOST_APART)


@given(offsets, corrected, st.floats(1e-5, 0.3), st.floats(0, 0.05), st.integers(0, 99),
       st.integers(1, 120), st.floats(0, 60))  # fmt: skip
@example(offset_s=0, drift=0, path_s=1e-4, jitter_s=0.03125, seed=75, trips=21, later_s=0)
@example(offset_s=0, drift=0, path_s=1e-4, jitter_s=0.015625, seed=75, trips=27, later_s=0)
def test_the_error_is_never_understated(offset_s, drift, path_s, jitter_s, seed, trips, later_s):
    clock = HostClock()
    end_s = watch(clock, offset_s=offset_s, drift=drift, path_s=path_s, jitter_s=jitter_s,
                  seed=seed, trips=trips)  # fmt: skip
    at_s = end_s + later_s
    reading = clock.reading(at_s)
    true_s = offset_s + drift * at_s
    assert clock.steps == 0
    assert abs(reading.offset_s - true_s) <= reading.error_s + 1e-9


@given(st.floats(0, 0.2), st.integers(0, 99))
def test_a_path_that_takes_longer_one_way_stays_within_the_error(longer_s, seed):
    random, clock = Random(seed), HostClock()
    for number in range(30):
        at_s = number + 0.01 + longer_s + random.random() * 0.01
        clock.add(number, at_s + 3.0, at_s + 0.01)
    reading = clock.reading(30.0)
    assert abs(reading.offset_s - 3.0) <= reading.error_s
    assert reading.error_s >= longer_s / 2


def test_the_drift_is_found_and_followed_through_minutes_without_a_good_trip():
    clock, drift = HostClock(), 30e-6
    end_s = watch(clock, offset_s=5.0, drift=drift, jitter_s=1e-5, trips=300)
    reading = clock.reading(end_s)
    assert reading.drift == pytest.approx(drift, abs=2e-6)
    later_s = end_s + 100
    assert clock.reading(later_s).offset_s == pytest.approx(5.0 + drift * later_s, abs=3e-4)


@pytest.mark.parametrize("slewed", [-500e-6, 500e-6])
def test_a_clock_that_ntp_begins_to_correct_stays_within_its_error(slewed):
    clock = HostClock()
    end_s = watch(clock, offset_s=2.0, drift=10e-6, path_s=1e-3, jitter_s=1e-4, trips=300)
    at_s = end_s
    for number in range(200):
        at_s = end_s + 1 + number
        true_s = 2.0 + 10e-6 * at_s + slewed * (at_s - end_s)
        before = clock.reading(at_s)
        assert abs(before.offset_s - true_s) <= before.error_s
        clock.add(at_s - 1e-3, at_s + true_s, at_s + 1e-3)
    assert clock.steps == 0


def test_a_full_connection_does_not_move_the_clock():
    clock = HostClock()
    end_s = watch(clock, offset_s=1.0, jitter_s=1e-4)
    for number in range(30):  # queues fill on the way there only
        left_s = end_s + 1 + number
        clock.add(left_s, left_s + 0.4 + 1.0, left_s + 0.41)
    assert clock.reading(left_s).offset_s == pytest.approx(1.0, abs=3e-4)


def test_a_clock_that_was_set_is_followed_from_there():
    clock = HostClock()
    end_s = watch(clock, offset_s=1.0)
    end_s = watch(clock, offset_s=-4.0, begin_s=end_s + 1)
    assert clock.steps == 1
    assert clock.reading(end_s).offset_s == pytest.approx(-4.0, abs=1e-6)


@pytest.mark.parametrize(("step_s", "steps"), [(0.009, 0), (0.011, 0), (0.021, 1), (-0.021, 1)])
def test_a_step_is_seen_as_soon_as_no_queue_explains_it(step_s, steps):
    """Each way takes 10 ms: the error of what is known and half of the new trip are 20 ms."""
    clock = HostClock()
    end_s = watch(clock, offset_s=1.0, trips=2)
    watch(clock, offset_s=1.0 + step_s, begin_s=end_s + 1e-6, trips=1)
    assert clock.steps == steps


def test_a_trip_through_a_step_of_our_own_clock_is_dropped():
    clock = HostClock()
    clock.add(100.0, 50.0, 99.0)
    assert len(clock) == 0


@given(offsets, drifts, st.floats(0, 1e6))
@example(880.0, 4.769242522123467e-05, 0.0)
def test_a_time_there_and_back_is_the_same(offset_s, drift, ours_s):
    clock = HostClock()
    watch(clock, offset_s=offset_s, drift=drift, trips=50)
    assert math.isclose(clock.ours(clock.theirs(ours_s)), ours_s, abs_tol=2e-6)
