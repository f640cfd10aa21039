"""Axes: ticks evenly spaced, a label at both ends, round steps, at any height and for any range."""

import math
import random
import re
from itertools import pairwise

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from benchctl import units
from benchctl.tui.draw.axes.linear import LABEL_WIDTH
from benchctl.tui.draw.axes.scale import axis_for
from benchctl.tui.draw.axes.times import time_axis, time_label
from benchctl.units import scale_of

NUMBERS = st.floats(-1e12, 1e12).filter(lambda x: x == 0 or abs(x) > 1e-9)
METRICS = ("throughput_bps", "rtt_s", "cwnd_bytes", "bytes_sent", "loss_ratio", "retransmits")
HEIGHTS = range(3, 60)
RATIOS = {"loss_ratio"}


def distances(ticks):
    return {after.cell - before.cell for before, after in pairwise(ticks)}


def steps(axis):
    return [after.value - before.value for before, after in pairwise(axis.labelled)]


def is_round(step, binary):
    if binary:
        return math.log2(step).is_integer()
    digits = f"{step:.6e}".partition("e")[0].rstrip("0").rstrip(".")
    return digits in ("1", "2", "5")


def check(axis, low, high, cells):
    """Check what holds for every axis."""
    labelled = axis.labelled
    width = axis.high - axis.low
    assert axis.low <= low + width * 1e-9
    assert axis.high >= high - width * 1e-9
    assert axis.cells <= cells
    assert (labelled[0].cell, labelled[-1].cell) == (0, axis.cells - 1)
    assert (labelled[0].value, labelled[-1].value) == (axis.low, axis.high)
    assert len(distances(labelled)) == 1
    texts = [tick.text for tick in labelled]
    assert len(set(texts)) == len(texts)
    assert max(map(len, texts)) <= LABEL_WIDTH
    for cell, value, _ in axis.ticks:
        assert cell == round(axis.place(value) * (axis.cells - 1))


def test_of_600_ranges_no_axis_has_uneven_ticks_or_an_end_without_a_label():
    rng = random.Random(12)
    for _ in range(600):
        metric, cells = rng.choice(METRICS), rng.choice(HEIGHTS)
        high = 1.0 if metric in RATIOS else 10 ** rng.uniform(-6, 11)
        low, high = sorted((rng.random() * high, high))
        if metric == "retransmits" or "bytes" in metric:
            low, high = round(low), round(high) + 1
        from_zero = rng.random() < 0.5
        axis = axis_for(metric, low, high, cells, from_zero=from_zero)
        check(axis, 0.0 if from_zero else low, high, cells)
        axis = axis_for(metric, low, high, cells, from_zero=from_zero, log=True)
        check(axis, low or axis.low, high, cells)


@example(0.3, 0.4, 5, False, "rtt_s")
@given(NUMBERS, NUMBERS, st.integers(3, 80), st.booleans(), st.sampled_from(METRICS))
def test_any_axis_has_round_steps_from_end_to_end(a, b, cells, from_zero, metric):
    low, high = min(a, b), max(a, b)
    axis = axis_for(metric, low, high, cells, from_zero=from_zero)
    check(axis, low, high, cells)
    binary = scale_of(metric, 1e12)[1] == "GiB"
    assert len({f"{step:.6e}" for step in steps(axis)}) == 1
    assert is_round(steps(axis)[0], binary)
    assert low < 0 or axis.low >= 0
    assert high > 0 or axis.high <= 0 or low == high == 0
    if from_zero:
        assert axis.low <= 0 <= axis.high


@given(st.floats(1e-6, 1e11), st.floats(1.0, 1e9), st.integers(3, 80), st.sampled_from(METRICS[:4]))
@example(2.0**18, 2.0**20 + 1, 5, "cwnd_bytes")
@example(0.5, 20001.0, 3, "rtt_s")
def test_logarithmic_ticks_have_one_or_two_digits_and_sizes_are_powers_of_two(
    low, factor, cells, metric
):
    low = max(low, 1.0) if "bytes" in metric else low
    high = min(low * factor, 5e11)
    axis = axis_for(metric, low, high, cells, from_zero=False, log=True)
    check(axis, low, high, cells)
    (ratio,) = {round(b.value / a.value, 6) for a, b in pairwise(axis.labelled)}
    for tick in axis.labelled:
        number = re.match(r"[0-9.]+", tick.text)[0]
        if scale_of(metric, 1e12)[1] == "GiB":
            assert math.log2(tick.value).is_integer()
            assert number in {f"{2.0**n:g}" for n in range(11)}
        else:
            assert len(number.replace(".", "").strip("0")) <= 2
    assert is_round(ratio, binary=True) or math.log10(ratio).is_integer()
    for minor in {*axis.ticks} - {*axis.labelled}:
        assert axis.low < minor.value < axis.high


