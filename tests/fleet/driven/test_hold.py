"""Which run has a host, from one of its trials to the next."""

import asyncio

from fleet.small import until

from benchctl.fleet.driven.hold import HostHold
from benchctl.fleet.host_messages import Heartbeat, Lock, SpoolState
from benchctl.fleet.messages import Done


class FakeHost:
    name = "paris"

    def __init__(self):
        self.asked, self.has = [], ""
        self.beat()

    def beat(self, nonce="n", *, is_wanted=False):
        self.last = Heartbeat(nonce, 0.0, "1", [], [], SpoolState(0, 1, 0, 0, 1), {}, is_wanted)

    async def ask(self, message):
        self.asked.append((type(message).__name__, message.run))
        return Done(self.has if isinstance(message, Lock) else None)


def held(steps):
    async def main():
        host = FakeHost()
        await steps(host, HostHold(host))
        return host.asked

    return asyncio.run(main())


def test_a_run_asks_for_a_host_once_for_many_trials():
    async def steps(_, hold):
        for _ in range(3):
            assert await hold.take("a", "run a") == ""
            hold.leave("a")

    assert held(steps) == [("Lock", "a")]


def test_a_host_that_a_run_has_left_is_another_ones():
    async def steps(_, hold):
        await hold.take("a", "run a")
        hold.leave("a")
        assert await hold.take("b", "run b") == ""
        assert await hold.take("a", "run a") == "run b"

    assert held(steps) == [("Lock", "a"), ("Unlock", "a"), ("Lock", "b")]


def test_a_run_that_waits_is_next():
    async def steps(host, hold):
        await hold.take("a", "run a")
        assert await hold.take("b", "run b") == "run a"
        hold.leave("a")
        assert await hold.take("a", "run a") == "another run, whose turn it is"
        await until(lambda: ("Unlock", "a") in host.asked)
        assert await hold.take("b", "run b") == ""

    assert held(steps) == [("Lock", "a"), ("Unlock", "a"), ("Lock", "b")]


def test_a_host_that_another_program_wants_is_left_at_once_and_one_that_nobody_wants_soon():
    async def steps(host, hold):
        for is_wanted in (True, False):
            await hold.take("a", "run a")
            host.beat(is_wanted=is_wanted)
            host.asked.clear()
            hold.leave("a")
            await asyncio.sleep(0.01)
            assert bool(host.asked) is is_wanted
        await until(lambda: host.asked)

    assert held(steps) == [("Unlock", "a")]


def test_a_host_whose_agent_began_again_is_asked_again():
    async def steps(host, hold):
        await hold.take("a", "run a")
        host.beat("another")
        await hold.take("a", "run a")
        host.has = "run z"
        assert await hold.take("a", "run a") == ""
        await hold.give_back("a")
        assert await hold.take("a", "run a") == "run z"

    assert held(steps) == [("Lock", "a"), ("Lock", "a"), ("Unlock", "a"), ("Lock", "a")]
