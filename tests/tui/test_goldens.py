"""Every screen as a text, at three sizes, and the same without colours."""

import time
from pathlib import Path

import pytest
from tui.driving import (
    Clock,
    drive,
    open_live,
    open_page,
    open_plan,
    open_replay,
    shown,
    styles_shown,
)
from tui.made_runs import BEGIN, MadeRun, three_runs

from benchctl.store.locks import Liveness
from benchctl.store.manage import set_tags
from benchctl.visible import width_of

STORE = Path("runs.sqlite")


@pytest.fixture(autouse=True)
def here(toy_profiles, monkeypatch):
    """Make a place, a clock and a machine that are the same everywhere."""
    monkeypatch.setattr(Liveness, "is_alive", lambda self, run_id: run_id == 4)
    with monkeypatch.context() as patch:
        patch.setenv("TZ", "UTC")
        time.tzset()
        yield
    time.tzset()


def plan():
    return open_plan(Path("profiles/two-servers.toml"))


def wrong_plan():
    own = Path("profiles/two-servers.toml")
    own.write_text(own.read_text().replace("repeats", "repeat"))
    return open_plan(own)


def running():
    tagged_runs()
    made = MadeRun(STORE, name="20261121-032512-ab01", begin=BEGIN + 10800)
    made.begin(pid=1)
    for _ in range(3):
        made.begin_trial()
        made.measure(20.0)
        made.end_trial()
    made.note("moved the aerial", "remark")
    made.begin_trial()
    made.measure(12.5)
    made.close()
    return made


def live():
    made = running()
    return open_live(STORE, made.id, Clock(made.now))


def tagged_runs():
    three_runs(STORE)
    set_tags(STORE, 1, ["baseline", "kitchen"])


def replay():
    tagged_runs()
    return open_replay(STORE, 1, Clock(), 100.0)


def summary():
    tagged_runs()
    return open_page(STORE, "summary", 1)


def history():
    running()
    return open_page(STORE, "history")


def compare():
    tagged_runs()
    return open_page(STORE, "compare", 1, 2)


PAGES = (plan, wrong_plan, live, replay, summary, history, compare)
# Within the fourth trial of the run that is measured.
NOW = BEGIN + 10800 + 3 * 21 + 12.5
SIZES = ((80, 24), (120, 40), (200, 60))


@pytest.mark.parametrize("size", SIZES, ids=lambda size: f"{size[0]}x{size[1]}")
@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.__name__)
def test_a_screen_looks_like_this(page, size, golden):
    async def script(pilot):
        golden(f"tui/golden/{page.__name__}-{size[0]}x{size[1]}.txt", shown(pilot))

    drive(STORE, page(), script, size=size, clock=Clock(NOW))


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.__name__)
def test_without_colours_a_screen_says_the_same(page, golden, monkeypatch):
    monkeypatch.setenv("NO_COLOR", "1")
    colours = set()

    async def script(pilot):
        golden(f"tui/golden/{page.__name__}-80x24.txt", shown(pilot))
        for style in styles_shown(pilot):
            colours.update({style.color, style.bgcolor})

    clock = Clock(NOW)
    drive(STORE, page(), script, size=SIZES[0], clock=clock)
    assert {colour.name for colour in colours if colour is not None} <= {"default"}


@pytest.mark.parametrize("name", ["日本語", "日本語の🚀" * 9])
def test_a_title_with_wide_characters_leaves_the_state_its_room(name):
    own = Path(f"profiles/{name}.toml")
    own.write_text(Path("profiles/two-servers.toml").read_text())

    async def script(pilot):
        first = shown(pilot).splitlines()[0]
        assert (first.endswith("✓ ready"), width_of(first) <= 80) == (True, True)

    drive(STORE, open_plan(own), script)
