"""The emulator in user space keeps its promises where it gets too little of a processor."""

import itertools
import os
import signal
import time
from pathlib import Path

import pytest
from lab.lab_support import topology
from waiting import wait_until

from benchctl.lab import ring
from benchctl.lab.judgement import Promise, PromiseVerdict, Train, judge_burst
from benchctl.lab.lab import Lab
from benchctl.lab.legs import pairs_of
from benchctl.lab.model import Emulator
from benchctl.lab.prober import Prober

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
