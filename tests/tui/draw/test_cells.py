"""A figure is shown as a whole or not at all, at every width."""

import re

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from rich.cells import cell_len

from benchctl.report.lines.spans import Span, crop, fit, shorten, to_text, without_middle
from benchctl.report.pivot import align
from benchctl.tui.draw.text.columns import Column, FreeText, see
from benchctl.tui.draw.views.tiles import Tile, lay_out_tiles
from benchctl.units import format_mean, format_value
from benchctl.visible import width_of

METRICS = st.sampled_from(["throughput_bps", "rtt_s", "cwnd_bytes", "loss_ratio", "retransmits"])
VALUES = st.floats(1e-9, 1e12)
FIGURES = st.builds(format_value, METRICS, VALUES) | st.builds(format_mean, METRICS, VALUES, VALUES)
WORDS = st.sampled_from(["h1-h4", "send", "main", "a4-multiplexing", "x2", "(server)", "of"])
WIDTHS = st.integers(0, 60)


@given(st.lists(st.tuples(WORDS, FIGURES), min_size=1, max_size=4), WIDTHS)
@example([("main", "26.9 Mbit/s ±0.42")], 20)
@example([("h1-h4 send", "6.20 Gbit/s")], 15)
def test_a_shortened_text_has_no_figure_in_part(parts, width):
    text = ", ".join(f"{word} {figure}" for word, figure in parts)
    short = shorten(text, width)
    assert len(short) <= width
    if short != text and width:
        assert short[-1] == "…"
        kept = short[:-1]
        assert text.startswith(kept)
        ends = [
            match.end() for _, figure in parts for match in re.finditer(re.escape(figure), text)
        ]
        starts = [m.start() for _, figure in parts for m in re.finditer(re.escape(figure), text)]
        begun = [end for start, end in zip(starts, ends, strict=True) if start < len(kept)]
        assert all(end <= len(kept) for end in begun)


@given(FIGURES, WIDTHS)
def test_a_figure_at_the_right_of_its_cell_is_whole_or_an_ellipsis(figure, width):
    assert fit(figure, width, right=True).strip() in (figure, "…"[:width])


@given(st.lists(st.builds(Span, FIGURES | WORDS), max_size=5), WIDTHS)
def test_a_cropped_line_is_shortened_like_its_text(line, width):
    cropped = to_text([crop(line, width)])
    assert len(cropped) == width
    assert cropped.rstrip() == shorten(to_text([line]), width).rstrip()


@st.composite
def tables(draw):
    """Return columns of names and figures, and a row."""
    names = draw(st.lists(WORDS, max_size=4))
    figures = draw(st.lists(FIGURES, min_size=1, max_size=8))
    verdict = draw(st.lists(st.just("▲ better"), max_size=1))
    columns = [Column("name", max(4, len(name)), fixed=True) for name in names]
    columns += [Column("f", max(2, len(figure)), right=True) for figure in figures]
    columns += [Column("verdict", 8, fixed=True) for _ in verdict]
    return columns, [*map(Span, names), *map(Span, figures), *map(Span, verdict)]


@given(tables(), st.integers(1, 100), st.integers(0, 12))
def test_every_cell_of_a_row_is_whole_or_an_ellipsis_wherever_it_is_scrolled_to(
    table, width, first
):
    columns, cells = table
    sight = see(columns, width, first)
    row = sight.row(cells)
    assert sum(len(span.text) for span in row) <= max(width, 1) + 2
    shown = [span.text.strip() for span in row[::2]]
    for (place, _), text in zip(sight.columns, shown, strict=True):
        figure = cells[place].text
        assert text == figure or text.endswith("…")
        if columns[place].right:
            assert text in (figure, "…")


@given(tables(), st.integers(30, 100))
@example(([Column("name", 15, fixed=True), Column("f", 16, right=True)], []), 30)
def test_every_column_can_be_scrolled_to_and_fixed_ones_stay_where_there_is_room(table, width):
    columns, _ = table
    seen = set()
    fixed = {place for place, column in enumerate(columns) if column.fixed}
    room = sum(columns[place].width + 2 for place in fixed) + 11 <= width
    for first in range(len(columns)):
        sight = see(columns, width, first)
        visible = dict(sight.columns)
        seen |= {place for place, column in visible.items() if column.width == columns[place].width}
        if room and all(column.width <= 11 for column in columns if not column.fixed):
            assert fixed <= visible.keys()
        assert len(visible) + sight.before + sight.after == len(columns)
    wide = {place for place, column in enumerate(columns) if column.width > width}
    assert seen | wide == set(range(len(columns)))


@given(tables(), WIDTHS, st.integers(0, 12))
def test_each_character_of_a_row_is_of_the_column_that_has_it(table, width, first):
    columns, _ = table
    sight = see(columns, width, first)
    row = sight.row([Span(chr(ord("a") + n) * one.width) for n, one in enumerate(columns)])
    for x, letter in enumerate(to_text([row])):
        if letter.isalpha():
            assert sight.place_at(x) == ord(letter) - ord("a")
    assert sight.place_at(len(to_text([row])) + 9) is None


