"""The small tables of the summary: each is chosen, sorted, filtered, copied and saved."""

import csv
import re
from contextlib import closing
from itertools import pairwise

import pytest
from textual.events import MouseScrollDown
from tui.driving import drive, open_page, press, settle, shown
from tui.made_runs import BEGIN, MadeRun, plan_flow

from benchctl.metrics import Fold, Metric
from benchctl.run.planned import PlannedRun, PlannedTrial, Settings
from benchctl.run.record import Figure
from benchctl.store.record import Recorder, create_run
from benchctl.tui.draw.text.sorting import value_of

RTT = "RTT of b ping (round-trip), ms"
NUMBERED = [f"latency_{number}_s" for number in range(20)]


@pytest.fixture
def many(store):
    """Make a run of which 24 metrics were measured."""
    metrics = tuple(Metric(name, "", Fold.DISTRIBUTION, wanted=True) for name in NUMBERED)
    made = MadeRun(store, repeats=1, metrics=metrics)
    made.begin()
    for number in range(4):
        made.begin_trial()
        figures = {("send", name): Figure(0.001 * (number + 1), "tool") for name in NUMBERED}
        made.recorder.add_figures(made.flows["main"], figures)
        made.measure(4.0)
        made.end_trial()
    made.end()
    made.close()
    return store


async def go_to(pilot, title):
    """Go to the table of a title by the key."""
    for _ in range(60):
        if pilot.app.page.table.title == title:
            return pilot.app.page.table
        await press(pilot, "tab")
    raise AssertionError(shown(pilot))


def test_a_small_table_is_sorted_by_value_and_the_others_are_not(three):
    async def script(pilot):
        table = await go_to(pilot, RTT)
        await press(pilot, "S", *"tashkent", "enter", "S", *"tashkent", "enter")
        values = [value_of(row[2]) for row in table.pivot().rows]
        assert values == sorted(values, reverse=True)
        assert len(set(values)) == 2
        assert shown(pilot).count("▼") == 1
        lines = shown(pilot).splitlines()
        title = next(n for n, line in enumerate(lines) if RTT in line)
        assert "server=tashkent ▼" in lines[title + 1]

    drive(three, open_page(three, "summary", 1), script)


def test_a_table_keeps_its_order_when_its_metric_comes_to_the_top(three):
    async def script(pilot):
        await go_to(pilot, RTT)
        await press(pilot, "S", *"paris", "enter", "S", *"paris", "enter")
        await press(pilot, "m", *"RTT", "enter")
        top = pilot.app.page.table
        assert (top.id, top.title) == ("grid", RTT)
        assert top.sorted_by == ("server=paris", True)
        assert [row[0] for row in top.pivot().rows] == ["4", "1"]
        assert shown(pilot).count("▼") == 1
        await press(pilot, "m", *"throughput", "enter")
        assert pilot.app.page.table.sorted_by is None
        assert (await go_to(pilot, RTT)).sorted_by == ("server=paris", True)

    drive(three, open_page(three, "summary", 1), script)


def test_a_small_table_is_filtered_alone(three):
    async def script(pilot):
        table = await go_to(pilot, RTT)
        await press(pilot, "slash", *"20.9", "enter")
        assert [row[0] for row in table.pivot().rows] == ["1"]
        assert "1/1 of 2" in shown(pilot)
        assert pilot.app.page.query_one("#grid").count == 2

    drive(three, open_page(three, "summary", 1), script)


def test_the_cell_the_row_and_the_table_that_are_copied_are_of_the_small_table(three):
    async def script(pilot):
        async def copied(words):
            await press(pilot, "y", *words, "enter")
            return pilot.app.clipboard

        await go_to(pilot, RTT)
        await press(pilot, "down")
        assert await copied("cell server=tashkent") == "98.2 ±12"  # without its bar
        assert await copied("row") == "4\t21.3\t98.2 ±12"
        lines = (await copied(f"rows of {RTT}")).splitlines()
        assert lines[0].split("\t") == ["streams", "server=paris", "server=tashkent"]
        assert len(lines) == 3

    drive(three, open_page(three, "summary", 1), script)


