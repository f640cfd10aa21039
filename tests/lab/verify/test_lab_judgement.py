"""Measurements of a link decide whether it keeps its promises; chance rejects hardly any."""

import math
import random
from dataclasses import replace
from math import comb

import pytest
from lab.lab_support import topology

from benchctl.lab.emulate.link import NEVER_NS, OneWay
from benchctl.lab.topology.legs import pair_of
from benchctl.lab.topology.model import LinkSettings
from benchctl.lab.verify.judgement import (
    Look,
    Promise,
    PromiseVerdict,
    Train,
    arrival_rate_bps,
    binomial_bounds,
    due_of,
    judge_burst,
    judge_rate,
    judge_train,
    look_at,
)

MS = 1_000_000
BYTES = 50
KEPT, BROKEN, UNVERIFIED = PromiseVerdict.KEPT, PromiseVerdict.BROKEN, PromiseVerdict.UNVERIFIED
PROMISED = LinkSettings(
    rate_bps=30e6, delay_s=0.010, jitter_s=0.003, loss_ratio=0.02, queue_packets=50
)
CALM = replace(PROMISED, jitter_s=0.0, loss_ratio=0.0)


def leg_of(settings):
    """Return one way over a link with these settings."""
    made = topology('[hosts]\na = {}\nb = {}\n[links]\nab = { between = ["a", "b"], loss = "1%" }')
    link = replace(made.links["ab"], settings=(settings, settings))
    return pair_of(replace(made, links={"ab": link}), link).there


def carried(settings, sent_ns, frame_bytes=BYTES, seed="seed", late_ns=0):
    """Return what a link with these settings makes of frames, each delivered late by so much."""
    way = OneWay(settings, seed)
    for number, at_ns in enumerate(sent_ns):
        way.arrive(at_ns, frame_bytes, number)
    got = []
    while (next_ns := way.next_ns()) < NEVER_NS:
        got += [(number, due_ns + late_ns) for due_ns, number in way.due(next_ns)]
    return Train(frame_bytes, sent_ns, got)


def train(settings, count=2000, gap_ns=200_000, **known):
    return carried(settings, [number * gap_ns for number in range(count)], **known)


def verdicts(findings):
    return {finding.promise: finding.verdict for finding in findings}


def problem(findings, settings=PROMISED):
    return Look(leg_of(settings), {finding.promise: finding for finding in findings}).problem


def test_a_link_that_does_what_it_promises_keeps_it():
    findings = judge_train(leg_of(PROMISED), train(PROMISED))
    assert verdicts(findings) == {Promise.DELAY: KEPT, Promise.JITTER: KEPT, Promise.LOSS: KEPT}
    assert problem(findings) == ""


@pytest.mark.parametrize(
    ("really", "said"),
    [
        ({"delay_s": 0.011}, "promises a delay of 10.0 ms, takes 11.0 ms here"),
        ({"delay_s": 0.009}, "promises a delay of 10.0 ms, takes 8.97 ms here"),
        ({"delay_s": 0.0095, "jitter_s": 0.002}, "promises a jitter of 3.00 ms, has 2"),
        ({"jitter_s": 0.0}, "promises a jitter of 3.00 ms, has 0 s"),
        ({"loss_ratio": 0.0}, "promises a loss of 2 %, loses 0 % here"),
        ({"loss_ratio": 0.05}, "promises a loss of 2 %, loses 4.75 % here"),
    ],
)
def test_what_a_link_does_instead_is_said_with_both_figures(really, said):
    findings = judge_train(leg_of(PROMISED), train(replace(PROMISED, **really)))
    assert problem(findings).startswith(f"link ab, a to b: {said}")


def test_one_lost_frame_breaks_the_promise_of_a_lossless_link_but_not_one_that_nobody_read():
    seen = train(CALM)
    short = replace(seen, got=seen.got[:-1])
    assert verdicts(judge_train(leg_of(CALM), short))[Promise.LOSS] is BROKEN
    unread = replace(short, unread=1)
    assert verdicts(judge_train(leg_of(CALM), unread))[Promise.LOSS] is KEPT


