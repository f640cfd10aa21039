"""What two runs differ in: Welch's interval, the verdicts, and which figures meet."""

import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from benchctl.analysis.compare import Verdict, compare, judge, welch_interval
from benchctl.analysis.statistics import spread
from benchctl.analysis.summary import SummaryRow
from benchctl.metrics import Vocabulary

# Of equal size and unequal variance; t = -2.46 with 25.0 degrees of freedom
# (en.wikipedia.org/wiki/Welch's_t-test, example 1).
SPREAD = [27.5, 21.0, 19.0, 23.6, 17.0, 17.9, 16.9, 20.1, 21.9, 22.6, 23.1, 19.6, 19.0, 21.7, 21.4]
CLOSE = [27.1, 22.0, 20.8, 23.4, 23.4, 23.5, 25.8, 22.0, 24.8, 20.2, 21.9, 22.1, 22.9, 20.5, 24.4]
VALUES = st.lists(st.integers(-1000, 1000).map(float), min_size=2, max_size=8)


def row(streams, *values, metric="throughput_bps"):
    return SummaryRow({"streams": streams}, "main", "send", metric, values, spread(values))


def test_the_interval_is_welchs():
    low, high = welch_interval(SPREAD, CLOSE)
    difference = sum(CLOSE) / 15 - sum(SPREAD) / 15
    assert (low + high) / 2 == pytest.approx(difference)
    error = difference / 2.46
    # 24.99 degrees are rounded down to 24, for which Student's t is 2.064.
    assert (high - low) / 2 == pytest.approx(2.064 * error, rel=0.003)


@pytest.mark.parametrize(("n_a", "n_b"), [(2, 2), (3, 10), (10, 3)])
def test_the_interval_holds_the_true_difference_as_often_as_it_says(n_a, n_b):
    rng = random.Random(1947)
    held = 0
    for _ in range(2000):
        a = [rng.gauss(10, 4) for _ in range(n_a)]
        b = [rng.gauss(12, 1) for _ in range(n_b)]
        low, high = welch_interval(a, b)
        held += low <= 2 <= high
    # Three standard deviations of a binomial below 95 %; rounding down makes it rather more.
    assert held / 2000 >= 0.935


@given(VALUES, VALUES)
def test_changing_places_changes_the_sign(a, b):
    low, high = welch_interval(a, b)
    assert welch_interval(b, a) == pytest.approx((-high, -low))
    assert low <= sum(b) / len(b) - sum(a) / len(a) + 1e-9
    assert high >= sum(b) / len(b) - sum(a) / len(a) - 1e-9


def test_one_value_gives_no_interval():
    assert welch_interval([1.0], [2.0, 3.0]) is None
    assert welch_interval([1.0, 2.0], []) is None


def test_values_that_never_vary_differ_by_what_they_differ():
    assert welch_interval([5.0, 5.0], [7.0, 7.0]) == (2.0, 2.0)


@pytest.mark.parametrize(
    ("low", "high", "better", "verdict"),
    [
        (1.0, 3.0, "higher", Verdict.BETTER),
        (1.0, 3.0, "lower", Verdict.WORSE),
        (-3.0, -1.0, "higher", Verdict.WORSE),
        (-3.0, -1.0, "lower", Verdict.BETTER),
        (1.0, 3.0, "", Verdict.DIFFERENT),
        (-1.0, 3.0, "higher", Verdict.SAME),
        (0.0, 3.0, "higher", Verdict.SAME),
        (None, None, "higher", Verdict.FEW),
    ],
)
def test_the_verdict(low, high, better, verdict):
    difference = None if low is None else (low + high) / 2
    assert judge(difference, low, high, better) is verdict


def test_figures_meet_by_point_flow_direction_and_metric():
    a = [row(1, 10.0, 12.0), row(4, 40.0)]
    b = [row(1, 22.0, 20.0), row(4, 41.0), row(1, 0.5, metric="rtt_s")]
    both, four, only_b = compare(a, b, Vocabulary())
    assert (both.a, both.b, both.difference) == ((10.0, 12.0), (22.0, 20.0), 10.0)
    assert both.relative == pytest.approx(10 / 11)
    assert both.verdict is Verdict.BETTER
    assert (four.difference, four.low, four.verdict) == (1.0, None, Verdict.FEW)
    assert (only_b.metric, list(only_b.a), only_b.difference) == ("rtt_s", [], None)


def test_points_stand_in_the_order_of_the_first_run_then_of_the_other():
    a = [row(streams, 1.0) for streams in (4, 1, 2)]
    b = [row(streams, 1.0) for streams in (8, 2)]
    assert [one.point["streams"] for one in compare(a, b, Vocabulary())] == [4, 1, 2, 8]
