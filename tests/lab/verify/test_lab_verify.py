"""Links are measured for real; an emulator that does not follow its settings is detected."""

import os
import re
import signal
import time
from dataclasses import asdict, replace

import pytest
from lab.lab_support import EMULATORS, topology, verified

from benchctl.errors import LabError
from benchctl.lab.emulate.link import Change
from benchctl.lab.lab import Lab
from benchctl.lab.topology.legs import pairs_of
from benchctl.lab.verify import verify as verify_module
from benchctl.lab.verify.judgement import Promise, PromiseVerdict, judge_rate, look_at
from benchctl.lab.verify.verify import Together, fail_on_a_path, together, verify

pytestmark = [pytest.mark.netns, pytest.mark.once]

TEXT = """
[hosts]
a = {}
b = {}
[routers]
r = {}
[links]
near = { between = ["a", "r"], rate = "20Mbit", delay = "5ms", queue = 40 }
far = { between = ["r", "b"], rate = "10Mbit", delay = "6ms", jitter = "4ms", loss = "5%" }
"""


@pytest.fixture(scope="module", params=EMULATORS)
def lab(request):
    with Lab.build(topology(TEXT), request.param) as lab:
        yield lab


def legs_of(lab):
    """Return both directions of both links."""
    return [leg for pair in pairs_of(lab.topology, ["near", "far"]) for leg in pair.legs]


def loads_of(lab):
    """Return the rate of each link in each direction."""
    return {hop: hop.settings.rate_bps for leg in legs_of(lab) for hop in leg.hops}


@pytest.fixture
def disobeying(lab, monkeypatch):
    """Return a function that makes the emulators do something else than they are told."""
    change_each = lab.change_each

    def disobey(wrong):
        monkeypatch.setattr(verify_module, "_LOOKS", 1)
        monkeypatch.setattr(
            lab, "change_each", lambda new: change_each({hop: wrong(new[hop]) for hop in new})
        )

    yield disobey
    change_each({hop: Change(**asdict(hop.settings)) for hop in loads_of(lab)})


def broken(looks):
    """Return the promises that are broken in both directions."""
    found = [
        {
            name
            for name, finding in look.findings.items()
            if finding.verdict is PromiseVerdict.BROKEN
        }
        for look in looks
    ]
    return set.intersection(*found)


@pytest.mark.parametrize(
    ("link", "wrong", "promises"),
    [
        ("near", lambda c: replace(c, delay_s=c.delay_s + 0.002), {Promise.DELAY, Promise.CHANGE}),
        ("near", lambda c: replace(c, delay_s=0.005), {Promise.CHANGE}),
        ("near", lambda c: replace(c, rate_bps=c.rate_bps * 0.8), {Promise.RATE, Promise.CHANGE}),
        ("near", lambda c: replace(c, rate_bps=20e6), {Promise.CHANGE}),
        ("near", lambda c: replace(c, queue_packets=c.queue_packets - 10), {Promise.QUEUE}),
        ("near", lambda c: replace(c, queue_packets=1000), {Promise.QUEUE}),
        ("near", lambda c: replace(c, loss_ratio=0.1), {Promise.LOSS}),
        ("far", lambda c: replace(c, jitter_s=c.jitter_s / 2), {Promise.JITTER}),
        ("far", lambda c: replace(c, loss_ratio=0.0), {Promise.LOSS}),
        ("far", lambda c: replace(c, loss_ratio=c.loss_ratio * 3), {Promise.LOSS}),
        ("far", lambda c: replace(c, loss_ratio=1.0), {Promise.LOSS, Promise.RATE, Promise.CHANGE}),
    ],
    ids=lambda value: value if isinstance(value, str) else None,
)  # fmt: skip
def test_every_promise_that_an_emulator_breaks_is_found_broken(
    lab, disobeying, link, wrong, promises
):
    disobeying(wrong)
    looks = verify(lab, [link])
    assert promises <= broken(looks)
    assert all(look.problem for look in looks)


def test_frames_that_overtake_each_other_are_found(lab, disobeying, monkeypatch):
    # Each look counts as one in which the emulators were held up, and the last one is judged.
    monkeypatch.setattr(verify_module, "_MOST_LOOKS", 1)
    disobeying(lambda c: replace(c, jitter_s=0.003))
    looks = verify(lab, ["near"])
    assert broken(looks) >= {Promise.DELAY, Promise.ORDER}
    assert all(look.problem for look in looks)


def test_a_link_that_keeps_its_promises_is_as_it_was_afterwards(lab):
    looks = verified(lab, lab.topology.links)
    assert [look.problem for look in looks] == [""] * 4


