"""Samples in order, in bounded memory: beside NumPy's sort, percentile and histogram."""

from itertools import chain

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from benchctl.analysis.flow.counted import BITS, MOST_VALUES, ValueHistogram
from benchctl.analysis.statistics import quantile
from benchctl.report.figures.distributions import counts_in, edges_of

REPEATABLE = settings(derandomize=True, deadline=None)
SHARES = (0.0, 0.05, 0.25, 0.5, 0.75, 0.95, 0.99, 1.0)


def counted(*parts, **options):
    samples = ValueHistogram(**options)
    for part in parts:
        samples.extend(part)
    return samples


@REPEATABLE
@given(st.lists(st.lists(st.sampled_from([-0.02, 0.0, 1e-6, 0.02, 0.03, 5.0])), min_size=1))
def test_samples_that_come_in_parts_are_in_order(parts):
    samples = counted(*parts)
    assert list(samples) == sorted(chain.from_iterable(parts))
    assert samples.is_exact


@REPEATABLE
@given(st.lists(st.floats(-10, 10), min_size=1, max_size=300))
def test_quantiles_are_those_of_numpy(values):
    samples = counted(values[:7], values[7:])
    found = [quantile(samples, share) for share in SHARES]
    assert found == pytest.approx(np.quantile(values, SHARES, method="linear"), abs=1e-12)
    assert samples.mean == pytest.approx(np.mean(values), abs=1e-12)


def test_what_is_not_finite_is_no_sample():
    samples = counted([float("nan"), 0.02, float("inf")], [])
    assert list(samples) == [0.02]


def test_a_rank_that_there_is_not_is_an_error():
    samples = counted([1.0, 2.0, 3.0])
    assert (samples[-1], samples[:2]) == (3.0, [1.0, 2.0])
    with pytest.raises(IndexError):
        samples[3]
    with pytest.raises(IndexError):
        ValueHistogram()[0]


@pytest.mark.parametrize("sign", [1, -1])
def test_of_many_different_values_figures_are_right_within_a_part_in_two_thousand(sign):
    delays = sign * np.random.default_rng(7).lognormal(-4, 0.3, 200_000)
    samples = counted(*np.split(delays, 100))
    assert not samples.is_exact
    assert len(samples._counts) <= MOST_VALUES
    assert len(samples) == len(delays)
    found = [quantile(samples, share) for share in SHARES]
    assert found == pytest.approx(np.quantile(delays, SHARES), rel=2.0**-BITS)
    assert (samples[0], samples[-1]) == (delays.min(), delays.max())
    assert samples.mean == pytest.approx(delays.mean())


def test_values_of_every_size_take_no_more_memory():
    values = np.random.default_rng(7).choice([-1, 1], 5000) * np.logspace(-300, 300, 5000)
    samples = counted(values, most=100)
    assert len(samples._counts) <= 100
    assert [samples[0], samples[-1], len(samples)] == [values.min(), values.max(), 5000]
    assert list(samples) == sorted(samples)


def test_bins_are_those_of_all_samples():
    delays = np.round(np.random.default_rng(7).exponential(1e-3, 3000) + 0.02, 6)
    samples = counted(*np.split(delays, 30))
    edges = edges_of([samples])
    assert edges == edges_of([sorted(delays)])
    assert counts_in(samples, edges) == list(np.histogram(delays, edges)[0])
