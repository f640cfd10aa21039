"""Clocks as the packets show them, against synthetic truth."""

import math
import random

import pytest
from analysis.flow.probed import MINUTE, MS, both, delays, fold_of
from hypothesis import given, settings
from hypothesis import strategies as st

from benchctl.analysis.clocks.clockfit import clock_figures, step_events
from benchctl.analysis.flow.figures import FlowFold
from benchctl.metrics import Summary
from benchctl.run.record import Happening

LAB = {"send": {"owd_s": 10 * MS}, "receive": {"owd_s": 10 * MS}}
A_MINUTE = 1 * MS / MINUTE


def fitted(send=(), receive=(), expected=None, *, one_clock=False):
    """Return the figures of the clocks by (direction, metric), their values alone."""
    found = clock_figures(fold_of(send, receive), expected or {}, one_clock=one_clock)
    return {key: figure.value for key, figure in found.items()}


@pytest.mark.parametrize("seed", range(1, 9))
def test_an_injected_offset_and_drift_are_named(seed):
    truth = {"offset_s": 55 * MS, "drift": A_MINUTE, "seed": seed}
    figures = fitted(*both(**truth), LAB, one_clock=True)
    assert figures["send", "clock_offset_s"] == pytest.approx(55 * MS, abs=0.2 * MS)
    assert figures["send", "clock_drift_ratio"] * MINUTE == pytest.approx(1 * MS, abs=0.05 * MS)
    assert figures["receive", "clock_offset_s"] == -figures["send", "clock_offset_s"]
    assert figures["receive", "clock_drift_ratio"] == -figures["send", "clock_drift_ratio"]


@pytest.mark.parametrize("drift", [-50e-6, -1e-5, 1e-5, 50e-6])
def test_a_drift_of_either_sign_is_found_under_heavy_queues(drift):
    # Reordered as well: a queue of 20 ms is a fifth of the interval.
    truth = {"drift": drift, "queue_s": 3 * MS, "offset_s": -0.2, "count": 3000}
    figures = fitted(*both(**truth))
    assert figures["send", "clock_drift_ratio"] == pytest.approx(drift, abs=1.5e-6)


@pytest.mark.parametrize("seed", range(1, 21))
def test_clocks_that_do_not_drift_are_not_said_to(seed):
    figures = fitted(*both(seed=seed, offset_s=5 * MS, queue_s=2 * MS))
    assert ("send", "clock_drift_ratio") not in figures
    assert figures["send", "clock_offset_s"] == pytest.approx(5 * MS, abs=0.1 * MS)


def test_a_short_series_has_an_offset_and_no_drift():
    figures = fitted(*both(count=300, offset_s=55 * MS, drift=A_MINUTE))
    assert ("send", "clock_drift_ratio") not in figures
    # In its middle, 15 s after the first packet.
    middle_s = 55 * MS + 15 * A_MINUTE
    assert figures["send", "clock_offset_s"] == pytest.approx(middle_s, abs=0.2 * MS)


def test_delays_without_the_offset_are_those_of_one_clock():
    figures = clock_figures(
        fold_of(*both(offset_s=-0.3, drift=-2e-5, back_s=10 * MS)), {}, one_clock=False
    )
    for direction in ("send", "receive"):
        removed = figures[direction, "owd_offset_removed_s"]
        assert removed.spread["min"] == pytest.approx(10 * MS, abs=0.1 * MS)
        assert removed.spread["median"] == pytest.approx(10.3 * MS, abs=0.2 * MS)


def test_the_offset_of_an_asymmetric_lab_is_that_of_the_clocks():
    expected = {"send": {"owd_s": 30 * MS}, "receive": {"owd_s": 10 * MS}}
    figures = fitted(*both(base_s=30 * MS, back_s=10 * MS, offset_s=55 * MS), expected)
    assert figures["send", "clock_offset_s"] == pytest.approx(55 * MS, abs=0.1 * MS)


def test_one_clock_whose_delays_can_be_has_no_offset():
    there, back = both(base_s=30 * MS, back_s=10 * MS)
    expected = {"send": {"owd_s": 30 * MS}, "receive": {"owd_s": 10 * MS}}
    assert fitted(there, back, expected, one_clock=True) == {}
    assert fitted(there, back, one_clock=True) == {}
    # A loaded lab is slower than it promises: a queue, not a clock.
    slow = delays(base_s=90 * MS)
    assert fitted(slow, back, expected, one_clock=True) == {}


@pytest.mark.parametrize("size_s", [5 * MS, -5 * MS, 0.5])
def test_a_step_of_a_clock_is_named_and_no_line_goes_through_it(size_s):
    truth = {"steps": [(70.0, size_s)], "offset_s": 55 * MS, "count": 2500}
    there, back = both(**truth)
    found = step_events(fold_of(there, back))
    assert {(event.direction, event.kind) for event in found} == {
        ("send", Happening.CLOCK_STEP), ("receive", Happening.CLOCK_STEP)
    }  # fmt: skip
    for event in found:
        assert event.at_s == pytest.approx(70, abs=0.5)
        sign = 1 if event.direction == "send" else -1
        step_s = event.level_after - event.level_before
        assert step_s == pytest.approx(sign * size_s, abs=0.3 * MS)
    figures = clock_figures(fold_of(there, back), {}, one_clock=False)
    assert ("send", "clock_drift_ratio") not in figures
    assert figures["send", "clock_offset_s"].value == pytest.approx(55 * MS, abs=0.2 * MS)
    # The two levels become one.
    removed = figures["send", "owd_offset_removed_s"]
    assert removed.spread["p95"] - removed.spread["min"] < 4 * MS