@pytest.mark.parametrize("late_ns", [0, 300_000])
def test_what_a_machine_adds_to_every_delay_is_borne(late_ns):
    assert problem(judge_train(leg_of(CALM), train(CALM, late_ns=late_ns)), CALM) == ""


def test_frames_that_a_busy_machine_delivers_late_are_no_jitter_and_no_delay():
    seen = train(CALM, count=200)
    late = [(n, at_ns + n % 4 * MS) for n, at_ns in seen.got]
    assert problem(judge_train(leg_of(CALM), replace(seen, got=late)), CALM) == ""
    later = [(n, at_ns + n % 4 * 4 * MS) for n, at_ns in seen.got]
    assert "promises a jitter of 0 s" in problem(
        judge_train(leg_of(CALM), replace(seen, got=later)), CALM
    )


def test_a_jitter_that_was_not_promised_shows_in_frames_that_come_too_early():
    findings = judge_train(leg_of(CALM), train(replace(CALM, jitter_s=0.001)))
    assert "promises a delay of 10.0 ms, takes 9.1" in problem(findings, CALM)


@pytest.mark.parametrize(
    ("settings", "count", "unverified"),
    [
        (CALM, 4, {Promise.DELAY, Promise.JITTER, Promise.LOSS, Promise.ORDER}),
        (CALM, 134, {Promise.LOSS}),
        (CALM, 135, set()),
        (replace(PROMISED, loss_ratio=0.0), 99, {Promise.JITTER, Promise.LOSS}),
        (replace(CALM, jitter_s=0.0004), 2000, {Promise.JITTER}),  # less than a machine may add
        (replace(CALM, loss_ratio=0.001), 2000, {Promise.LOSS}),  # a lossless one looks the same
        (replace(CALM, loss_ratio=1.0), 2000, {Promise.DELAY, Promise.JITTER, Promise.ORDER}),
    ],
)
def test_what_so_few_frames_cannot_show_is_not_verified(settings, count, unverified):
    findings = judge_train(leg_of(settings), train(settings, count))
    found = verdicts(findings)
    assert {promise for promise, verdict in found.items() if verdict is UNVERIFIED} == unverified
    assert problem(findings, settings) == ""


def test_a_loss_too_small_to_be_shown_is_still_bounded_from_above():
    promised = replace(CALM, loss_ratio=0.001)
    seen = train(replace(CALM, loss_ratio=0.01))
    assert verdicts(judge_train(leg_of(promised), seen))[Promise.LOSS] is BROKEN


@pytest.mark.parametrize(("count", "percent"), [(2500, 2), (100, 50), (300, 99), (40, 1)])
def test_bounds_of_a_binomial_number_leave_out_one_in_2000_on_either_side(count, percent):
    # In parts of 100 ** count, exactly.
    chances = [
        comb(count, k) * percent**k * (100 - percent) ** (count - k) for k in range(count + 1)
    ]
    low, high = binomial_bounds(count, percent / 100)
    most = 100**count // 2000
    assert sum(chances[:low]) <= most < sum(chances[: low + 1])
    assert sum(chances[high + 1 :]) <= most < sum(chances[high:])


def test_bounds_of_what_is_certain_are_itself():
    assert binomial_bounds(0, 0.5) == (0, 0)
    assert binomial_bounds(100, 0.0) == (0, 0)
    assert binomial_bounds(100, 1.0) == (100, 100)


def test_chance_refuses_no_more_looks_than_is_said():
    """Of 1000 looks at a link that keeps its promise, 3 in 1000 may be refused; 10 are 4 sigma."""
    leg = leg_of(PROMISED)
    refused = sum(
        problem(judge_train(leg, train(PROMISED, count=400, seed=str(seed)))) != ""
        for seed in range(1000)
    )
    assert refused <= 10


# --- bursts -----------------------------------------------------------------------------------

