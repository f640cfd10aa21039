"""The program around the screens: its keys, its palette, and what holds for every screen."""

import asyncio
import os
import signal
from collections import Counter

import pytest
import waiting
from textual.command import CommandList
from textual.widgets import Input, Static
from tui.driving import (
    Clock,
    drive,
    notices,
    open_live,
    open_page,
    open_plan,
    open_replay,
    own_ids,
    press,
    screen_shown,
    settle,
    shown,
    until,
)

from benchctl.errors import StoreError
from benchctl.store.read import Reader
from benchctl.store.schema import VERSION
from benchctl.tui.app import BenchApp
from benchctl.tui.model.feed import RunReader
from benchctl.tui.registry import SCREENS
from benchctl.tui.screens.base import page
from benchctl.tui.screens.base.page import AppContext
from benchctl.tui.screens.compare import CompareScreen
from benchctl.tui.screens.history import HistoryScreen
from benchctl.tui.screens.live import LiveScreen
from benchctl.tui.screens.plan import PlanScreen
from benchctl.tui.screens.summary import SummaryScreen
from benchctl.tui.widgets.table import Table
from benchctl.tui.widgets.words import Words


def page_is(pilot, kind):
    return isinstance(pilot.app.screen, kind)


def test_every_key_of_the_program_does_what_it_says(three, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    tried = set()

    async def script(pilot):
        async def tell(binding, *keys):
            tried.add(binding)
            return await press(pilot, *keys)

        assert "What" not in shown(pilot)
        assert "Keys, and what is shown" in await tell("app.keys", "question_mark")
        assert "Keys, and" not in await press(pilot, "question_mark")
        await tell("app.copy", "y", *"command", "enter")
        assert pilot.app.clipboard == "benchctl tui --replay 20261121-002512-7f3a --at 30.0s"
        assert notices(pilot) == f"copied\n{pilot.app.clipboard}"
        pilot.app.clear_notifications()
        await tell("app.save", "s", *"svg", "enter")
        assert (tmp_path / "20261121-002512-7f3a-live.svg").exists()
        await press(pilot, "s", *"svg", "enter")
        assert (tmp_path / "20261121-002512-7f3a-live-2.svg").exists()
        for key, kind, binding in (
            ("1", PlanScreen, "app.plan"), ("4", HistoryScreen, "app.history"),
            ("3", SummaryScreen, "app.summary"), ("2", LiveScreen, "app.live"),
        ):  # fmt: skip
            await tell(binding, key)
            assert page_is(pilot, kind)
        assert "30.0/152.0 s" in shown(pilot)
        pilot.app.clear_notifications()
        await tell("app.compare", "5")
        assert "mark two or more runs" in notices(pilot)
        signals = []
        monkeypatch.setattr(pilot.app._driver.__class__, "can_suspend", True)
        monkeypatch.setattr("os.kill", lambda *what: signals.append(what))
        await tell("app.suspend", "ctrl+z")
        assert signals == [(os.getpid(), signal.SIGTSTP)]
        assert "Keys, and what is shown" in await press(pilot, "f1")
        assert "Keys, and what is shown" not in await press(pilot, "q")
        tried.add("app.quit")
        await pilot.press("q")
        assert pilot.app.return_code == 0
        tried.add("app.back")  # tried below
        assert tried == own_ids(BenchApp)

    clock = Clock()
    drive(three, open_replay(three, 1, clock, 30.0), script, clock=clock)


def test_keys_of_other_programs_move_close_and_quit(three):
    async def script(pilot):
        runs = pilot.app.screen.query_one(Table)
        await press(pilot, "j", "j", "k")
        assert runs.index == 1
        await press(pilot, "d")
        assert "Delete" in shown(pilot)
        assert "Delete 2" not in await press(pilot, "q")
        await pilot.press("ctrl+c")
        assert pilot.app.return_code == 0

    drive(three, open_page(three, "history"), script)


def test_every_key_of_a_screen_is_in_the_palette(three):
    async def script(pilot):
        await pilot.press("ctrl+p", *"freeze")
        found = pilot.app.screen.query_one(CommandList)
        await until(pilot, lambda: (found.option_count, found.highlighted) == (1, 0))
        await pilot.press("enter")
        await until(pilot, lambda: pilot.app.screen is pilot.app.page)
        assert "paused" in await press(pilot)

    clock = Clock()
    drive(three, open_replay(three, 1, clock, 30.0), script, clock=clock)


def test_keys_can_be_remapped_by_their_id(three):
    async def script(pilot):
        assert " f2 Freeze" in shown(pilot)
        assert "paused" not in await press(pilot, "space")
        assert "paused" in await press(pilot, "f2")

    clock = Clock()
    page = open_replay(three, 1, clock, 30.0)
    drive(three, page, script, clock=clock, keys={"live.freeze": "f2"})


def test_a_run_whose_last_time_cannot_be_read_is_let_go(three, monkeypatch):
    def unreadable(feed):
        raise StoreError("damaged")

    monkeypatch.setattr(RunReader, "last_time", unreadable)
    with pytest.raises(StoreError, match="damaged"):
        open_page(three, "live", 1)


FOOTERS = {
    "plan": "tab Focus  / Filter  r Run  e Edit  h History  a Watch",
    "live": "← → Seek  space Freeze  + Zoom  m Metric  T Values  < > Speed  r Resume",
    "summary": "m Metric  R Rows  C Cols  v Replay  h History  c Compare",
    "history": "/ Filter  x Mark  c Compare  t Tag  d Delete  u Summary",
    "compare": "w Swap  A All  E Effect  o Only  u Summary",
}
"""The keys that matter on each screen; of an ended run, none can be skipped or stopped."""


@pytest.mark.parametrize("name", SCREENS)
def test_the_last_line_has_the_keys_that_matter_and_cuts_none(three, name):
    async def script(pilot):
        assert isinstance(pilot.app.page, SCREENS[name].load())
        palette = "" if name == "live" else "  ^p Palette"  # where there is room
        assert shown(pilot).splitlines()[-1] == f" {FOOTERS[name]}  ? Keys{palette}"

    drive(three, open_page(three, name, *range(1, SCREENS[name].runs + 1)), script)


@pytest.mark.parametrize("name", SCREENS)
def test_the_key_that_shows_all_keys_stays_on_a_narrow_screen_and_all_are_readable_there(
    three, name
):
    async def script(pilot):
        bar = shown(pilot).splitlines()[-1]
        assert "? Keys" in bar
        assert "…" not in bar
        await press(pilot, "question_mark")
        texts = "\n".join(str(one.render()) for one in pilot.app.screen.query(Static))
        keys = [line for line in texts.splitlines() if "Row up" in line]
        assert len(keys[0].strip().split("  ")) == 2

    drive(three, open_page(three, name, *range(1, SCREENS[name].runs + 1)), script, size=(60, 20))


@pytest.mark.parametrize("size", [(20, 5), (1, 1)])
def test_every_screen_survives_any_size(three, size):
    async def script(pilot):
        for key in "1345":
            await press(pilot, key)
        await press(pilot, "question_mark", "escape")

    drive(three, open_page(three, "compare", 1, 2), script, size=size)


@pytest.mark.parametrize("name", ["plan", "live", "summary", "compare"])
def test_a_screen_that_is_not_seen_rests(three, monkeypatch, name):
    entry, ticks = SCREENS[name], Counter()
    for kind in (entry.load(), HistoryScreen):
        monkeypatch.setattr(kind, "tick", lambda self: ticks.update([self.NAME]))
    monkeypatch.setattr(page, "TICK_S", 0.001)

    async def go():
        first = open_page(three, name, *range(1, entry.runs + 1))
        async with BenchApp(AppContext(three, Clock()), first).run_test() as pilot:
            await pilot.app.push_screen(open_page(three, "history"))
            await waiting.until(lambda: not first._timer._active.is_set())
            seen, ticks["history"] = ticks[name], 0
            await waiting.until(lambda: ticks["history"] >= 20)
            assert ticks[name] == seen

    asyncio.run(go())


@pytest.mark.parametrize("kind", [SummaryScreen, HistoryScreen, LiveScreen, CompareScreen])
def test_a_locked_store_is_said_on_every_screen_and_tried_again(three, monkeypatch, kind):
    async def script(pilot):
        def locked(self):
            raise StoreError("store: database is locked", "wait")

        with monkeypatch.context() as patch:
            patch.setattr(Reader, "changes", locked)
            pilot.app.page.tick()
            await pilot.pause()
            assert "database is locked" in shown(pilot)
        await settle(pilot)
        assert "database is locked" not in shown(pilot)

    pages = {
        SummaryScreen: lambda: open_page(three, "summary", 1),
        HistoryScreen: lambda: open_page(three, "history"),
        LiveScreen: lambda: open_replay(three, 1, Clock(), 30.0),
        CompareScreen: lambda: open_page(three, "compare", 1, 2),
    }
    drive(three, pages[kind](), script)


def test_a_comparison_with_a_run_that_is_gone_says_so(three):
    async def script(pilot):
        assert "the run was deleted" in shown(pilot)

    drive(three, open_page(three, "compare", 1, 99), script)


def test_a_store_of_a_newer_version_is_said_on_the_screen(three, store):
    import sqlite3

    with sqlite3.connect(store) as connection:
        connection.execute(f"PRAGMA user_version = {VERSION + 1}")
    connection.close()

    async def script(pilot):
        assert "newer benchctl" in " ".join((await press(pilot, "4")).split())
        await press(pilot, "3")
        assert "written by a newer benchctl" in notices(pilot)

    drive(three, open_plan(), script)
    with pytest.raises(StoreError, match="newer benchctl"):
        open_live(store, 1, Clock())


def test_a_theme_of_ours_or_of_textual_can_be_chosen(three):
    async def script(pilot):
        assert pilot.app.theme == "nord"
        for theme in ("benchctl-dark", "benchctl-light", "ansi-light", "dracula"):
            pilot.app.theme = theme
            await settle(pilot)
            assert "throughput" in shown(pilot)

    clock = Clock()
    drive(three, open_replay(three, 1, clock, 30.0), script, clock=clock, theme="nord")


def test_escape_goes_back_through_the_screens_and_clears_a_filter_first(three):
    async def script(pilot):
        await press(pilot, "3")
        assert screen_shown(pilot) == "Summary"
        await press(pilot, "4")
        assert screen_shown(pilot) == "History"
        assert "1 of 3 runs" in await press(pilot, "slash", *"other", "enter")
        assert "1 of 3 runs" not in await press(pilot, "escape")
        assert screen_shown(pilot) == "History"
        await press(pilot, "escape")
        assert screen_shown(pilot) == "Summary"
        await press(pilot, "escape")
        assert screen_shown(pilot) == "Plan"
        await press(pilot, "escape")
        assert screen_shown(pilot) == "Plan"

    drive(three, open_plan(store=three), script)


def test_what_is_typed_is_completed_from_what_there_is(three):
    async def script(pilot):
        await press(pilot, "slash", *"oth")
        assert "1 of 3 runs" in await press(pilot, "right")
        assert pilot.app.page.query_one(Input).value == "other"
        await press(pilot, "escape", "t", *"base")
        await press(pilot, "right", "enter")
        assert "[baseline]" in shown(pilot)

    drive(three, open_page(three, "history"), script)


def test_the_last_word_of_several_is_completed():
    async def suggested(text):
        return await Words(["baseline", "Kitchen"]).get_suggestion(text)

    assert asyncio.run(suggested("lab, base")) == "lab, baseline"
    assert asyncio.run(suggested("kit")) == "kitchen"
    assert asyncio.run(suggested("baseline")) is None
    assert asyncio.run(suggested("")) is None
    assert asyncio.run(suggested("none")) is None


@pytest.mark.parametrize("name", SCREENS)
def test_a_screen_with_no_room_for_its_answer_asks_for_more_and_goes_on_where_it_was(three, name):
    async def script(pilot):
        focused = pilot.app.focused
        assert ("30 columns or more" in shown(pilot)) == (name != "live")
        await pilot.resize_terminal(80, 24)
        await until(pilot, lambda: "30 columns or more" not in shown(pilot))
        assert pilot.app.focused is focused

    drive(three, open_page(three, name, *range(1, SCREENS[name].runs + 1)), script, size=(20, 5))
