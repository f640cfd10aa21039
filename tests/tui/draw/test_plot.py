import math
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from benchctl.report.lines.spans import to_text
from benchctl.report.timeline.series import Series
from benchctl.tui.draw.axes.times import time_axis
from benchctl.tui.draw.plot.plot import MARGIN, Curve, Plot, draw, letter, role_of
from benchctl.tui.draw.text.glyphs import ASCII, BLOCKS, BRAILLE, SETS
from benchctl.tui.model.zoom import View

MINUTE = View(0.0, 60.0)


def curve(function, number=0, samples=600, span_s=60.0):
    series = Series(0.0, span_s)
    times = [(n + 1) * span_s / samples for n in range(samples)]
    series.extend(times, [function(t) for t in times], [span_s / samples] * samples)
    return named(series, number)


def named(series, number=0):
    return Curve("main", series, number, letter(number))


RISE = curve(lambda t: 6e7 * (1 - math.exp(-t / 5)))
SPIKE = curve(lambda t: 0.0204 + (0.09 if abs(t - 30) < 0.06 else 0.0), 1)


def text(curves, width=60, height=10, view=MINUTE, metric="throughput_bps", **options):
    return to_text(draw(plot(curves, metric, options), view, width, height, **options))


def plot(curves, metric="throughput_bps", options=()):
    """Return a plot with those of some options that belong to it; they are taken out."""
    names = ("from_zero", "robust", "log", "bounds")
    own = {name: options.pop(name) for name in names if name in options}
    return Plot(metric, curves, **{"from_zero": True, **own})


@pytest.mark.parametrize("name", sorted(SETS))
def test_the_picture_of_each_set_of_characters(golden, name):
    drop = curve(lambda t: 3e7 if int(t) % 10 < 7 else 0.0, 1, samples=60)
    golden(f"tui/golden/plot-{name}.txt", text([RISE, drop], glyphs=SETS[name]) + "\n")


def test_an_event_is_marked_above_its_moment_with_its_word_and_of_several_lines_the_mark():
    fallen = replace(RISE, happened=[(20.0, "drop"), (40.0, "recovery")])
    lines = text([fallen], height=12).splitlines()
    (marked,) = (line for line in lines if "◆" in line)
    ticks = [place for place, character in enumerate(lines[-2]) if character == "┬"]
    assert [marked.index("◆drop"), marked.index("◆recovery")] == ticks[1:3]
    assert "◆a drop" in text([fallen, SPIKE], height=12)


def test_an_event_out_of_sight_is_not_marked():
    fallen = replace(RISE, happened=[(30.0, "drop")])
    assert "drop" not in text([fallen], view=View(0.0, 60.0, 29.0))
    assert "drop" not in text([fallen], view=View(31.0, 60.0))


@pytest.mark.parametrize("height", [3, 4, 5])
def test_a_plot_without_room_for_words_marks_its_events_at_the_lower_end(height):
    fallen = replace(RISE, happened=[(20.0, "drop"), (40.0, "recovery")])
    lines = text([fallen], height=height).splitlines()
    ticks = [place for place, character in enumerate(lines[-2]) if character == "┬"]
    marked = [place for place, character in enumerate(lines[-3]) if character == "◆"]
    assert marked == ticks[1:3]
    assert sum(line.count("◆") for line in lines) == len(marked)
    assert "drop" not in "".join(lines)


@given(
    st.integers(1, 220), st.integers(1, 60), st.sampled_from([BRAILLE, BLOCKS, ASCII]),
    st.booleans(), st.booleans(), st.floats(0.0, 60.0),
)  # fmt: skip
def test_every_line_has_the_width_and_there_are_as_many_as_asked(
    width, height, glyphs, log, with_times, until_s
):
    view = View(0.0, 60.0, until_s)
    fallen = replace(RISE, happened=[(12.0, "drop"), (12.1, "stall"), (60.0, "recovery")])
    both = Plot("throughput_bps", [fallen, SPIKE], from_zero=True, robust=True, log=log)
    lines = draw(both, view, width, height, below=1 + with_times, glyphs=glyphs)
    assert len(lines) == height
    assert {sum(len(span.text) for span in line) for line in lines} == {width}


