"""Terminals of few characters and colours: every screen is drawn in what they have."""

import string
from functools import partial

import pytest
from console_font import CP437
from rich.cells import cell_len
from rich.color import ColorType
from tui.driving import Clock, drive, open_page, press, settle, shown, styles_shown
from tui.made_runs import whole_run
from tui.test_goldens import (
    NOW,
    PAGES,
    STORE,
    compare,
    here,
    history,
    live,
    plan,
    replay,
    summary,
    wrong_plan,
)

from benchctl.store.manage import set_tags
from benchctl.tui.app import PLAIN
from benchctl.tui.draw.text.glyphs import ASCII, BLOCKS, BRAILLE, CONSOLE, plainer_from
from benchctl.tui.screens.base.page import AppContext

__all__ = ["here"]
HAS = {CONSOLE: CP437, ASCII: {*string.printable}}
few_characters = pytest.mark.parametrize("glyphs", HAS, ids=lambda glyphs: glyphs.name)
every_page = pytest.mark.parametrize("page", PAGES, ids=lambda page: page.__name__)


@pytest.fixture
def drawn_with(monkeypatch):
    """Draw every screen with a set of characters."""

    def draw_with(glyphs):
        own = partial(AppContext, glyphs=glyphs)
        monkeypatch.setattr("tui.driving.AppContext", own)

    return draw_with


def lacking(text, glyphs):
    """Return the characters that a terminal lacks, and the last line that has each."""
    return {one: line for line in text.splitlines() for one in {*line} - HAS[glyphs]}


ALL_HAVE = [["question_mark"], ["ctrl+p"]]
WINDOWS = {
    live: [["enter"], ["F"], ["f"], ["m"], ["l"], ["D"], ["D"], ["L"], ["n"], ["slash"], ["x"]],
    replay: [["space"], ["enter"], ["S"], ["y"], ["s"], ["c"], ["plus", "plus", "plus"]],
    summary: [["m"], ["enter"], ["F"], ["y"], ["s"]],
    history: [["x", "down", "x"], ["t"], ["slash"], ["d"], ["S"]],
    compare: [["down"], ["enter"], ["y"], ["E"]],
    plan: [["enter"], ["tab", "enter"], ["a"], ["r"]],
    wrong_plan: [],
}


@few_characters
@every_page
def test_every_screen_and_window_has_the_characters_of_the_terminal(page, glyphs, drawn_with):
    drawn_with(glyphs)
    seen = set()

    async def script(pilot):
        for keys in [[], *ALL_HAVE, *WINDOWS[page]]:
            text = await press(pilot, *keys)
            assert not lacking(text, glyphs)
            seen.add(text)
            while pilot.app.screen is not pilot.app.page:
                await press(pilot, "escape")
        pilot.app.notify("a message")
        await settle(pilot)
        assert not lacking(shown(pilot), glyphs)

    drive(STORE, page(), script, clock=Clock(NOW))
    assert len(seen) > len(ALL_HAVE)


@few_characters
def test_names_from_elsewhere_stay_as_they_are(store, glyphs, drawn_with):
    whole_run(store)
    set_tags(store, 1, ["キッチン"])
    drawn_with(glyphs)

    async def script(pilot):
        assert "キッチン" in shown(pilot)

    drive(store, open_page(store, "history"), script)


@few_characters
def test_what_stands_for_a_character_is_there_and_as_wide(glyphs):
    for character, similar in glyphs.stands_for.items():
        assert not {*similar} - HAS[glyphs]
        assert cell_len(similar) == cell_len(character)
        assert {*character} - HAS[glyphs]
    drawn = {*glyphs.characters, *glyphs.bars, glyphs.vertical, glyphs.horizontal, glyphs.corner}
    drawn |= {glyphs.tick, glyphs.drop, glyphs.above, glyphs.below, glyphs.event}
    assert not drawn - HAS[glyphs]


def test_states_ranges_and_intervals_keep_their_meaning():
    assert CONSOLE.plain("✓ ok  ✗ failed  ● a  12 ±0.5  1 … 3 ▁▄▇") == (
        "√ ok  x failed  • a  12 ±0.5  1 ~ 3 _▄█"
    )
    assert ASCII.plain("✓ ok  ✗ failed  ● a  12 ±0.5  1 … 3 ▁▄▇") == (
        "+ ok  x failed  * a  12+-0.5  1 ~ 3 _:*"
    )
    assert BRAILLE.plain("✓ ok") == "✓ ok"


def test_a_set_that_the_terminal_lacks_is_not_offered():
    assert plainer_from(BRAILLE) == [BRAILLE, BLOCKS, CONSOLE, ASCII]
    assert plainer_from(CONSOLE) == [CONSOLE, ASCII]
    assert plainer_from(ASCII) == [ASCII]


@every_page
def test_the_console_gets_its_own_16_colours(page, monkeypatch, drawn_with):
    monkeypatch.setenv("TERM", "linux")
    for name in ("COLORTERM", "NO_COLOR"):
        monkeypatch.delenv(name, raising=False)
    drawn_with(CONSOLE)

    async def script(pilot):
        assert pilot.app.theme == PLAIN
        assert styles_shown(pilot)
        for style in styles_shown(pilot):
            used = [one for one in (style.color, style.bgcolor) if one is not None]
            assert all(one.type in (ColorType.DEFAULT, ColorType.STANDARD) for one in used)
            assert len(used) < 2 or used[0].is_default or used[0] != used[1]

    drive(STORE, page(), script, clock=Clock(NOW))
