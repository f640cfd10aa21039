"""Which values a plot shows: spikes don't own it, and zooming goes on from what is seen."""

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from benchctl.report.timeline.series import Range
from benchctl.tui.draw.axes.ranges import bounds_of, panned, zoomed
from benchctl.tui.draw.axes.scale import axis_for
from benchctl.tui.draw.axes.strip import strip_of

VALUES = st.floats(-1e9, 1e9)
LINES = st.lists(st.lists(VALUES, min_size=1, max_size=60), min_size=1, max_size=4)


def line(values, noise=0.0):
    return [Range(value - noise, value + noise, value) for value in values]


def bounds(*lines, from_zero=True, robust=True, beside=()):
    strips = [strip_of(line) for line in lines]
    return bounds_of(strips, from_zero=from_zero, robust=robust, beside=beside)


def test_two_flows_are_told_apart_beside_a_burst():
    burst = [*line([27e6] * 198), Range(0.0, 290e6, 41e6), None]
    low, high = bounds(burst, line([19e6] * 200, 3e6))
    assert low == 0
    assert 27e6 <= high <= 60e6


def test_a_few_far_values_are_left_out_whatever_they_are():
    delays = line([*[0.020, 0.021] * 40, 0.110, 2.0])
    low, high = bounds(delays, from_zero=False)
    assert low == 0.020
    assert 0.021 <= high < 0.022
    dip = line([*[0.020, 0.021] * 40, 0.001])
    assert bounds(dip, from_zero=False)[0] > 0.019


def test_streams_that_differ_all_the_time_are_shown_whole():
    apart = [Range(1.0, 90.0, 40.0 + n % 2) for n in range(100)]
    assert bounds(apart, from_zero=False) == (0.0, 90.0)


def test_what_happens_often_is_shown():
    stairs = line([*[1.0] * 90, *[100.0] * 10])
    assert bounds(stairs) == (0.0, 100.0)
    assert bounds(line([20.0]), line([1000.0] * 50)) == (0.0, 1000.0)


def test_a_line_that_is_level_but_for_its_spikes_is_shown_whole():
    assert bounds(line([*[0.0] * 99, 7.0])) == (0.0, 7.0)


def test_an_axis_that_is_not_robust_shows_every_value():
    assert bounds(line([*[0.0, 1.0] * 50, 500.0]), robust=False) == (0.0, 500.0)


def test_the_expected_value_is_always_shown():
    assert bounds(line([5e6, 6e6] * 20), beside=[94e6]) == (0.0, 94e6)
    assert bounds(line([0.021, 0.022] * 20), from_zero=False, beside=[0.020]) == (0.020, 0.022)


def test_without_values_there_is_a_range():
    assert bounds([None, None]) == (0.0, 1.0)
    assert bounds(beside=[94e6]) == (0.0, 94e6)


def test_values_near_zero_are_seen_from_zero():
    assert bounds(line([1.0, 5.0] * 20), from_zero=False) == (0.0, 5.0)
    assert bounds(line([4.0, 5.0] * 20), from_zero=False) == (4.0, 5.0)


@given(LINES, st.booleans())
def test_at_most_a_few_columns_of_a_line_are_out_of_bounds_and_only_if_that_halves_it(
    lines, from_zero
):
    columns = [line(values) for values in lines]
    low, high = bounds(*columns, from_zero=from_zero)
    whole_low, whole_high = bounds(*columns, from_zero=from_zero, robust=False)
    assert whole_low <= low <= high <= whole_high
    for values in lines:
        assert sum(value > high for value in values) <= len(values) * 0.05
        assert sum(value < low for value in values) <= len(values) * 0.05
    if (low, high) != (whole_low, whole_high):
        assert whole_high - whole_low >= (high - low) * 1.1


@pytest.mark.parametrize("log", [False, True])
def test_zooming_in_and_out_again_is_where_it_began(log):
    axis = axis_for("rtt_s", 0.02, 0.11, 9, from_zero=False, log=log)
    whole = (axis.low, axis.high)
    once = zoomed(axis, None, 1)
    twice = zoomed(axis, once, 1)
    assert axis.low < once[0] < twice[0] < twice[1] < once[1] < axis.high
    assert zoomed(axis, twice, -2) == pytest.approx(whole)
    up = panned(axis, once, 1)
    assert up[0] > once[0]
    assert up[1] > once[1]
    assert panned(axis, up, -1) == pytest.approx(once)


@given(VALUES, st.floats(1e-3, 1e9), st.integers(1, 60))
def test_however_far_one_zooms_in_there_is_an_axis(low, height, steps):
    axis = axis_for("rtt_s", low, low + height, 9, from_zero=False)
    assume(axis.high > axis.low)
    seen = None
    for _ in range(steps):
        seen = zoomed(axis, seen, 1)
    assert seen[1] > seen[0]
    closest = axis_for("rtt_s", *seen, 9, from_zero=False)
    assert len({tick.text for tick in closest.labelled}) == len(closest.labelled)
