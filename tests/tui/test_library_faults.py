"""An error in a widget of a library is shown in a line and logged, and the screens go on."""

from pathlib import Path

import pytest
from textual.screen import ModalScreen
from textual.widgets import OptionList, Static
from tui.driving import drive, notices, open_page, open_plan, press, settle, shown
from tui.made_runs import whole_run

from benchctl.hosts.log import CommandLog
from benchctl.tui import app as screens


@pytest.fixture
def log(tmp_path, monkeypatch):
    monkeypatch.setattr(screens, "command_log", lambda: CommandLog(tmp_path / "log"))
    return tmp_path / "log"


class Fails(Static):
    """A widget that fails, as one of a library."""

    def fail(self):
        raise KeyError("of a library")


async def let_fail(pilot):
    fails = next(iter(pilot.app.screen.query(Fails)))
    fails.call_later(fails.fail)
    await settle(pilot)


class Window(ModalScreen):
    def compose(self):
        yield Fails("a window")


@pytest.mark.usefixtures("toy_profiles")
def test_a_key_at_which_the_palette_fails_has_no_effect(log, monkeypatch):
    monkeypatch.setattr(OptionList, "_move_page", lambda *_: {}[0])  # as before its first layout

    async def script(pilot):
        await press(pilot, "ctrl+p", "down", "pagedown")
        assert "Textual failed with KeyError(0)" in notices(pilot)
        assert "Search" in await press(pilot, "down")
        assert "Plan" in await press(pilot, "escape")

    drive(Path("runs.sqlite"), open_plan(), script, size=(40, 20))
    assert "action_page_down" in log.read_text()


def test_a_window_whose_widget_failed_is_closed(store, log):
    whole_run(store)

    async def script(pilot):
        pilot.app.push_screen(Window())
        await pilot.pause()
        assert "a window" in shown(pilot)
        await let_fail(pilot)
        assert "a window" not in shown(pilot)
        assert "of a library" in notices(pilot)

    drive(store, open_page(store, "history"), script)
    assert "in fail" in log.read_text()


def test_a_page_whose_widget_failed_is_opened_again(store, log):
    whole_run(store)
    first = open_page(store, "history")

    async def script(pilot):
        await first.mount(Fails())
        await let_fail(pilot)
        assert pilot.app.page is not first
        assert "1 marked" in await press(pilot, "x")

    drive(store, first, script)
    assert "in fail" in log.read_text()


def test_a_library_that_fails_again_and_again_ends_the_screens(store, log, monkeypatch):
    monkeypatch.setattr(screens, "MOST_FAULTS", 0)

    async def script(pilot):
        pilot.app.push_screen(Window())
        await pilot.pause()
        await let_fail(pilot)

    with pytest.raises(KeyError):
        drive(store, open_plan(), script)
    assert not log.exists()