def test_a_decade_has_minor_ticks_where_there_is_room():
    axis = axis_for("rtt_s", 0.001, 0.1, 9, from_zero=False, log=True)
    assert [(t.cell, t.text) for t in axis.ticks] == [
        (0, "1"), (1, ""), (3, ""), (4, "10"), (5, ""), (7, ""), (8, "100"),
    ]  # fmt: skip
    tall = axis_for("rtt_s", 0.001, 0.1, 41, from_zero=False, log=True)
    assert [round(t.value * 1e3) for t in tall.ticks] == [*range(1, 10), *range(10, 101, 10)]


@pytest.mark.parametrize(
    ("metric", "low", "high", "from_zero", "log", "texts", "unit"),
    [
        ("throughput_bps", 90e6, 94e6, True, False, ["0", "50", "100"], "Mbit/s"),
        ("rtt_s", 0.0201, 0.0209, False, False, ["20.0", "20.5", "21.0"], "ms"),
        ("cwnd_bytes", 0.0, 58 * 1024, True, False, ["0", "32", "64"], "KiB"),
        ("cwnd_bytes", 0.0, 1.1e6, True, False, ["0", "1", "2"], "MiB"),
        ("bytes_sent", 0.0, 58 * 1024, True, False, ["0", "32", "64"], "KiB"),
        ("retransmits", 0.0, 3.0, True, False, ["0", "2", "4"], ""),
        ("retransmits", 0.0, 3e9, True, False, ["0", "2", "4"], "10^9"),
        ("loss_ratio", 0.0, 0.93, True, False, ["0", "50", "100"], "%"),
        ("rtt_s", 0.0204, 0.11, False, True, ["20", "40", "80", "160", "320"], "ms"),
        ("rtt_s", 0.0204, 1.1, False, True, ["10 ms", "1 s", "100 s"], ""),
        ("throughput_bps", 2e3, 9e8, True, True, ["1 k", "1 M", "1 G"], "bit/s"),
        ("cwnd_bytes", 3e3, 5e6, False, True, ["2 KiB", "128 KiB", "8 MiB"], ""),
    ],
)  # fmt: skip
def test_an_axis_of_nine_cells(metric, low, high, from_zero, log, texts, unit):
    axis = axis_for(metric, low, high, 9, from_zero=from_zero, log=log)
    assert ([tick.text for tick in axis.labelled], axis.unit) == (texts, unit)


@pytest.mark.parametrize(
    ("chosen", "texts", "unit", "log_texts"),
    [
        ("bytes", ["0", "2", "4", "6", "8"], "MB/s", ["1 k", "1 M", "1 G"]),
        ("iec", ["0", "32", "64"], "Mibit/s", ["4 Ki", "4 Mi", "4 Gi"]),
        ("bytes,iec", ["0", "4", "8"], "MiB/s", ["512", "512 Ki", "512 Mi"]),
    ],
)
def test_an_axis_is_round_in_the_units_that_people_chose(
    monkeypatch, chosen, texts, unit, log_texts
):
    monkeypatch.setattr(units, "_shown", units.parse_display(chosen))
    axis = axis_for("throughput_bps", 0.0, 58e6, 9, from_zero=True)
    assert ([tick.text for tick in axis.labelled], axis.unit) == (texts, unit)
    check(axis, 0.0, 58e6, 9)
    axis = axis_for("throughput_bps", 8e3, 4e9, 9, from_zero=True, log=True)
    assert [tick.text for tick in axis.labelled] == log_texts


@pytest.mark.parametrize("from_zero", [True, False])
@pytest.mark.parametrize(
    ("metric", "texts", "unit"),
    [
        ("loss_ratio", ["0.0", "0.5", "1.0"], "%"), ("retransmits", ["0", "1"], ""),
        ("rtt_s", ["0.0", "0.5", "1.0"], "ms"), ("bytes_sent", ["0", "1"], "B"),
        ("throughput_bps", ["0.0", "0.5", "1.0"], "bit/s"),
    ],
)  # fmt: skip
def test_zeros_have_a_small_axis_that_begins_at_zero(metric, texts, unit, from_zero):
    axis = axis_for(metric, 0.0, 0.0, 9, from_zero=from_zero)
    assert ([tick.text for tick in axis.labelled], axis.unit) == (texts, unit)


