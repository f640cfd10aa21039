"""A drift over the run is found whatever its points are, and hardly any where there is none."""

import random

import pytest
import scipy

from benchctl.analysis.runs.drift import drifts_of, trend


def run_of(rng, points=4, repeats=5, drift=0.0):
    """Return interleaved trials: points of unlike levels, each drifting by a share of it."""
    last = points * repeats - 1
    return [
        [
            (at, level * (1 + drift * at / last) * rng.gauss(1, 0.02))
            for at in range(point, points * repeats, points)
        ]
        for point, level in enumerate(10.0**n for n in range(points))
    ]


def test_one_point_is_tested_as_kendall_does():
    rng = random.Random(3)
    values = [rng.gauss(100, 5) + at for at in range(20)]
    p, _ = trend([list(enumerate(values))])
    # SciPy has no correction for continuity: one step of the score in its favour.
    score = sum((b > a) - (b < a) for n, b in enumerate(values) for a in values[:n])
    without = 2 * scipy.stats.norm.sf(abs(score) / (20 * 19 * 45 / 18) ** 0.5)
    kendall = scipy.stats.kendalltau(range(20), values, method="asymptotic").pvalue
    assert without == pytest.approx(kendall)
    assert kendall < p < 1.3 * kendall


def test_a_drift_is_found_over_points_of_unlike_levels():
    p, change = trend(run_of(random.Random(5), drift=-0.2))
    assert p < 0.001
    assert change == pytest.approx(-0.2, abs=0.05)


@pytest.mark.parametrize(("points", "repeats"), [(10, 2), (4, 3), (4, 5), (1, 10)])
def test_hardly_any_drift_is_found_where_there_is_none(points, repeats):
    rng = random.Random(7)
    tests = 1000
    seen = sum(trend(run_of(rng, points, repeats))[0] < 0.05 for _ in range(tests))
    assert seen / tests < 0.06


def test_the_verdict_holds_for_all_figures_together():
    rng = random.Random(9)
    flat = [((f"flow {n}", "send", "throughput_bps"), run_of(rng)) for n in range(20)]
    moved = (("moved", "send", "throughput_bps"), run_of(rng, drift=0.3))
    found = drifts_of([*flat, moved])
    assert [one.flow for one in found if one.is_seen] == ["moved"]
    assert all(one.p_adjusted >= one.p for one in found)
    assert (found[-1].points, found[-1].repeats) == (4, 20)


def test_few_or_equal_repeats_are_not_tested():
    assert trend([[(0, 1.0), (4, 2.0), (8, 3.0), (12, 4.0)]]) is None
    assert trend([[(at, 5.0) for at in range(10)]]) is None
    assert drifts_of([(("main", "send", "rtt_s"), [[(0, 1.0)]] * 30)]) == []