CHANGED = replace(CALM, rate_bps=15e6, delay_s=0.0)
FRAME = 1514


def burst(settings, count=112, gap_ns=20_000, **known):
    return carried(settings, [n * gap_ns for n in range(count)], FRAME, **known)


def judged(seen):
    return judge_burst(leg_of(CALM), CHANGED, seen)


def test_a_burst_shows_queue_order_and_change():
    findings = judged(burst(CHANGED))
    assert verdicts(findings) == dict.fromkeys((Promise.QUEUE, Promise.ORDER, Promise.CHANGE), KEPT)
    assert findings[0].measured == 50


@pytest.mark.parametrize("queue", [40, 47, 53, 60, 1000])
def test_a_queue_of_another_length_is_measured(queue):
    findings = judged(burst(replace(CHANGED, queue_packets=queue)))
    told = min(queue, 111 - 2)  # the longest that so many frames can fill: two were sent meanwhile
    assert problem(findings).startswith(
        f"link ab, a to b: promises a queue of 50 frames, holds {told} here"
    )


def test_a_sender_that_is_interrupted_measures_the_same_queue():
    sent_ns = [n * 20_000 + 30 * MS * (n > 60) for n in range(150)]
    findings = judged(carried(CHANGED, sent_ns, FRAME))
    assert (findings[0].measured, findings[0].verdict) == (50, KEPT)


def test_a_queue_that_never_filled_is_not_verified():
    assert verdicts(judged(burst(CHANGED, count=40)))[Promise.QUEUE] is UNVERIFIED
    assert verdicts(judged(burst(CHANGED, gap_ns=MS)))[Promise.QUEUE] is UNVERIFIED


def test_a_link_without_a_rate_has_no_queue_to_judge():
    settings = replace(CHANGED, rate_bps=float("inf"))
    assert Promise.QUEUE not in verdicts(judge_burst(leg_of(CALM), settings, burst(settings)))


def test_a_frame_that_was_overtaken_breaks_the_order():
    seen = burst(CHANGED)
    got = [*seen.got[:5], seen.got[6], seen.got[5], *seen.got[7:]]
    findings = judged(replace(seen, got=got))
    assert verdicts(findings)[Promise.ORDER] is BROKEN
    assert "keep the order, 1 frames were reordered" in problem(findings)


def test_each_frame_that_a_later_one_overtook_counts():
    seen = burst(CHANGED)
    got = [seen.got[3], *seen.got[:3], *seen.got[4:]]
    assert replace(seen, got=got).overtaken == 3


@pytest.mark.parametrize(
    "really",
    [{"delay_s": 0.010}, {"rate_bps": 30e6}, {"rate_bps": 17e6}, {"rate_bps": 13e6}],
)
def test_settings_that_were_not_taken_are_seen(really):
    findings = judged(burst(replace(CHANGED, **really)))
    assert verdicts(findings)[Promise.CHANGE] is BROKEN


def test_a_promise_that_is_judged_twice_is_kept_only_where_nothing_breaks_it():
    few, out = train(CALM, count=4), train(CALM)
    out = replace(out, got=out.got[::-1])
    for seen, verdict in ((few, KEPT), (out, BROKEN)):
        both = [*judge_train(leg_of(CALM), seen), *judge_train(leg_of(CALM), train(CALM))]
        assert look_at(leg_of(CALM), both).findings[Promise.ORDER].verdict is verdict


def test_a_link_that_carries_nothing_with_new_settings_has_not_taken_them():
    findings = judged(replace(burst(CHANGED), got=[]))
    assert verdicts(findings)[Promise.CHANGE] is BROKEN
    nothing_sent = judged(Train(FRAME, [], []))
    assert set(verdicts(nothing_sent).values()) == {UNVERIFIED}


def test_the_model_says_when_frames_are_due():
    due_ns = due_of(LinkSettings(rate_bps=8e6, delay_s=0.001, queue_packets=1), 1000, [0, 0, 0])
    assert due_ns == {0: 2 * MS, 1: 3 * MS}  # and the third finds the queue full


