"""The distributions against SciPy."""

import math

import pytest
import scipy
from hypothesis import given
from hypothesis import strategies as st

from benchctl.analysis.distributions import (
    beta_share,
    binomial_at_most,
    digamma,
    t975,
    t_quantile,
    t_two_sided,
    trigamma,
    trigamma_inverse,
)

DEGREES = st.floats(0.5, 1e4)


@given(st.floats(-300, 300), DEGREES)
def test_the_probability_of_students_t(t, degrees):
    assert t_two_sided(t, degrees) == pytest.approx(2 * scipy.stats.t.sf(abs(t), degrees), rel=1e-9)


@given(st.floats(0.51, 1 - 1e-9), DEGREES)
def test_the_quantile_of_students_t(share, degrees):
    assert t_quantile(share, degrees) == pytest.approx(scipy.stats.t.ppf(share, degrees), rel=1e-6)


@pytest.mark.parametrize("degrees", [1, 2, 5, 30, 31, 1000])
def test_half_a_95_percent_interval(degrees):
    # The inverse of SciPy's older versions is right to ten digits only.
    assert scipy.stats.t.cdf(t975(degrees), degrees) == pytest.approx(0.975, rel=1e-12)


def test_nothing_is_farther_than_infinity():
    assert t_two_sided(math.inf, 3) == 0


@given(st.floats(0, 1), st.floats(0.05, 500), st.floats(0.05, 500))
def test_the_incomplete_beta_function(x, a, b):
    assert beta_share(x, a, b) == pytest.approx(scipy.special.betainc(a, b, x), rel=1e-9, abs=1e-14)


@given(st.integers(0, 200), st.integers(-1, 200), st.floats(0, 1))
def test_the_binomial(n, count, share):
    expected = scipy.stats.binom.cdf(count, n, share)
    assert binomial_at_most(count, n, share) == pytest.approx(expected, rel=1e-9, abs=1e-12)


@given(st.floats(0.01, 1e6))
def test_the_derivatives_of_log_gamma(x):
    assert digamma(x) == pytest.approx(scipy.special.digamma(x), rel=1e-10, abs=1e-10)
    assert trigamma(x) == pytest.approx(scipy.special.polygamma(1, x), rel=1e-10)
    assert trigamma_inverse(trigamma(x)) == pytest.approx(x, rel=1e-9)
