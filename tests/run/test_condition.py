"""Conditions on figures: what is read, what is rejected, and when they hold."""

from __future__ import annotations

import re
from contextlib import suppress

import pytest
from hypothesis import given
from hypothesis import strategies as st

from benchctl.run.codec import from_json, to_json
from benchctl.run.condition import (
    AGGREGATES,
    REFERENCES,
    Comparator,
    Condition,
    EventRule,
    Relative,
    parse_bound,
    parse_condition,
    parse_events,
    parse_figure,
)
from benchctl.run.record import Happening


@pytest.mark.parametrize(
    ("text", "read"),
    [
        ("loss_ratio < 0.1%", Condition("loss_ratio", Comparator.BELOW, 0.001)),
        ("loss_ratio<=2 %", Condition("loss_ratio", Comparator.AT_MOST, 0.02)),
        (" rtt_s.p95 <= 50ms ", Condition("rtt_s", Comparator.AT_MOST, 0.05, "p95")),
        ("throughput_bps >= 1.5Gbit/s", Condition("throughput_bps", Comparator.AT_LEAST, 1.5e9)),
        ("retransmits > 10", Condition("retransmits", Comparator.ABOVE, 10.0)),
        ("packets_lost <= 0", Condition("packets_lost", Comparator.AT_MOST, 0.0)),
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
    st.sampled_from([*Comparator]),
    st.sampled_from(["", *AGGREGATES]),
    st.integers(0, 1000).map(lambda thousandths: thousandths / 1000),
)
def test_what_a_condition_writes_reads_back(
    metric: str, comparison: Comparator, aggregate: str, bound: float
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


@pytest.mark.parametrize(
    ("metric", "text", "read"),
    [
        ("throughput_bps", "50Mbit", 50e6),
        ("retransmits", 100, 100.0),
        ("throughput_bps", "0.9 * expected", Relative(0.9, "expected")),
        ("rtt_s", "1.1*baseline", Relative(1.1, "baseline")),
        ("rtt_s", " reported ", Relative(1, "reported")),
        ("retransmits", ".5 * asked", Relative(0.5, "asked")),
    ],
)
def test_a_bound_is_a_value_or_a_multiple_of_a_reference(
    metric: str, text: object, read: float | Relative
) -> None:
    assert parse_bound(metric, text) == read


@pytest.mark.parametrize(
    ("metric", "text", "why"),
    [
        ("throughput_bps", "0.9 * expcted", 'no reference "expcted"; did you mean "expected"?'),
        ("throughput_bps", "0.9 *", 'unknown unit "*"'),
        ("throughput_bps", "expected * 0.9", "is not a rate"),
        ("throughput_bps", "-1 * expected", "is not a rate"),
        ("throughput_bps", "2 * 3 * expected", "is not a rate"),
        ("throughput_bps", 5, "no unit"),
        ("retransmits", "expcted", "is not a number"),
        ("rtt_s", "__import__('os')", "is not a duration"),
    ],
)
def test_any_other_bound_is_rejected_with_its_reason(metric: str, text: object, why: str) -> None:
    with pytest.raises(ValueError, match=re.escape(why)):
        parse_bound(metric, text)


@given(
    st.sampled_from(["loss_ratio", "rtt_s", "throughput_bps", "cwnd_bytes", "retransmits"]),
    st.one_of(st.text(), st.integers(), st.floats(), st.booleans(), st.none()),
)
def test_any_bound_is_read_or_rejected(metric: str, written: object) -> None:
    with suppress(ValueError):
        assert isinstance(parse_bound(metric, written), float | Relative)


@given(st.integers(0, 10**6).map(lambda thousandths: thousandths / 1000),
       st.sampled_from(REFERENCES))  # fmt: skip
def test_a_relative_bound_reads_back(factor: float, of: str) -> None:
    assert parse_bound("rtt_s", str(Relative(factor, of))) == Relative(factor, of)


@given(st.text())
def test_any_figure_and_any_events_are_read_or_rejected(text: str) -> None:
    for parse in (parse_figure, lambda text: parse_events(text, tuple(Happening))):
        with suppress(ValueError):
            parse(text)


@given(st.lists(st.builds(EventRule, st.sampled_from([*map(str, Happening), "event"]),
                          st.booleans()), min_size=1))  # fmt: skip
def test_rules_on_events_read_back(rules: list[EventRule]) -> None:
    assert parse_events(", ".join(map(str, rules)), tuple(Happening)) == tuple(rules)


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("no drp", 'no event "drp"; did you mean "drop"?'),
        ("drop,", 'no event ""'),
        ("no no drop", 'no event "no drop"'),
        ("none", 'no event "none"; '),
    ],
)
def test_other_events_are_rejected(text: str, why: str) -> None:
    with pytest.raises(ValueError, match=re.escape(why)):
        parse_events(text, tuple(Happening))
