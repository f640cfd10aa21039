"""Corrections for many comparisons, against their definitions and SciPy."""

from itertools import combinations

import pytest
import scipy
from hypothesis import given
from hypothesis import strategies as st

from benchctl.analysis.runs.families import benjamini_hochberg, holm

CHANCES = st.lists(st.floats(0, 1), min_size=1, max_size=6)


@given(CHANCES)
def test_holm_is_the_closed_test_of_bonferroni(alone):
    # A figure differs if every family that it belongs to has a figure that differs.
    places = range(len(alone))
    families = [f for size in places for f in combinations(places, size + 1)]
    closed = [
        max(min(1, len(f) * min(alone[at] for at in f)) for f in families if place in f)
        for place in places
    ]
    assert holm(alone) == pytest.approx(closed)


@given(CHANCES)
def test_benjamini_and_hochberg_is_scipys(alone):
    assert benjamini_hochberg(alone) == pytest.approx(
        list(scipy.stats.false_discovery_control(alone))
    )


def test_a_family_of_none_and_one():
    assert holm([]) == benjamini_hochberg([]) == []
    assert holm([0.03]) == benjamini_hochberg([0.03]) == [0.03]
