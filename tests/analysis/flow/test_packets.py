import math

import pytest
from analysis.flow.probed import delays, fold_of
from hypothesis import given, settings
from hypothesis import strategies as st

from benchctl.analysis.flow.figures import FlowFold
from benchctl.analysis.flow.packets import (
    DEGREES,
    ipdv_s,
    packet_figures,
    pdv_p95_p50_s,
    reordering,
)
from benchctl.metrics import Sample, Summary

REPEATABLE = settings(derandomize=True, deadline=None)


@pytest.mark.parametrize(
    ("arrival", "reordered", "by_1", "by_3"),
    [
        # The three examples of RFC 4737, section 7.
        ([1, 2, 3, 5, 6, 7, 8, 4, 9, 10], 1, 1, 1),
        ([1, 2, 3, 4, 7, 5, 6, 8, 9, 10], 2, 1, 0),
        ([1, 2, 3, 7, 8, 9, 10, 4, 5, 6, 11], 3, 1, 1),
        ([1, 2, 3], 0, 0, 0),
        ([4, 5, 3], 1, 1, 0),
    ],
)
def test_packets_are_reordered_as_in_the_examples_of_the_standard(arrival, reordered, by_1, by_3):
    assert reordering(arrival) == {0: reordered, 1: by_1, 3: by_3}


@REPEATABLE
@given(st.permutations(range(12)))
def test_reordering_is_that_of_the_definitions(arrival):
    # RFC 4737, 3.3 and 5.3, word by word.
    places = range(len(arrival))
    reordered = [i for i in places if any(arrival[j] > arrival[i] for j in range(i))]
    found = {
        n: sum(i >= n and all(arrival[j] > arrival[i] for j in range(i - n, i)) for i in places)
        for n in DEGREES
    }
    assert reordering(arrival) == {0: len(reordered), **found}


def test_variation_between_packets_is_signed_and_undefined_beside_a_lost_one():
    # RFC 3393: the later less the earlier, in the order of sending.
    sent, told = [0.2, 0.0, 0.1, 0.4], [5.0, 1.0, 4.0, 2.0]
    assert ipdv_s(sent, told) == [3.0, 1.0, -3.0]
    assert ipdv_s(sent, told, lost_s=[0.3]) == [3.0, 1.0]


def owamp_percentile(ordered, share, sent):
    """Walk sorted delays as owamp's BucketBufferSortPercentile walks its buckets."""
    for reached, delay in enumerate(ordered, start=1):
        if reached >= share * sent:
            return delay
    return None


@REPEATABLE
@given(st.lists(st.floats(-1, 1), min_size=1, max_size=60), st.integers(0, 60))
def test_the_variation_is_reckoned_as_owamp_reckons_it(values, lost):
    ordered, sent = sorted(values), len(values) + lost
    high, middle = (owamp_percentile(ordered, share, sent) for share in (0.95, 0.5))
    expected = None if high is None or middle is None else high - middle
    assert pdv_p95_p50_s(ordered, sent) == expected


@REPEATABLE
@given(
    st.lists(st.integers(1, 10**6), min_size=2, max_size=50),
    st.integers(-(10**9), 10**9),
)
def test_no_offset_of_the_clocks_changes_a_variation(values, offset):
    # Of whole numbers, so that rounding cannot excuse a difference.
    sent = range(len(values))
    shifted = [value + offset for value in values]
    assert ipdv_s(sent, values) == ipdv_s(sent, shifted)
    plain, moved = sorted(values), sorted(shifted)
    assert pdv_p95_p50_s(plain, len(values)) == pdv_p95_p50_s(moved, len(values))


def test_packets_have_the_figures_of_all_together():
    packets = [(0.0, -0.063), (0.1, -0.061), (0.2, 0.4), (0.3, -0.06), (0.4, -0.05)]
    figures = packet_figures(fold_of(packets, lost=[0.5]))
    values = {metric: figure.value for (_, metric), figure in figures.items()}
    variations = values.pop("ipdv_s")
    assert values == {
        "packets_sent": 6, "packets_received": 5, "packets_lost": 1, "packets_duplicated": 0,
        "loss_ratio": pytest.approx(1 / 6), "packets_reordered": 1, "reordered_ratio": 0.2,
        "packets_1_reordered": 1, "packets_3_reordered": 0,
    }  # fmt: skip
    assert variations == pytest.approx((-0.05 + 0.063) / 4)
    spread = figures["send", "ipdv_s"].spread
    assert (spread["min"], spread["max"]) == (pytest.approx(-0.46), pytest.approx(0.461))


def test_a_direction_without_a_lost_packet_has_lost_none():
    figures = packet_figures(fold_of(delays(count=50)))
    assert figures["send", "packets_lost"].value == 0
    assert figures["send", "loss_ratio"].value == 0


def test_the_worst_error_and_claim_of_all_packets_count():
    fold = FlowFold()
    for at, (error, claim) in enumerate(((1e-3, 1.0), (5e-3, 1.0), (2e-3, 0.0))):
        metrics = {"owd_s": 0.01, "owd_error_s": error, "clock_synchronized": claim}
        fold.add_sample("client", Sample(at, at, metrics))
    figures = packet_figures(fold)
    assert figures["send", "owd_error_s"].value == 5e-3
    assert figures["send", "clock_synchronized"].value == 0


def test_samples_of_intervals_are_no_packets():
    fold = FlowFold()
    fold.add_sample("client", Sample(0.0, 1.0, {"packets_sent": 9.0, "packets_received": 8.0}))
    assert packet_figures(fold) == {}


def test_what_the_tool_counted_stays_its_own():
    fold = fold_of([(0.0, 0.01), (0.1, 0.01)])
    fold.add_summary(Summary({"packets_sent": 3.0, "packets_lost": 1.0}))
    figures = packet_figures(fold)
    assert ("send", "packets_lost") not in figures
    assert ("send", "packets_reordered") in figures


def test_reflected_packets_have_a_round_trip_and_two_ways():
    fold = FlowFold()
    for at in range(4):
        sent = {"packets_sent": 1.0, "packets_received": 1.0, "rtt_s": 0.02, "reflector_s": 1e-4}
        fold.add_sample("client", Sample(at, at, sent, direction="round-trip"))
        fold.add_sample("client", Sample(at, at, {"owd_s": 0.06}, direction="send"))
        fold.add_sample("client", Sample(at, at, {"owd_s": -0.04}, direction="receive"))
    fold.add_sample(
        "client", Sample(9, 9, {"packets_sent": 1.0, "packets_lost": 1.0}, direction="round-trip")
    )
    figures = packet_figures(fold)
    assert figures["round-trip", "loss_ratio"].value == 0.2
    assert ("send", "loss_ratio") not in figures
    assert figures["receive", "packets_reordered"].value == 0
    assert not math.isnan(figures["send", "pdv_p95_p50_s"].value)
