"""Hosts whose clocks differ: what is known of them is true, and commands start together by them."""

import asyncio
import time

import pytest
from remote_lab import NEEDS

from benchctl.hosts.hosts import Hosts
from benchctl.run.planned import Host, Reach

pytestmark = NEEDS

FAST_S, SLOW_S = 3600.25, -1.75


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
    # Each way takes 5 ms.
    assert 0.010 <= reading.rtt_s <= 2 * reading.error_s + 1e-4


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
