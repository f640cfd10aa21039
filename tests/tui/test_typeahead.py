"""Keys that arrive together, as over a slow line, do what they do one by one."""

import pytest
from textual.events import Key, Paste
from tui.driving import drive, open_page, open_plan, settle, shown
from tui.made_runs import whole_run
from waiting import DEADLINE_S, until

from benchctl.tui.screens.history import HistoryScreen


def together(pilot, *typed):
    """Bring keys, and texts that are pasted, before any of them can take effect."""
    for one in typed:
        pasted = len(one) > 1 and " " in one
        event = Paste(one) if pasted else Key(one, one if len(one) == 1 else None)
        pilot.app.post_message(event)


@pytest.mark.usefixtures("toy_profiles")
def test_words_typed_with_the_key_that_asks_for_them_are_no_commands():
    async def script(pilot):
        together(pilot, "slash", *"quick", "space", "enter", "down")
        await settle(pilot)
        assert "quick" in shown(pilot).splitlines()[-2]
        assert pilot.app.is_running
        together(pilot, "slash", "some pasted words")
        await settle(pilot)
        assert "some pasted words" in shown(pilot).splitlines()[-2]

    drive("runs.sqlite", open_plan(), script)


def test_a_window_a_page_and_their_keys_come_together(store, monkeypatch):
    # On a busy machine a page may take longer than a person waits; no key is given up here.
    monkeypatch.setattr("benchctl.tui.typeahead.LONGEST_S", DEADLINE_S)
    whole_run(store)

    async def script(pilot):
        together(pilot, "t", *"sdq", "enter", "enter", "m", *"rtt", "escape", "4", "d", "n", "x")
        await settle(pilot)
        assert isinstance(pilot.app.screen, HistoryScreen)
        assert "sdq" in shown(pilot)
        assert "1 marked" in shown(pilot)

    drive(store, open_page(store, "history"), script)


@pytest.mark.usefixtures("toy_profiles")
def test_a_key_that_never_takes_effect_does_not_hold_the_others(monkeypatch):
    monkeypatch.setattr("benchctl.tui.typeahead.LONGEST_S", 0.01)

    async def script(pilot):
        lost = []
        monkeypatch.setattr(pilot.app.page, "call_later", lambda *taken: lost.append(taken) or True)
        together(pilot, "down", "question_mark")
        await until(lambda: "Keys, and what is shown" in shown(pilot))
        assert lost

    drive("runs.sqlite", open_plan(), script)
