"""The steady part of a flow is found from its data, and its rate is that of the steady part."""

import math
import random
from statistics import fmean

import pytest
from hypothesis import given
from hypothesis import strategies as st

from benchctl.analysis.flow.figures import FlowFold
from benchctl.analysis.flow.steady import BATCH, steady_figures, steady_from
from benchctl.api import Sample


def fold_of(rates, metric="throughput_bps", step_s=1.0):
    fold = FlowFold()
    for at, rate in enumerate(rates):
        fold.add_sample("client", Sample(at * step_s, (at + 1) * step_s, {metric: rate}))
    return fold


def noisy(levels, seed=1, share=0.02):
    rng = random.Random(seed)
    return [level * rng.gauss(1, share) for level in levels]


def test_a_plateau_before_a_step_is_cut():
    rates = noisy([20e6] * 100 + [90e6] * 300)
    figures = steady_figures(fold_of(rates))
    assert figures["send", "steady_from_s"].value == pytest.approx(100, abs=10)
    assert figures["send", "steady_throughput_bps"].value == pytest.approx(90e6, rel=0.005)
    assert figures["send", "steady_throughput_bps"].origin == "samples"


def test_slow_start_no_longer_lowers_the_rate():
    rates = noisy([100e6 * (1 - math.exp(-at / 6)) for at in range(200)])
    steady = steady_figures(fold_of(rates))["send", "steady_throughput_bps"].value
    assert fmean(rates) < 0.98e8
    assert steady == pytest.approx(100e6, rel=0.005)


def test_a_rate_that_only_grows_has_no_steady_part():
    assert steady_figures(fold_of(noisy([1e6 * at for at in range(1, 300)]))) == {}


def test_a_rate_that_falls_late_has_no_steady_part():
    assert steady_figures(fold_of(noisy([90e6] * 200 + [30e6] * 90))) == {}


def test_an_even_rate_is_steady_from_the_start():
    assert steady_from([42e6] * 100) == 0
    assert steady_from([42e6 + 0.1 * (at % 3) for at in range(99)]) == 0


def test_too_few_intervals_say_nothing():
    assert steady_from([1.0] * 19) is None
    assert steady_from([1.0] * 20) == 0


def test_the_figure_is_named_after_the_rate_that_was_measured():
    figures = steady_figures(fold_of(noisy([50e6] * 60), "sent_bps", 0.1))
    assert {metric for _, metric in figures} == {"steady_sent_bps", "steady_from_s"}


@given(st.lists(st.floats(0, 1e9), min_size=50, max_size=200))
def test_the_cut_minimizes_the_error_of_the_mean_as_the_papers_define_it(values):
    """Evaluate the definition directly for every cut."""
    count = len(values) // BATCH
    first = len(values) - count * BATCH
    means = [fmean(values[at : at + BATCH]) for at in range(first, len(values), BATCH)]

    def error(cut):
        left = means[cut:]
        middle = fmean(left)
        return math.fsum((one - middle) ** 2 for one in left) / len(left) ** 2

    errors = {cut: error(cut) for cut in range(count - 4)}
    scale = max(errors.values()) + 1e-6
    found = steady_from(values)
    least = min(errors.values())
    if found is None:
        assert min(e for cut, e in errors.items() if cut > count / 2) <= least + 1e-6 * scale
    else:
        cut = max(found - first, 0) // BATCH
        assert cut <= count / 2
        assert errors[cut] <= least + 1e-6 * scale
