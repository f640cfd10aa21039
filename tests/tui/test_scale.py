import pytest
from hypothesis import given
from hypothesis import strategies as st

from benchctl.tui.draw.scale import PlotAxis, axis_for, labels, ticks, time_label

NUMBERS = st.floats(-1e12, 1e12).filter(lambda x: x == 0 or abs(x) > 1e-9)


@given(
    NUMBERS, NUMBERS, st.booleans(), st.sampled_from(["throughput_bps", "rtt_s", "cwnd_bytes", "x"])
)
def test_an_axis_holds_all_values_and_its_ticks_are_on_it(a, b, from_zero, metric):
    low, high = min(a, b), max(a, b)
    axis = axis_for(metric, low, high, from_zero=from_zero)
    width = axis.high - axis.low
    assert axis.low <= low + width * 1e-9
    assert axis.high >= high - width * 1e-9
    assert width > 0
    found = ticks(axis, 5)
    assert 1 <= len(found) <= 6
    assert all(-1e-6 <= axis.place(value) <= 1 + 1e-6 for value in found)
    texts, _ = labels(metric, axis, found)
    assert len(set(texts)) == len(texts)


def test_a_rate_is_seen_from_zero_and_a_delay_from_where_it_is():
    assert axis_for("throughput_bps", 90e6, 94e6, from_zero=True) == PlotAxis(0.0, 1e8, unit=1e6)
    near = axis_for("rtt_s", 0.0201, 0.0209, from_zero=False)
    assert near.low == pytest.approx(0.02)
    assert near.high == pytest.approx(0.021)


def test_sizes_have_round_binary_steps():
    axis = axis_for("cwnd_bytes", 0.0, 58 * 1024, from_zero=True)
    assert labels("cwnd_bytes", axis, ticks(axis, 4)) == (["0", "20", "40", "60"], "KiB")


def test_a_logarithmic_axis_spans_whole_decades():
    axis = axis_for("rtt_s", 0.0204, 0.11, from_zero=False, log=True)
    assert (axis.low, axis.high) == pytest.approx((0.01, 1.0))
    assert labels("rtt_s", axis, ticks(axis, 5)) == (["10", "100", "1000"], "ms")
    assert axis.place(0.0) == 0.0
    assert axis.place(0.1) == pytest.approx(0.5)


def test_a_logarithmic_axis_of_nothing_above_zero_is_linear():
    assert not axis_for("rtt_s", -1.0, 0.0, from_zero=True, log=True).log


def test_a_level_line_has_room_above_and_below():
    axis = axis_for("rtt_s", 0.02, 0.02, from_zero=False)
    assert axis.low < 0.02 < axis.high
    assert axis_for("throughput_bps", 0.0, 0.0, from_zero=True).low == 0.0


@pytest.mark.parametrize(
    ("time_s", "step_s", "text"),
    [
        (0.0, 0.5, "0 s"), (0.5, 0.5, "500 ms"), (1.5, 0.5, "1.5 s"), (60.0, 20.0, "60 s"),
        (120.0, 20.0, "2:00"), (600.0, 100.0, "10:00"), (7325.0, 600.0, "2:02:05"),
    ],
)  # fmt: skip
def test_times_are_short(time_s, step_s, text):
    assert time_label(time_s, step_s) == text
