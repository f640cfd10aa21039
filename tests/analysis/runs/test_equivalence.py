"""Two one-sided tests: SciPy's Welch against a run whose repeats are scaled to the margin."""

import math
import random

import pytest
import scipy

from benchctl.analysis.runs.compare import compare
from benchctl.analysis.runs.equivalence import (
    is_no_worse,
    is_same_within,
    p_not_higher,
    p_not_lower,
    p_same_within,
)
from benchctl.analysis.runs.summary import SummaryRow
from benchctl.analysis.statistics import spread
from benchctl.metrics import Vocabulary


def compared(a, b, metric="throughput_bps", valid=True):
    """Return the comparison of one figure alone."""
    rows = [
        [SummaryRow({}, "main", "send", metric, values, spread(values), valid=valid)]
        for values in (a, b)
    ]
    return compare(*rows, Vocabulary())[0]


@pytest.mark.parametrize("metric", ["throughput_bps", "loss_ratio"])
def test_the_chances_are_those_of_welchs_test_against_the_margin(metric):
    rng = random.Random(1987)
    for _ in range(100):
        sizes, level = [rng.randint(2, 9) for _ in range(2)], rng.uniform(0.9, 1.1)
        a, b = ([rng.gauss(mean, 0.03) for _ in range(n)]
                for n, mean in zip(sizes, (1, level), strict=True))  # fmt: skip
        one = compared(a, b, metric)
        found = []
        for side, way, ours in ((-1, "greater", p_not_lower), (1, "less", p_not_higher)):
            edge = [x + side * 0.05 if metric == "loss_ratio" else x * (1 + side * 0.05) for x in a]
            theirs = scipy.stats.ttest_ind(b, edge, equal_var=False, alternative=way)
            # Its degrees are a fraction; ours are rounded down, to the larger chance.
            tail = scipy.stats.t.sf(-side * theirs.statistic, math.floor(theirs.df + 1e-9))
            assert ours(one, 0.05) == pytest.approx(tail, rel=1e-9)
            found.append(ours(one, 0.05))
        assert p_same_within(one, 0.05) == max(found)


def test_values_of_scipy():
    # SciPy 1.17.1: the statistics of ttest_ind(b, (1 ± 0.05) * a, equal_var=False), 5.12652 and
    # -4.87660 with 7.98 degrees of freedom, in stats.t.sf with 7.
    one = compared([100.0, 102.0, 98.0, 101.0, 99.0], [99.0, 101.0, 98.0, 100.0, 102.0])
    assert p_not_lower(one, 0.05) == pytest.approx(0.0006794413, rel=1e-4)
    assert p_not_higher(one, 0.05) == pytest.approx(0.0009003050, rel=1e-4)


def test_a_borrowed_variance_has_its_own_degrees():
    rng = random.Random(3)
    runs = [
        [
            SummaryRow({"p": p}, "main", "send", "throughput_bps", values, spread(values))
            for p in range(20)
            for values in ([rng.gauss(100, 1) for _ in range(2)],)
        ]
        for _ in range(2)
    ]
    one = compare(*runs, Vocabulary())[0]
    mean_a, mean_b = (sum(values) / 2 for values in (one.a, one.b))
    error = math.sqrt(one.borrowed.variance * (0.95**2 / 2 + 1 / 2))
    tail = scipy.stats.t.sf((mean_b - 0.95 * mean_a) / error, one.borrowed.degrees)
    assert p_not_lower(one, 0.05) == pytest.approx(tail, rel=1e-9)


def test_a_change_as_large_as_the_margin_is_rarely_excluded():
    rng = random.Random(4)
    wrong = sum(
        is_no_worse(
            compared(*([rng.gauss(mean, 1) for _ in range(5)] for mean in (100, 95))),
            0.05, "higher",
        )
        for _ in range(500)
    )  # fmt: skip
    # Three standard deviations of a binomial above 5 %.
    assert wrong <= 40


def test_worse_is_lower_or_higher_as_the_metric_says():
    slower = compared([100.0, 101.0, 99.0], [90.0, 91.0, 89.0])
    assert not is_no_worse(slower, 0.05, "higher")
    assert is_no_worse(slower, 0.05, "lower")
    assert is_no_worse(slower, 0.2, "higher")
    assert is_no_worse(slower, 0.05, "")
    assert (is_same_within(slower, 0.05), is_same_within(slower, 0.2)) == (False, True)


def test_a_share_of_negative_figures_is_of_their_size():
    delay = compared([-1.0, -1.01, -0.99], [-1.02, -1.03, -1.01], "owd_s")
    assert is_same_within(delay, 0.1)
    assert not is_same_within(delay, 0.01)


def test_what_shows_no_scatter_excludes_nothing():
    assert p_same_within(compared([1.0], [1.0]), 0.5) is None
    assert not is_no_worse(compared([1.0], [1.0]), 0.5, "higher")
    invalid = compared([1.0, 1.1, 0.9], [1.0, 1.1, 0.9], valid=False)
    assert not is_same_within(invalid, 0.5)
    # Counts that never vary: the chance of this order of repeats, 1 of 6 and 1 of 20.
    assert p_not_higher(compared([0.0] * 2, [0.0] * 2, "retransmits"), 0.05) == pytest.approx(1 / 6)
    assert is_no_worse(compared([0.0] * 3, [0.0] * 3, "retransmits"), 0.05, "lower")
    assert not is_no_worse(compared([0.0] * 3, [1.0] * 3, "retransmits"), 0.05, "lower")
