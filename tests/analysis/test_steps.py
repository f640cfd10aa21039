"""Steps in series whose noise depends on itself are found, and none in flat ones."""

import math
import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from benchctl.analysis.steps import LEAST_SERIES, find_steps

PHIS = (0.0, 0.3, 0.6, 0.9)


def autoregression(rng, n, phi):
    """Return AR(1) noise of marginal variance 1."""
    value, values = rng.gauss(0, 1), []
    for _ in range(n):
        values.append(value)
        value = phi * value + rng.gauss(0, math.sqrt(1 - phi * phi))
    return values


@pytest.mark.parametrize("phi", PHIS)
def test_a_step_of_five_deviations_is_found_within_two_samples(phi):
    rng = random.Random(600)
    found = 0
    for _ in range(60):
        at = rng.randrange(60, 540)
        noise = autoregression(rng, 600, phi)
        steps = find_steps([value + 5 * (place >= at) for place, value in enumerate(noise)])
        found += any(abs(step.at - at) <= 2 for step in steps)
    assert found >= 0.95 * 60


@pytest.mark.parametrize("phi", PHIS)
def test_a_flat_series_has_no_steps(phi):
    rng = random.Random(1954)
    assert sum(bool(find_steps(autoregression(rng, 600, phi))) for _ in range(100)) <= 1


def test_steps_that_are_known_bring_no_more_false_ones():
    rng, chance, false = random.Random(2007), 0.1, 0
    for _ in range(60):
        levels = [20.0 * (place // 20 % 2) for place in range(400)]
        steps = find_steps([level + rng.gauss(0, 1) for level in levels], chance)
        false += len(steps) > 19
    assert false <= chance * 60


def test_every_step_has_its_levels_and_a_confidence():
    rng = random.Random(3)
    levels = [10.0] * 40 + [20.0] * 40 + [5.0] * 40
    first, second = find_steps([level + rng.gauss(0, 0.5) for level in levels])
    assert (first.at, second.at) == (40, 80)
    assert (first.before, first.after) == pytest.approx((10, 20), abs=0.5)
    assert (second.before, second.after) == (first.after, pytest.approx(5, abs=0.5))
    assert min(first.confidence, second.confidence) > 0.998


def test_a_single_outlier_is_no_step():
    rng = random.Random(4)
    values = [rng.gauss(100, 1) for _ in range(60)]
    values[30] = 50.0
    assert all(abs(step.after - step.before) < 5 for step in find_steps(values))


def test_constant_and_short_series_have_no_steps():
    assert find_steps([5.0] * 100) == []
    assert find_steps([1.0] * 9 + [100.0] * 10) == []


@given(st.lists(st.floats(-1e12, 1e12), min_size=LEAST_SERIES, max_size=80))
def test_steps_stand_in_order_within_the_series(values):
    places = [step.at for step in find_steps(values)]
    assert places == sorted(set(places))
    assert all(0 < place < len(values) for place in places)


@given(st.floats(1e-6, 1e9), st.floats(-1e9, 1e9))
def test_neither_unit_nor_origin_matters(unit, origin):
    rng = random.Random(5)
    values = [rng.gauss(0, 1) + 8 * (place >= 25) for place in range(50)]
    scale = max(unit, abs(origin) * 1e-6)
    moved = [value * scale + origin for value in values]
    assert [step.at for step in find_steps(moved)] == [step.at for step in find_steps(values)]