def test_the_file_of_a_small_table_is_named_by_its_metric(three, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)

    async def script(pilot):
        table = await go_to(pilot, RTT)
        await press(pilot, "s", *".csv", "enter")
        path = tmp_path / f"{pilot.app.page.file_stem()}-rtt-of-b-ping-round-trip-ms.csv"
        with path.open(newline="") as file:
            heads, *rows = map(tuple, csv.reader(file))
        assert (heads, (*rows,)) == (table.pivot().heads, table.pivot().rows)

    drive(three, open_page(three, "summary", 1), script)


@pytest.mark.parametrize("size", [(80, 24), (200, 60)])
def test_the_key_reaches_every_metric_and_each_is_seen_as_a_whole(many, size):
    async def script(pilot):
        page = pilot.app.page
        seen = []
        while page.table.title not in seen:
            table = page.table
            seen.append(table.title)
            assert page.can_view_entire(table), table.title
            assert f" {table.title}" in shown(pilot)
            assert "1/2" in shown(pilot)
            await press(pilot, "tab")
        assert len(seen) == len(page._summary.usual) > len(NUMBERED)
        assert page.table.id == "grid"

    drive(many, open_page(many, "summary", 1), script, size=size)


def test_more_tables_than_the_screen_shows_are_counted_below(many):
    async def script(pilot):
        page = pilot.app.page
        grids = page.query_one("#others")
        below = [len(page._summary.usual) - 1 - sum(map(page.can_view_entire, grids.tables))]
        assert f"↓ {below[0]} more" in shown(pilot)
        while "below (tab)" in shown(pilot):
            grids.scroll_relative(y=5, animate=False)
            await settle(pilot)
            after = re.search(r"↓ (\d+) more", shown(pilot))
            below.append(int(after[1]) if after else 0)
        assert all(one > other for one, other in pairwise(below))
        assert below[-1] == 0

    drive(many, open_page(many, "summary", 1), script)


def test_tables_without_room_below_each_other_stand_side_by_side(many):
    async def beside(pilot):
        lines = shown(pilot).splitlines()
        assert any(line.count("server=tashkent") == 2 for line in lines)

    async def below(pilot):
        assert all(line.count("server=tashkent") < 2 for line in shown(pilot).splitlines())

    drive(many, open_page(many, "summary", 1), beside, size=(120, 40))
    drive(many, open_page(many, "summary", 1), below, size=(80, 24))


def test_the_wheel_over_a_table_that_is_seen_as_a_whole_scrolls_all_of_them(many):
    async def script(pilot):
        grids = pilot.app.page.query_one("#others")
        table = grids.tables[0]
        await pilot._post_mouse_events([MouseScrollDown], table, offset=(3, 2))
        await settle(pilot)
        assert grids.scroll_offset.y > 0
        assert table.index == 0

    drive(many, open_page(many, "summary", 1), script)


def test_a_run_without_axes_has_all_flows_in_one_table(store):
    settings = Settings({}, "interleaved", ())
    flows = tuple(plan_flow(name, "iperf3", "send") for name in ("up", "down"))
    plan = [PlannedTrial(0, 1, {}, flows, {}, 10.0, 20.0)]
    create_run(store, PlannedRun("fan", "", 1, settings, plan, ""), BEGIN)
    with closing(Recorder(store, 1)) as recorder:
        recorder.update_run(status="running", started_time=BEGIN)
        recorder.update_trial(1, status="running", started_time=BEGIN)
        for name, rate_bps in (("up", 9e6), ("down", 8e6)):
            flow_id = recorder.add_flow(
                1, attempt=1, name=name, backend="iperf3", source="local", target="paris",
                direction="send", status="ok", client=[], server=[], requested={},
            )  # fmt: skip
            recorder.add_figures(flow_id, {("send", "throughput_bps"): Figure(rate_bps, "tool")})
        recorder.update_trial(1, status="ok", finished_time=BEGIN + 10)
        recorder.update_run(status="ok", finished_time=BEGIN + 10)

    async def script(pilot):
        text = shown(pilot)
        rows = [" ".join(line.split()) for line in text.splitlines()]
        # The flows are in their order, with their letters, in the pivot and in the table.
        assert "throughput, Mbit/s flow ↓" in rows
        assert [row for row in rows if row.startswith(("a up", "b down"))] == [
            "a up ▇ 9.00", "b down ▇ 8.00", "a up 1 9.00 Mbit/s", "b down 1 8.00 Mbit/s",
        ]  # fmt: skip

    drive(store, open_page(store, "summary", 1), script)
