"""Every table of the screens is filtered, sorted, copied and saved by the same keys."""

import csv
import json
import re
from collections import defaultdict
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tui.driving import Clock, drive, notices, open_page, open_replay, press, shown

from benchctl.tui.app import BenchApp
from benchctl.tui.draw.text.sorting import in_order, value_of
from benchctl.tui.registry import SCREENS
from benchctl.tui.screens.base.tables import TablesScreen
from benchctl.tui.widgets.flowpicker import FlowPicker
from benchctl.tui.widgets.table import Table
from benchctl.units import format_value

# They move in whatever has the focus: rows, columns, time.
MOVING = {"up", "down", "left", "right", "home", "end", "pageup", "pagedown", "enter"}


def test_a_key_means_the_same_on_every_screen():
    owners = [BenchApp, TablesScreen, FlowPicker, Table]
    owners += [entry.load() for entry in SCREENS.values()]
    meanings = defaultdict(set)
    for owner in owners:
        for binding in owner.BINDINGS:
            for key in binding.key.split(","):
                meanings[key].add(binding.tooltip or binding.description)
    several = {key: words for key, words in meanings.items() if len(words) > 1}
    assert set(several) <= MOVING, several


@given(st.lists(st.floats(1e-6, 1e12)), st.sampled_from(["rtt_s", "throughput_bps", "sent_bytes"]))
def test_figures_are_sorted_by_value_whatever_unit_they_are_shown_in(values, metric):
    texts = [format_value(metric, value) for value in values]
    found = [values[place] for place in in_order(texts, backwards=False)]
    for one, other in pairwise(found):
        # Those that are shown alike keep their order.
        assert one <= other or format_value(metric, one) == format_value(metric, other)


@pytest.mark.parametrize(
    ("texts", "backwards", "found"),
    [
        (["1.2 Gbit/s", "-", "940 Mbit/s ±3", "failed"], False, [2, 0, 3, 1]),
        (["1.2 Gbit/s", "-", "940 Mbit/s ±3", "failed"], True, [3, 0, 2, 1]),
        (["h10-h2", "h9-h2", "H1"], False, [2, 1, 0]),
        (["+0.5 pp", "-3 pp", "0 pp"], False, [1, 2, 0]),
        (["5.2 … 357 Mbit/s", "6 kbit/s"], False, [1, 0]),
        (["▇ 2 min 05 s", "▁ 119 s / 120 s"], False, [1, 0]),
        (["b", "a", "b"], False, [1, 0, 2]),
    ],
)
def test_other_texts_come_after_figures_and_nothing_last(texts, backwards, found):
    assert in_order(texts, backwards=backwards) == found


def test_a_word_is_no_figure():
    assert value_of("2026-11-21 00:25") is None
    assert value_of("▲ better") is None


def columns(text, head):
    """Return the cells below a heading of figures, which end where it ends."""
    lines = text.splitlines()
    row = next(n for n, line in enumerate(lines) if f" {head}" in line)
    end = lines[row].index(f" {head}") + len(head) + 1
    return [line[:end].split("  ")[-1].strip() for line in lines[row + 1 :] if line.strip()]


def test_any_column_sorts_the_trials_by_value_and_again_the_other_way_round(three):
    async def script(pilot):
        table = pilot.app.page.query_one("#trials", Table)
        await press(pilot, "S", *"a main", "enter")
        rates = [value_of(row[-2]) for row in table.pivot().rows]
        rates = [rate for rate in rates if rate is not None]
        assert rates == sorted(rates)
        assert "a main ▲" in shown(pilot)
        await press(pilot, "S", *"a main", "enter")
        turned = [value_of(row[-2]) for row in table.pivot().rows]
        assert [rate for rate in turned if rate is not None] == rates[::-1]
        assert "a main ▼" in shown(pilot)
        # The row under the cursor is the same trial, wherever it is.
        first = table.pivot().rows[0]
        await press(pilot, "home", "enter")
        assert f"Trial {first[0]} of 8" in shown(pilot)
        await press(pilot, "escape", "S", *"as it comes", "enter")
        assert [row[0] for row in table.pivot().rows] == [str(n) for n in range(1, 9)]

    drive(three, open_replay(three, 1, Clock(), 1000.0), script, clock=Clock(), size=(120, 40))


def test_a_click_on_a_heading_sorts_by_its_column(three):
    async def script(pilot):
        table = pilot.app.page.query_one(Table)
        line = shown(pilot).splitlines()[table.region.y]
        await pilot.click(Table, offset=(line.index("profile"), 0))
        assert table.sorted_by == ("profile", False)
        assert [row[2] for row in table.pivot().rows] == ["other", "tour", "tour"]

    drive(three, open_page(three, "history"), script, size=(120, 24))


@pytest.mark.parametrize(
    ("words", "count"),
    [("TOUR", 2), ("other", 1), ("kitchen", 0), ("FAILED tour", 2), ("probe-1", 3), ("baseline", 1),
     ("mbit/s", 3)],
)  # fmt: skip
def test_a_filter_takes_effect_with_every_letter_in_any_case_on_all_that_is_shown(
    three, words, count
):
    async def script(pilot):
        await press(pilot, "slash", *words)
        assert f"{count} of 3 runs" in shown(pilot) or (count == 3 and "3 runs" in shown(pilot))
        if not count:
            assert "no row has these words" in shown(pilot)
            await press(pilot, "enter", "u", "d", "t", "x", "enter")  # there is no run to act on
        await press(pilot, "escape")
        assert "3 runs" in shown(pilot)

    drive(three, open_page(three, "history"), script, size=(120, 24))


