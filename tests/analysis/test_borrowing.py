"""Variances of points that are alike support each other, and others do not."""

import math
import random

import pytest
from scipy import stats

from benchctl.analysis.borrowing import LEAST_POINTS, Scatter, borrowed


def drawn(rng, degrees, scales):
    """Return variances as they are measured: chi-square around the square of each scale."""
    return [
        Scatter(scale**2 * sum(rng.gauss(0, 1) ** 2 for _ in range(degrees)) / degrees, degrees)
        for scale in scales
    ]


def test_points_that_scatter_alike_share_one_variance():
    after = borrowed(drawn(random.Random(1), 4, [1.0] * 200), [100.0] * 200)
    assert min(one.degrees for one in after) > 12
    assert all(one.variance == pytest.approx(1, abs=0.7) for one in after)


def test_points_that_differ_borrow_little():
    rng = random.Random(2)
    own = drawn(rng, 4, [math.exp(rng.gauss(0, 1.5)) for _ in range(200)])
    assert max(one.degrees for one in borrowed(own, [100.0] * 200)) < 6


def test_a_scatter_that_grows_with_the_level_is_borrowed_relative_to_it():
    levels = [10.0 ** (place % 4) for place in range(80)]
    own = drawn(random.Random(3), 4, [0.02 * level for level in levels])
    for one, level in zip(borrowed(own, levels), levels, strict=True):
        assert math.sqrt(one.variance) / level == pytest.approx(0.02, rel=0.7)


def test_too_few_points_borrow_nothing():
    own = [Scatter(1.0, 4)] * (LEAST_POINTS - 1)
    assert borrowed(own, [100.0] * len(own)) == []
    assert borrowed([*own, Scatter(0.0, 4)], [100.0] * LEAST_POINTS) == []


def test_a_point_that_did_not_vary_borrows_too():
    own = drawn(random.Random(4), 4, [1.0] * 20)
    assert 0 < borrowed([*own, Scatter(0.0, 4)], [100.0] * 21)[-1].variance < 1.5


def test_borrowing_knows_no_more_than_all_points_together():
    own = drawn(random.Random(5), 2, [1.0] * 8)
    assert all(one.degrees <= 16 for one in borrowed(own, [100.0] * 8))


@pytest.mark.parametrize(
    # Three standard deviations of a binomial above 5 %; and more where few repeats of 18 points
    # show little of how unlike their variances are, so that some pass for alike.
    ("spread", "most"), [(0.0, 0.065), (0.5, 0.08), (1.0, 0.08)]
)  # fmt: skip
def test_tests_with_borrowed_variances_err_hardly_more_often_than_they_say(spread, most):
    rng = random.Random(6)
    wrong = 0
    for _ in range(100):
        scales = [math.exp(rng.gauss(0, spread)) for _ in range(18)]
        after = borrowed(drawn(rng, 2, scales), [100.0] * 18)
        for one, scale in zip(after, scales, strict=True):
            limit = stats.t.ppf(0.975, one.degrees) * math.sqrt(one.variance)
            wrong += abs(rng.gauss(0, scale)) > limit
    assert wrong / 1800 <= most
