"""The mouse does what keys do: on the first and last line, in windows, on rows."""

import pytest
from tui.driving import (
    Clock,
    double_click,
    drive,
    open_page,
    open_replay,
    press,
    screen_shown,
    settle,
    shown,
)

from benchctl.tui.registry import SCREENS
from benchctl.tui.screens.base.modals import Dialog
from benchctl.tui.widgets.bars import KeyBar
from benchctl.tui.widgets.table import Table


async def click(pilot, text):
    """Click where a text is shown, and return what is shown then."""
    row, line = next((y, line) for y, line in enumerate(shown(pilot).splitlines()) if text in line)
    await pilot.click(offset=(line.index(text), row))
    await settle(pilot)
    return shown(pilot)


@pytest.mark.parametrize("name", SCREENS)
def test_a_click_on_the_last_line_does_what_the_key_there_does(three, name):
    async def script(pilot):
        pressed = []
        pilot.app.simulate_key = pressed.append
        bar = pilot.app.page.query_one(KeyBar)
        line = shown(pilot).splitlines()[-1]
        places, place = {}, 0
        for one in bar._keys():
            for display, key in one.keys:
                places[line.index(f" {display} ", place) + 1] = key
                place = line.index(f" {display} ", place) + len(display)
            places[line.index(one.what, place)] = one.keys[0][1]
            place = line.index(one.what, place)
        for place in places:
            await pilot.click(KeyBar, offset=(place, 0))
        assert pressed == [*places.values()]

    drive(three, open_page(three, name, *range(1, SCREENS[name].runs + 1)), script, size=(120, 30))


@pytest.mark.parametrize("size", [(80, 24), (200, 60)])
def test_the_seek_and_speed_keys_of_a_replay_are_clicked_one_by_one(three, size):
    clock = Clock()

    async def script(pilot):
        assert "35.0/152.0 s" in await click(pilot, "→ Seek")
        assert "30.0/152.0 s" in await click(pilot, "← →")
        assert "▶ x2 30.0" in await click(pilot, "> Speed")
        assert "▶ x1 30.0" in await click(pilot, "< >")

    drive(three, open_replay(three, 1, clock, 30.0), script, clock=clock, size=size)


@pytest.mark.parametrize(
    ("keys", "answer"),
    [
        (["d"], "n no"), (["d"], "y yes"), (["t"], "escape cancels"),
        (["t"], "enter accepts"), (["S"], "enter picks"),
        (["y"], "escape cancels"), (["question_mark"], "escape closes"),
    ],
)  # fmt: skip
def test_the_words_in_the_frame_of_a_window_answer_it(three, keys, answer):
    async def script(pilot):
        await press(pilot, *keys)
        assert isinstance(pilot.app.screen, Dialog)
        await click(pilot, answer)
        assert not isinstance(pilot.app.screen, Dialog)
        assert ("2 runs" in shown(pilot)) is (answer == "y yes")

    drive(three, open_page(three, "history"), script, size=(120, 30))


def test_a_click_selects_a_row_and_a_double_click_opens_it(three):
    async def script(pilot):
        table = pilot.app.page.query_one(Table)
        await pilot.click(table, offset=(10, 2))
        await settle(pilot)
        assert (table.index, screen_shown(pilot)) == (1, "History")
        await double_click(pilot, table, (10, 3))
        assert screen_shown(pilot) == "Replay"
        await press(pilot, "l")
        await double_click(pilot, "#trials", (10, 3))
        assert "Trial 3 of 8" in shown(pilot)
        assert "Trial 4 of 8" in await click(pilot, "] trial after")
        await click(pilot, "escape closes")
        assert screen_shown(pilot) == "Replay"

    drive(three, open_page(three, "history"), script, size=(120, 40), clock=Clock())
