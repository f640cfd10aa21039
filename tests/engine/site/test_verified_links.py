"""The links that a trial uses are measured once; a broken promise is refused with figures."""

import asyncio

import pytest
from engine.site.fake_lab import (
    counters,
    flow,
    looks,
    prepared,
    trial,
)

from benchctl.engine.site import lab_site as site_module
from benchctl.errors import LabError
from benchctl.lab.topology.legs import pairs_of
from benchctl.lab.verify.judgement import Promise, PromiseVerdict
from benchctl.lab.verify.strain import Carried
from benchctl.lab.verify.verify import Together


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