@pytest.mark.parametrize("width", [20, 60, 200])
@pytest.mark.parametrize("glyphs", [BRAILLE, BLOCKS, ASCII], ids=lambda g: g.name)
def test_a_spike_of_one_sample_is_seen_at_any_width(width, glyphs):
    lines = text([SPIKE], width=width, metric="rtt_s", glyphs=glyphs, from_zero=False).splitlines()
    place = 9 + round(time_axis(0.0, 60.0, width - 10).cells / 2)
    columns = range(place - 2, place + 2)
    assert all(any(line[c] != " " for c in columns) for line in lines[3:6])


def test_nothing_is_drawn_after_the_moment_shown():
    whole = text([RISE])
    half = text([RISE], view=View(0.0, 60.0, until_s=30.0))
    assert whole != half
    assert all(set(line[36:59]) <= {" "} for line in half.splitlines()[:7])


def test_a_slow_tool_has_a_line_and_missing_samples_leave_a_hole():
    slow = text([curve(lambda t: 5e7, samples=6)])
    assert len(max(slow.splitlines(), key=lambda line: len(line.strip())).strip()) > 40
    series = Series(0.0, 60.0)
    times = [t / 10 for t in range(1, 200)] + [t / 10 for t in range(400, 600)]
    series.extend(times, [5e7] * len(times), [0.1] * len(times))
    rows = [line[9:] for line in text([named(series)]).splitlines()[:8]]
    drawn = max(rows, key=lambda row: len(row.replace(" ", "")))
    assert drawn[1:15].strip(" ") == drawn[1:15]
    assert drawn[18:31].strip() == ""
    assert drawn[35:48].strip(" ") == drawn[35:48]


def test_a_line_is_known_by_its_letter_and_lines_that_end_together_share_one():
    two = draw(plot([RISE, curve(lambda t: 2e7, 1)]), MINUTE, 60, 10)
    spans = [span for line in two for span in line]
    assert [span.role for span in spans if span.text.endswith("a")] == ["curve-0"]
    assert [span.role for span in spans if span.text.endswith("b")] == ["curve-1"]
    same = draw(plot([RISE, RISE]), MINUTE, 60, 10)
    assert [span.text for line in same for span in line if span.text == "+"] == ["+"]


def test_colours_go_round_but_every_flow_has_a_letter_of_its_own():
    assert [letter(0), letter(25), letter(26), letter(53)] == ["a", "z", "aa", "bb"]
    assert len({letter(number) for number in range(1000)}) == 1000
    assert role_of(9) == role_of(1) == "curve-1"


def test_without_lines_there_are_still_axes():
    assert "└" in text([])
    assert "0 s" in text([])


def test_the_scale_has_one_unit_and_stands_at_the_same_place_in_every_plot():
    rates, delays = text([RISE]), text([SPIKE], metric="rtt_s", from_zero=False)
    assert "Mbit/s" in rates
    assert "ms" in delays
    assert {line[8] for line in rates.splitlines()[:8]} <= set("│┤")
    assert {line[8] for line in delays.splitlines()[:8]} <= set("│┤")


def bursty(level_bps, number, burst_bps=290e6):
    def rate(time_s):
        return burst_bps if 30.0 <= time_s < 30.1 else level_bps * (1 + 0.2 * math.sin(9 * time_s))

    return replace(curve(rate, number), smooth_s=5.0, of_means=True)


FLOWS = [bursty(27e6, 0), replace(bursty(19e6, 1, 19e6), expected=19.1e6)]


def test_a_burst_is_marked_at_the_edge_and_leaves_the_flows_apart(golden):
    drawn = text(FLOWS, width=80, height=14, robust=True)
    golden("tui/golden/plot-burst.txt", drawn + "\n")
    rows = drawn.splitlines()
    assert float(next(row.split()[0] for row in rows if "┤" in row)) < 60
    assert "▲290" in rows[0] + rows[1]
    ends = [number for number, row in enumerate(rows) if row.rstrip().endswith(("a", "b"))]
    assert ends[1] > ends[0]


def test_a_smoothed_line_has_its_range_as_a_faint_band_behind_it():
    lines = draw(plot(FLOWS[:1], options={"robust": True}), MINUTE, 80, 14)
    roles = {span.role for line in lines for span in line}
    assert {"curve-0", "faint-curve-0"} <= roles
    lines = draw(plot([RISE]), MINUTE, 80, 14)
    assert "faint-curve-0" not in {span.role for line in lines for span in line}


def test_of_several_smoothed_lines_only_spikes_are_behind_them():
    lines = draw(plot([*FLOWS, *FLOWS], options={"robust": True}), MINUTE, 80, 14)
    faint = {
        n
        for line in lines
        for n in range(80)
        if "faint" in [role for text, role in line for _ in text][n]
    }
    assert len(faint) <= 1


