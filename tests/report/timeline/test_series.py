import math

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from benchctl.report.timeline.series import CAPACITY, Series

VALUES = st.floats(-1e9, 1e9)
POINTS = st.lists(st.tuples(st.floats(0.0, 1e5), VALUES), min_size=1, max_size=60)


def series_of(points, span_s=10.0, start_s=0.0, cut=7):
    series = Series(start_s, span_s)
    points = sorted(points)
    for begin in range(0, len(points), cut):
        part = points[begin : begin + cut]
        series.extend([t for t, _ in part], [v for _, v in part], [1.0] * len(part))
    return series


@given(POINTS)
def test_size_is_bounded_and_the_greatest_and_the_least_are_never_lost(points):
    series = series_of(points)
    end = max(time for time, _ in points)
    assert (end - series.start_s) / series.width_s < CAPACITY
    low, high = series.bounds(0.0, math.inf)
    assert (low, high) == (min(v for _, v in points), max(v for _, v in points))
    columns = [one for one in series.columns(0.0, end + 1.0, 7) if one is not None]
    assert min(one.low for one in columns) == low
    assert max(one.high for one in columns) == high


@given(POINTS)
def test_total_and_mean_survive_every_merge(points):
    series = series_of(points)
    total = math.fsum(value for _, value in points)
    assert series.total() == pytest.approx(total, rel=1e-9, abs=1e-3)
    assert series.mean() == pytest.approx(total / len(points), rel=1e-9, abs=1e-3)


@example([(0.0, 1.0), (0.0, 1.0), (0.0, 1 / 3)], 1)
@given(POINTS, st.integers(1, 60))
def test_it_does_not_matter_in_how_many_parts_values_come(points, cut):
    one, other = series_of(points, cut=cut), series_of(points, cut=1000)
    pairs = zip(one.columns(0.0, 1e5, 50), other.columns(0.0, 1e5, 50), strict=True)
    for range_of_one, range_of_other in pairs:
        assert bool(range_of_one) == bool(range_of_other)
        if range_of_one:
            assert range_of_one == pytest.approx(range_of_other)
    assert one.last == other.last


@given(POINTS, st.integers(1, 60), st.floats(0.0, 1e5), st.floats(0.0, 1e5))
def test_the_nearest_value_is_one_that_came_and_none_is_nearer_by_more_than_a_bucket(
    points, cut, time_s, within_s
):
    series = series_of(points, cut=cut)
    near = [abs(end_s - time_s) for end_s, _ in points]
    found = series.nearest(time_s, within_s)
    if found is None:
        assert min(near) > within_s - series.width_s
    else:
        assert tuple(found) in {(end_s, value) for end_s, value in points}
        assert abs(found.end_s - time_s) <= min(within_s, min(near) + series.width_s)


def test_a_mean_counts_a_longer_interval_more():
    series = Series(0.0, 10.0)
    series.extend([1.0, 4.0], [10.0, 20.0], [1.0, 3.0])
    assert series.mean() == 17.5


def test_nothing_is_known_before_the_first_value():
    series = Series(0.0, 10.0)
    assert series.mean() is None
    assert series.at(5.0) is None
    assert series.recent(5.0, 0.5) is None
    assert series.bounds(0.0, 10.0) is None
    assert series.columns(0.0, 10.0, 3) == [None, None, None]


def test_what_comes_after_the_moment_shown_is_not_drawn():
    series = series_of([(1.0, 1.0), (5.0, 5.0), (9.0, 9.0)])
    assert series.bounds(0.0, 6.0) == (1.0, 5.0)
    assert [c and c.mean for c in series.columns(0.0, 10.0, 5, until_s=6.0)] == [
        1.0, None, 5.0, None, None,
    ]  # fmt: skip
    assert series.at(6.0) == 5.0
    assert series.at(0.5) is None
    assert series.at(math.inf) == 9.0


