"""Figures of a page: drawings and charts show the same values, and no peak disappears."""

import base64
import math
import re
import struct
from itertools import accumulate
from xml.etree import ElementTree

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace
from report.sample_figures import BARS, BOXES, EVERY, HEAT, SWEEP, over_time

from benchctl.report.figures.figure import (
    Axis,
    Panel,
    Picture,
)
from benchctl.report.figures.figure import (
    NamedTick as Tick,
)
from benchctl.report.figures.figure import (
    PictureEvent as Event,
)
from benchctl.report.figures.figure import (
    PictureKind as Kind,
)
from benchctl.report.figures.figure import (
    PictureLine as Line,
)
from benchctl.report.page.blocks import PageContent, PageSection, PictureBlock
from benchctl.report.page.charts import chart_of, packed
from benchctl.report.page.drawing import ends, svg_of, ticks
from benchctl.report.page.html import html_of
from benchctl.report.page.thinning import thinned

SVG = "{http://www.w3.org/2000/svg}"


@pytest.mark.parametrize("figure", EVERY, ids=lambda one: one.kind)
def test_every_kind_is_drawn_within_its_frame(figure):
    drawing = ElementTree.fromstring(svg_of(figure, 100))
    _, _, width, height = map(float, drawing.get("viewBox").split())
    for one in drawing.iter():
        for name, most in (("x", width), ("y", height), ("cx", width), ("cy", height)):
            if (value := one.get(name)) is not None:
                assert 0 <= float(value) <= most


def test_a_drawing_has_its_axes_with_units_and_its_events():
    words = [one.text for one in ElementTree.fromstring(svg_of(over_time(), 100)).iter()]
    assert {"time (s)", "throughput (Mbit/s)", "TCP RTT (ms)", "drop", "recovery"} <= set(words)
    assert "A title: trial 3, window=<b>1M</b>" in words


def test_a_change_of_the_lab_is_a_line_in_every_panel_and_its_words_in_the_first():
    figure = over_time()
    upper, lower = figure.panels
    word = "core 20.0 Mbit/s, 25.0 ms, jitter 5.00 ms, loss 10 % in 3.00 s"
    changed = replace(
        figure,
        panels=[
            replace(upper, events=[*upper.events, Event(255.0, word, None)]),
            replace(lower, events=[Event(255.0, "", None)]),
        ],
    )
    drawing = ElementTree.fromstring(svg_of(changed, 100))
    assert len(drawing.findall(f"{SVG}path[@class='event theory']")) == 2
    words = [one.text for one in drawing.iter(f"{SVG}text")]
    assert [one for one in words if one.startswith("core 20.0")] == ["core 20.0 Mbit/s,…"]


def test_every_panel_has_the_values_of_the_x_axis_and_the_last_one_its_name():
    words = [one.text for one in ElementTree.fromstring(svg_of(over_time(), 100)).iter()]
    assert (words.count("100"), words.count("time (s)")) == (2, 1)


def test_a_mark_says_its_value():
    titles = [one.text for one in ElementTree.fromstring(svg_of(SWEEP, 100)).iter(f"{SVG}title")]
    assert "64K, send: 6.55 Mbit/s, 95 % interval 5.90 Mbit/s to 7.21 Mbit/s" in titles
    assert "64K, send reported: 5.24 Mbit/s" in titles


def titles_of(figure):
    return [one.text for one in ElementTree.fromstring(svg_of(figure, 9)).iter(f"{SVG}title")][1:]


def test_bars_boxes_and_cells_say_their_values():
    assert "L1, a: 38.0 Mbit/s, 95 % interval 37.0 Mbit/s to 39.0 Mbit/s" in titles_of(BARS)
    assert "L1, a expected: 38.2 Mbit/s" in titles_of(BARS)
    assert titles_of(BOXES)[0] == (
        "L1, a: median 25.0 ms, quartiles 20.0 ms to 30.0 ms, 5 % to 95 % 15.0 ms to 40.0 ms,"
        " all 99 10.0 ms to 50.0 ms"
    )
    assert titles_of(HEAT)[-1] == "link L3, streams 4: 30.0 Mbit/s, not valid"


def test_cells_that_are_too_small_for_their_values_show_none_but_say_what_is_not_valid():
    many = [Tick(n, str(n)) for n in range(40)]
    (panel,) = HEAT.panels
    cells = [replace(panel.cells[0], column=n, text="30 Mbit/s", valid=n > 0) for n in range(40)]
    axis = replace(HEAT.x, high=39.0, ticks=many)
    crowded = replace(HEAT, x=axis, panels=[replace(panel, cells=cells)])
    words = [one.text for one in ElementTree.fromstring(svg_of(crowded, 9)).iter(f"{SVG}text")]
    assert [word for word in words if "Mbit" in word] == []
    assert words.count("!") == 1
    assert len(titles_of(crowded)) == 40


