"""Spans, columns, tiles, charts, states: everything that becomes text before any widget."""

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from benchctl.metrics import Vocabulary, title_of
from benchctl.report.lines.plan import shortened
from benchctl.report.lines.spans import Span, crop, fit, state, to_text, wrap
from benchctl.tui.draw.plot.charts import compose
from benchctl.tui.draw.plot.choice import Choice
from benchctl.tui.draw.plot.spread import draw_spread
from benchctl.tui.draw.text.columns import Column, widths
from benchctl.tui.draw.views.tiles import Tile, lay_out_tiles
from benchctl.tui.model.zoom import View
from benchctl.tui.screens.base.modals import key_lines
from benchctl.tui.tasks import by_task, task_of
from benchctl.tui.widgets.scrolled import Scrolled

TEXTS = st.text(st.characters(codec="ascii", exclude_categories=("C",)), max_size=30)
LINES = st.lists(st.builds(Span, TEXTS, st.sampled_from(["", "dim"])), max_size=5)
TILES = [
    Tile("throughput", "94.1 Mbit/s", 11), Tile("mean", "5.41 Gbit/s", 11),
    Tile("RTT", "20.4 ms", 8), Tile("loss", "0 %", 7), Tile("left", "1:02:10", 8),
]  # fmt: skip


@given(LINES, st.integers(0, 60))
def test_a_cropped_line_is_as_long_as_it_should_be(line, width):
    assert sum(len(span.text) for span in crop(line, width)) == width


@given(TEXTS, st.integers(0, 40), st.booleans())
def test_a_fitted_text_is_as_long_as_it_should_be(text, width, right):
    assert len(fit(text, width, right=right)) == width


@given(LINES, st.integers(6, 60))
def test_wrapped_lines_are_short_and_lose_nothing_but_spaces(line, width):
    pieces = list(wrap(line, width))
    assert all(sum(len(span.text) for span in piece) <= width for piece in pieces)
    assert to_text(pieces).replace(" ", "").replace("\n", "") == to_text([line]).replace(" ", "")


def test_a_word_that_fits_into_no_line_begins_where_it_stands():
    pieces = wrap([Span("✗ " + 30 * "a" + " b")], 20, indent=2)
    assert to_text(pieces) == f"✗ {18 * 'a'}\n  {12 * 'a'} b"


def test_columns_are_as_wide_as_their_widest_text():
    assert widths(("a", "head"), [("long", "x")], (False, True)) == [
        Column("a", 4, fixed=True), Column("head", 4, right=True),
    ]  # fmt: skip
    assert widths(("a",), [], (False,)) == [Column("a", 1, fixed=True)]


@pytest.mark.parametrize("tall", [False, True])
@pytest.mark.parametrize("width", [5, 40, 80, 120])
def test_tiles_never_change_their_width(width, tall):
    other = [Tile(tile.name, "-", tile.width) for tile in TILES]
    for tiles in (TILES, other):
        lines = lay_out_tiles(tiles, width, tall=tall)
        assert len(lines) == (4 if tall else 2)
        assert len({sum(len(span.text) for span in line) for line in lines}) == 1


def test_tiles_for_which_there_is_no_room_are_left_out_the_last_ones_first():
    assert to_text(lay_out_tiles(TILES, 25, tall=False)).split() == [
        "throughput", "mean", "94.1", "Mbit/s", "5.41", "Gbit/s",
    ]  # fmt: skip


def test_tall_tiles(golden):
    golden("tui/golden/tiles.txt", to_text(lay_out_tiles(TILES, 100, tall=True)) + "\n")


def test_every_state_is_told_by_a_glyph_and_a_word():
    names = (
        "planned", "running", "ok", "failed", "timed_out", "interrupted", "skipped", "died",
    )  # fmt: skip
    told = {name: state(name).text for name in names}
    assert len(set(told.values())) == len(told)
    assert told["timed_out"] == "✗ timed out"
    assert state("molten").text == "? molten"


def test_metrics_stand_in_the_order_people_look_for_them():
    told = {"cwnd_bytes", "retransmits", "sent_bps", "tcp_rtt_s", "rtt_s", "a_new_one"}
    assert Vocabulary().plotted(told) == [
        "sent_bps", "rtt_s", "cwnd_bytes", "a_new_one", "retransmits", "tcp_rtt_s",
    ]  # fmt: skip
    assert title_of("tcp_rtt_s") == "TCP RTT"
    assert title_of("loss_ratio") == "loss"


