"""Every key of the plan screen, of lists and texts, and of the small windows."""

import re
import stat
import subprocess
import sys
import threading
from contextlib import nullcontext
from pathlib import Path

import pytest
from textual.events import MouseScrollDown
from tui.conftest import PROFILE
from tui.driving import (
    double_click,
    drive,
    notices,
    open_plan,
    own_ids,
    press,
    settle,
    shown,
    until,
)
from tui.made_runs import MadeRun, three_runs
from waiting import DEADLINE_S

from benchctl.backends import installed
from benchctl.errors import MissingError, StoreError
from benchctl.plugins import FILES_VARIABLE
from benchctl.store.locks import Liveness
from benchctl.store.manage import set_tags
from benchctl.store.read import Reader
from benchctl.tui.app import BenchApp
from benchctl.tui.model.offers import OfferKind
from benchctl.tui.screens.base.modals import Ask, Dialog, Help, Prompt
from benchctl.tui.screens.history import HistoryScreen
from benchctl.tui.screens.live import LiveScreen
from benchctl.tui.screens.parts.drawn import draw_plan
from benchctl.tui.screens.plan import PlanScreen
from benchctl.tui.screens.summary import SummaryScreen
from benchctl.tui.widgets.scrolled import Scrolled
from benchctl.tui.widgets.table import Table
from benchctl.tui.widgets.tabs import Tabs

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


def test_a_profile_of_no_list_is_shown_first(tmp_path):
    other = tmp_path / "elsewhere" / "mine.toml"
    other.parent.mkdir()
    other.write_text(PROFILE)

    async def script(pilot):
        assert pilot.app.page.offer.path == other
        assert "✓ ready" in shown(pilot)
        assert f"benchctl plan {other}" == pilot.app.page.command()

    drive(STORE, open_plan(other), script)


# --- lists, texts, small windows -----------------------------------------------------------


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


def test_a_list_begins_with_a_host_and_finds_examples_by_title_and_by_name():
    three_runs(STORE)

    async def script(pilot):
        text = await press(pilot)
        assert "enter  asks for a host" in text
        assert [line[1:12].strip() for line in text.splitlines()[2:8]] == [
            "Measure", "My profiles", "Last runs", "", "", "Examples",
        ]  # fmt: skip
        await press(pilot, "slash", *"a1-u", "enter")
        assert pilot.app.page.offer.name == "portfolio/a1-udp"
        assert "Examples     A script that plays a tool" in shown(pilot)
        assert "✓ ready" in shown(pilot)

    drive(STORE, open_plan(), script)


def test_a_last_run_is_told_and_opens_its_summary():
    three_runs(STORE)
    set_tags(STORE, 1, ["baseline", "lab2"])

    async def script(pilot):
        await press(pilot, "down", "down", "down")
        await until(pilot, lambda: "7 of 8 trials measured" in shown(pilot))
        text = await press(pilot)
        assert "✗ 5.82 … 399 Mbit/s  ▲3  ?1" in text
        assert "began   2026-11-21 01:25" in text
        assert pilot.app.page.command() == "benchctl show 20261121-012512-9bd2"
        await press(pilot, "r")
        assert "this is a run" in notices(pilot)
        await press(pilot, "enter")
        assert isinstance(pilot.app.screen, SummaryScreen)
        assert pilot.app.page.run_ids == (2,)

    drive(STORE, open_plan(), script, size=(120, 40))


def test_a_run_that_goes_on_is_first_and_opens_live(alive):
    made = MadeRun(STORE)
    made.begin(pid=1)
    made.begin_trial()
    made.measure(5.0)

    async def script(pilot):
        assert "Running now  tour         trial 1 of 8" in await press(pilot)
        assert pilot.app.page.offer.kind is OfferKind.HOST
        made.end_trial()
        made.begin_trial()
        await until(pilot, lambda: "trial 2 of 8" in shown(pilot))
        assert "status  ▶ running" in await press(pilot, "up")
        await press(pilot, "enter")
        assert isinstance(pilot.app.screen, LiveScreen)

    drive(STORE, open_plan(), script)
    made.close()


def test_a_host_is_asked_for_and_planned_as_quick_does(monkeypatch):
    monkeypatch.delenv(FILES_VARIABLE)
    installed.cache_clear()

    async def script(pilot):
        assert "Measure to which host?" in await press(pilot, "enter")
        await press(pilot, *"no host", "enter")
        assert "✗ wrong" in shown(pilot)
        await press(pilot, "enter", "ctrl+u", *"local", "enter")
        assert "✓ ready" in shown(pilot)
        assert "Measure      to local" in shown(pilot)
        assert "r starts  3 trials" in shown(pilot)
        assert pilot.app.page.command() == "benchctl quick local"
        await press(pilot, "W", "enter")
        assert pilot.app.page.offer.path == Path("quick.toml")
        assert "✓ ready" in shown(pilot)
        await press(pilot, "home")
        assert "Run quick" not in shown(pilot)
        assert not STORE.exists()

    async def starts(pilot):
        await press(pilot, "r", *"local", "enter")
        assert isinstance(pilot.app.screen, Ask)
        assert "Run quick for" in shown(pilot)
        await press(pilot, "n")

    drive(STORE, open_plan(), script)
    drive(STORE, open_plan(), starts)
    assert 'title = "Quick look at local"' in Path("quick.toml").read_text()


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


def test_the_screen_is_there_before_what_plans_is_imported():
    code = (
        "import sys, benchctl.tui.screens.plan; "
        "print({'pydantic', 'benchctl.engine.prepare.planning'} & set(sys.modules))"
    )
    told = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert told.stdout == "set()\n"