def test_what_is_typed_is_seen_as_it_is_typed(three):
    async def script(pilot):
        assert "\n kitchen\n" in await press(pilot, "slash", *"kitchen")
        await press(pilot, "escape", "t", "ctrl+u")
        assert "garage" in await press(pilot, *"garage")
        await press(pilot, "escape", "S")
        assert "zzz" in await press(pilot, *"zzz")

    drive(three, open_page(three, "history"), script, size=(120, 24))


def test_while_words_are_typed_the_last_line_says_how_to_end_that(three):
    async def script(pilot):
        typed = await press(pilot, "slash", *"tour")
        assert typed.splitlines()[-1] == " ⏎ Keep  esc All rows  f1 Keys  ^p Palette"
        kept = await press(pilot, "enter")
        assert kept.splitlines()[-1].startswith(" / Filter  x Mark")
        assert "2 of 3 runs" in kept
        assert "3 runs" in await press(pilot, "slash", "escape")

    drive(three, open_page(three, "history"), script, size=(120, 24))


def test_the_cursor_stays_on_a_row_that_a_filter_shows(three):
    async def script(pilot):
        table = pilot.app.page.query_one(Table)
        await press(pilot, "end", "slash", *"9bd2")
        assert "12.1" in shown(pilot) or "better" in shown(pilot)
        assert table.here == 1
        await press(pilot, "enter", "down", "up", "end")
        assert table.here == 1

    drive(three, open_page(three, "history"), script, size=(120, 24))


def test_cell_row_table_and_command_are_copied(three):
    async def script(pilot):
        async def copied(words):
            await press(pilot, "y", *words, "enter")
            return pilot.app.clipboard

        await press(pilot, "end")
        assert await copied("cell profile") == "tour"
        row = (await copied("row")).split("\t")
        assert {"20261121-002512-7f3a", "tour"} <= {*row}
        lines = (await copied("table")).splitlines()
        assert lines[0].split("\t")[:3] == ["ago", "began", "profile"]
        assert lines[3].split("\t") == row
        assert await copied("command") == "benchctl runs"
        assert "copied" in notices(pilot)

    drive(three, open_page(three, "history"), script, size=(120, 24))


@pytest.mark.parametrize("name", ["history", "summary", "compare", "live"])
def test_the_table_of_every_screen_is_saved_as_csv_json_and_markdown(
    three, tmp_path, monkeypatch, name
):
    monkeypatch.chdir(tmp_path)

    async def script(pilot):
        table = pilot.app.page.table
        stem = "-".join([pilot.app.page.file_stem(), *re.findall(r"\w+", table.title.lower())])
        for end in ("csv", "json", "md"):
            await press(pilot, "s", *f".{end}", "enter")
        shown_rows = table.pivot()
        assert len(shown_rows.rows) == table.count
        with (tmp_path / f"{stem}.csv").open(newline="") as file:
            heads, *rows = csv.reader(file)
        assert (tuple(heads), [*map(tuple, rows)]) == (shown_rows.heads, [*shown_rows.rows])
        entries = json.loads((tmp_path / f"{stem}.json").read_text())
        assert [*map(dict, entries)] == [
            dict(zip(shown_rows.heads, row, strict=True)) for row in shown_rows.rows
        ]
        marked = (tmp_path / f"{stem}.md").read_text().splitlines()
        assert len(marked) == len(shown_rows.rows) + 2

    page = open_page(three, name, *range(1, SCREENS[name].runs + 1))
    drive(three, page, script, size=(120, 40))


def test_a_table_is_saved_as_it_is_filtered_and_sorted(three, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)

    async def script(pilot):
        await press(pilot, "slash", *"tour", "enter", "S", *"run", "enter", "s", *"csv", "enter")
        rows = (tmp_path / "benchctl-history.csv").read_text().splitlines()[1:]
        assert [row.split(",")[7][-4:] for row in rows] == ["7f3a", "9bd2"]

    drive(three, open_page(three, "history"), script, size=(120, 24))


def test_a_click_on_the_first_line_shows_another_screen(three):
    async def script(pilot):
        line = shown(pilot).splitlines()[0]
        await pilot.click("TitleBar", offset=(line.index("4"), 0))
        await press(pilot)
        assert "runs in" in shown(pilot)
        assert " 4 History " in shown(pilot)

    drive(three, open_page(three, "summary", 1), script)


def test_a_figure_is_copied_without_its_bar_and_the_blanks_that_line_it_up(three):
    async def script(pilot):
        await press(pilot, "y", *"row", "enter")
        cells = pilot.app.clipboard.split("\t")
        assert all(value_of(cell) is not None for cell in cells)
        assert not any("  " in cell or "▁" in cell or "▇" in cell for cell in cells)
        assert "▁" in shown(pilot)

    drive(three, open_page(three, "summary", 1), script, size=(120, 24))


def marks(table):
    """Return the roles of the row under the cursor, as it is on the screen."""
    return {role for text, role in table._lines[1] if text.strip()}


def test_the_row_of_the_cursor_is_marked_also_while_other_widgets_have_the_keys(three):
    async def script(pilot):
        table = pilot.app.page.table
        assert marks(table) == {"cursor"}
        await press(pilot, "slash")
        assert "chosen" in marks(table)  # Beside it, the colours of states stay.
        await press(pilot, "enter")
        assert marks(table) == {"cursor"}
        await press(pilot, "S")
        picked = pilot.app.screen.query_one(Table)
        assert marks(picked) == {"cursor"}  # The words above it have the focus.

    drive(three, open_page(three, "history"), script)
