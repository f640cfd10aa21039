"""What is chosen on the plan screen instead of the values of a profile, and written."""

import stat
from contextlib import nullcontext
from pathlib import Path

import pytest
from tui.conftest import PROFILE
from tui.driving import (
    drive,
    notices,
    open_plan,
    press,
    shown,
    until,
)

from benchctl.store.read import Reader
from benchctl.tui.app import BenchApp
from benchctl.tui.screens.live import LiveScreen
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