def test_the_repeat_stays_and_the_figures_of_other_flows_go():
    """A reader of a figure needs to know what it is of, more than the next figure."""
    columns = [Column("case", 8, fixed=True), Column("rep", 3, right=True, fixed=True)]
    columns += [Column(f"{letter} flow", 11, right=True) for letter in "abc"]
    cells = [Span("two"), Span("1"), *(Span(f"{n}.00 Gbit/s") for n in range(3))]
    for first, figures in ((0, "0.00"), (1, "1.00"), (2, "2.00"), (9, "2.00")):
        row = to_text([see(columns, 30, first).row(cells)])
        assert row.split() == ["two", "1", figures, "Gbit/s"]


@pytest.mark.parametrize("figures", [1, 4])
def test_words_go_on_over_the_columns_of_figures_also_over_a_single_one(figures):
    columns = [Column("#", 2, fixed=True), *(Column("f", 11, right=True) for _ in range(figures))]
    cells = [Span("1"), FreeText("failed: the server is busy", "bad")]
    for first in range(4):
        assert to_text([see(columns, 40, first).row(cells)]).split(None, 1) == [
            "1", "failed: the server is busy          ",
        ]  # fmt: skip


def test_bars_keep_their_colours_under_the_cursor_which_would_turn_them_upside_down():
    columns = [Column("a", 3), Column("", 3, drawn=True)]
    spans = see(columns, 10).row([Span("x"), Span("▁▂▃", "curve-1")], role="cursor")
    assert [span.role for span in spans] == ["cursor", "cursor", "curve-1", "cursor"]


def test_a_cursor_goes_over_every_cell_but_not_over_heat():
    columns = [Column("a", 1), Column("b", 1)]
    spans = see(columns, 9).row([Span("x", "bad"), Span("y", "heat-3")], role="cursor")
    assert [span.role for span in spans] == ["cursor", "cursor", "heat-3", "cursor"]


@given(st.lists(FIGURES, min_size=1, max_size=5), st.integers(1, 80))
def test_a_tile_shows_its_figure_as_a_whole_or_an_ellipsis(figures, width):
    tiles = [Tile(str(n), figure, 8) for n, figure in enumerate(figures)]
    _, values = lay_out_tiles(tiles, width, tall=False)
    assert all(span.text.strip() in (f, "…") for span, f in zip(values, figures, strict=False))
    *_, middle, _ = lay_out_tiles(tiles, width, tall=True)
    told = [span.text.strip() for span in middle if re.search("[0-9]", span.text)]
    assert set(told) <= set(figures)


def test_two_figures_are_seen_before_the_whole_of_long_texts_which_scrolling_shows():
    columns = [Column("case", 14, fixed=True), Column("A", 11, right=True),
               Column("B", 11, right=True), Column("verdict", 8, fixed=True)]  # fmt: skip
    cells = [Span("nothing shared"), Span("14.3 Mbit/s"), Span("14.5 Mbit/s"), Span("▲ better")]
    assert to_text([see(columns, 46).row(cells)]).split("  ") == [
        "nothing s…", "14.3 Mbit/s", "14.5 Mbit/s", "▲ better", "",
    ]  # fmt: skip
    assert to_text([see(columns, 46, 1).row(cells)]).startswith("nothing shared  14.5 Mbit/s")


@pytest.mark.parametrize("width", range(25, 60))
def test_the_mark_of_hidden_columns_covers_no_heading(width):
    columns = [Column("#", 2, fixed=True), *(Column(f"{n} flow", 11, right=True) for n in "abcd")]
    columns += [Column("loss", 4, right=True)]
    for first in range(5):
        sight = see(columns, width, first)
        heads = to_text([sight.head()])
        assert heads.rstrip().endswith(sight.hidden)
        assert all(f" {column.head} " in f" {heads} " for _, column in sight.columns)
        assert len(heads.rstrip()) <= width


WIDE = st.text(st.sampled_from("ab 日本語한🚀é…─"), max_size=30)


@given(st.lists(WIDE, min_size=1, max_size=4), WIDTHS)
def test_wide_characters_keep_columns_in_line(parts, width):
    line = crop([Span(part) for part in parts], width)
    assert sum(cell_len(span.text) for span in line) == width
    assert cell_len(fit(parts[0], width)) == cell_len(fit(parts[0], width, right=True)) == width
    assert cell_len(shorten(parts[0], width)) <= width


def test_wide_characters_keep_the_columns_of_printed_tables_in_line():
    text = align(["名", "n"], [["日本", "1"], ["a", "22"]], [False, True])
    assert {cell_len(line) for line in text.splitlines()} == {8}


@given(parts=st.text("aあ🚀 .-", max_size=40), width=st.integers(1, 30))
def test_a_text_without_its_middle_keeps_both_ends(parts, width):
    short = without_middle(parts, width)
    assert width_of(short) <= width
    before, cut, after = short.partition("…")
    assert parts.startswith(before)
    assert parts.endswith(after)
    assert bool(cut) == (short != parts)


def test_a_heading_that_has_no_room_is_shortened_over_its_figures():
    columns = [Column("flow", 6, fixed=True), Column("a download-from-server", 12, right=True)]
    assert to_text([see(columns, 30).head()]).rstrip() == "flow    a download-…"
