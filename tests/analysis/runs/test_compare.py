"""What two runs differ in: Welch's interval, the verdicts, and which figures meet."""

import math
import random

import pytest
import scipy
from hypothesis import given
from hypothesis import strategies as st

from benchctl.analysis.runs.compare import Verdict, compare, judge, repeats_needed, welch_interval
from benchctl.analysis.runs.summary import SummaryRow
from benchctl.analysis.statistics import spread
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
    ("difference", "adjusted", "better", "verdict"),
    [
        (2.0, 0.01, "higher", Verdict.BETTER),
        (2.0, 0.01, "lower", Verdict.WORSE),
        (-2.0, 0.01, "higher", Verdict.WORSE),
        (-2.0, 0.05, "lower", Verdict.BETTER),
        (2.0, 0.01, "", Verdict.DIFFERENT),
        (2.0, 0.051, "higher", Verdict.SAME),
        (2.0, None, "higher", Verdict.FEW),
        (None, None, "higher", Verdict.FEW),
    ],
)
def test_the_verdict(difference, adjusted, better, verdict):
    assert judge(difference, adjusted, better) is verdict


@given(VALUES, VALUES)
def test_the_chance_of_a_difference_is_that_of_welchs_test(a, b):
    (one,) = compare([row(1, *a)], [row(1, *b)], Vocabulary())
    if len(set(a)) > 1 and len(set(b)) > 1:
        # Its degrees are a fraction; ours are rounded down, to the larger chance.
        assert one.p >= scipy.stats.ttest_ind(a, b, equal_var=False).pvalue * (1 - 1e-9)
        if len(a) == len(b):
            assert (one.p < 0.05) == (not one.low <= 0 <= one.high)
    assert one.adjusted == one.p
    assert one.family == 1


def test_the_chance_with_unequal_repeats_has_the_degrees_of_the_fewer():
    a, b = [10.0, 12.0, 11.0], [20.0, 21.0, 19.0, 20.5, 19.5, 20.0, 20.2]
    (one,) = compare([row(1, *a)], [row(1, *b)], Vocabulary())
    t = scipy.stats.ttest_ind(a, b, equal_var=False).statistic
    assert one.p == pytest.approx(2 * scipy.stats.t.sf(abs(t), 2))


def borrowing(counts, still=()):
    """Return which of 8 points borrow; ``still`` are those that never vary."""
    rng = random.Random(9)
    runs = [
        [row(p, *(100.0 if p in still else rng.gauss(100, 1) for _ in range(n))) for p in range(8)]
        for n in counts
    ]
    return {one.borrows for one in compare(*runs, Vocabulary())}


def test_variance_is_borrowed_only_where_points_vary_and_repeats_are_about_as_many():
    assert borrowing((3, 3)) == {True}
    assert borrowing((3, 6)) == {True}
    assert borrowing((3, 7)) == {False}
    # Loss that is mostly none: where it was seen it looks far too certain.
    assert borrowing((3, 3), still=(5,)) == {False}


def test_loss_that_is_mostly_none_rarely_has_a_verdict():
    rng = random.Random(31)

    def run(n):
        return [row(p, *(rng.random() * (rng.random() < 0.2) for _ in range(n))) for p in range(54)]

    compared = [compare(run(2), run(5), Vocabulary()) for _ in range(20)]
    assert not any(one.verdict.is_certain for table in compared for one in table)


def test_figures_that_never_vary_have_the_exact_chance_of_their_order():
    (one,) = compare([row(1, 0.0, 0.0, 0.0)], [row(1, 1.0, 1.0, 1.0)], Vocabulary())
    # Of the 20 ways to deal six values to two runs, two are as far apart.
    assert one.p == pytest.approx(2 / 20)
    assert one.verdict is Verdict.APART
    (same,) = compare([row(1, 5.0, 5.0)], [row(1, 5.0, 5.0)], Vocabulary())
    assert (same.p, same.verdict) == (1, Verdict.SAME)


def table(rng, points, n, *, shift=0.0, metric="throughput_bps"):
    """Return a run of points that scatter alike; the first is shifted."""
    return [
        row(p, *(rng.gauss(100 + shift * (p == 0), 1) for _ in range(n)), metric=metric)
        for p in range(points)
    ]


@pytest.mark.parametrize("n", [2, 3, 5])
def test_a_table_without_a_difference_rarely_has_a_verdict(n):
    rng = random.Random(54)
    seen = 0
    for _ in range(100):
        compared = compare(table(rng, 54, n), table(rng, 54, n), Vocabulary())
        assert {one.family for one in compared} == {54}
        seen += any(one.verdict is not Verdict.SAME for one in compared)
    # Three standard deviations of a binomial above 5 %.
    assert seen <= 11


def disturbed(rng, n, share):
    """Return a run of 54 equal points; a share of its trials runs at half the rate."""
    return [
        row(p, *(rng.gauss(100, 3) * (0.5 if rng.random() < share else 1) for _ in range(n)))
        for p in range(54)
    ]


