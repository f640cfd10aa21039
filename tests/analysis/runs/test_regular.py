"""Series of runs: what is no change of level is taken out, and a change stays."""

import math
import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from benchctl.analysis.runs.regular import (
    LEAST_LEVEL,
    regular,
    without_daily_cycle,
    without_outliers,
)
from benchctl.analysis.steps import find_steps

HOUR_S = 3600.0
# As in a table of 60 hosts with all their pairs.
ALARMS = 0.05 / (60 * 59)


def six_hourly(rng, runs, *, drop=None, disturbed=0.05, cycle=0.1):
    """Return times and rates of runs each six hours; from ``drop`` on a fifth is missing."""
    times = [run * 6 * HOUR_S + rng.uniform(0, 600) for run in range(runs)]
    phase, size = rng.uniform(0, 2 * math.pi), rng.uniform(0, cycle)
    values = []
    for run, time in enumerate(times):
        value = 900e6 * (1 + size * math.sin(2 * math.pi * time / 86400 + phase))
        value *= rng.gauss(1, 0.03) * (0.5 if rng.random() < disturbed else 1)
        values.append(value * (0.8 if drop is not None and run >= drop else 1))
    return times, values


@pytest.mark.parametrize("offset", [0.0, -2000.0])
def test_a_daily_cycle_goes_and_the_level_stays(offset):
    times = [run * 6 * HOUR_S for run in range(60)]
    values = [1000 + offset + 300 * math.sin(run * math.pi / 2) for run in range(60)]
    assert without_daily_cycle(times, values) == pytest.approx([1000 + offset] * 60)


def test_a_change_of_the_clock_is_no_change_of_the_cycle():
    """From the 21st day on, the runs are an hour earlier in UTC."""
    times = [run * 6 * HOUR_S - (run >= 80) * HOUR_S for run in range(84)]
    values = [1000 + 300 * math.sin(run * math.pi / 2) for run in range(84)]
    assert without_daily_cycle(times, values) == pytest.approx([1000] * 84)


def test_few_days_show_no_cycle():
    times = [run * 6 * HOUR_S for run in range(20)]
    values = [float(run % 4) for run in range(20)]
    assert without_daily_cycle(times, values) == values


@pytest.mark.parametrize("row", range(1, 8))
def test_a_few_outliers_in_a_row_go_and_more_are_a_level(row):
    rng = random.Random(row)
    values = [rng.gauss(100, 1) for _ in range(60)]
    values[30 : 30 + row] = [50.0] * row
    calm = without_outliers(values)
    assert (min(calm) > 90) is (row < LEAST_LEVEL)
    kept = [one for one in range(60) if not 30 <= one < 30 + row and abs(values[one] - 100) < 2]
    assert [calm[one] for one in kept] == [values[one] for one in kept]


@given(st.lists(st.floats(-1e12, 1e12), max_size=50))
def test_any_values_have_their_places(values):
    times = [place * 5000.0 for place in range(len(values))]
    assert len(regular(times, values)) == len(values)


def test_a_fifth_less_is_found_within_a_day_beside_a_cycle_and_disturbed_trials():
    rng = random.Random(35)
    found = raw = 0
    for _ in range(60):
        times, values = six_hourly(rng, 118, drop=114)
        found += any(one.at >= 112 for one in find_steps(regular(times, values), ALARMS))
        raw += bool(find_steps(values, ALARMS))
    assert found >= 57
    assert raw <= 5


def test_a_mesh_of_pairs_without_a_change_shows_hardly_any():
    rng = random.Random(36)
    series = (six_hourly(rng, 120) for _ in range(400))
    # 0.2 are expected: so many disturbed trials in a row.
    assert sum(bool(find_steps(regular(*one), ALARMS)) for one in series) <= 2
