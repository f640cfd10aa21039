"""Labs are built and removed as the trials need them, and are rejected if they break a promise."""

import asyncio
import threading
import time
from pathlib import Path

import pytest
from engine.fakes import FakeBackend
from msgspec.structs import replace
from waiting import COMMAND_S, DEADLINE_S

from benchctl.api import Direction
from benchctl.backends import Registry
from benchctl.engine.runner.runner import site_of
from benchctl.engine.site import lab_site as site_module
from benchctl.engine.site.lab_site import LabSite
from benchctl.engine.site.site import Site
from benchctl.errors import LabError, LabKilledError
from benchctl.hosts.local.spawn import LocalSpawner, run
from benchctl.lab.emulate.link import Change
from benchctl.lab.emulate.messages import DirectionCounters
from benchctl.lab.topology.legs import pairs_of
from benchctl.lab.topology.model import Emulator
from benchctl.lab.verify.judgement import Look, Promise, PromiseFinding, PromiseVerdict
from benchctl.lab.verify.strain import Carried
from benchctl.lab.verify.verify import Together
from benchctl.plan.bound import bind_trial
from benchctl.plan.plan import lab_settings
from benchctl.plugins import Candidate
from benchctl.profile.model import LabTable
from benchctl.run.planned import (
    DeclaredNetwork,
    ExternalServer,
    Host,
    PlannedFlow,
    PlannedTrial,
    Settings,
    Way,
)
from benchctl.toml.source import parse_toml

TEXT = """
local = "a"
[hosts.a]
[hosts.b]
aliases = ["server.test"]
services = [{ iperf3 = "5201-5202" }]
[hosts.c]
[routers.r]
[links.near]
between = ["a:wired", "r"]
rate = "10Mbit"
[links.far]
between = ["r", "b"]
rate = "50Mbit"
delay = "5ms"
[links.aside]
between = ["c", "r"]
rate = "10Mbit"
[links.late]
between = ["c:late", "r"]
delay = "1ms"
"""
REGISTRY = Registry({"fake": Candidate("fake", "tests", FakeBackend)})
OUTSIDE = DeclaredNetwork(
    {"local": "127.0.0.1"}, {"paris": ExternalServer("server.test", None)}, {"en0": Way("en0")}
)


class FakeLab:
    """A lab that notes what happens to it."""

    log = None
    has_failed = False
    while_building = None
    uncounted = ""
    why_not_kernel = ""

    def __init__(self, topology, emulator):
        self.asked = {}
        self.topology, self.emulator = topology, emulator
        self.nodes = {name: Host(name, f"10.0.0.{i}") for i, name in enumerate(topology.nodes)}

    @classmethod
    def build(cls, topology, emulator=None):
        if cls.while_building is not None:
            cls.while_building()
        cls.log.append(("build", topology.links["far"].settings[0].rate_bps))
        return cls(topology, emulator or topology.emulator)

    def check(self):
        if self.has_failed:
            raise LabError("the lab failed: out of memory")

    def change(self, link, change):
        self.log.append(("change", link, change))

    def counted(self, hops):
        found = {hop: self.counters(hop.link.name, hop.start.node) for hop in hops}
        return {hop: one for hop, one in found.items() if one is not None}

    def counters(self, link, leaving):
        self.asked[link, leaving] = count = self.asked.get((link, leaving), 0) + 1
        return None if link == self.uncounted else counters(arrived=1000 * count)

    def close(self):
        self.log.append(("close",))


def counters(**known):
    names = DirectionCounters.__dataclass_fields__
    return DirectionCounters(**dict.fromkeys(names, 0) | known)


@pytest.fixture
def lab(monkeypatch):
    monkeypatch.setattr(site_module, "Lab", FakeLab)
    monkeypatch.setattr(site_module, "ceiling_bps", lambda emulator: 1e9)
    monkeypatch.setattr(site_module, "verify", keeps_promises)
    monkeypatch.setattr(site_module, "together", carries_all)
    monkeypatch.setattr(FakeLab, "log", [])
    return FakeLab


def keeps_promises(lab, links):
    FakeLab.log.append(("verify", *links))
    return looks(lab, links)


def looks(lab, links, promise=Promise.DELAY, verdict=PromiseVerdict.KEPT):
    """Return looks at links that found a single thing."""
    finding = PromiseFinding(promise, 0.01, 0.05, verdict)
    pairs = pairs_of(lab.topology, links)
    return [Look(leg, {promise: finding}) for pair in pairs for leg in pair.legs]


def carries_all(lab, loads):
    FakeLab.log.append(("together", {hop.link.name: load for hop, load in loads.items()}))
    return [], []


def flow(name="main", source="a", to="b", interface=None):
    return PlannedFlow(name, "fake", source, to, interface, Direction.SEND, 0.0, {})


def trial(*flows, **settings):
    plan = PlannedTrial(0, 1, {}, flows or (flow(),), settings, 1.0, 16.0)
    return bind_trial(plan, REGISTRY)