def test_a_bar_is_as_high_as_its_value():
    bars = [*ElementTree.fromstring(svg_of(BARS, 9)).iter(f"{SVG}rect")]
    heights = [float(one.get("height")) for one in bars]
    # The third bar of b has no value.
    assert len(bars) == 5
    assert heights[1] / heights[0] == pytest.approx(28 / 38, rel=0.01)


def test_a_cell_of_a_lab_that_did_not_keep_up_says_so():
    words = [one.text for one in ElementTree.fromstring(svg_of(HEAT, 9)).iter(f"{SVG}text")]
    assert "30 Mbit/s not valid" in words


def test_a_line_has_a_gap_where_nothing_was_measured():
    paths = [one.get("d") for one in ElementTree.fromstring(svg_of(over_time(1), 900)).iter()]
    assert max(path.count("M") for path in paths if path and path.count(" ") > 90) == 2


def test_a_drawn_line_passes_through_its_values():
    ys = [math.sin(place / 3) * 30 + 50 for place in range(90)]
    line = Line("a", 0, range(90), ys)
    panel = Panel(Axis("y", low=0.0, high=100.0), [line])
    figure = replace(SWEEP, kind=Kind.TIME, x=Axis("x", low=0.0, high=89.0), panels=[panel])
    (path,) = (
        one.get("d")
        for one in ElementTree.fromstring(svg_of(figure, 90)).iter(f"{SVG}path")
        if one.get("class") == "line s0"
    )
    steps = [float(one) for one in re.findall(r"-?(?:[0-9]+(?:\.[0-9]+)?|\.[0-9]+)", path)]
    xs, drawn = [*accumulate(steps[::2])], [*accumulate(steps[1::2])]
    assert xs == pytest.approx(
        [xs[0] + place * (xs[-1] - xs[0]) / 89 for place in range(90)], abs=1
    )
    top, bottom = ys.index(max(ys)), ys.index(min(ys))
    scale = (drawn[top] - drawn[bottom]) / (ys[top] - ys[bottom])
    assert drawn == pytest.approx([drawn[0] + (y - ys[0]) * scale for y in ys], abs=1)


HOSTILE = Picture(
    Kind.SWEEP, "x", "</title><script>alert(1)</script>", '"><img>', Axis("a" * 300, high=1.0),
    [Panel(Axis("<b>", high=1.0), [Line("<i>", 0, [0.0], [0.5])], [Event(0.5, "<u>", 0)])],
    "<s>", ["שלום 漢字 </script><script>"], ["</svg><script>"],
)  # fmt: skip


def test_names_in_a_figure_become_no_elements():
    drawing = ElementTree.fromstring(svg_of(HOSTILE, 9))
    assert {one.tag.removeprefix(SVG) for one in drawing.iter()} <= {
        "svg", "title", "path", "text", "circle",
    }  # fmt: skip
    page = html_of(PageContent("p", [PageSection("s", [PictureBlock(HOSTILE)])]))
    assert page.count("<script>") == 2
    assert page.count("</script>") == 3
    (data,) = page.split('<script type="application/json">')[1:]
    assert not set("<>&\u2028") & set(data.partition("</script>")[0])


@pytest.mark.parametrize(
    ("axis", "texts"),
    [
        (Axis("", "throughput_bps", 0.0, 94e6, from_zero=True), ["0", "20", "40", "60", "80"]),
        (Axis("", "rtt_s", 0.0201, 0.0209), ["20.2", "20.4", "20.6", "20.8"]),
        (Axis("", "throughput_bps", 1e6, 1e9, log=True), ["0.001", "0.01", "0.1", "1"]),
        (
            Axis("", low=0, high=1, ticks=[Tick(0, "a"), Tick(1, "b")], even=True),
            ["a", "b"],
        ),
        (Axis("", "rtt_s", 0.02, 0.02), ["19", "19.5", "20", "20.5", "21"]),
    ],
)
def test_an_axis_names_round_numbers(axis, texts):
    assert [text for _, text in ticks(axis)] == texts


def test_an_axis_of_many_values_names_some():
    many = Axis("", high=199.0, ticks=[Tick(n, str(n)) for n in range(200)], even=True)
    assert [text for _, text in ticks(many)] == [str(n) for n in range(0, 200, 20)]