@pytest.mark.parametrize(("calm", "looks"), [("yyy", 3), ("nyynny", 6), ("nnnnnnnnn", 9)])
def test_a_look_in_which_the_emulators_were_held_up_does_not_count(lab, monkeypatch, calm, looks):
    seen = []
    (pair,) = pairs_of(lab.topology, ["near"])

    def look(*_):
        seen.append(look_at(pair.there, judge_rate(pair.there, 1e6)))
        return seen[-1:]

    answers = iter(calm)
    monkeypatch.setattr(verify_module, "_look", look)
    monkeypatch.setattr(verify_module, "_calm", lambda _: next(answers) == "y")
    assert verify(lab, ["near"]) == seen[-1:]
    assert len(seen) == looks


def test_links_that_are_busy_at_the_same_time_are_measured_together(lab):
    loads = loads_of(lab)
    found, counted = together(lab, loads)
    assert [one.leg.links for one in found] == [("near",), ("far",)] * 2  # one way, then the other
    assert [one.problem for one in found] == [""] * 4
    assert {one.link for one in counted} == {"near", "far"}
    # A single link was measured already, and half a load is all that is asked.
    assert together(lab, {next(iter(loads)): 20e6}) == ([], [])
    half, _ = together(lab, {hop: load / 2 for hop, load in loads.items()})
    assert all(0.95 < one.carried_bps / one.asked_bps < 1.3 for one in half)


def test_links_that_carry_less_together_are_refused_with_both_figures(lab, disobeying):
    disobeying(lambda c: replace(c, rate_bps=c.rate_bps * 0.4))
    found, _ = together(lab, loads_of(lab))
    # It is less than 8 on a machine that stands still.
    said = r"link near, a to r: carries only [1-8]\.\d+ Mbit/s of 20\.0 Mbit/s while far is busy"
    assert re.match(said, found[0].problem)


def test_only_links_that_one_flow_may_use_together_fail_together(lab, disobeying):
    disobeying(lambda c: replace(c, rate_bps=c.rate_bps * 0.4))
    found, _ = together(lab, loads_of(lab))
    again = fail_on_a_path(lab, found)
    assert {one.leg.links for one in again} == {("near",), ("far",)}
    assert all(one.problem for one in again)


def test_links_of_two_islands_are_used_by_no_flow_together(monkeypatch):
    text = TEXT.replace('near = { between = ["a", "r"]', 'near = { between = ["a", "c"]')
    text = text.replace("b = {}", "b = {}\nc = {}\nd = {}").replace('["r", "b"]', '["d", "b"]')
    text = text.replace("[routers]\nr = {}\n", "")
    with Lab.build(topology(text)) as lab:
        legs = legs_of(lab)
        slow = [Together(leg, (legs[0],), leg.rate_bps, 1e6) for leg in legs]
        assert all(one.problem for one in slow)
        assert fail_on_a_path(lab, slow) == []


def test_a_probe_that_fails_gives_the_last_words_of_a_lab_that_fell():
    with Lab.build(topology(TEXT)) as lab:
        os.kill(lab.keeper_pid, signal.SIGKILL)
        with pytest.raises(LabError, match="the lab failed: its keeper was killed"):
            verify(lab, ["near"])


def test_a_probe_that_fails_in_a_lab_that_stands_says_why(lab, monkeypatch):
    monkeypatch.setattr(
        "benchctl.lab.verify.prober._PROBE", ("sh", "-c", "echo no luck >&2; exit 1")
    )
    with pytest.raises(LabError, match=r"cannot measure from .: no luck"):
        verify(lab, ["near"])


SLOW = """
[hosts]
a = {}
b = {}
[links]
ab = { between = ["a", "b"], %s }
"""


@pytest.mark.quiet
@pytest.mark.parametrize(
    ("link", "unverified"),
    [
        ('rate = "20kbit", delay = "10ms"', {"queue", "loss"}),
        ('rate = "1kbit"', set(Promise)),
        ('rate = "20Mbit", delay = "600ms"', set()),
        ('rate = "20Mbit", delay = "10s"', {"delay", "jitter", "loss"}),
        ('loss = "100%"', {"delay", "jitter"}),
        ('delay = "1ms", loss = "0.01%"', {"loss"}),
    ],
)
@pytest.mark.parametrize("emulator", EMULATORS)
def test_what_a_link_cannot_show_in_the_time_is_not_verified(link, unverified, emulator):
    with Lab.build(topology(SLOW % link), emulator) as lab:
        begun_s = time.monotonic()
        looks = verify(lab, ["ab"])
    assert [look.problem for look in looks] == ["", ""]
    assert [set(look.unverified) for look in looks] == [unverified] * 2
    assert time.monotonic() - begun_s < 30
