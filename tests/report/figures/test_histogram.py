import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from benchctl.report.figures.distributions import MOST_BINS, counts_in, edges_of

REPEATABLE = settings(derandomize=True, deadline=None)


@REPEATABLE
@given(st.lists(st.floats(-10, 10), min_size=1, max_size=200))
def test_every_sample_is_in_one_bin_whatever_its_sign(values):
    ordered = sorted(values)
    edges = edges_of([ordered])
    assert edges == sorted(set(edges))
    assert len(edges) <= MOST_BINS + 1
    counts = counts_in(ordered, edges)
    assert sum(counts) == len(values)
    assert counts == list(np.histogram(ordered, edges)[0])


def test_bins_are_those_of_freedman_and_diaconis():
    delays = np.random.default_rng(7).exponential(1e-3, 1000) - 0.049
    edges = edges_of([sorted(delays)])
    assert edges == pytest.approx(np.histogram_bin_edges(delays, "fd"))
    assert edges[0] < 0


def test_equal_samples_are_one_bin():
    assert counts_in([-0.049] * 3, edges_of([[-0.049] * 3])) == [3]


def test_lines_that_are_far_apart_have_bins_as_fine_as_there_is_room():
    there = sorted(np.random.default_rng(7).exponential(1e-3, 1000) + 0.05)
    back = sorted(np.random.default_rng(8).exponential(1e-3, 1000) - 0.05)
    edges = edges_of([there, back])
    assert len(edges) == MOST_BINS + 1
    assert sum(map(bool, counts_in(there, edges))) > 3