@given(
    st.floats(-1e15, 1e15), st.floats(-1e15, 1e15), st.booleans(), st.sampled_from(["rtt_s", ""])
)
def test_an_axis_shows_all_its_values(one, other, from_zero, metric):
    axis = Axis("", metric, min(one, other), max(one, other), from_zero=from_zero and one >= 0)
    low, high = ends(axis)
    assert low < high
    assert high >= axis.high
    assert all(low <= value <= high or math.isclose(value, low) for value, _ in ticks(axis))
    assert len(ticks(axis)) < 20


VALUES = st.lists(st.floats(-1e12, 1e12) | st.just(math.nan), min_size=1, max_size=300)


@given(VALUES, st.integers(3, 50))
def test_thinning_keeps_the_least_and_the_greatest_value(ys, most):
    line = Line("a", 0, [float(place) for place in range(len(ys))], ys)
    few = thinned(line, most, merge=True)
    known = [value for value in ys if math.isfinite(value)]
    assert len(few.xs) <= max(most, 1)
    if known and len(ys) > most:
        lows = [value for value in few.lows if math.isfinite(value)]
        highs = [value for value in few.highs if math.isfinite(value)]
        assert (min(lows), max(highs)) == (min(known), max(known))


def test_thinning_draws_nothing_across_a_gap():
    ys = [5.0] * 50 + [math.nan] + [7.0] * 49
    few = thinned(Line("a", 0, [float(place) for place in range(100)], ys), 30, merge=True)
    gap = next(place for place, y in enumerate(few.ys) if math.isnan(y))
    assert few.xs[gap] == 50.0
    assert ({*few.ys[:gap]}, {*few.ys[gap + 1 :]}) == ({5.0}, {7.0})
    assert few.xs[gap - 1] < 50.0 < few.xs[gap + 1]


def test_a_curve_keeps_both_ends():
    line = Line("a", 0, range(100), range(100))
    few = thinned(line, 7, merge=False)
    assert (len(few.xs), few.xs[0], few.xs[-1]) == (7, 0, 99)


@given(VALUES, st.sampled_from([1.0, 1e6, 1e-3]))
def test_a_chart_has_the_values_of_its_line(ys, factor):
    found = packed(ys, factor)
    if len(ys) > 64:
        low, step, text = found
        steps = struct.unpack(f"<{len(ys)}H", base64.b64decode(text))
        found = [None if one == 0xFFFF else low + step * one for one in steps]
    known = [value for value in ys if math.isfinite(value)]
    close = (max(known) - min(known)) / 65000 + 1e-5 * max(map(abs, known)) if known else 0.0
    for value, shown in zip(ys, found, strict=True):
        assert (shown is None) == math.isnan(value)
        assert shown is None or math.isclose(shown * factor, value, abs_tol=close, rel_tol=1e-5)


def test_a_chart_is_in_the_units_of_its_axes():
    chart = chart_of(SWEEP, 99)
    assert chart["panels"][0]["y"]["label"] == "throughput (Mbit/s)"
    assert chart["panels"][0]["lines"][0]["y"][0] == 6.5536
    assert chart["x"]["ticks"][1] == [131072.0, "128K"]
    assert chart_of(HEAT, 99) is None


def test_48_figures_of_eight_lines_take_less_than_two_megabytes():
    figure = over_time(8, 600)
    page = html_of(PageContent("p", [PageSection("Figures", [PictureBlock(figure)] * 48)]))
    assert len(page) < 2_000_000
    assert "Points stand for up to" in page


def test_many_lines_are_all_drawn():
    figure = over_time(200, 101)
    drawing = ElementTree.fromstring(svg_of(figure, 30))
    lines = [one for one in drawing.iter(f"{SVG}path") if one.get("class").startswith("line ")]
    assert len(lines) == 2 * 200 + 1


def test_a_figure_of_one_value_or_none_is_drawn():
    for ys in ([5.0], [math.nan], []):
        line = Line("a", 0, [1.0] * len(ys), ys)
        panel = Panel(Axis("rtt", "rtt_s", 5.0, 5.0), [line])
        for kind in (Kind.TIME, Kind.SWEEP, Kind.BARS, Kind.CDF):
            figure = replace(SWEEP, kind=kind, x=Axis("t", "time_s", 1.0, 1.0), panels=[panel])
            ElementTree.fromstring(svg_of(figure, 9))
            chart_of(figure, 9)
