"""Conditions on figures: what is read, what is rejected, and when they hold."""

from __future__ import annotations

import re
from contextlib import suppress

import pytest
from hypothesis import given
from hypothesis import strategies as st

from benchctl.run.codec import from_json, to_json
from benchctl.run.condition import AGGREGATES, Comparison, Condition, parse_condition


@pytest.mark.parametrize(
    ("text", "read"),
    [
        ("loss_ratio < 0.1%", Condition("loss_ratio", Comparison.BELOW, 0.001)),
        ("loss_ratio<=2 %", Condition("loss_ratio", Comparison.AT_MOST, 0.02)),
        (" rtt_s.p95 <= 50ms ", Condition("rtt_s", Comparison.AT_MOST, 0.05, "p95")),
        ("throughput_bps >= 1.5Gbit/s", Condition("throughput_bps", Comparison.AT_LEAST, 1.5e9)),
        ("retransmits > 10", Condition("retransmits", Comparison.ABOVE, 10.0)),
        ("packets_lost <= 0", Condition("packets_lost", Comparison.AT_MOST, 0.0)),
    ],
)
def test_a_condition_is_a_metric_a_comparison_and_a_bound_with_its_unit(
    text: str, read: Condition
) -> None:
    assert parse_condition(text) == read
    assert from_json(to_json(read), Condition) == read


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("loss_ratio", "is not a condition"),
        ("loss_ratio < ", "is not a condition"),
        ("loss_ratio = 1%", "is not a condition"),
        ("loss_ratio < 1% or 1", 'is not a ratio; write it as in "2%"'),
        ("loss_ratio < 0.001", "no unit"),
        ("rtt_s < 5m", "could be minutes or milliseconds"),
        ("rtt_s.p59 < 5ms", 'no aggregate "p59"; did you mean "p95"?'),
        ("retransmits < 5ms", "is not a number"),
        ("retransmits < nan", "is not a number"),
        ("__import__('os') < 1", "is not a condition"),
        (3, "3 is not a condition"),
    ],
)
def test_anything_else_is_rejected_with_its_reason(text: object, why: str) -> None:
    with pytest.raises(ValueError, match=re.escape(why)):
        parse_condition(text)


@given(st.text())
def test_any_text_is_read_or_rejected(text: str) -> None:
    with suppress(ValueError):
        parse_condition(text)


@given(
    st.sampled_from(["loss_ratio", "rtt_s", "throughput_bps", "cwnd_bytes", "retransmits"]),
    st.sampled_from([*Comparison]),
    st.sampled_from(["", *AGGREGATES]),
    st.integers(0, 1000).map(lambda thousandths: thousandths / 1000),
)
def test_what_a_condition_writes_reads_back(
    metric: str, comparison: Comparison, aggregate: str, bound: float
) -> None:
    bound = float(round(bound * 1000)) if metric == "cwnd_bytes" else bound
    again = parse_condition(str(Condition(metric, comparison, bound, aggregate)))
    assert again == Condition(metric, comparison, pytest.approx(bound), aggregate)


@pytest.mark.parametrize(
    ("comparison", "holds"),
    [
        ("<", (True, False, False)),
        ("<=", (True, True, False)),
        (">", (False, False, True)),
        (">=", (False, True, True)),
    ],
)
def test_a_condition_holds_below_at_and_above_its_bound(
    comparison: str, holds: tuple[bool, bool, bool]
) -> None:
    condition = parse_condition(f"loss_ratio {comparison} 10%")
    assert tuple(map(condition.holds, (0.0, 0.1, 0.2))) == holds