def test_a_column_has_the_least_the_greatest_and_the_mean_of_its_time():
    series = series_of([(0.1, 1.0), (0.5, 9.0), (0.9, 2.0), (1.5, 4.0)], span_s=2.0)
    first, second = series.columns(0.0, 2.0, 2)
    assert (first.low, first.high, first.mean) == (1.0, 9.0, 4.0)
    assert (second.low, second.high, second.mean) == (4.0, 4.0, 4.0)


def test_a_window_begins_where_it_is_told():
    series = series_of([(100.5, 1.0), (101.5, 2.0)], span_s=2.0, start_s=100.0)
    assert [column.mean for column in series.columns(100.0, 102.0, 2)] == [1.0, 2.0]


def test_a_smoothed_mean_is_over_its_time_and_the_bounds_are_those_of_the_column():
    times = [(n + 0.5) / 100 for n in range(1000)]
    series = Series(0.0, 10.0)
    series.extend(times, [t + (-1) ** n for n, t in enumerate(times)], [0.01] * 1000)
    columns = series.columns(0.0, 10.0, 100, smooth_s=0.5)
    middles = [(place + 0.5) / 10 for place in range(100)]
    assert [c.mean for c in columns[3:-3]] == pytest.approx(middles[3:-3], abs=0.06)
    assert all(c.low < m - 0.9 < m + 0.9 < c.high for c, m in zip(columns, middles, strict=True))
    assert series.spacing_s == pytest.approx(0.01)
    # At the ends, and before the moment shown, the mean is over what there is.
    assert columns[0].mean == pytest.approx(0.15, abs=0.06)
    until = series.columns(0.0, 10.0, 100, 5.0, 0.5)
    assert until[51:] == [None] * 49
    assert until[49].mean == pytest.approx(4.85, abs=0.06)


@given(POINTS, st.floats(0.1, 50.0))
def test_a_smoothed_mean_is_between_the_least_and_the_greatest(points, smooth_s):
    series = series_of(points)
    end = max(time for time, _ in points)
    low, high = series.bounds(0.0, math.inf)
    room = (high - low) * 1e-6 + 1e-6
    for column in series.columns(0.0, end + 1.0, 40, smooth_s=smooth_s):
        assert column is None or low - room <= column.mean <= high + room


@given(POINTS, st.floats(0.0, 2e5), st.floats(1e-3, 1e5), st.floats(0.0, 1e3))
@example([(1.0, 1.0)], 500.0, 10.0, 0.5)
def test_whatever_is_in_sight_a_column_has_values_of_its_time_only(points, from_s, span_s, smooth):
    series = series_of(points)
    columns = series.columns(from_s, from_s + span_s, 9, smooth_s=smooth)
    assert len(columns) == 9
    if from_s > max(time for time, _ in points) + series.width_s:
        assert columns == [None] * 9


def test_values_that_stand_for_several_have_the_bounds_of_those():
    series = Series(0.0, 10.0)
    series.extend([1.0, 2.0], [5.0, 6.0], [1.0, 1.0], ([1.0, 2.0], [9.0, 8.0]))
    assert series.bounds(0.0, 10.0) == (1.0, 9.0)
    assert series.mean() == 5.5


def test_a_line_that_has_grown_is_drawn_anew():
    series = series_of([(1.0, 1.0)])
    assert series.columns(0.0, 10.0, 1)[0].high == 1.0
    series.extend([2.0], [7.0], [1.0])
    assert series.columns(0.0, 10.0, 1)[0].high == 7.0


def test_a_recent_value_is_the_mean_of_the_last_time_and_of_one_value_at_least():
    bursts = series_of([(0.1 * n, 10.0 * (n % 5 == 0)) for n in range(60)])
    assert bursts.recent(math.inf, 0.5) == pytest.approx(2.0)
    assert bursts.recent(3.0, 0.5) == pytest.approx(2.0)
    assert bursts.at(math.inf) == 0.0
    rare = series_of([(1.0, 4.0), (2.0, 8.0)])
    assert (rare.recent(2.5, 0.5), rare.recent(1.5, 0.5), rare.recent(0.5, 0.5)) == (8.0, 4.0, None)
