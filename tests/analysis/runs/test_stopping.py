"""Repeats stop when a figure is known; its interval holds the truth as often as it says."""

import random

import pytest

from benchctl.analysis.runs.stopping import is_known_to, spent
from benchctl.analysis.statistics import spread


def repeated(rng, variation, *, share=0.02, least=3, most=20):
    values = [rng.gauss(100, 100 * variation) for _ in range(least)]
    while len(values) < most and not is_known_to(values, share, most):
        values.append(rng.gauss(100, 100 * variation))
    return values


@pytest.mark.parametrize("variation", [0.01, 0.05, 0.2])
def test_the_interval_after_stopping_holds_the_truth(variation):
    rng = random.Random(1983)
    runs = [spread(repeated(rng, variation)) for _ in range(1500)]
    held = sum(one.ci95_low <= 100 <= one.ci95_high for one in runs) / len(runs)
    # The bound is 93 to 97 %; two standard deviations of a binomial are 1.1 %.
    assert 0.92 <= held <= 0.97


def test_what_hardly_scatters_stops_early_and_what_scatters_goes_on_to_the_last():
    rng = random.Random(1)
    assert len(repeated(rng, 0.0)) == 3
    assert len(repeated(rng, 0.003)) < 10
    assert len(repeated(rng, 0.5)) == 20


def test_errors_are_spent_late_and_all_of_them_at_the_end():
    shares = [spent(n / 20) for n in range(3, 21)]
    assert shares == sorted(shares)
    assert shares[0] < 1e-6
    assert shares[-1] == pytest.approx(0.05)


def test_one_value_is_never_enough():
    assert not is_known_to([5.0], 0.5, 20)
    assert not is_known_to([0.0, 0.1, -0.1], 0.02, 20)
