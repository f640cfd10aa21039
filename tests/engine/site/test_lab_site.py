"""Labs are built, changed and removed as the trials need them."""

import asyncio
import threading
import time
from pathlib import Path

import pytest
from engine.site.fake_lab import (
    OUTSIDE,
    TEXT,
    FakeLab,
    counters,
    flow,
    prepared,
    trial,
)
from msgspec.structs import replace
from waiting import COMMAND_S, DEADLINE_S

from benchctl.engine.runner.runner import site_of
from benchctl.engine.site.lab_site import LabSite
from benchctl.engine.site.site import Site
from benchctl.errors import LabError, LabKilledError
from benchctl.hosts.local.spawn import LocalSpawner, run
from benchctl.lab.emulate.link import Change
from benchctl.lab.topology.model import Emulator
from benchctl.plan.plan import lab_settings
from benchctl.profile.model import LabTable
from benchctl.run.planned import Settings
from benchctl.toml.source import parse_toml


def test_a_network_that_is_there_needs_nothing():
    site = Site(OUTSIDE.network)
    assert prepared(site, trial()) == OUTSIDE.network
    assert site.expected(trial()) == {}


def test_settings_of_a_run_say_which_site_it_has():
    assert type(site_of(Settings({}, "", ()), print)) is Site
    source = parse_toml(TEXT, Path("lab.toml"))
    lab = lab_settings(source, LabTable(topology="lab.toml"))
    assert isinstance(site_of(Settings({}, "", (), lab=lab), print), LabSite)


def test_a_lab_is_built_again_only_when_a_trial_wants_other_settings(lab, site):
    slow = trial(**{"links.far.rate": "5Mbit"})
    prepared(site(verify=False), trial(), trial(), slow, slow, trial())
    assert lab.log == [
        ("build", 50e6), ("close",), ("build", 5e6), ("close",), ("build", 50e6), ("close",),
    ]  # fmt: skip


def test_a_lab_whose_links_change_during_a_trial_is_new_for_every_attempt(lab, site):
    prepared(site(verify=False, changes=[{"at": "1s", "link": "far", "loss": "2%"}]),
             trial(), trial())  # fmt: skip
    assert lab.log == [("build", 50e6), ("close",)] * 2


def test_changes_are_sent_at_the_common_start_on_the_labs_clock(lab, site, monkeypatch):
    monkeypatch.setattr(time, "time", lambda: 1000.0)
    monkeypatch.setattr(time, "monotonic_ns", lambda: 7_000_000_000)
    changing = site(
        verify=False,
        changes=[
            {"at": "10s", "link": "far", "rate": "2Mbit", "ramp": "5s"},
            {"at": "0s", "link": "near", "delay": "1ms", "jitter": "100us", "loss": "1%"},
        ],
    )

    async def main():
        changing.begin(1000.0)  # nothing stands yet, and nothing happens
        await changing.prepare(trial())
        changing.begin(1000.5)
        await changing.close()

    asyncio.run(main())
    assert lab.log[1:3] == [
        ("change", "far", Change(at_ns=17_500_000_000, over_ns=5_000_000_000, rate_bps=2e6)),
        ("change", "near", Change(
            at_ns=7_500_000_000, delay_s=0.001, jitter_s=0.0001, loss_ratio=0.01
        )),
    ]  # fmt: skip


def test_changes_at_a_share_of_the_duration_follow_it(lab, site, monkeypatch):
    monkeypatch.setattr(time, "time", lambda: 1000.0)
    monkeypatch.setattr(time, "monotonic_ns", lambda: 0)
    changing = site(
        verify=False, changes=[{"at": "30%", "link": "far", "rate": "2Mbit", "ramp": "10%"}]
    )

    async def main():
        for duration_s in (1.0, 600.0):
            one = trial()
            await changing.prepare(replace(one, plan=replace(one.plan, duration_s=duration_s)))
            changing.begin(1000.0)
        await changing.close()

    asyncio.run(main())
    assert [entry for entry in lab.log if entry[0] == "change"] == [
        ("change", "far", Change(at_ns=at_ns, over_ns=over_ns, rate_bps=2e6))
        for at_ns, over_ns in ((300_000_000, 100_000_000), (180 * 10**9, 60 * 10**9))
    ]


def test_a_lab_that_fell_is_built_anew_and_the_user_hears_why(lab, site, monkeypatch):
    notes = []
    one = site(notes, verify=False)

    async def main():
        await one.prepare(trial())
        monkeypatch.setattr(FakeLab, "has_failed", True)
        await one.prepare(trial())
        await one.close()

    asyncio.run(main())
    assert notes == [
        "lab lab: auto emulator",
        "the lab failed: out of memory; it is rebuilt",
    ]
    assert lab.log == [("build", 50e6), ("close",), ("build", 50e6), ("close",)]


def test_a_lab_that_is_killed_while_it_is_built_costs_an_attempt(lab, site, monkeypatch):
    notes = []
    one = site(notes, verify=False)

    def kill():
        raise LabKilledError("the lab cannot be built: its keeper was killed")

    async def main():
        monkeypatch.setattr(FakeLab, "while_building", staticmethod(kill))
        with pytest.raises(LabKilledError):
            await one.prepare(trial())
        assert await one.failure_reason() == "the lab cannot be built: its keeper was killed"
        monkeypatch.setattr(FakeLab, "while_building", None)
        await one.prepare(trial())
        assert await one.failure_reason() == ""
        await one.close()

    asyncio.run(main())
    assert "the lab cannot be built: its keeper was killed; it is rebuilt" in notes


