"""The palette finds keys, screens, runs, profiles, metrics and hosts, this screen's keys first."""

from contextlib import closing, suppress
from pathlib import Path

import pytest
from textual.command import CommandList
from textual.worker import WorkerCancelled
from tui.driving import Clock, drive, open_page, open_plan, open_replay, press, settle, shown
from tui.made_runs import MadeRun, three_runs

from benchctl.run.planned import DeclaredNetwork, ExternalServer, Host, Settings, SshTarget
from benchctl.store.manage import set_tags
from benchctl.store.read import Reader
from benchctl.tui.palette import hosts_of
from benchctl.tui.screens.base.modals import Help

STORE = Path("runs.sqlite")
NETWORK = DeclaredNetwork(
    {
        "local": "127.0.0.1",
        "far": Host("far", "192.0.2.7", reach=SshTarget("far")),
    },
    {"paris": ExternalServer("iperf.example.net", None)},
)


@pytest.fixture(autouse=True)
def here(toy_profiles):
    """Work in a directory with profiles and three runs."""
    three_runs(STORE)


async def searched(pilot):
    """Wait until everything has been looked through."""
    for worker in [*pilot.app.workers]:
        with suppress(WorkerCancelled):  # another letter was typed
            await worker.wait()
    await pilot.pause()


async def found(pilot, words):
    """Type words in the palette, and return the names that are found."""
    await pilot.press("ctrl+p")
    await searched(pilot)
    await pilot.press(*words)
    await searched(pilot)
    return [one.hit.text for one in pilot.app.screen.query_one(CommandList).options]


async def choose(pilot, words):
    """Choose what is found first."""
    names = await found(pilot, words)
    await pilot.press("enter")
    await settle(pilot)
    return names[0]


def test_the_keys_of_this_screen_come_first_then_the_screens():
    async def script(pilot):
        names = await found(pilot, "")
        assert (
            names.index("Freeze")
            < names.index("Remark")
            < names.index("History")
            < names.index("Theme")
        )
        await press(pilot, "escape")
        names = await found(pilot, "re")
        assert (
            names.index("Remark") < names.index("Compare") < names.index("retransmits  retransmits")
        )

    drive(STORE, open_replay(STORE, 1, Clock(), 30.0), script)


def test_a_run_is_found_by_profile_name_state_and_tag_and_opens():
    set_tags(STORE, 3, ["kitchen [b]"])

    async def script(pilot):
        assert await found(pilot, "tour run") == [
            "tour  20261121-012512-9bd2", "tour  20261121-002512-7f3a",
        ]  # fmt: skip
        await press(pilot, "escape")
        assert await choose(pilot, "kitchen") == "other  20261121-022512-11aa"
        assert (pilot.app.page.NAME, pilot.app.page.run_ids) == ("summary", (3,))

    drive(STORE, open_page(STORE, "history"), script)


def test_a_run_that_goes_on_opens_live(alive):
    made = MadeRun(STORE, name="20261127-1", profile="now")
    made.begin(pid=1)
    made.close()

    async def script(pilot):
        assert await choose(pilot, "now 1127") == "now  20261127-1"
        assert pilot.app.page.NAME == "live"

    drive(STORE, open_page(STORE, "history"), script)


def test_a_profile_is_found_by_name_and_title_and_is_planned():
    async def script(pilot):
        assert await choose(pilot, "plays a1") == "portfolio/a1-udp  A script that plays a tool"
        assert pilot.app.page.offer.name == "portfolio/a1-udp"
        assert "✓ ready" in shown(pilot)
        await press(pilot, "4")
        await choose(pilot, "two-servers")
        assert pilot.app.page.offer.path == Path("profiles/two-servers.toml")
        assert "✓ ready" in shown(pilot)

    drive(STORE, open_page(STORE, "history"), script)


def test_a_metric_is_explained_or_shown_where_it_is_plotted():
    async def elsewhere(pilot):
        assert await choose(pilot, "rtt_increase") == "RTT increase  rtt_increase_s"
        assert isinstance(pilot.app.screen, Help)
        assert "latency under load" in shown(pilot)

    async def plotted(pilot):
        first = shown(pilot)
        assert "cwnd" not in first
        await choose(pilot, "cwnd_bytes")
        assert " cwnd " in shown(pilot)

    drive(STORE, open_page(STORE, "history"), elsewhere)
    drive(STORE, open_replay(STORE, 1, Clock(), 10.0), plotted)


def test_a_host_of_a_run_is_found_and_planned(monkeypatch):
    with closing(Reader(STORE)) as reader:
        run = reader.run(1)
    assert [*hosts_of(run)] == []
    monkeypatch.setattr(Settings, "network", NETWORK)
    assert [*hosts_of(run)] == ["iperf.example.net", "192.0.2.7"]

    async def script(pilot):
        assert "iperf.example.net" in await found(pilot, "example.net host")

    drive(STORE, open_plan(), script)


def test_without_a_store_profiles_and_keys_are_found():
    STORE.unlink()

    async def script(pilot):
        assert await found(pilot, "two-servers") == ["two-servers  A script that plays a tool"]

    drive(STORE, open_plan(), script)
