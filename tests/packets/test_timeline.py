"""A connection over time, beside its sums and beside what is seen at each moment."""

from itertools import pairwise

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from packets.simulated import SIZE, Plan, Transfer
from packets.test_seen import Everything
from packets.test_sending import PLANS, folded

from benchctl.packets import timeline
from benchctl.packets.timeline import MOST

TICK_S = 1e-9
"""A moment at the edge of an interval is in one of the two."""
STEPS = st.sampled_from([0.001, 0.007, 0.05, 1.0])


def intervals_of(plan, step_s=None, seen=None):
    """Return the half of a transfer with data, and its intervals."""
    connection, half = folded(Transfer(plan), seen=seen, watch=lambda one: one.record(step_s))
    return half, [*connection.timeline.intervals(connection.halves.index(half))]


def values(intervals, metric):
    return [one.metrics[metric] for one in intervals if metric in one.metrics]


@given(PLANS, STEPS)
def test_the_intervals_sum_up_to_what_the_whole_connection_had(plan, step_s):
    half, found = intervals_of(plan, step_s)
    rated = [one for one in found if "throughput_bps" in one.metrics]
    moved = sum(one.metrics["throughput_bps"] * (one.end_s - one.start_s) for one in rated) / 8
    assert moved == pytest.approx(half.unique_bytes if half.last_data_s > half.first_data_s else 0)
    again = half.retransmissions.count() if half.retransmissions else 0
    assert sum(values(found, "retransmits")) == again
    assert max(values(found, "flight_bytes")) == half.waiting.flight_bytes
    windows = values(found, "peer_window_bytes")
    assert min(windows, default=None) == (half.window_least_bytes if windows else None)
    trips = [rtt for at, rtt in zip(half.rtt_times_s, half.rtt_s, strict=True)
             if at >= half.first_data_s]  # fmt: skip
    assert max(values(found, "rtt_max_s"), default=0) == max(trips, default=0)


@given(PLANS, STEPS)
def test_the_intervals_follow_each_other_and_none_with_data_is_short(plan, step_s):
    _, found = intervals_of(plan, step_s)
    assert all(a.end_s <= b.start_s + 1e-9 for a, b in pairwise(found))
    rated = [one for one in found if "throughput_bps" in one.metrics]
    if len(rated) > 2:
        lengths = [one.end_s - one.start_s for one in rated]
        assert min(lengths) >= step_s / 2 - 1e-9
        assert max(lengths) <= step_s * 1.5 + 1e-9
        assert all(length == pytest.approx(step_s) for length in lengths[1:-1])


@given(PLANS, STEPS)
def test_an_interval_has_what_was_seen_at_each_moment_of_it(plan, step_s):
    """What is noted when an interval ends, beside every moment noted as it was."""
    seen = Everything()
    half, found = intervals_of(plan, step_s, seen)
    for one in found:
        begin_s, end_s = one.start_s + TICK_S, one.end_s - TICK_S
        within = [flight for at_s, flight, _, _ in seen.moments if begin_s < at_s < end_s]
        assert one.metrics["flight_bytes"] >= max(within, default=0)
        if (
            half.lag_s == 0
        ):  # else what reached the sender late is noted when the next packet passes
            before = [flight for at_s, flight, _, _ in seen.moments if at_s < one.start_s - TICK_S]
            at_edges = [flight for at_s, flight, _, _ in seen.moments
                        if one.start_s - TICK_S <= at_s <= one.end_s + TICK_S]  # fmt: skip
            assert one.metrics["flight_bytes"] in (*before[-1:], *at_edges)


def test_the_congestion_window_is_estimated_where_the_network_limits():
    """A window of 8 segments, which the receiver's 65,535 bytes do not limit."""
    plan = Plan(segments=400, window=8, rtt_us=50_000)
    _, found = intervals_of(plan, 0.05)
    assert set(values(found, "cwnd_estimated_bytes")) == {8 * SIZE}
    lost = Plan(segments=400, window=8, rtt_us=50_000, lost_after=frozenset({(100, 0)}))
    half, found = intervals_of(lost, 0.05)
    (at_s,) = half.retransmissions.times_s
    unsure = [one for one in found if "cwnd_estimated_bytes" not in one.metrics]
    assert any(one.start_s - TICK_S <= at_s <= one.end_s for one in unsure)
    assert set(values(found, "cwnd_estimated_bytes")) == {8 * SIZE}


def test_without_a_given_length_intervals_are_doubled_until_they_are_few():
    for pauses in (0, 3, 39):
        plan = Plan(pause_after=frozenset(range(1, pauses + 1)))
        _, found = intervals_of(plan)
        assert len(found) <= MOST
        if pauses:
            assert len(found) > MOST / 2 - 2


@given(PLANS)
@example(
    Plan(
        segments=40, window=3, rtt_us=400, late=frozenset({(6, 0)}), sack=False, handshake=False,
        pause_after=frozenset({8}),
    )
)  # fmt: skip
def test_doubled_intervals_are_those_of_that_length(plan):
    connection, _ = folded(Transfer(plan), watch=lambda one: one.record())
    step_s = connection.timeline.step_s
    _, doubled = intervals_of(plan)
    _, given = intervals_of(plan, step_s)
    for one, other in zip(doubled, given, strict=True):
        assert one[:2] == other[:2]
        # A recovery from a loss that ends within an interval is seen only if it is cut there.
        both = one.metrics.keys() & other.metrics.keys()
        assert (one.metrics.keys() | other.metrics.keys()) - both <= {"cwnd_estimated_bytes"}
        assert {name: one.metrics[name] for name in both} == (
            {name: other.metrics[name] for name in both}
        )


def test_a_given_length_is_doubled_too_when_memory_would_not_do(monkeypatch):
    monkeypatch.setattr(timeline, "MOST_ASKED", 50)
    _, found = intervals_of(Plan(pause_after=frozenset({5, 10})), 0.001)
    assert 25 <= len(found) <= 50


def test_without_data_there_are_no_intervals():
    connection, half = folded(Transfer(Plan()), watch=lambda one: one.record())
    other = 1 - connection.halves.index(half)
    assert [*connection.timeline.intervals(other)] == []