def test_without_samples_the_plots_say_so():
    lines = compose(None, Choice(), View(0.0, 10.0), 40, 10)
    assert "no samples" in to_text(lines)


def test_a_distribution_is_drawn_with_its_interval_and_its_points(golden):
    runs = [("A", [90.1e6, 91.0e6, 92.2e6]), ("B", [99e6, 101e6, 103e6]), ("C", []), ("D", [95e6])]
    text = to_text(draw_spread("throughput_bps", runs, 80))
    golden("tui/golden/spread.txt", "\n".join(line.rstrip() for line in text.splitlines()) + "\n")


def test_a_distribution_of_nothing_says_so():
    assert to_text(draw_spread("rtt_s", [("A", []), ("B", [])], 80)) == "no repeats to draw"
    assert to_text(draw_spread("rtt_s", [("A", [1.0])], 10)) == "no repeats to draw"


def test_tall_figures_are_farther_apart_than_their_digits():
    """Of 120 columns, a screen has 118 for its tiles: "4:36 0:30" is not one figure."""
    names = ("2 flows", "mean", "TCP RTT of f", "max loss", "resent", "left", "elapsed")
    tiles = [
        Tile(name, value, width)
        for name, value, width in zip(
            names,
            ("29.0 Mbit/s", "28.2 Mbit/s", "82.6 ms", "1.75 %", "241", "4:36", "0:30"),
            (11, 11, 8, 7, 7, 8, 8),
            strict=True,
        )
    ]
    digits = to_text(lay_out_tiles(tiles, 118, tall=True)).splitlines()[1:]
    blank = [all(line[place] == " " for line in digits) for place in range(len(digits[0]))]
    gaps = [len(run) for run in re.findall(" +", "".join(" " if b else "x" for b in blank).strip())]
    assert len([gap for gap in gaps if gap >= 3]) == len(tiles) - 1


def test_a_long_line_goes_on_below_the_text_after_its_label():
    text = Scrolled()
    text._text = [
        [Span("! note     "), Span("lab: " + "word " * 8)],
        [Span("  plain " + "w " * 30)],
    ]
    assert [line.rstrip() for line in to_text(text.paint(44, 9)).splitlines()] == [
        "! note     lab: word word word word word",
        "           word word word",
        "  plain w w w w w w w w w w w w w w w w w w",
        "    w w w w w w w w w w w w",
    ]


def test_what_a_key_does_stays_in_its_column():
    keys = [
        ("a", "Short"),
        ("shift+left", "Braille, blocks, halves or ASCII"),
        ("c", "C"),
        ("d", "D"),
    ]
    assert key_lines(keys, 2, 60, 10) == [
        "         a  Short                       c  C",
        "shift+left  Braille, blocks,            d  D",
        "            halves or ASCII",
    ]
    assert key_lines(keys[:2], 1, 60, 10)[1] == "shift+left  Braille, blocks, halves or ASCII"


def test_every_key_of_live_has_its_task_in_the_help():
    tasks = {
        "live.skip": "Start and stop", "live.far_on": "Time", "live.cross_back": "Plots",
        "live.zoom_in": "Plots", "table.up": "Lists and texts", "app.history": "Other screens",
        "app.save": "Find, copy, save", "live.remark": "This screen",
    }  # fmt: skip
    assert {name: task_of(name) for name in tasks} == tasks
    assert [*by_task([("app.quit", "q", "Quit"), ("live.facts", "F", "Facts")])] == [
        "This screen", "Other screens",
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("command", "short"),
    [
        ("/opt/v/bin/python -I -S '/a b/simpleperf/__main__.py' -s", "simpleperf -s"),
        ("/usr/bin/iperf3 -c 10.0.0.2 -t 5", "iperf3 -c 10.0.0.2 -t 5"),
        ("ping -c 3 'a b'", "ping -c 3 'a b'"),
        ("/opt/v/bin/python -P -m mine.tool 5", "python -P -m mine.tool 5"),
    ],
)
def test_a_short_command_has_the_names_of_programs(command, short):
    assert shortened(command) == short
