import math
import random
import statistics

import pytest
import scipy
from hypothesis import given
from hypothesis import strategies as st

from benchctl.analysis.statistics import fairness_jain, median_interval, quantile, spread

VALUES = st.lists(st.floats(-1e9, 1e9), min_size=2, max_size=40)


@given(st.lists(st.integers(-1000, 1000).map(float), min_size=2, max_size=30))
def test_the_interval_of_the_mean_is_students(values):
    described = spread(values)
    if described.stdev:
        low, high = scipy.stats.t.interval(
            0.95, len(values) - 1, loc=described.mean, scale=scipy.stats.sem(values)
        )
        assert (described.ci95_low, described.ci95_high) == pytest.approx((low, high))
        assert described.half == pytest.approx((high - low) / 2)


@pytest.mark.parametrize("n", [2, 3, 5, 10, 20])
def test_the_intervals_hold_the_truth_as_often_as_they_say(n):
    rng = random.Random(1908)
    runs = [spread([rng.gauss(10, 2) for _ in range(n)]) for _ in range(4000)]
    held = sum(one.ci95_low <= 10 <= one.ci95_high for one in runs) / len(runs)
    assert 0.94 <= held <= 0.96
    if n >= 6:
        assert sum(one.median_low <= 10 <= one.median_high for one in runs) / len(runs) >= 0.94


def test_the_interval_of_the_median_stands_between_the_ranks_of_a_fair_coin():
    # Conover's ranks for n = 6, 10, 20: the first and last, the second, the sixth from each end.
    for n, rank in ((6, 1), (10, 2), (20, 6)):
        values = [float(place) for place in range(1, n + 1)]
        assert median_interval(values) == (rank, n + 1 - rank)
        assert (
            scipy.stats.binom.cdf(rank - 1, n, 0.5) <= 0.025 < scipy.stats.binom.cdf(rank, n, 0.5)
        )


@pytest.mark.parametrize(
    ("n", "reason"), [(1, "too few"), (2, "too few"), (3, "median"), (5, "median"), (6, "")]
)
def test_an_interval_that_is_not_given_has_its_reason(n, reason):
    described = spread([float(place) for place in range(n)])
    assert reason in described.missing
    assert bool(described.missing) == (n < 6)
    assert (described.median_low is None) == (n < 6)


def test_an_outlier_is_named_and_still_counts():
    described = spread([9.0, 10.0, 11.0, 10.0, 40.0])
    assert described.outliers == (40.0,)
    assert described.mean == 16.0
    # The median is 10, the median deviation 1: 0.6745 x 30 / 1 = 20 is beyond 3.5.


def test_outliers_among_equal_values_are_found_by_the_mean_deviation():
    assert spread([0.0, 0.0, 0.0, 0.0, 5.0]).outliers == (5.0,)
    assert spread([7.0] * 6).outliers == ()


def test_four_values_are_too_few_for_an_outlier():
    assert spread([1.0, 1.0, 1.0, 100.0]).outliers == ()


def test_the_coefficient_of_variation_is_relative_to_the_mean():
    assert spread([-9.0, -11.0]).variation == pytest.approx(scipy.stats.variation([9, 11], ddof=1))
    assert spread([5.0]).variation is None
    assert spread([-1.0, 1.0]).variation is None


def test_the_interval_of_a_known_sample():
    # R: t.test(c(10, 12, 14))$conf.int
    described = spread([10, 12, 14])
    assert (described.ci95_low, described.ci95_high) == pytest.approx(
        (7.031725, 16.968275), abs=1e-3
    )


def test_a_single_value_has_no_interval():
    described = spread([5.0])
    assert (described.n, described.mean, described.ci95_low, described.ci95_high) == (
        1,
        5,
        None,
        None,
    )


@given(VALUES)
def test_the_interval_holds_the_mean_and_the_median_lies_within_the_range(values):
    described = spread(values)
    assert described.ci95_low <= described.mean <= described.ci95_high
    assert described.min <= described.median <= described.max
    assert described.median == pytest.approx(statistics.median(values), abs=1e-3)


@given(VALUES, st.floats(0, 1), st.floats(0, 1))
def test_quantiles_rise_with_their_share(values, one, other):
    ordered = sorted(values)
    low, high = sorted((one, other))
    assert quantile(ordered, low) <= quantile(ordered, high) + 1e-6


@given(st.lists(st.floats(0.001, 1e12), min_size=1, max_size=20))
def test_fairness_lies_between_one_nth_and_one(shares):
    index = fairness_jain(shares)
    assert 1 / len(shares) - 1e-9 <= index <= 1 + 1e-9


def test_fairness_of_known_shares():
    assert fairness_jain([14.37, 14.49]) == pytest.approx(0.99998, abs=1e-5)
    assert fairness_jain([1, 0, 0, 0]) == pytest.approx(0.25)
    assert fairness_jain([3, 3, 3]) == pytest.approx(1)
    assert fairness_jain([0, 0]) is None
    assert not math.isnan(fairness_jain([1e-30, 1e30]))
