"""The emulator in user space keeps its promises where it gets too little of a processor."""

import itertools
import os
import signal
import time
from pathlib import Path
from unittest.mock import Mock

import pytest
from lab.lab_support import topology
from waiting import wait_until

from benchctl.lab.emulate import emulator, ring
from benchctl.lab.emulate.link import Change
from benchctl.lab.lab import Lab
from benchctl.lab.topology.legs import pairs_of
from benchctl.lab.topology.model import Emulator, LinkSettings
from benchctl.lab.verify.judgement import Promise, PromiseVerdict, Train, judge_burst
from benchctl.lab.verify.prober import Prober

PAIR = """
[hosts]
a = {}
b = {}
[links]
ab = { between = ["a", "b"], rate = "10Mbit", queue = 100 }
"""
HEADERS_BYTES = 14 + 20 + 8
COUNT = 300


def children(pid):
    return [int(word) for word in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]


@pytest.mark.netns
def test_an_emulator_that_was_held_up_drops_no_fewer_frames():
    """Until it goes on, 80 of the frames that arrived would have left a queue of 100."""
    with Lab.build(topology(PAIR), Emulator.USER) as lab:
        (leg, _), *_ = (pair.legs for pair in pairs_of(lab.topology, ["ab"]))
        with Prober(lab, leg.source) as source, Prober(lab, leg.target) as target:
            where = {**target.udp, "mark": 1, "size": leg.frame_bytes - HEADERS_BYTES}
            emulators = children(lab.keeper_pid)
            for pid in emulators:
                os.kill(pid, signal.SIGSTOP)
            sent_ns = source.ask("send", **where, count=COUNT, gap_s=0.0, most_s=1.0)
            held_until_s = time.monotonic() + 0.1
            wait_until(lambda: time.monotonic() > held_until_s)
            for pid in emulators:
                os.kill(pid, signal.SIGCONT)
            wait_until(lambda: lab.counters("ab", "a").arrived >= COUNT)
            wait_until(lambda: not lab.counters("ab", "a").queued)
            got, unread = target.ask("got", mark=1, count=COUNT, patience_s=0.3, more_s=0.0)
    train = Train(leg.frame_bytes, sent_ns, got, unread)
    queue = judge_burst(leg, leg.hops[0].settings, train)[0]
    assert (queue.promise, queue.verdict) == (Promise.QUEUE, PromiseVerdict.KEPT), queue


def forwarder(monkeypatch, settings, stamps_ns, now_ns):
    """Return one direction of a link that wakes at ``now_ns``, after these frames arrived."""
    source = Mock(receive=Mock(side_effect=[[(at_ns, bytes(1250)) for at_ns in stamps_ns], []]))
    source.count_dropped.return_value = 0
    monkeypatch.setattr(emulator, "Ring", lambda *_: source)
    monkeypatch.setattr(emulator, "Outlet", Mock())
    monkeypatch.setattr(emulator.time, "monotonic_ns", lambda: now_ns)
    return emulator._Forwarder(settings, "seed", ("in", "out"), 1500)


@pytest.mark.parametrize(("woke_ms", "late"), [(14, 0), (15, 0), (15.5, 1), (18.5, 4), (30, 8)])
def test_only_frames_that_are_late_themselves_count_when_several_leave_at_once(
    monkeypatch, woke_ms, late
):
    """Of frames due at 14, 15, ... 21 ms, those count that leave more than 1 ms later."""
    settings = LinkSettings(rate_bps=10e6, delay_s=0.013)
    stamps_ns = [millisecond * 1_000_000 for millisecond in range(8)]
    woke_ns = int(woke_ms * 1e6)
    direction = forwarder(monkeypatch, settings, stamps_ns, woke_ns)
    direction.take()
    direction.deliver()
    counters = direction.counters()
    assert (counters.late, counters.late_max_ns) == (late, woke_ns - 14_000_000)


def test_a_frame_is_late_by_when_it_was_due_not_by_when_the_next_one_could_start(monkeypatch):
    """Before a change, the model is looked at when a frame can start, here 15 ms before."""
    settings = LinkSettings(rate_bps=10e6, delay_s=0.015)
    direction = forwarder(monkeypatch, settings, [0, 0], 16_200_000)
    direction.way.change(Change(at_ns=10**12, delay_s=0.1), 0)
    direction.take()
    assert direction.deliver() == 17_000_000
    counters = direction.counters()
    assert (counters.delivered, counters.late, counters.late_max_ns) == (1, 0, 200_000)


@pytest.mark.parametrize("interrupted", [0, 1])
def test_a_process_interrupted_between_two_clocks_reads_them_again(monkeypatch, interrupted):
    """Of two readings, the first takes 5 ms before or after that of the system's clock."""
    steps = itertools.chain([1000] * (1 + interrupted), [5_000_000], itertools.repeat(1000))
    now_ns = itertools.accumulate(steps)

    class Clocks:
        monotonic_ns = staticmethod(lambda: next(now_ns))
        time_ns = staticmethod(lambda: next(now_ns) + 7_000_000_000)

    monkeypatch.setattr(ring, "time", Clocks)
    assert ring._shift_ns() == pytest.approx(7_000_000_000, abs=ring._BRIEF_NS)