@pytest.fixture
def site():
    def make(notes=None, text=TEXT, **table):
        source = parse_toml(text, Path("lab.toml"))
        settings = lab_settings(source, LabTable(topology="lab.toml", **table))
        return LabSite(OUTSIDE, settings, (notes if notes is not None else []).append)

    return make


def prepared(site, *trials):
    """Prepare for trials one after the other; returns the last network, and closes."""

    async def main():
        for one in trials:
            network = await site.prepare(one)
        await site.close()
        return network

    return asyncio.run(main())


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


def test_the_links_that_a_trial_uses_are_measured_once_and_no_others(lab, site):
    notes = []
    to_c = trial(flow(source="c"))
    prepared(site(notes), trial(), trial(), to_c, trial())
    looks = [entry[1] for entry in lab.log if entry[0] == "verify"]
    assert looks == ["near", "far", "aside"]
    (note,) = notes
    assert note == "lab lab: auto emulator; one link carries at most 1.00 Gbit/s here"


def test_a_site_says_which_trials_it_changed_links_for(lab, site):
    looking, to_c, told = site(), trial(flow(source="c")), []

    async def main():
        for one in (trial(), trial(), to_c, trial()):
            await looking.prepare(one)
            told.append(looking.was_probed)
        await looking.close()

    asyncio.run(main())
    assert told == [True, False, True, False]


def test_a_flow_bound_to_an_interface_uses_the_links_of_that_one(lab, site):
    prepared(site(), trial(flow(source="c", interface="late")))
    looks = [entry[1] for entry in lab.log if entry[0] == "verify"]
    assert looks == ["late", "far"]  # a link with only a delay has a promise, too


def test_a_link_with_new_settings_is_measured_again(lab, site):
    slow = trial(**{"links.far.rate": "5Mbit"})
    prepared(site(), trial(), slow, trial())
    assert [entry[1] for entry in lab.log if entry[0] == "verify"] == ["near", "far", "far"]


def test_a_link_that_breaks_its_promise_is_refused_with_both_figures(lab, site, monkeypatch):
    def breaks(lab, links):
        return looks(lab, links, verdict=PromiseVerdict.BROKEN)

    monkeypatch.setattr(site_module, "verify", breaks)
    refusing = site()
    with pytest.raises(LabError, match=r"promises a delay of 10\.0 ms, takes 50\.0 ms here"):
        prepared(refusing, trial())
    asyncio.run(refusing.close())
    assert lab.log[-1] == ("close",)


def test_what_of_a_link_cannot_be_verified_is_noted_and_the_run_goes_on(lab, site, monkeypatch):
    def cannot(lab, links):
        return looks(lab, links, Promise.QUEUE, PromiseVerdict.UNVERIFIED)

    monkeypatch.setattr(site_module, "verify", cannot)
    notes = []
    prepared(site(notes), trial())
    assert notes[1:3] == [
        "link near, a to r: not verified: queue", "link near, r to a: not verified: queue",
    ]  # fmt: skip


def test_links_are_loaded_together_as_the_trials_flows_load_them_once_for_each_load(lab, site):
    both = trial(flow(), flow("other", source="c"))
    prepared(site(), trial(), both, trial(), both)
    loads = [entry[1] for entry in lab.log if entry[0] == "together"]
    assert loads == [
        {"near": 10e6, "far": 10e6},
        {"near": 10e6, "far": 20e6, "aside": 10e6},
    ]  # fmt: skip


def test_links_that_carry_too_little_together_are_refused_with_both_figures(lab, site, monkeypatch):
    def too_little(lab, loads):
        there, back = (pair.there for pair in pairs_of(lab.topology, ["near", "far"]))
        return [Together(there, (back,), 10e6, 9.4e6)], []

    monkeypatch.setattr(site_module, "together", too_little)
    said = r"link near, a to r: carries only 9\.40 Mbit/s of 10\.0 Mbit/s while far is busy too"
    with pytest.raises(LabError, match=said):
        prepared(site(), trial())


def test_links_that_were_late_together_are_noted(lab, site, monkeypatch):
    late = Carried("near", "a", "r", counters(delivered=10, late=2, late_max_ns=2_000_000))
    monkeypatch.setattr(site_module, "together", lambda lab, loads: ([], [late]))
    notes = []
    prepared(site(notes), trial())
    assert notes[1] == (
        "all links of the trial at once: link near, a to r: 2 of 10 frames late, by up to 2.00 ms"
    )


def test_a_rate_that_this_machine_cannot_emulate_is_refused_with_both_figures(
    lab, site, monkeypatch
):
    monkeypatch.setattr(site_module, "ceiling_bps", lambda emulator: 40e6)
    with pytest.raises(
        LabError, match=r"link far promises 50\.0 Mbit/s, .* emulates at most 40\.0 Mbit/s"
    ):
        prepared(site(), trial())


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
