"""Variances of points that are alike support each other, and others do not."""

import math
import random
from statistics import NormalDist

import pytest
import scipy
from hypothesis import given
from hypothesis import strategies as st

from benchctl.analysis.runs.borrowing import (
    LEAST_POINTS,
    Scatter,
    borrowed,
    disturbed_share,
    usual_of,
)


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
            limit = scipy.stats.t.ppf(0.975, one.degrees) * math.sqrt(one.variance)
            wrong += abs(rng.gauss(0, scale)) > limit
    assert wrong / 1800 <= most


def repeats(rng, points, n, *, share=0.0, factor=0.5):
    """Return the repeats of points, of which a share is disturbed: their rate is a part of it."""
    return [
        [rng.gauss(100, 3) * (factor if rng.random() < share else 1) for _ in range(n)]
        for _ in range(points)
    ]


@pytest.mark.parametrize("n", [2, 3, 5])
@pytest.mark.parametrize("share", [0.05, 0.15])
@pytest.mark.parametrize("factor", [0.3, 0.8, 3.0])
def test_the_share_of_disturbed_trials_is_found(n, share, factor):
    found = usual_of(repeats(random.Random(7), 400, n, share=share, factor=factor))
    assert disturbed_share([found]) == pytest.approx(share, abs=0.03)
    # As without them: the difference of two repeats deviates by root 2 times that of a repeat.
    apart = found.apart if found.relative else found.apart / 100
    assert apart == pytest.approx(0.03 * math.sqrt(2), rel=0.2)


@pytest.mark.parametrize("noise", [0.01, 0.1, 0.5])
def test_repeats_are_not_disturbed_for_varying_much(noise):
    rng = random.Random(8)
    series = [[math.exp(rng.gauss(place % 9, noise)) for _ in range(2)] for place in range(108)]
    found = usual_of(series)
    # 3 in 1000 are as far apart.
    assert (found.relative, found.mixed <= 3) == (True, True)


def test_one_outlier_is_no_mixture():
    normal = NormalDist(100, 3)
    series = [[100.0, normal.inv_cdf((place + 0.5) / 108)] for place in range(108)]
    series[5][0] /= 2
    assert disturbed_share([usual_of(series)]) == 0
    series[7][1] /= 2
    # Two of 216 trials, and not of one figure.
    assert disturbed_share([usual_of(series)]) == pytest.approx(2 / 216, rel=0.02)


def test_few_figures_and_figures_that_often_do_not_vary_show_nothing():
    rng = random.Random(10)
    rare = [[rng.random() * (rng.random() < 0.5) for _ in range(3)] for _ in range(50)]
    assert usual_of(rare) is None
    assert usual_of(repeats(rng, 11, 2)) is None
    assert usual_of([[5.0, 5.0]] * 50) is None
    assert disturbed_share([]) == 0


@given(st.lists(st.lists(st.floats(-1e300, 1e300), max_size=9), max_size=40))
def test_any_figures_have_a_share(series):
    found = usual_of(series)
    assert 0 <= disturbed_share([] if found is None else [found]) <= 0.5
