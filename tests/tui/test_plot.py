import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from benchctl.tui.draw.plot import ASCII, BLOCKS, BRAILLE, SETS, Curve, draw, letter, role_of
from benchctl.tui.draw.spans import to_text
from benchctl.tui.draw.times import time_axis
from benchctl.tui.model.series import Series
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
    options.setdefault("from_zero", True)
    return to_text(draw(metric, curves, view, width, height, **options))


@pytest.mark.parametrize("name", sorted(SETS))
def test_the_picture_of_each_set_of_characters(golden, name):
    drop = curve(lambda t: 3e7 if int(t) % 10 < 7 else 0.0, 1, samples=60)
    golden(f"tui/golden/plot-{name}.txt", text([RISE, drop], glyphs=SETS[name]) + "\n")


@given(
    st.integers(1, 220), st.integers(1, 60), st.sampled_from([BRAILLE, BLOCKS, ASCII]),
    st.booleans(), st.booleans(), st.floats(0.0, 60.0),
)  # fmt: skip
def test_every_line_has_the_width_and_there_are_as_many_as_asked(
    width, height, glyphs, log, with_times, until_s
):
    view = View(0.0, 60.0, until_s, log)
    lines = draw("throughput_bps", [RISE, SPIKE], view, width, height, from_zero=True,
                 with_times=with_times, glyphs=glyphs)  # fmt: skip
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
    two = draw("throughput_bps", [RISE, curve(lambda t: 2e7, 1)], MINUTE, 60, 10, from_zero=True)
    spans = [span for line in two for span in line]
    assert [span.role for span in spans if span.text.endswith("a")] == ["curve-0"]
    assert [span.role for span in spans if span.text.endswith("b")] == ["curve-1"]
    same = draw("throughput_bps", [RISE, RISE], MINUTE, 60, 10, from_zero=True)
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
