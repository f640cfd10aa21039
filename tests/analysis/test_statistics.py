import math
import statistics

import pytest
from hypothesis import given
from hypothesis import strategies as st

from benchctl.analysis.statistics import fairness_jain, quantile, spread, t975

VALUES = st.lists(st.floats(-1e9, 1e9), min_size=2, max_size=40)


@pytest.mark.parametrize(
    # From R: qt(0.975, c(1, 2, 5, 30, 31, 40, 60, 120, 1000))
    ("degrees", "expected"),
    [
        (1, 12.706205), (2, 4.302653), (5, 2.570582), (30, 2.042272), (31, 2.039513),
        (40, 2.021075), (60, 2.000298), (120, 1.979930), (1000, 1.962339),
    ],
)  # fmt: skip
def test_students_quantile(degrees, expected):
    assert t975(degrees) == pytest.approx(expected, abs=2e-4)


def test_students_quantile_falls_towards_the_normal_one():
    values = [t975(degrees) for degrees in range(1, 500)]
    assert values == sorted(values, reverse=True)
    assert values[-1] > 1.959964


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
