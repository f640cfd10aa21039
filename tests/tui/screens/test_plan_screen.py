"""The plan of a profile on its screen: shown, saved, started, and refused."""

import stat
import threading
from contextlib import nullcontext
from pathlib import Path

import pytest
from tui.conftest import PROFILE
from tui.driving import (
    drive,
    notices,
    open_plan,
    own_ids,
    press,
    settle,
    shown,
    until,
)
from tui.made_runs import MadeRun
from waiting import DEADLINE_S

from benchctl.errors import MissingError, StoreError
from benchctl.store.locks import Liveness
from benchctl.store.read import Reader
from benchctl.tui.app import BenchApp
from benchctl.tui.screens.base.modals import Ask
from benchctl.tui.screens.history import HistoryScreen
from benchctl.tui.screens.live import LiveScreen
from benchctl.tui.screens.parts.drawn import draw_plan
from benchctl.tui.screens.plan import PlanScreen
from benchctl.tui.widgets.scrolled import Scrolled
from benchctl.tui.widgets.table import Table

STORE = Path("runs.sqlite")
OWN = Path("profiles/two-servers.toml")


@pytest.fixture(autouse=True)
def here(toy_profiles):
    """Work in a directory with profiles."""


def runs():
    reader = Reader(STORE)
    found = reader.runs()
    reader.close()
    return found


def test_every_key_of_the_plan_does_what_it_says(monkeypatch, tmp_path):
    OWN.write_text('[flows.main]\nbackend = "toy"\n')
    editor = tmp_path / "editor"
    editor.write_text('#!/bin/sh\nprintf "[run]\\nrepeat = 3\\n" >> "$2"\n')
    editor.chmod(editor.stat().st_mode | stat.S_IXUSR)
    monkeypatch.setenv("VISUAL", f"{editor} --wait")
    monkeypatch.setattr(BenchApp, "suspend", lambda self: nullcontext())
    tried = set()

    async def script(pilot):
        async def tell(binding, *keys):
            tried.add(binding)
            return await press(pilot, *keys)

        assert "✓ ready" in shown(pilot)
        page = pilot.app.page
        assert isinstance(pilot.app.focused, Table)
        assert "[About]" in await tell("plan.tab", "V")
        assert "[Plan]" in await press(pilot, "V", "V")
        await tell("plan.focus", "tab")
        assert pilot.app.focused is page.query_one("#choices")
        await press(pilot, "tab")
        assert isinstance(pilot.app.focused, Scrolled)
        await press(pilot, "tab")
        await tell("app.filter", "slash")
        assert "portfolio/a1-udp" in await press(pilot, *"PORT")
        assert "streams" not in shown(pilot)
        assert "portfolio" not in await press(pilot, *"zzz", "enter")
        assert "no row has these words" in shown(pilot)
        await press(pilot, "slash", *["backspace"] * 7, "enter", "home", "down")
        assert page.offer.path == OWN
        await tell("plan.attach", "a")
        assert "there are no runs yet" in notices(pilot)
        await tell("plan.history", "h")
        assert isinstance(pilot.app.screen, HistoryScreen)
        await press(pilot, "1")
        assert "Write a profile here" in await tell("plan.write", "W")
        await press(pilot, "escape")
        await tell("plan.run", "r")
        assert isinstance(pilot.app.screen, LiveScreen)
        await until(pilot, lambda: runs()[0].status == "ok")
        await press(pilot, "1", "a")
        assert "no run is in progress" in notices(pilot)
        await tell("plan.edit", "e")
        await until(pilot, lambda: "✗ wrong" in shown(pilot))
        assert "repeat: unknown key" in shown(pilot)
        assert 'did you mean "repeats"?' in shown(pilot)
        assert tried == own_ids(PlanScreen)

    drive(STORE, open_plan(OWN), script, size=(120, 30))


def test_a_profile_is_planned_anew_as_soon_as_it_is_saved():
    async def script(pilot):
        assert "6: 2 points x 3 repeats" in shown(pilot)
        for text, told in (
            (PROFILE.replace("repeats = 3", "repeats = 40"), "80: 2 points x 40 repeats"),
            (PROFILE.replace("duration", "duraton"), "two-servers.toml:9: flows.main.duraton"),
            ("[flows", "two-servers.toml:1:"),
            (PROFILE, "6: 2 points x 3 repeats"),
        ):
            OWN.write_text(text)
            await until(pilot, lambda told=told: told in shown(pilot))
        OWN.unlink()
        await until(pilot, lambda: "✗ wrong" in shown(pilot))
        OWN.write_text(PROFILE)
        await until(pilot, lambda: "✓ ready" in shown(pilot))

    drive(STORE, open_plan(OWN), script, size=(120, 30))