def test_an_expected_value_is_a_dashed_line_with_its_value():
    drawn = text([replace(RISE, expected=7.5e7)], width=80, height=14)
    (row,) = [row for row in drawn.splitlines() if "expected" in row]
    assert "expected 75" in row
    dashes = row[9:].replace("expected 75", "").split()
    assert len(dashes) > 5
    assert len(set(dashes[:3])) <= 2
    assert "b expected 19.1" in text(FLOWS, width=80, height=14, robust=True)


def test_expected_values_that_read_alike_are_one_line():
    flows = [replace(FLOWS[0], expected=19.12e6), replace(FLOWS[1], expected=19.14e6)]
    assert text(flows, width=80, height=14, robust=True).count("expected 19.1") == 1


def test_the_text_of_an_expected_value_without_room_in_its_row_points_to_it():
    level = curve(lambda time_s: 19.1e6, 0)
    drawn = text([replace(level, expected=19.1e6)], width=60, height=14).splitlines()
    (row,) = [number for number, line in enumerate(drawn) if "expected 19.1" in line]
    (own,) = [number for number, line in enumerate(drawn) if line.rstrip().endswith("a")]
    assert abs(row - own) == 1
    assert ("↓" if row < own else "↑") + " expected 19.1" in drawn[row]


def test_an_expected_value_out_of_sight_is_marked_at_the_edge():
    drawn = text([replace(RISE, expected=9.4e8)], bounds=(0.0, 6e7))
    assert "▲expected 940" in drawn
    assert "▼expected 1" in text([replace(RISE, expected=1e6)], bounds=(2e7, 6e7))


@given(
    st.lists(st.floats(0.0, 1e3), min_size=8, max_size=60), st.floats(1.0, 900.0),
    st.sampled_from([BRAILLE, BLOCKS, ASCII]), st.booleans(),
)  # fmt: skip
def test_no_value_is_dropped_when_the_axis_shows_a_part(values, top, glyphs, banded):
    series = Series(0.0, 60.0)
    times = [60.0 * (n + 0.5) / len(values) for n in range(len(values))]
    series.extend(times, values, [1.0] * len(values))
    bounds = (top / 4, top)
    lines = text(
        [replace(named(series), of_means=banded)], bounds=bounds, from_zero=False, metric="x",
        glyphs=glyphs, height=16,
    ).splitlines()  # fmt: skip
    shown = [float(line.split()[0]) for line in lines[:14] if line[7:9] in (" ┤", " +")]
    for value, time_s in zip(values, times, strict=True):
        column = 9 + int(time_s / 60.0 * time_axis(0.0, 60.0, 50).cells)
        cells = [line[column] for line in lines[:14]]
        assert any(cell != " " for cell in cells)
        if value > shown[0] * 1.2:
            assert glyphs.above in "".join(lines[:14])
        if value < shown[-1] * 0.8:
            assert glyphs.below in "".join(lines[:14])
    greatest = max(values)
    if greatest > shown[0] * 1.2:
        number = f"{greatest:.0f}" if greatest >= 100 else f"{greatest:.3g}"
        assert any(f"{glyphs.above}{number}" in line or f"{number}{glyphs.above}" in line
                   for line in lines)  # fmt: skip


@pytest.mark.parametrize("rows", range(3, 60))
def test_labels_are_rows_apart_and_the_top_and_the_bottom_have_one_at_any_height(rows):
    lines = text(FLOWS, width=80, height=rows + 2, robust=True).splitlines()[:rows]
    labelled = [number for number, line in enumerate(lines) if line[:7].strip()]
    assert len({b - a for a, b in pairwise(labelled)}) == 1
    assert labelled[-1] == rows - 1
    drawn = [number for number, line in enumerate(lines) if line[8:].strip("│ ")]
    assert min(drawn) >= labelled[0] - 1


def test_without_colours_each_of_several_lines_has_its_mark_along_it():
    low, high = curve(lambda t: 2e7), curve(lambda t: 5e7, 1)
    marked = replace(BRAILLE, marks=16)
    rows = [line[MARGIN:].rstrip() for line in text([low, high], glyphs=marked).splitlines()]
    along = [{letter(n): row.count(letter(n)) for n in (0, 1)} for row in rows if row[-1:] in "ab"]
    assert [one for one in along if any(one.values())] == [{"a": 0, "b": 4}, {"a": 4, "b": 0}]
    assert text([low], glyphs=marked) == text([low])
