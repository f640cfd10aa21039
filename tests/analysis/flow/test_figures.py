import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from benchctl.analysis.flow.figures import FlowFold
from benchctl.api import Direction, Fold, Metric, Sample, Summary

OWN = [Metric("spins", "how often it span", Fold.COUNT)]


def folded(*samples, summaries=(), role="client"):
    fold = FlowFold(OWN)
    for sample in samples:
        fold.add_sample(role, sample)
    for summary in summaries:
        fold.add_summary(summary)
    return fold


def sample(start_s, end_s, stream=0, direction=Direction.SEND, omitted=False, **metrics):
    return Sample(start_s, end_s, metrics, stream, direction, omitted)


def test_a_rate_is_summed_over_streams_and_averaged_over_time():
    fold = folded(
        sample(0, 1, 0, throughput_bps=100), sample(0, 1, 1, throughput_bps=50),
        sample(1, 3, 0, throughput_bps=400), sample(1, 3, 1, throughput_bps=0),
    )  # fmt: skip
    figure = fold.figures()["send", "throughput_bps"]
    assert figure.value == pytest.approx((150 * 1 + 400 * 2) / 3)
    assert (figure.origin, figure.spread) == ("samples", {})


def test_counts_add_up_and_distributions_keep_their_percentiles():
    fold = folded(*(sample(i, i + 1, rtt_s=i / 100, retransmits=2, spins=3) for i in range(101)))
    figures = fold.figures()
    assert figures["send", "retransmits"].value == 202
    assert figures["send", "spins"].value == 303
    rtt = figures["send", "rtt_s"]
    assert rtt.value == pytest.approx(0.5)
    assert rtt.spread == pytest.approx({"min": 0, "median": 0.5, "p95": 0.95, "max": 1.0})


def test_a_metric_of_single_streams_is_folded_for_each_and_the_flow_has_none():
    fold = folded(
        sample(0, 1, 1, hop_rtt_s=0.1, hop_probes=1, hop_unanswered=0),
        sample(0, 1, 1, hop_probes=1, hop_unanswered=1),
        sample(0, 1, 2, hop_rtt_s=0.3, hop_probes=1, hop_unanswered=0, rtt_s=0.3),
    )
    assert [name for _, name in fold.figures()] == ["rtt_s"]
    first = fold.of_stream(1)
    assert first["hop_rtt_s"].value == first["hop_rtt_s"].spread["max"] == 0.1
    assert (first["hop_probes"].value, first["hop_unanswered_ratio"].value) == (2, 0.5)
    assert fold.of_stream(2)["hop_unanswered_ratio"].value == 0
    assert not fold.of_stream(3)


def test_an_unknown_metric_is_a_distribution():
    assert folded(sample(0, 1, mystery=4.0)).figures()["send", "mystery"].spread["max"] == 4


def test_omitted_samples_count_nothing():
    fold = folded(sample(-1, 0, omitted=True, throughput_bps=9e9), sample(0, 1, throughput_bps=5))
    assert fold.figures()["send", "throughput_bps"].value == 5


def test_the_tools_own_figure_goes_before_ours_and_says_so():
    fold = folded(
        sample(0, 1, throughput_bps=100),
        summaries=[Summary({"throughput_bps": 98.0}), Summary({"throughput_bps": 1.0})],
    )
    figure = fold.figures()["send", "throughput_bps"]
    assert (figure.value, figure.origin) == (98, "tool")
    assert not fold.disagreements()


def test_a_distribution_that_the_tool_told_in_part_is_ours_in_whole():
    fold = folded(
        *(sample(i, i + 1, rtt_s=0.1 * (i + 1)) for i in range(3)),
        summaries=[Summary({"rtt_s": {"min": 0.1, "mean": 0.2, "max": 0.3}})],
    )
    figure = fold.figures()["send", "rtt_s"]
    assert figure.origin == "samples"
    assert figure.spread["median"] == pytest.approx(0.2)


def test_a_ratio_is_the_quotient_of_its_sums_not_a_mean_of_quotients():
    fold = folded(
        sample(0, 1, packets_lost=1, packets_sent=10, loss_ratio=0.1),
        sample(1, 2, packets_lost=0, packets_sent=90, loss_ratio=0.0),
    )
    assert fold.figures()["send", "loss_ratio"].value == pytest.approx(0.01)


def test_both_directions_have_figures_of_their_own():
    fold = folded(
        sample(0, 1, throughput_bps=1), sample(0, 1, direction=Direction.RECEIVE, throughput_bps=2)
    )
    assert {key: figure.value for key, figure in fold.figures().items()} == {
        ("receive", "throughput_bps"): 2,
        ("send", "throughput_bps"): 1,
    }


def test_where_both_ends_told_a_metric_the_measuring_end_counts():
    fold = folded(sample(0, 1, throughput_bps=7), role="server")
    fold.add_sample("client", sample(0, 1, throughput_bps=5))
    assert fold.figures()["send", "throughput_bps"].value == 5


def test_a_rate_within_a_window_takes_the_parts_of_intervals():
    fold = folded(sample(0, 2, throughput_bps=100), sample(2, 4, throughput_bps=300))
    assert fold.in_windows("throughput_bps", 1, 2, 1) == pytest.approx([200])
    assert fold.in_windows("throughput_bps", 0, 1, 4) == pytest.approx([100, 100, 300, 300])
    assert fold.in_windows("throughput_bps", -1, 2, 4) == pytest.approx([50, 200, 150, 0])
    assert fold.longest_s("throughput_bps") == 2
    assert fold.window_s("throughput_bps") == (0, 4)
    assert fold.window_s("rtt_s") is None


@given(st.lists(st.floats(0, 1e12), min_size=1, max_size=50))
def test_a_rate_lies_between_its_least_and_its_greatest_interval(rates):
    fold = folded(*(sample(i, i + 1, throughput_bps=rate) for i, rate in enumerate(rates)))
    value = fold.figures()["send", "throughput_bps"].value
    assert min(rates) * (1 - 1e-9) <= value <= max(rates) * (1 + 1e-9)
    assert math.isfinite(value)