def test_a_plan_that_is_not_of_the_selected_profile_does_not_run(monkeypatch):
    planned = threading.Event()
    planned.set()

    def plan(profile, chosen):
        planned.wait(DEADLINE_S)
        return draw_plan(profile, chosen)

    monkeypatch.setattr("benchctl.tui.screens.parts.drawn.draw_plan", plan)

    async def script(pilot):
        assert "✓ ready" in shown(pilot)
        planned.clear()
        await pilot.press("slash", *"port", "enter", "r")
        assert "planning, then asks to start…" in shown(pilot)
        assert "below is the plan before" in shown(pilot)
        assert not STORE.exists()
        planned.set()
        await until(pilot, lambda: isinstance(pilot.app.screen, Ask))
        assert "Run a1-udp for 2 min 00 s?" in shown(pilot)
        await pilot.press("n")
        assert not STORE.exists()

    async def moved_on(pilot):
        planned.clear()
        await pilot.press("down", "r", "down")
        planned.set()
        await settle(pilot)
        assert isinstance(pilot.app.screen, PlanScreen)
        assert not STORE.exists()

    drive(STORE, open_plan(OWN), script)
    drive(STORE, open_plan(OWN), moved_on)


def test_a_profile_that_is_wrong_or_lacks_its_program_does_not_run(monkeypatch):
    async def script(pilot):
        OWN.write_text("[flows")
        await until(pilot, lambda: "✗ wrong" in shown(pilot))
        await press(pilot, "r")
        assert "there is no plan to run" in notices(pilot)
        missing = MissingError("no toy here", "install one")
        monkeypatch.setattr("benchctl.tui.screens.parts.drawn.Drawn.can_run", False)
        monkeypatch.setattr("benchctl.engine.prepare.planning.Planned.missing", missing)
        OWN.write_text(PROFILE)
        await until(pilot, lambda: "✗ something is missing" in shown(pilot))
        await press(pilot, "r")
        assert "a tool is missing" in notices(pilot)
        assert not STORE.exists()

    drive(STORE, open_plan(OWN), script)


def test_a_run_of_hours_asks_first():
    OWN.write_text(PROFILE.replace("20s", "20min"))

    async def script(pilot):
        assert "Run two-servers for 2 h" in await press(pilot, "r")
        await press(pilot, "n")
        assert isinstance(pilot.app.screen, PlanScreen)
        assert not STORE.exists()

    drive(STORE, open_plan(OWN), script)


def test_a_store_that_cannot_be_written_refuses_a_run_and_says_why(monkeypatch):
    def refuse(*_, **__):
        raise StoreError("runs.sqlite: database or disk is full", "free some room")

    monkeypatch.setattr("benchctl.tui.screens.parts.starting.record_plan", refuse)

    async def script(pilot):
        await press(pilot, "r")
        assert "disk is full\nfree some room" in notices(pilot)
        assert isinstance(pilot.app.screen, PlanScreen)

    drive(STORE, open_plan(OWN), script)


def test_screens_that_are_ended_start_the_run_that_they_have_recorded(ended_at_start):
    async def script(pilot):
        await press(pilot, "r")
        await until(pilot, lambda: isinstance(pilot.app.screen, LiveScreen))

    drive(STORE, open_plan(OWN), script)
    assert ended_at_start == ["held", "ended"]


def test_a_run_from_the_screens_has_the_tags_of_the_settings(monkeypatch, tmp_path):
    OWN.write_text('[flows.main]\nbackend = "toy"\n')
    (tmp_path / "settings.toml").write_text('tags = ["lab2"]\n')
    monkeypatch.setenv("BENCHCTL_SETTINGS", str(tmp_path / "settings.toml"))

    async def script(pilot):
        await press(pilot, "r")
        await until(pilot, lambda: runs()[0].status == "ok")

    drive(STORE, open_plan(OWN), script)
    assert runs()[0].tags == ("lab2",)


def test_an_editor_that_is_not_there_is_said(monkeypatch):
    monkeypatch.setenv("VISUAL", "no-such-editor")
    monkeypatch.setattr(BenchApp, "suspend", lambda self: nullcontext())

    async def script(pilot):
        await press(pilot, "e")
        assert "no-such-editor: No such file" in notices(pilot)

    drive(STORE, open_plan(OWN), script)


def test_a_run_that_is_measured_now_can_be_attached_to(monkeypatch):
    monkeypatch.setattr(Liveness, "is_alive", lambda self, run_id: True)
    made = MadeRun(STORE)
    made.begin()

    async def script(pilot):
        await press(pilot, "a")
        assert isinstance(pilot.app.screen, LiveScreen)

    drive(STORE, open_plan(OWN), script)
    made.close()


def test_the_opening_comment_of_a_profile_is_shown():
    OWN.write_text(
        "#:schema x.json\n# Why this is measured:\n#\n#   nobody knows.\n\n# no\n" + PROFILE
    )

    async def script(pilot):
        lines = [line[60:].strip() for line in (await press(pilot, "V")).splitlines()]
        place = lines.index("Why this is measured:")
        assert lines[place + 1 : place + 3] == ["", "nobody knows."]
        assert "schema" not in shown(pilot)

    drive(STORE, open_plan(OWN), script, size=(120, 40))