def carried(one, *trials):
    async def main():
        for each in trials:
            await one.prepare(each)
            told = await one.carried(each)
        await one.close()
        return told

    return asyncio.run(main())


def test_what_the_links_of_a_trial_carried_is_counted_from_its_preparation(lab, site):
    told = carried(site(verify=False), trial(flow(source="c")), trial())
    ways = [(one.link, one.source, one.target) for one in told]
    assert ways == [("near", "a", "r"), ("far", "r", "b"), ("far", "b", "r"), ("near", "r", "a")]
    assert {one.counters.arrived for one in told} == {1000}


def test_an_emulator_without_counters_and_a_lab_that_fell_tell_of_no_link(lab, site, monkeypatch):
    monkeypatch.setattr(FakeLab, "uncounted", "far")
    assert {one.link for one in carried(site(verify=False), trial())} == {"near"}

    def gone(self, link, leaving):
        if (link, leaving) in self.asked:
            raise LabError("the lab failed: out of memory")
        self.asked[link, leaving] = 1
        return counters()

    monkeypatch.setattr(FakeLab, "counters", gone)
    assert carried(site(verify=False), trial()) == ()
    assert asyncio.run(site().carried(trial())) == ()


def test_who_gives_up_while_a_lab_is_built_still_takes_it_away(lab, site, monkeypatch):
    begun, go_on = threading.Event(), threading.Event()

    def while_building():
        begun.set()
        assert go_on.wait(DEADLINE_S)

    monkeypatch.setattr(FakeLab, "while_building", while_building)
    one = site(verify=False)

    async def main():
        preparing = asyncio.ensure_future(one.prepare(trial()))
        await asyncio.to_thread(begun.wait, DEADLINE_S)
        preparing.cancel()
        await asyncio.sleep(0)
        assert not preparing.done()
        go_on.set()
        with pytest.raises(asyncio.CancelledError):
            await preparing
        await one.close()

    asyncio.run(main())
    assert lab.log == [("build", 50e6), ("close",)]


def test_a_lab_that_cannot_be_built_leaves_nothing_to_close(lab, site, monkeypatch):
    def refuse():
        raise LabError("the lab cannot be built: no namespaces")

    monkeypatch.setattr(FakeLab, "while_building", staticmethod(refuse))
    one = site()
    with pytest.raises(LabError, match="no namespaces"):
        prepared(one, trial())
    asyncio.run(one.close())
    assert lab.log == []


def test_in_a_lab_hosts_have_all_their_names_and_this_machines_interfaces_are_not_there(lab, site):
    network = prepared(site(verify=False), trial())
    assert set(network.hosts) == {"local", "a", "b", "c", "server.test"}
    assert network.hosts["local"].name == "a"
    assert network.hosts["server.test"].name == "b"
    assert network.hosts["b"].taken_ports == {5201, 5202}
    assert network.interfaces == {}
    assert network.target("paris") is None


def test_what_is_expected_is_of_the_lab_that_stands(lab, site):
    one = site(verify=False)

    async def main():
        assert one.expected(trial()) == {}
        await one.prepare(trial())
        both = one.expected(trial(flow(), flow("peer", to="paris"), flow("away", to="local")))
        await one.close()
        return both

    told = asyncio.run(main())
    assert set(told) == {"main", "peer"}  # from a to local is from a to itself
    assert told["main"]["send"]["throughput_bps"] == pytest.approx(10e6 * 1448 / 1514 / 2)


@pytest.mark.netns
@pytest.mark.tool("iperf3", "ping")
def test_a_real_lab_is_built_changed_and_gone(site):
    notes, change = [], {"at": "0s", "link": "far", "delay": "30ms"}
    # A machine that is busy with other tests may break the promises of a link.
    one = site(notes, emulator="user", verify=False, changes=[change])

    async def main():
        async with LocalSpawner() as spawner:
            network = await one.prepare(trial())
            host, target = network.hosts["local"], network.hosts["server.test"]
            ping = ["ping", "-n", "-c", "1", target.address]

            async def rtt_ms():
                code, output = await run(spawner, host, ping, DEADLINE_S)
                assert code == 0
                return float(output.partition("time=")[2].split()[0])

            before_ms = await rtt_ms()
            while before_ms >= 30:  # the machine was busy: no lab is faster than it should be
                before_ms = await rtt_ms()
            one.begin(time.time())
            after_ms = await rtt_ms()
            await one.close()
            return host, before_ms, after_ms

    host, before_ms, after_ms = asyncio.run(asyncio.wait_for(main(), COMMAND_S))
    assert before_ms >= 10
    assert after_ms >= 60
    [keeper] = [word for word in host.prefix if word.startswith("--target=")]
    assert not Path("/proc", keeper.removeprefix("--target=")).exists()
    assert notes == ["lab lab: user emulator"]


@pytest.mark.parametrize(("asked", "built"), [("user", Emulator.USER), (None, Emulator.KERNEL)])
def test_the_emulator_that_was_asked_for_is_built_or_else_the_topologys(lab, site, asked, built):
    notes = []
    text = f'emulator = "kernel"\n{TEXT}'
    prepared(site(notes, verify=False, text=text, emulator=asked), trial())
    assert notes == [f"lab lab: {built} emulator"]
