"""Every key of lists and texts, the mouse, and the small windows."""

import re
from pathlib import Path

import pytest
from textual.events import MouseScrollDown
from tui.driving import (
    double_click,
    drive,
    open_plan,
    own_ids,
    press,
    settle,
    shown,
)

from benchctl.tui.screens.base.modals import Ask, Dialog, Help, Prompt
from benchctl.tui.widgets.scrolled import Scrolled
from benchctl.tui.widgets.table import Table
from benchctl.tui.widgets.tabs import Tabs

STORE = Path("runs.sqlite")
OWN = Path("profiles/two-servers.toml")


@pytest.fixture(autouse=True)
def here(toy_profiles):
    """Work in a directory with profiles."""


def test_every_key_of_a_list_moves_the_cursor_or_chooses():
    async def script(pilot):
        table = pilot.app.focused
        places = []
        for key in ("down", "down", "up", "end", "home", "pagedown", "pageup"):
            await press(pilot, key)
            places.append(table.index)
        assert places == [2, 3, 2, 6, 0, 6, 0]
        await press(pilot, "down", "enter")
        assert isinstance(pilot.app.focused, Scrolled)
        assert len(own_ids(Table)) == 9

    drive(STORE, open_plan(OWN), script)


def left(pilot):
    """Return how many lines of a text a screen says are left, its own among them; 1 at the end."""
    told = re.search(r"↓ (\d+) more lines", shown(pilot))
    return int(told[1]) if told else 1


def test_every_key_of_a_text_scrolls_it():
    async def script(pilot):
        text = pilot.app.page.query_one("#text", Scrolled)
        text.focus()
        first, tops = left(pilot), []
        for key in ("down", "up", "pagedown", "pageup", "end", "home"):
            await press(pilot, key)
            tops.append(first - left(pilot))
        page, last = text.size.height - 1, tops[4]
        assert tops == [1, 0, min(page, last), 0, last, 0]
        assert last > 0
        assert len(own_ids(Scrolled)) == 6
        assert "more lines" in shown(pilot)
        await press(pilot, "end")
        assert "more lines" not in shown(pilot)

    drive(STORE, open_plan(OWN), script)


def test_a_click_shows_another_tab():
    async def script(pilot):
        for name in ("About", "Commands", "Plan"):
            line = next(one for one in shown(pilot).splitlines() if "About" in one)
            await pilot.click(Tabs, offset=(line.index(name), 0))
            await settle(pilot)
            assert f"[{name}]" in shown(pilot)

    drive(STORE, open_plan(OWN), script)


def test_a_mouse_moves_the_cursor_chooses_scrolls_and_presses_keys():
    async def script(pilot):
        table, text = pilot.app.focused, pilot.app.page.query_one("#text", Scrolled)
        await press(pilot, "V", "V")  # the commands, the longest text
        await pilot.click(table, offset=(4, 3))
        await settle(pilot)
        assert table.index == 2
        await double_click(pilot, table, (4, 3))
        assert pilot.app.focused is text
        first = left(pilot)
        pilot.app.post_message(
            MouseScrollDown(text, *text.region.offset, 0, 0, 0, False, False, False)
        )
        await settle(pilot)
        assert first - left(pilot) == 3
        bar = shown(pilot).splitlines()[-1]
        await pilot.click("KeyBar", offset=(bar.index("Filter"), 0))
        await pilot.pause()
        assert pilot.app.focused is pilot.app.page.filter_line

    drive(STORE, open_plan(OWN), script)


def test_every_key_of_the_small_windows_answers_or_leaves():
    answers = []

    async def script(pilot):
        async def answer(window, *keys):
            pilot.app.push_screen(window, answers.append)
            await press(pilot, *keys)
            return answers.pop()

        assert await answer(Ask("Sure?"), "y") is True
        assert await answer(Ask("Sure?"), "n") is False
        assert await answer(Ask("Sure?"), "enter") is False
        assert await answer(Ask("Sure?"), "escape") is None
        assert await answer(Prompt("Name", "a"), "b", "enter") == "ab"
        assert await answer(Prompt("Name", "a"), "escape") is None
        for key in ("q", "question_mark", "escape"):
            assert await answer(Help({"This screen": [("r", "Run")]}, []), key) is None
        tried = {"ask.yes", "ask.no", "help.close", "window.close"}
        assert tried == own_ids(Ask) | own_ids(Help) | own_ids(Dialog)

    drive(STORE, open_plan(OWN), script)
