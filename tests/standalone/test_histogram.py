"""Percentiles of counted values."""

import math
import random

import pytest
from hypothesis import given
from hypothesis import strategies as st
from memory import at_most
from simpleperf.simpleperf_harness import REPEATABLE

from benchctl_standalone import histogram as histogram_module
from benchctl_standalone.histogram import Histogram

values = st.lists(st.integers(-(10**12), 10**12), min_size=1, max_size=200)


def nearest_rank(numbers, ratio):
    return sorted(numbers)[max(math.ceil(ratio * len(numbers)), 1) - 1]


def counting(numbers):
    histogram = Histogram()
    for number in numbers:
        histogram.add(number)
    return histogram


@REPEATABLE
@given(values, st.floats(0.01, 1.0))
def test_percentiles_of_few_values_are_exact(numbers, ratio):
    assert counting(numbers).percentiles(ratio) == [nearest_rank(numbers, ratio)]


def test_a_percentile_is_within_half_a_per_cent_of_its_distance_from_the_least(monkeypatch):
    monkeypatch.setattr(histogram_module, "_BUCKETS_LIMIT", 64)  # It has to join all that it can.
    random_numbers = random.Random(7)
    for offset in (-(10**15), 0, 10**18):
        numbers = [offset + int(10 ** random_numbers.uniform(0, 12)) for _ in range(5000)]
        histogram, base = counting(numbers), min(numbers[:64])
        for ratio in (0.05, 0.5, 0.95, 0.99):
            exact = nearest_rank(numbers, ratio)
            [found] = histogram.percentiles(ratio)
            assert abs(found - exact) <= max(abs(exact - base) * 0.005, 1)


DELAYS_NS = {
    # 1.5 Mbit/s on a link of 1 Mbit/s whose queue holds 200 packets.
    "overloaded": lambda rng, n: min(n * 6e6, 2.4e9) + rng.uniform(0, 12e6),
    "draining": lambda rng, n: 2.4e9 - n * 60e3 + rng.expovariate(1e-5),
    "jitter on 240 ms": lambda rng, n: rng.gauss(240e6, 1e6),
    "loopback": lambda rng, n: rng.expovariate(1 / 20e3),
    "anything up to 2.4 s": lambda rng, n: rng.uniform(0, 2.4e9),
}


@pytest.mark.parametrize("name", DELAYS_NS)
def test_the_variation_of_many_delays_is_within_a_per_cent(name):
    rng = random.Random(11)
    delays = [int(DELAYS_NS[name](rng, number)) for number in range(40_000)]
    median, p95 = counting(delay - delays[0] for delay in delays).percentiles(0.5, 0.95)
    exact = nearest_rank(delays, 0.95) - nearest_rank(delays, 0.5)
    assert p95 - median == pytest.approx(exact, rel=0.01)


def test_of_many_different_delays_little_is_kept():
    rng = random.Random(11)
    delays = [rng.randrange(2_400_000_000) for _ in range(20_000)]
    with at_most(1_000_000):
        counting(delays)


@REPEATABLE
@given(values, values)
def test_merging_histograms_is_counting_everything_in_one(first, second):
    one, other, both = Histogram(), Histogram(), Histogram()
    for number in first:
        one.add(number)
        both.add(number)
    for number in second:
        other.add(number)
        both.add(number)
    one.merge(other)
    assert one.summary_s() == both.summary_s()
    assert len(one) == len(both)


def test_an_empty_histogram_has_no_figures():
    empty, other = Histogram(), Histogram()
    other.add(5)
    empty.merge(Histogram())
    assert empty.summary_s() == {}
    empty.merge(other)
    assert empty.summary_s() == other.summary_s()
