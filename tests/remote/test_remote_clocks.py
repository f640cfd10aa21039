"""Hosts whose clocks differ: what is known of them is true, and commands start together by them."""

import asyncio
import sys
import time

from remote_lab import NEEDS, TWO, remote_lab
from waiting import until

from benchctl.hosts.clocks import MOST_APART
from benchctl.hosts.hosts import Hosts
from benchctl.hosts.ssh import remote
from benchctl.run.planned import Host, SshTarget

pytestmark = NEEDS

FAST_S, SLOW_S = 3600.25, -1.75
WEST = 'west = { between = ["paris", "middle"]'
NARROW = TWO.replace(WEST, f'{WEST}, rate = "5Mbit", queue = 50')
FULL_S = 0.1
"""A full queue of packets of 1500 bytes takes 120 ms on the way to paris."""


def host(lab, name):
    return Host(name, lab.lab.nodes[name].address, reach=SshTarget(name, lab.over))


def test_what_is_said_of_a_clock_is_true(lab):
    async def main(skew_s):
        async with Hosts(skew_s=skew_s) as hosts:
            clock = await hosts.clock_of(host(lab, "paris"))
            return clock.reading(time.time())

    for skew_s in (FAST_S, SLOW_S):
        reading = asyncio.run(main(skew_s))
        assert abs(reading.offset_s - skew_s) <= reading.error_s
        # Each way takes 5 ms or more, which no way there or back can tell from a clock that is
        # ahead.
        assert reading.rtt_s >= 0.010
        assert reading.error_s >= 0.005


def test_commands_on_clocks_that_differ_wait_for_the_same_moment(lab):
    """They may be late on a busy machine, and never begin before their time."""
    told = {}

    async def main():
        async with Hosts(skew_s=FAST_S) as fast, Hosts(skew_s=SLOW_S) as slow:
            processes, errors = [], []
            for hosts, name in ((fast, "paris"), (slow, "tokyo")):
                clock = await hosts.clock_of(host(lab, name))
                errors.append(clock.reading(time.time()).error_s)

                def take(_, data, name=name):
                    told[name] = float(data)

                argv = ["date", "+%s.%N"]
                processes.append(await hosts.start(host(lab, name), argv, {}, take))
            at = time.time() + 1.0
            for process in processes:
                process.begin(at)
            await asyncio.gather(*(process.wait() for process in processes))
            return at, max(errors)

    at, error_s = asyncio.run(main())
    # The commands themselves read the clock that all hosts of a lab share.
    assert all(at - error_s <= began < at + 60 for began in told.values()), (at, told)


class Watched:
    """A clock as it is known at each trip, beside what it truly shows."""

    def __init__(self, clock, ahead_s):
        self._clock, self._add, self._ahead_s = clock, clock.add, ahead_s
        self.readings, self.wrong = [], []
        self.astray_s = []
        """How wrong the middle of each trip is."""
        clock.add = self.add

    def add(self, left_s, theirs_s, back_s):
        self._look(left_s)  # when what is known is oldest
        self._add(left_s, theirs_s, back_s)
        self._look(back_s)
        middle_s = (left_s + back_s) / 2
        self.astray_s.append(abs(theirs_s - middle_s - self._ahead_s(middle_s)))

    def _look(self, at_s):
        if not len(self._clock):
            return  # nothing is said of it yet
        reading = self._clock.reading(at_s)
        self.readings.append((at_s, reading))
        if (
            self._clock.steps
            or abs(reading.offset_s - self._ahead_s(at_s)) > reading.error_s + 1e-6
        ):
            self.wrong.append((reading, self._ahead_s(at_s)))

    def through_the_queue(self):
        """Return how many trips were made on the full way: they are wrong by half of it."""
        return sum(one > FULL_S / 4 for one in self.astray_s)


def test_queues_of_one_way_do_not_make_a_clock_more_certain_than_it_is(tmp_path, monkeypatch):
    """The first trip on the full way may show it, and the further ones that they add nothing."""
    monkeypatch.setattr(remote, "PING_S", 0.2)

    async def main(lab):
        async with Hosts(skew_s=FAST_S) as early, Hosts(skew_s=SLOW_S) as late:
            known = Watched(await early.clock_of(host(lab, "paris")), lambda _: FAST_S)
            flood = FLOOD, host(lab, "paris").address
            sender = await early.start(
                host(lab, "tokyo"), [sys.executable, "-I", "-S", "-c", *flood], {}, print
            )
            sender.begin()
            await until(known.through_the_queue, lambda: known.astray_s)
            # This one has no trip of before.
            link = await late.link(host(lab, "paris"))
            new = Watched(link.clock, lambda _: SLOW_S)
            for watched in (known, new):
                await until(
                    lambda watched=watched: watched.through_the_queue() >= 3,
                    lambda watched=watched: watched.astray_s,
                )
            sender.send_signal("SIGKILL")
            await sender.wait()
            return known, new

    with remote_lab(tmp_path, NARROW) as lab:
        known, new = asyncio.run(main(lab))
    assert (known.wrong, new.wrong) == ([], [])
    # What was known before the queue still is, but for what a clock may move in that time.
    (began_s, first), (ended_s, last) = known.readings[0], known.readings[-1]
    assert last.error_s <= 2 * (first.error_s + MOST_APART * (ended_s - began_s)) + 1e-6


# A quarter more than the link carries, also where a busy machine lets it send only now and then.
FLOOD = """
import socket, sys, time
sock = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
sock.connect((sys.argv[1], 9))
sent, begin = 0, time.monotonic()
while (gone := time.monotonic() - begin) < 120:
    while sent < 560 * gone:
        sent += 1
        try:
            sock.send(bytes(1400))
        except ConnectionRefusedError:
            pass  # nobody listens there
    time.sleep(0.005)
"""


def test_a_clock_that_is_corrected_is_followed(tmp_path, monkeypatch):
    """That of a host so near moves out of its first error within a second."""
    monkeypatch.setattr(remote, "PING_S", 0.1)

    async def main(lab, drift):
        async with Hosts(skew_s=SLOW_S, drift=drift) as hosts:
            clock = await hosts.clock_of(host(lab, "paris"))
            watched = Watched(clock, lambda at_s: SLOW_S + drift * at_s)
            await until(lambda: len(watched.astray_s) >= 15, lambda: watched.astray_s)
            return watched

    with remote_lab(tmp_path, TWO.replace(', delay = "5ms"', "")) as lab:
        for drift in (MOST_APART / 1.1, -MOST_APART / 1.1):
            assert asyncio.run(main(lab, drift)).wrong == []