# --- rates ------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("rate_bps", "verdict"),
    [(30e6, KEPT), (28.6e6, KEPT), (28.4e6, BROKEN), (31.6e6, BROKEN), (float("nan"), UNVERIFIED)],
)
def test_a_rate_is_kept_within_its_tolerance(rate_bps, verdict):
    (finding,) = judge_rate(leg_of(CALM), rate_bps)
    assert finding.verdict is verdict


@pytest.mark.parametrize("really_bps", [1.5e6, 20e6, 30e6])
@pytest.mark.parametrize(
    # When the machine stops to deliver frames, and when it goes on, in parts of the whole.
    ("stops", "goes_on"), [(0, 0), (0, 0.6), (0.2, 0.6), (0.5, 1.0), (0.7, 1.3)],
)  # fmt: skip
def test_frames_that_a_machine_holds_up_are_no_lower_rate(really_bps, stops, goes_on):
    noise = random.Random(1)
    seen = burst(replace(CALM, rate_bps=really_bps, queue_packets=1000), count=600, gap_ns=0)
    late = [(n, at_ns + noise.randrange(50_000)) for n, at_ns in seen.got]
    whole_ns = late[-1][1]
    got = [
        (n, max(at_ns, int(goes_on * whole_ns)) if at_ns > stops * whole_ns else at_ns)
        for n, at_ns in late
    ]
    found_bps = arrival_rate_bps(replace(seen, got=got), 30e6)
    assert found_bps == pytest.approx(really_bps, rel=0.01)


def test_a_sender_that_is_held_up_is_no_lower_rate():
    sent_ns = [n * 20_000 + 100 * MS * (n > 200) + 30 * MS * (n > 400) for n in range(600)]
    whole = replace(CALM, queue_packets=1000)
    assert arrival_rate_bps(carried(whole, sent_ns, FRAME), 30e6) == pytest.approx(30e6)
    slow = carried(replace(whole, rate_bps=20e6), sent_ns, FRAME)
    assert 19e6 < arrival_rate_bps(slow, 30e6) < 28e6


def test_too_few_frames_have_no_rate_and_those_that_come_at_once_an_infinite_one():
    sent_ns = [0, 0, 0]
    for got in ([], [(0, 7)]):
        assert arrival_rate_bps(Train(FRAME, sent_ns, got), 30e6) == 0
    assert arrival_rate_bps(Train(FRAME, sent_ns, [(0, 7), (1, 7), (2, 7)]), 30e6) == math.inf


def test_a_link_without_a_rate_promises_none():
    assert judge_rate(leg_of(LinkSettings(delay_s=0.01)), float("nan")) == []


def test_several_links_in_a_row_are_judged_as_one():
    made = topology(
        """
[hosts]
a = {}
b = {}
[switches]
s = {}
[links]
as = { between = ["a", "s"], rate = "10Mbit", delay = "5ms", jitter = "1ms", loss = "10%" }
sb = { between = ["s", "b"], rate = "20Mbit", delay = "7ms", jitter = "1ms", loss = "20%" }
"""
    )
    leg = pair_of(made, made.links["as"]).there
    assert (leg.links, leg.rate_bps, leg.delay_s) == (("as", "sb"), 10e6, 0.012)
    assert leg.loss_ratio == pytest.approx(0.28)
    assert leg.sending_s(1250) == pytest.approx(0.0015)
    random.seed(1)
    got = [
        (n, n * MS + int((12 + 0.06 + random.uniform(-1, 1) + random.uniform(-1, 1)) * MS))
        for n in range(1000) if random.random() < 0.72
    ]  # fmt: skip
    found = verdicts(judge_train(leg, Train(BYTES, [n * MS for n in range(1000)], got)))
    # The sum of two jitters is not uniform.
    assert found == {
        Promise.JITTER: UNVERIFIED, Promise.DELAY: UNVERIFIED, Promise.LOSS: KEPT,
    }  # fmt: skip
