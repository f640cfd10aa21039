"""Hosts whose clocks differ: what is known of them is true, and commands start together by them."""

import asyncio
import sys
import time

import pytest
from remote_lab import NEEDS, TWO, remote_lab
from waiting import until

from benchctl.hosts.hosts import Hosts
from benchctl.run.planned import Host, Reach

pytestmark = NEEDS

FAST_S, SLOW_S = 3600.25, -1.75
WEST = 'west = { between = ["paris", "middle"]'
NARROW = TWO.replace(WEST, f'{WEST}, rate = "5Mbit", queue = 100')
"""A full queue of packets of 1500 bytes takes 240 ms on the way to paris."""
FULL_S = 0.2


def host(lab, name):
    return Host(name, lab.lab.nodes[name].address, reach=Reach(name, lab.over))


@pytest.mark.parametrize("skew_s", [FAST_S, SLOW_S])
def test_what_is_said_of_a_clock_is_true(skew_s, lab):
    async def main():
        async with Hosts(skew_s=skew_s) as hosts:
            clock = await hosts.clock_of(host(lab, "paris"))
            return clock.reading(time.time())

    reading = asyncio.run(main())
    assert abs(reading.offset_s - skew_s) <= reading.error_s
    # Each way takes 5 ms or more, which no way there or back can tell from a clock that is ahead.
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
        self.trips, self.readings, self.wrong = [], [], []
        clock.add = self.add

    def add(self, left_s, theirs_s, back_s):
        self._look(left_s)  # when what is known is oldest
        self._add(left_s, theirs_s, back_s)
        self._look(back_s)
        self.trips.append(back_s - left_s)

    def _look(self, at_s):
        if not len(self._clock):
            return  # nothing is said of it yet
        reading = self._clock.reading(at_s)
        self.readings.append(reading)
        if (
            self._clock.steps
            or abs(reading.offset_s - self._ahead_s(at_s)) > reading.error_s + 1e-6
        ):
            self.wrong.append((reading, self._ahead_s(at_s)))


def test_queues_of_one_way_do_not_make_a_clock_more_certain_than_it_is(tmp_path):
    async def main(lab):
        async with Hosts(skew_s=FAST_S) as early, Hosts(skew_s=SLOW_S) as late:
            known = Watched(await early.clock_of(host(lab, "paris")), lambda _: FAST_S)
            flood = FLOOD, host(lab, "paris").address
            sender = await early.start(
                host(lab, "tokyo"), [sys.executable, "-I", "-S", "-c", *flood], {}, print
            )
            sender.begin()
            await until(lambda: any(one > FULL_S for one in known.trips), lambda: known.trips)
            # Every trip of this one is made on the full way.
            link = await late.link(host(lab, "paris"))
            new = Watched(link.clock, lambda _: SLOW_S)
            await link.timed()
            await until(lambda: min(len(known.trips), len(new.trips)) > 25, lambda: new.trips)
            sender.send_signal("SIGKILL")
            await sender.wait()
            return known, new

    with remote_lab(tmp_path, NARROW) as lab:
        known, new = asyncio.run(main(lab))
    assert (known.wrong, new.wrong) == ([], [])
    # What was known before the queue still is; the middle of a full trip is wrong by half of it.
    assert abs(known.readings[-1].offset_s - FAST_S) < FULL_S / 4
    assert min(new.trips) > FULL_S / 2
    assert new.readings[-1].error_s > FULL_S / 4


FLOOD = """
import socket, sys, time
sock = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
sock.connect((sys.argv[1], 9))
end = time.monotonic() + 60
while time.monotonic() < end:
    for _ in range(4):
        try:
            sock.send(bytes(1400))
        except ConnectionRefusedError:
            pass  # nobody listens there
    time.sleep(0.005)
"""


@pytest.mark.parametrize("drift", [45e-6, -45e-6])
def test_a_clock_that_drifts_is_followed(tmp_path, drift):
    """That of a host so near drifts out of the first error within seconds."""

    async def main(lab):
        async with Hosts(skew_s=SLOW_S, drift=drift) as hosts:
            clock = await hosts.clock_of(host(lab, "paris"))
            watched = Watched(clock, lambda at_s: SLOW_S + drift * at_s)
            await until(lambda: len(watched.trips) >= 15, lambda: watched.trips)
            return watched

    with remote_lab(tmp_path, TWO.replace(', delay = "5ms"', "")) as lab:
        watched = asyncio.run(main(lab))
    assert watched.wrong == []