def values_of(pilot):
    return {row[0]: row[1] for row in pilot.app.page.query_one("#choices", Table).pivot().rows}


async def choose(pilot, name, *keys):
    """Choose a value on the screen, in place of the one that is there."""
    table = pilot.app.page.query_one("#choices", Table)
    table.focus()
    table.go_to([row[0] for row in table.pivot().rows].index(name))
    await press(pilot, "enter", "ctrl+u", *keys)
    await press(pilot, "enter")
    await until(pilot, lambda: pilot.app.page.settled)
    return await press(pilot)


def test_values_of_a_run_are_chosen_on_the_screen_and_planned_at_once():
    async def script(pilot):
        assert values_of(pilot)["plan"] == "ok, fail"
        assert "3: 1 point x 3 repeats" in await choose(pilot, "plan", "o", "right")  # completed
        assert "2: 1 point x 2 repeats" in await choose(pilot, "repeats", "2")
        assert "time     10.0 s" in await choose(pilot, "duration", *"5s")
        assert pilot.app.page.command() == (
            "benchctl plan profiles/two-servers.toml --set plan=ok --set run.repeats=2"
            " --set duration=5s"
        )
        # The profile's own checks judge it at once, and what was typed stays to be mended.
        text = await choose(pilot, "repeats", *"none")
        assert "✗ wrong" in text
        assert "repeats" in text
        assert values_of(pilot)["repeats"] == "none"
        assert "✓ ready" in await choose(pilot, "repeats", "1")
        await press(pilot, "r")
        assert isinstance(pilot.app.screen, LiveScreen)
        await until(pilot, lambda: runs()[0].status == "ok")
        (run,) = runs()
        assert (run.trials, run.values) == (1, {"plan": ("ok",)})
        assert "# --set duration=5s" in run.profile_text

    drive(STORE, open_plan(OWN), script, size=(120, 40))


def test_an_empty_value_is_that_of_the_profile_and_every_profile_has_its_own_choices():
    async def script(pilot):
        await choose(pilot, "repeats", "7")
        assert "42" not in values_of(pilot)["repeats"]
        pilot.app.page.query_one("#offers", Table).focus()
        await press(pilot, "home", "down", "down")
        await until(pilot, lambda: pilot.app.page.settled)
        assert values_of(pilot)["repeats"] == "3"
        await press(pilot, "up")
        await until(pilot, lambda: pilot.app.page.settled)
        assert values_of(pilot)["repeats"] == "7"
        await choose(pilot, "repeats")
        assert values_of(pilot)["repeats"] == "3"
        assert "--set" not in pilot.app.page.command()

    drive(STORE, open_plan(OWN), script, size=(120, 40))


def test_a_run_towards_addresses_outside_this_machine_asks_with_servers_traffic_and_time():
    towards = PROFILE.replace('backend = "toy"', 'backend = "toy"\nto = "paris"')
    OWN.write_text(towards.replace('["ok", "fail"]', '["ok"]'))

    async def script(pilot):
        text = await press(pilot, "r")
        assert "towards addresses outside this machine?" in text
        assert "servers  paris (192.0.2.10)" in text
        assert "traffic  6.98 GiB at 1.00 Gbit/s, assumed" in text
        assert "time     60.0 s" in text
        await press(pilot, "n")
        assert not STORE.exists()
        await choose(pilot, "address of paris", *"127.0.0.1")
        await press(pilot, "r")
        assert isinstance(pilot.app.screen, LiveScreen)
        await until(pilot, lambda: runs()[0].status.has_ended)

    drive(STORE, open_plan(OWN), script, size=(120, 40))


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


def test_a_profile_that_comes_with_benchctl_is_edited_as_a_copy(monkeypatch, tmp_path):
    editor = tmp_path / "editor"
    editor.write_text('#!/bin/sh\necho "# mine" >> "$1"\n')
    editor.chmod(editor.stat().st_mode | stat.S_IXUSR)
    monkeypatch.setenv("VISUAL", str(editor))
    monkeypatch.setattr(BenchApp, "suspend", lambda self: nullcontext())
    shipped = tmp_path / "shipped/streams.toml"

    async def script(pilot):
        await press(pilot, "e")
        await until(pilot, lambda: pilot.app.page.settled)
        assert pilot.app.page.offer.path == Path("streams.toml")
        assert "written\nstreams.toml" in notices(pilot)

    drive(STORE, open_plan(shipped), script, size=(120, 40))
    assert shipped.read_text() == PROFILE
    assert Path("streams.toml").read_text() == f"{PROFILE}# mine\n"


def test_what_was_chosen_is_written_as_a_new_profile_that_plans_the_same():
    async def script(pilot):
        await choose(pilot, "plan", *"ok")
        await choose(pilot, "duration", *"5s")
        before = [line[60:] for line in (await choose(pilot, "repeats", "2")).splitlines()[5:10]]
        await press(pilot, "W", "ctrl+u", *"short", "enter")
        await until(pilot, lambda: pilot.app.page.settled)
        assert "✓ ready" in await press(pilot)
        assert pilot.app.page.offer.path == Path("short.toml")
        assert [line[60:] for line in shown(pilot).splitlines()[5:10]] == before
        assert "--set" not in pilot.app.page.command()
        await press(pilot, "W", "ctrl+u", *"short", "enter")
        assert "short.toml: File exists" in notices(pilot)

    drive(STORE, open_plan(OWN), script, size=(120, 40))
    text = Path("short.toml").read_text()
    assert 'extends = "profiles/two-servers.toml"' in text
    assert OWN.read_text() == PROFILE
