"""Keys that arrive together, as over a slow line, do what they do one by one."""

import threading

import pytest
from textual._callback import invoke
from textual.events import Key, Paste
from tui.driving import drive, open_page, open_plan, settle, shown
from tui.made_runs import whole_run
from waiting import DEADLINE_S, until

from benchctl.tui.model.feed import RunReader
from benchctl.tui.screens.base.pick import PickFrom
from benchctl.tui.screens.history import HistoryScreen
from benchctl.tui.screens.live import LiveScreen
from benchctl.tui.typeahead import KeyQueue


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


def test_a_window_a_page_and_their_keys_come_together(store):
    whole_run(store)

    async def script(pilot):
        together(pilot, "t", *"sdq", "enter", "u", "m", *"rtt", "escape", "4", "d", "n", "x")
        await settle(pilot)
        assert isinstance(pilot.app.screen, HistoryScreen)
        assert "sdq" in shown(pilot)
        assert "1 marked" in shown(pilot)

    drive(store, open_page(store, "history"), script)


@pytest.fixture
def slow_history(monkeypatch):
    """Let the history be read only after an event."""
    goes_on, read = threading.Event(), HistoryScreen.read

    def wait_and_read(page, reader):
        assert goes_on.wait(DEADLINE_S)
        return read(page, reader)

    monkeypatch.setattr(HistoryScreen, "read", wait_and_read)
    yield goes_on
    goes_on.set()


@pytest.mark.usefixtures("toy_profiles")
def test_keys_behind_one_that_opens_a_page_act_on_what_it_has(store, slow_history):
    whole_run(store)
    whole_run(store, name="another")

    async def script(pilot):
        together(pilot, "4", "end", "x", "d")
        await until(lambda: isinstance(pilot.app.screen, HistoryScreen))
        await pilot.pause()
        assert pilot.app.type_ahead.waits
        slow_history.set()
        await settle(pilot)
        assert "Delete 20261121-002512-7f3a?" in shown(pilot)
        assert "1 marked" in shown(pilot)

    drive(store, open_plan(store=store), script)


def test_keys_behind_one_that_opens_a_replay_act_on_its_samples(store, monkeypatch):
    whole_run(store)
    is_read, poll = threading.Event(), RunReader.poll
    monkeypatch.setattr(
        RunReader,
        "poll",
        lambda feed, *how, **what: not is_read.is_set() or poll(feed, *how, **what),
    )

    async def script(pilot):
        together(pilot, "enter", "m")
        await until(lambda: isinstance(pilot.app.screen, LiveScreen))
        await pilot.pause()
        assert pilot.app.type_ahead.waits
        is_read.set()
        await settle(pilot)
        assert isinstance(pilot.app.screen, PickFrom)

    drive(store, open_page(store, "history"), script)


def test_keys_behind_a_change_act_on_what_it_leaves(store):
    for name in ("first", "second", "third"):
        whole_run(store, name=name)

    async def script(pilot):
        together(pilot, "d", "y", "d", "y", "x")
        await settle(pilot)
        assert "1 run in" in shown(pilot)
        assert "1 marked" in shown(pilot)

    drive(store, open_page(store, "history"), script)


@pytest.mark.usefixtures("toy_profiles")
def test_a_program_that_stood_still_gives_no_key_up_that_is_on_its_way(monkeypatch):
    follow, due, hops = KeyQueue._follow, [], []

    async def all_timers_first(type_ahead, *what):
        hops.append(what)
        if len(hops) == 3:
            for called in [*due]:
                await invoke(called)
        await follow(type_ahead, *what)

    monkeypatch.setattr(KeyQueue, "_follow", all_timers_first)

    async def script(pilot):
        monkeypatch.setattr("benchctl.tui.typeahead.once", lambda _app, _s, call: due.append(call))
        together(pilot, "slash", *"quick")
        await settle(pilot)
        assert len(due) > 1
        assert "quick" in shown(pilot).splitlines()[-2]

    drive("runs.sqlite", open_plan(), script)


async def wait_too_long(pilot, due):
    """Let the time pass after which a key is given up: two timers, one after the other."""
    for _ in range(2):
        waited = [due.pop() for _ in [*due]]
        for called in waited:
            pilot.app.call_later(called)
        await pilot.pause()


@pytest.mark.usefixtures("toy_profiles")
def test_a_page_that_is_not_read_does_not_hold_the_keys_for_long(store, slow_history, monkeypatch):
    whole_run(store)
    due = []

    async def script(pilot):
        monkeypatch.setattr("benchctl.tui.typeahead.once", lambda _app, _s, call: due.append(call))
        together(pilot, "4", "question_mark")
        await until(lambda: isinstance(pilot.app.screen, HistoryScreen))
        await pilot.pause()
        assert pilot.app.type_ahead.waits
        await wait_too_long(pilot, due)
        assert "Keys, and what is shown" in shown(pilot)
        slow_history.set()

    drive(store, open_plan(store=store), script)


@pytest.mark.usefixtures("toy_profiles")
def test_a_key_that_never_takes_effect_does_not_hold_the_others(monkeypatch):
    due, lost = [], []

    async def script(pilot):
        monkeypatch.setattr("benchctl.tui.typeahead.once", lambda _app, _s, call: due.append(call))
        monkeypatch.setattr(pilot.app.page, "call_later", lambda *taken: lost.append(taken) or True)
        together(pilot, "down", "question_mark")
        await pilot.pause()
        assert lost
        assert pilot.app.type_ahead.waits
        await wait_too_long(pilot, due)
        assert "Keys, and what is shown" in shown(pilot)

    drive("runs.sqlite", open_plan(), script)
