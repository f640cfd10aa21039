"""Runs and stores that another program deletes or replaces while a screen shows them."""

import sqlite3

import pytest
import waiting
from tui.driving import (
    Clock,
    drive,
    notices,
    open_live,
    open_page,
    open_replay,
    press,
    shown,
    until,
)
from tui.made_runs import MadeRun, whole_run

from benchctl.errors import GoneError
from benchctl.store.manage import add_remark, delete_run, set_tags
from benchctl.store.read import Reader
from benchctl.store.record import Recorder
from benchctl.tui.screens.windows.detail import TrialWindow

PAGES = {
    "live": lambda store: open_live(store, 1, Clock()),
    "replay": lambda store: open_replay(store, 1, Clock(), 30.0),
    "summary": lambda store: open_page(store, "summary", 1),
    "compare": lambda store: open_page(store, "compare", 1, 2),
    "history": lambda store: open_page(store, "history"),
}
OF_RUNS = [name for name in PAGES if name != "history"]


def delete_file(store):
    for path in store.parent.glob(f"{store.name}*"):
        path.unlink()


def replace_file(store):
    other = store.with_name("other.sqlite")
    whole_run(other, name="20261122-000000-new1")
    delete_file(store)
    other.rename(store)


@pytest.mark.parametrize("name", OF_RUNS)
def test_a_run_that_was_deleted_is_said_on_its_screen(three, name):
    async def script(pilot):
        delete_run(three, 1)
        await until(pilot, lambda: "the run was deleted" in shown(pilot))
        assert "FOREIGN" not in shown(pilot)
        assert "trying again" not in shown(pilot)
        await press(pilot, "4")
        assert "2 runs in" in shown(pilot)

    drive(three, PAGES[name](three), script, size=(120, 40))


def test_the_window_of_a_trial_says_it_too(three):
    async def script(pilot):
        window = TrialWindow(three, 1, 0, 8)
        await pilot.app.push_screen(window)
        delete_run(three, 1)

        def held():
            window.tick()
            return "the run was deleted" in shown(pilot)

        await waiting.until(held)
        await press(pilot, "escape")

    drive(three, PAGES["replay"](three), script)


def test_the_distribution_of_a_deleted_run_stays_and_says_it(three):
    async def script(pilot):
        await press(pilot, "D")
        delete_run(three, 1)
        await until(pilot, lambda: "the run was deleted" in shown(pilot))
        assert "CDF of" in await press(pilot, "space", "right")

    drive(three, PAGES["replay"](three), script, size=(120, 40))


def test_a_remark_to_a_deleted_run_is_refused_in_words(three):
    async def script(pilot):
        delete_run(three, 1)
        await press(pilot, "n", *"hello", "enter")
        assert "the run was deleted" in notices(pilot)
        assert "FOREIGN" not in notices(pilot)

    drive(three, PAGES["replay"](three), script)


@pytest.mark.parametrize("name", PAGES)
def test_a_store_that_was_deleted_is_said_on_every_screen(three, name):
    async def script(pilot):
        delete_file(three)
        words = "no runs yet" if name == "history" else "the file was deleted"
        await until(pilot, lambda: words in shown(pilot))

    drive(three, PAGES[name](three), script, size=(200, 40))


@pytest.mark.parametrize("name", OF_RUNS)
def test_a_run_of_another_store_in_the_same_place_is_not_taken_for_this_one(three, name):
    async def script(pilot):
        replace_file(three)
        await until(pilot, lambda: "another file is in its place" in shown(pilot))
        assert "new1" not in shown(pilot)
        await press(pilot, "4")
        await until(pilot, lambda: "1 run in" in shown(pilot))

    drive(three, PAGES[name](three), script, size=(200, 40))


def test_the_history_goes_on_with_a_store_that_took_the_place(three):
    async def script(pilot):
        replace_file(three)
        await until(pilot, lambda: "1 run in" in shown(pilot))
        assert "another file" not in shown(pilot)

    drive(three, PAGES["history"](three), script, size=(120, 40))


def test_what_is_written_about_a_deleted_run_is_refused_in_words(store):
    whole_run(store)
    delete_run(store, 1)
    for write in (
        lambda: add_remark(store, 1, "hello", 0.0),
        lambda: set_tags(store, 1, ["kept"]),
    ):
        with pytest.raises(GoneError, match="the run was deleted"):
            write()


def test_a_runner_whose_run_was_deleted_ends_in_words(store):
    made = MadeRun(store)
    made.begin()
    made.begin_trial()
    with sqlite3.connect(store) as connection:
        connection.execute("PRAGMA foreign_keys = ON")
        connection.execute("DELETE FROM run")
    connection.close()
    with pytest.raises(GoneError, match="the run was deleted"):
        made.measure(1.0)
    with pytest.raises(GoneError, match="the run was deleted"):
        made.close()
    recorder = Recorder(store, made.id)
    with pytest.raises(GoneError, match="the run was deleted"):
        recorder.captures  # noqa: B018
    recorder.close()


def test_a_reader_notes_that_its_file_has_gone(store):
    whole_run(store)
    reader = Reader(store)
    reader.changes()
    delete_file(store)
    with pytest.raises(GoneError, match="the file was deleted"):
        reader.changes()
    reader.close()
