"""The list of the plan screen: a host, profiles, runs; and the host that is asked for."""

import subprocess
import sys
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
from tui.made_runs import MadeRun, three_runs

from benchctl.backends import installed
from benchctl.plugins import FILES_VARIABLE
from benchctl.store.manage import set_tags
from benchctl.store.read import Reader
from benchctl.tui.model.offers import OfferKind
from benchctl.tui.screens.base.modals import Ask
from benchctl.tui.screens.live import LiveScreen
from benchctl.tui.screens.summary import SummaryScreen

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


def test_a_profile_of_no_list_is_shown_first(tmp_path):
    other = tmp_path / "elsewhere" / "mine.toml"
    other.parent.mkdir()
    other.write_text(PROFILE)

    async def script(pilot):
        assert pilot.app.page.offer.path == other
        assert "✓ ready" in shown(pilot)
        assert f"benchctl plan {other}" == pilot.app.page.command()

    drive(STORE, open_plan(other), script)


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


def test_the_screen_is_there_before_what_plans_is_imported():
    code = (
        "import sys, benchctl.tui.screens.plan; "
        "print({'pydantic', 'benchctl.engine.prepare.planning'} & set(sys.modules))"
    )
    told = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert told.stdout == "set()\n"
