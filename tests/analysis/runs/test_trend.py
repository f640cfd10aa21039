"""One figure over the runs of a profile: its changes of level, and nothing else, are named."""

import random
from statistics import median

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from benchctl.analysis.runs.compare import Verdict
from benchctl.analysis.runs.summary import SummaryRow
from benchctl.analysis.runs.trend import trends_of
from benchctl.analysis.statistics import spread
from benchctl.analysis.steps import LEAST_SERIES


def row(value, valid=True, **point):
    values = [value * 0.99, value, value * 1.01]
    return SummaryRow(point, "main", "send", "throughput_bps", values, spread(values), {}, valid)


def series(levels, seed=1, share=0.01):
    rng = random.Random(seed)
    return [level * rng.gauss(1, share) for level in levels]


def changes(values, better="higher"):
    (trend,) = trends_of(range(len(values)), [[row(value)] for value in values], better)
    return trend.changes


def places(values):
    return [change.run for change in changes(values)]


@pytest.mark.parametrize("lasts", [6, 10, 20, 40, 80])
@pytest.mark.parametrize("around", [7, 20, 60])
def test_a_level_that_falls_and_returns_is_found_however_long_it_lasts(lasts, around):
    values = series([95e6] * around + [80e6] * lasts + [95e6] * around)
    if len(values) < LEAST_SERIES:
        values += series([95e6] * (LEAST_SERIES - len(values)), seed=2)
    down, up = changes(values)
    assert (down.run, up.run) == (around, around + lasts)
    assert (down.levels.verdict, up.levels.verdict) == (Verdict.WORSE, Verdict.BETTER)
    assert down.levels.b == up.levels.a == (median(values[around : around + lasts]),)


def test_a_level_that_falls_and_returns_again_and_again_is_found_each_time():
    values = series(([95e6] * 10 + [80e6] * 10) * 4)
    assert places(values) == list(range(10, 80, 10))


def test_levels_that_never_vary_but_once_have_changed_there():
    assert places([95e6] * 15 + [80e6] * 10) == [15]
    assert places([95e6] * 15 + [80e6] * 10 + [95e6] * 10) == [15, 25]


def test_one_bad_night_is_no_change():
    values = series([95e6] * 40)
    values[17] = 40e6
    assert places(values) == []
    values[18] = 35e6
    assert places(values) == []


def test_hardly_any_figure_of_many_without_a_change_shows_one():
    rng = random.Random(14)
    runs = [[row(rng.gauss(95e6, 1e6), n=n) for n in range(54)] for _ in range(40)]
    assert not [one for one in trends_of(range(len(runs)), runs, "higher") if one.changes]


def test_what_is_better_decides_the_verdict_and_not_the_place():
    values = series([95e6] * 30 + [80e6] * 30)
    verdicts = {better: [one.levels.verdict for one in changes(values, better)]
                for better in ("higher", "lower", "")}  # fmt: skip
    assert verdicts == {
        "higher": [Verdict.WORSE], "lower": [Verdict.BETTER], "": [Verdict.DIFFERENT]
    }  # fmt: skip


def test_a_change_begins_at_a_run_that_has_the_figure_and_was_valid():
    levels = series([95e6] * 30 + [80e6] * 30)
    runs = [[row(value)] for value in levels]
    runs[30] = []
    runs[31] = [row(levels[31], valid=False)]
    (trend,) = trends_of(range(len(runs)), runs, "higher")
    assert [change.run for change in trend.changes] == [32]
    assert len(trend.rows) == 59


values_of_runs = st.lists(st.floats(1.0, 1e9), min_size=LEAST_SERIES, max_size=60)


@settings(deadline=None)
@given(values_of_runs)
def test_changes_stand_in_order_between_levels_that_are_medians_of_their_runs(values):
    found = changes(values)
    at = [change.run for change in found]
    assert at == sorted(set(at))
    for change, before, after in zip(found, [0, *at], [*at[1:], len(values)], strict=False):
        means = [row(value).spread.mean for value in values]
        a, b = median(means[before : change.run]), median(means[change.run : after])
        assert (change.levels.a, change.levels.b) == ((a,), (b,))
        assert change.levels.difference == b - a
        assert 0.99 < change.confidence <= 1


@settings(deadline=None)
@given(
    st.floats(1e-3, 1e3), st.lists(st.integers(1, 5), min_size=2, max_size=5), st.integers(0, 99)
)
def test_neither_unit_nor_other_figures_move_a_change(unit, levels, seed):
    values = series([10.0 * level for level in levels for _ in range(12)], seed)
    assert places([value * unit for value in values]) == places(values)
    runs = [[replace(row(5e6), flow="other"), row(value)] for value in values]
    _, own = trends_of(range(len(runs)), runs, "higher")
    assert [change.run for change in own.changes] == places(values)