def test_a_drift_beside_a_step_is_that_of_the_longest_part():
    truth = {"steps": [(50.0, 20 * MS)], "offset_s": 55 * MS, "count": 2500, "drift": A_MINUTE}
    figures = fitted(*both(**truth))
    drift = figures["send", "clock_drift_ratio"] * MINUTE
    assert drift == pytest.approx(1 * MS, abs=0.05 * MS)
    assert figures["send", "clock_offset_s"] == pytest.approx(55 * MS, abs=0.2 * MS)


def test_a_route_that_changes_is_no_step_of_a_clock():
    there = delays(steps=[(60.0, 8 * MS)])
    (event,) = step_events(fold_of(there, delays(seed=7)))
    assert (event.direction, event.kind) == ("send", Happening.DELAY_STEP)
    # In both directions alike, it is the path too.
    back = delays(seed=7, steps=[(60.0, 8 * MS)])
    assert {event.kind for event in step_events(fold_of(there, back))} == {Happening.DELAY_STEP}


@pytest.mark.parametrize("seed", range(1, 21))
def test_a_path_without_steps_shows_none(seed):
    truth = {"seed": seed, "queue_s": 2 * MS, "drift": 20e-6, "offset_s": 0.1}
    assert step_events(fold_of(*both(**truth))) == []


def test_a_queue_that_fills_one_way_is_no_drift():
    filling = [(at_s, delay_s + 1e-4 * at_s) for at_s, delay_s in delays()]
    figures = fitted(filling, delays(seed=9))
    assert ("send", "clock_drift_ratio") not in figures


def test_of_a_single_direction_delays_on_a_line_are_a_drift_and_others_are_not():
    figures = fitted(delays(offset_s=-0.4, drift=A_MINUTE))
    assert figures == {("send", "clock_drift_ratio"): pytest.approx(A_MINUTE, abs=0.05 * A_MINUTE)}
    swollen = delays(offset_s=-0.4)
    swollen = [(at, delay + 20 * MS * max(0, at - 60) / 60) for at, delay in swollen]
    assert fitted(swollen) == {}


def test_the_figures_of_a_tool_that_reports_no_packets_are_shifted():
    fold = FlowFold()
    spread = {"min": 63.9 * MS, "median": 64.9 * MS, "max": 68.8 * MS}
    fold.add_summary(Summary({"owd_s": spread}, "send"))
    back = {"min": -63.4 * MS, "median": -62.6 * MS, "max": -28.3 * MS}
    fold.add_summary(Summary({"owd_s": back}, "receive"))
    figures = clock_figures(fold, {}, one_clock=False)
    assert figures["send", "clock_offset_s"].value == pytest.approx(63.65 * MS)
    removed = figures["receive", "owd_offset_removed_s"]
    assert removed.spread == {
        "min": pytest.approx(0.25 * MS), "median": pytest.approx(1.05 * MS),
        "max": pytest.approx(35.35 * MS),
    }  # fmt: skip


@settings(derandomize=True, deadline=None, max_examples=20)
@given(st.floats(-10, 10), st.integers(2, 60), st.randoms(use_true_random=False))
def test_removing_an_offset_leaves_every_difference_of_delays(offset_s, count, draw):
    there, back = both(seed=draw.randrange(1000), count=count, offset_s=offset_s)
    fold = fold_of(there, back)
    raw, figures = fold.figures(), clock_figures(fold, {}, one_clock=False)
    for direction in ("send", "receive"):
        one, other = raw[direction, "owd_s"], figures[direction, "owd_offset_removed_s"]
        for name in ("median", "p95", "max"):
            before = one.spread[name] - one.spread["min"]
            assert other.spread[name] - other.spread["min"] == pytest.approx(before, abs=1e-12)


def test_the_order_of_arrival_does_not_change_the_fit():
    there, back = both(offset_s=0.055, drift=A_MINUTE)
    mixed = random.Random(5).sample(there, len(there))
    assert fitted(mixed, back) == fitted(there, back)


def finite(figures):
    return all(
        math.isfinite(value)
        for figure in figures.values()
        for value in (figure.value, *figure.spread.values())
    )


@settings(derandomize=True, deadline=None, max_examples=50)
@given(
    st.lists(st.tuples(st.floats(0, 9), st.floats(-1, 1)), max_size=9),
    st.lists(st.tuples(st.floats(0, 9), st.floats(-1, 1)), max_size=9),
)
def test_a_few_packets_of_any_kind_have_finite_figures(there, back):
    assert finite(clock_figures(fold_of(there, back), {}, one_clock=False))


@pytest.mark.parametrize("seed", range(1, 9))
def test_delays_that_jump_all_the_time_have_finite_figures(seed):
    draw = random.Random(seed)
    sizes = [[draw.choice((-0.1, 0.1)) for _ in range(20)] for _ in range(2)]
    ways = [
        delays(count=600, seed=seed, steps=[(3.0 * at, size) for at, size in enumerate(one)])
        for one in sizes
    ]
    assert finite(clock_figures(fold_of(*ways), {}, one_clock=False))
    assert all(event.at_s >= 0 for event in step_events(fold_of(*ways)))