@pytest.mark.parametrize(("n", "share"), [(2, 0.05), (2, 0.1), (2, 0.15), (3, 0.15)])
def test_a_table_of_disturbed_trials_rarely_has_a_verdict(n, share):
    rng = random.Random(28)
    tables = [
        compare(disturbed(rng, n, share), disturbed(rng, n, share), Vocabulary()) for _ in range(60)
    ]
    # Three standard deviations of a binomial above 5 %; without the share, 12 to 49 of 60 had one.
    assert sum(any(one.verdict.is_certain for one in table) for table in tables) <= 8
    assert any(one.verdict is Verdict.VARYING for table in tables for one in table)


def test_few_repeats_have_no_verdict_among_disturbed_trials_and_more_have_one():
    def compared(n):
        rng = random.Random(12)
        a, b = disturbed(rng, n, 0.1), disturbed(rng, n, 0.1)
        a[0] = row(0, *(99.0, 100.0, 101.0, 100.5, 99.5)[:n])
        b[0] = row(0, *(199.0, 200.0, 201.0, 200.5, 199.5)[:n])
        return compare(a, b, Vocabulary())[0]

    few, more = compared(2), compared(5)
    assert few.disturbed == pytest.approx(0.1, abs=0.05)
    assert few.p >= 2 * few.disturbed**2
    assert (few.verdict, more.verdict) == (Verdict.VARYING, Verdict.BETTER)
    # All repeats of either run may be disturbed, in any of 54 figures.
    n = few.repeats_needed
    assert 54 * 2 * few.disturbed**n < 0.05 < 54 * 2 * few.disturbed ** (n - 2)


@pytest.mark.parametrize(("figures", "counts"), [(54, False), (12, True)])
def test_so_few_outliers_that_hardly_a_figure_is_wholly_disturbed_cost_nothing(figures, counts):
    rng = random.Random(5)
    a, b = disturbed(rng, 2, 0.0)[:figures], disturbed(rng, 2, 0.0)[:figures]
    # Three of 108 trials are at half rate: 0.02 figures have both disturbed. Of 24, 0.1.
    a[1:4] = [row(place, 50.0, 100.0) for place in (1, 2, 3)]
    assert all((one.disturbed > 0) is counts for one in compare(a, b, Vocabulary()))


def test_what_is_far_apart_without_a_verdict_says_so():
    a, b = [row(9, 8.2e9, 7.96e9)], [row(9, 20.1e6, 20.3e6)]
    for place in range(53):
        a.append(row(place + 10, 1.0, 1.0, metric="rtt_s"))
        b.append(row(place + 10, 1.0, 1.0, metric="rtt_s"))
    (one, *_) = compare(a, b, Vocabulary())
    assert (one.family, one.adjusted > 0.05, one.verdict) == (54, True, Verdict.APART)
    # Equal figures whose intervals exclude zero by chance are not far apart.
    rng = random.Random(13)
    tables = [compare(table(rng, 54, 3), table(rng, 54, 3), Vocabulary()) for _ in range(10)]
    equal = [one for compared in tables for one in compared]
    assert sum(not one.low <= 0 <= one.high for one in equal) > 9
    assert not any(one.verdict is Verdict.APART for one in equal)


@pytest.mark.parametrize(("n", "shift"), [(2, 9), (5, 6)])
def test_a_true_difference_is_named_among_many_equal_figures(n, shift):
    rng = random.Random(6)
    named = 0
    for _ in range(30):
        compared = compare(table(rng, 54, n), table(rng, 54, n, shift=shift), Vocabulary())
        named += compared[0].verdict is Verdict.BETTER
    assert named >= 27


def test_a_verdict_does_not_depend_on_whether_other_metrics_are_shown():
    rng = random.Random(7)
    a, b = table(rng, 6, 3), table(rng, 6, 3, shift=5)
    other = [table(rng, 200, 3, metric="packets_sent") for _ in range(2)]
    alone = compare(a, b, Vocabulary())
    beside = compare(a + other[0], b + other[1], Vocabulary())
    assert [one.adjusted for one in beside[:6]] == [one.adjusted for one in alone]
    assert {one.family for one in beside} == {6, 200}


@pytest.mark.parametrize(("effect", "family"), [(1.0, 1), (0.5, 54), (3.0, 54)])
def test_the_repeats_that_would_show_a_difference_have_the_power_that_they_promise(effect, family):
    n = repeats_needed(effect, family)
    level = 1 - 0.05 / family / 2

    def power(repeats):
        degrees = 2 * repeats - 2
        apart = effect * math.sqrt(repeats / 2)
        return scipy.stats.nct.sf(scipy.stats.t.ppf(level, degrees), degrees, apart)

    assert power(n) == pytest.approx(0.8, abs=0.09)
    assert power(n - 2) < 0.8


def test_no_number_of_repeats_shows_what_is_next_to_nothing():
    assert repeats_needed(0.0, 1) is None
    assert repeats_needed(0.001, 54) is None


def test_only_what_has_no_verdict_needs_more_repeats():
    rng = random.Random(8)
    compared = compare(table(rng, 8, 4), table(rng, 8, 4, shift=9), Vocabulary())
    assert (compared[0].verdict, compared[0].repeats_needed) == (Verdict.BETTER, None)
    assert any(one.repeats_needed for one in compared)
    assert all(one.repeats_needed is None or one.repeats_needed > 4 for one in compared)


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