@given(st.floats(1e-6, 1e12), st.integers(3, 60), st.sampled_from(METRICS))
def test_a_level_line_has_a_little_room_and_nothing_beyond_what_is_possible(value, cells, metric):
    value = min(value, 1.0) if metric in RATIOS else value
    axis = axis_for(metric, value, value, cells, from_zero=False)
    check(axis, value, value, cells)
    assert axis.low >= 0
    if metric in RATIOS:
        assert axis.high <= 1
    if metric in ("throughput_bps", "rtt_s") and cells > 4:
        assert axis.high - axis.low < value


@pytest.mark.parametrize("cells", [1, 2])
@pytest.mark.parametrize("log", [False, True])
def test_one_or_two_cells_have_the_ends_as_far_as_there_is_room(cells, log):
    axis = axis_for("rtt_s", 0.02, 0.11, cells, from_zero=True, log=log)
    assert axis.cells == cells
    assert [tick.cell for tick in axis.ticks] == [*reversed(range(cells))]
    assert axis.ticks[0].value == axis.high


def test_zero_and_below_are_at_the_low_end_of_a_logarithmic_axis():
    axis = axis_for("rtt_s", 0.0, 0.11, 9, from_zero=False, log=True)
    assert 0 < axis.low <= 0.11e-3
    assert axis.place(0.0) == axis.place(-1.0) == 0.0
    assert not axis_for("rtt_s", -1.0, 0.0, 9, from_zero=True, log=True).log


def test_negative_delays_have_a_linear_axis():
    axis = axis_for("owd_s", -0.049, 0.0502, 9, from_zero=False, log=True)
    assert not axis.log
    assert axis.low <= -0.049 < axis.high
    assert axis.place(-0.049) < axis.place(0.0) < axis.place(0.0502)


def test_a_number_beside_an_axis_is_in_its_unit():
    axis = axis_for("throughput_bps", 0.0, 28e6, 9, from_zero=True)
    assert [axis.number(value) for value in (29.04e6, 290.4e6, 2904e6)] == ["29", "290", "2904"]
    log = axis_for("throughput_bps", 1e6, 28e6, 9, from_zero=True, log=True)
    assert log.number(290.4e6) == "290 Mbit/s"


@pytest.mark.parametrize(
    ("time_s", "step_s", "text"),
    [
        (0.0, 0.5, "0 s"), (0.5, 0.5, "500 ms"), (1.5, 0.5, "1.5 s"), (60.0, 20.0, "60 s"),
        (120.0, 20.0, "2:00"), (600.0, 100.0, "10:00"), (7325.0, 600.0, "2:02:05"),
    ],
)  # fmt: skip
def test_times_are_short(time_s, step_s, text):
    assert time_label(time_s, step_s) == text


@given(st.floats(0.5, 1e6), st.integers(0, 64), st.integers(2, 300))
def test_times_are_evenly_spaced_and_each_is_where_its_cell_begins(span_s, eighths, cells):
    from_s = span_s * eighths / 8
    axis = time_axis(from_s, from_s + span_s, cells)
    assert 1 <= axis.cells <= cells
    cell_s = (axis.end_s - from_s) / axis.cells
    assert axis.end_s >= (from_s + span_s) * (1 - 1e-9)
    assert axis.end_s - from_s - span_s <= cell_s * (1 + 1e-6)
    assert len(distances(axis.ticks)) <= 1
    for tick in axis.ticks:
        assert 0 <= tick.cell <= axis.cells
        assert (tick.value - from_s) / cell_s == pytest.approx(tick.cell, abs=1 + 1e-6)


@pytest.mark.parametrize(
    ("span_s", "texts"),
    [
        (20.0, ["0 s", "5 s", "10 s", "15 s", "20 s"]),
        (600.0, ["0 s", "2:00", "4:00", "6:00", "8:00", "10:00"]),
        (7200.0, ["0 s", "20:00", "40:00", "1:00:00", "1:20:00", "1:40:00", "2:00:00"]),
    ],
)
def test_the_times_of_a_trial(span_s, texts):
    assert [tick.text for tick in time_axis(0.0, span_s, 80).ticks] == texts


@pytest.mark.parametrize("cells", [13, 80, 190])
@pytest.mark.parametrize("span_s", [10.0, 45.0, 3600.0])
def test_little_of_the_width_is_left_unused(cells, span_s):
    assert time_axis(0.0, span_s, cells).cells > cells * 0.85
