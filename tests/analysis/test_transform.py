"""The transform of a series equals its definition, and SciPy's."""

import cmath
import math
import random

import pytest
import scipy

from benchctl.analysis.transform import smooth_length, transform


@pytest.mark.parametrize("n", [1, 2, 7, 20, 97, 600])
def test_the_transform_equals_its_definition_and_scipys(n):
    rng = random.Random(n)
    values = [rng.gauss(0, 1) for _ in range(n)]
    found = transform(values)
    by_hand = [
        sum(value * cmath.exp(-2j * math.pi * k * t / n) for t, value in enumerate(values))
        for k in range(n)
    ]
    assert found == pytest.approx(by_hand, abs=1e-9)
    assert found == pytest.approx(list(scipy.fft.fft(values)), abs=1e-9)


def test_a_length_keeps_nearly_all_of_a_series():
    assert [smooth_length(n) for n in (1, 7, 20, 97, 599, 600)] == [1, 6, 20, 96, 576, 600]
    assert all(smooth_length(n) > 0.85 * n for n in range(20, 601))
