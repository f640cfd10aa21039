"""Past days: their percentiles beside NumPy's, their file, and what is drawn of them."""

import math
import re
from array import array

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from benchctl.report.figures.figure import Axis
from benchctl.report.mesh.days import Day, DayFigures, figures_of, read_day, write_day
from benchctl.report.mesh.drawing import HistoryLine, HistorySpan, extent_of, history_of
from benchctl.report.page.drawing import ends

VALUES = st.floats(-1e12, 1e12, allow_subnormal=False)
DAYS = st.dictionaries(st.integers(0, 20), st.lists(VALUES, min_size=1, max_size=30), max_size=9)


@given(DAYS)
def test_a_day_is_the_median_and_the_percentiles_of_its_trials(values):
    figures = figures_of(values, 21)
    for series in range(21):
        found = [column[series] for column in figures]
        if series in values:
            wanted = np.percentile(values[series], [50, 5, 95])
            size = max(map(abs, values[series]))
            assert found == pytest.approx([*wanted], rel=1e-6, abs=size * 1e-6 + 1e-40)
        else:
            assert all(map(math.isnan, found))


@given(DAYS, st.dictionaries(st.integers(0, 99), st.integers(1, 99)))
def test_a_day_comes_back_from_its_file(values, failed):
    figures = figures_of(values, 21)
    back = read_day(7, write_day(Day(7, figures, failed), "these runs"), "these runs")
    assert (back.number, back.failed) == (7, failed)
    for column, kept in zip(figures, back.figures, strict=True):
        assert kept == pytest.approx(column, rel=2**-8, nan_ok=True)


@given(st.binary(max_size=200))
@example(b"")
def test_a_file_that_is_damaged_or_of_other_runs_is_no_day(garbage):
    file = write_day(Day(7, figures_of({0: [1.0]}, 1), {}), "these runs")
    assert read_day(7, file, "other runs") is None
    assert read_day(7, garbage, "these runs") is None
    assert read_day(7, file[: len(file) // 2], "these runs") is None


def traced(path):
    """Return the places that a relative path goes through, as whoever draws it reads it."""
    places, x, y = [], 0.0, 0.0
    for kind, words in re.findall(r"([MlVhz])([^MlVhz]*)", path):
        numbers = [float(one) for one in re.findall(r"-?[\d.]+", words)]
        if kind == "M":
            x, y = numbers
            places.append((x, y))
        elif kind in "lh":
            steps = zip(numbers[::2], numbers[1::2], strict=True)
            for dx, dy in steps if kind == "l" else [(numbers[0], 0.0)]:
                x, y = x + dx, y + dy
                places.append((x, y))
        elif kind == "V":
            y = numbers[0]
            places.append((x, y))
    return places


@given(
    st.lists(st.one_of(st.just(math.nan), st.floats(0, 1e9)), min_size=1, max_size=60),
    st.integers(1, 5),
)
def test_each_day_is_drawn_where_it_is(medians, step):
    known = [one for one in medians if not math.isnan(one)]
    days = DayFigures(*(array("f", medians) for _ in range(3)))
    line = HistoryLine(0, days, [], [])
    low, high = extent_of([line]) or (0.0, 1.0)
    axis = Axis("", "throughput_bps", low, high, from_zero=True)
    drawn = history_of(
        axis, [line], HistorySpan(range(len(medians)), 0.0, 1.0), title="", step=step,
    )  # fmt: skip
    path = re.search(r'class="line s0" d="([^"]*)"', drawn)
    assert (path is None) == (not known)
    if path is None:
        return
    bottom, top = 164, 14
    _, highest = ends(axis)
    folded = [
        [one for one in medians[max(0, end - step) : end] if not math.isnan(one)]
        for end in range(len(medians), 0, -step)
    ][::-1]
    wanted = {
        place * step + step / 2: bottom - (sum(some) / len(some)) / highest * (bottom - top)
        for place, some in enumerate(folded)
        if some
    }
    found = traced(path[1])
    for x, y in wanted.items():
        near = [at for where, at in found if abs(where - x) < 0.5]
        assert near
        assert min(abs(at - y) for at in near) <= 1.5


def test_a_word_of_an_event_is_no_markup():
    drawn = history_of(
        Axis("", "rtt_s", 0, 1), [HistoryLine(0, None, [1.0], [0.5])],
        HistorySpan(range(0), 0.0, 2.0), title="<b>", events=[(1.0, "<i>")],
    )  # fmt: skip
    assert "<b>" not in drawn
    assert "<i>" not in drawn
