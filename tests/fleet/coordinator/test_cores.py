"""The pure parts of a coordinator: who holds the lease, which hosts are there, which runs begin."""

import asyncio

import pytest
from fleet.broker import Broker

from benchctl.errors import FleetError
from benchctl.fleet.admin.members import Person
from benchctl.fleet.coordinator.lease import CoordinatorLease, LostLeaseError
from benchctl.fleet.coordinator.queue import (
    AskedRun,
    may_stop,
    refusal,
    waits_for,
)
from benchctl.fleet.driven.host import AWAY_S, DrivenHost
from benchctl.fleet.driven.presence import Standstill
from benchctl.fleet.host_messages import Heartbeat, SpoolState

EPOCH = 1_750_000_000.0


class Clock:
    """Seconds that pass when told to."""

    def __init__(self):
        self.now = 100.0

    def __call__(self):
        return self.now

    async def sleep(self, seconds):
        self.now += seconds
        await asyncio.sleep(0)


def beat(time_s, nonce="n"):
    return Heartbeat(nonce, time_s, "1", [], [], SpoolState(0, 1, 0, 0, 1), {}, False)


# --- the lease ----------------------------------------------------------------------------------


def test_a_second_coordinator_ends_with_one_line_or_takes_over_when_the_first_has_ended():
    async def main():
        clock, said = Clock(), []
        broker = Broker(now_s=clock)
        first = CoordinatorLease(broker.carrier(), clock, clock.sleep)
        await first.take(wait=False, say=said.append)
        second = CoordinatorLease(broker.carrier(), clock, clock.sleep)
        with pytest.raises(FleetError, match="another coordinator of this fleet runs"):
            await second.take(wait=False, say=said.append)
        epoch = first.epoch
        await second.take(wait=True, say=said.append)  # nobody renews the first one
        assert second.epoch > epoch
        assert said == ["another coordinator of this fleet runs; this one takes over when it ends"]
        assert not first.is_sure
        with pytest.raises(LostLeaseError, match="taken over"):
            await first.keep()

    asyncio.run(main())


def test_who_waits_for_the_lease_says_each_new_reason_once():
    async def main():
        clock, said = Clock(), []
        broker = Broker(now_s=clock)
        await CoordinatorLease(broker.carrier(), clock, clock.sleep).take(wait=True, say=print)
        carrier = broker.carrier()
        lease, whys = carrier.lease, [ConnectionError(), ConnectionError()]

        async def failing(*words):
            if whys:
                raise whys.pop()
            return await lease(*words)

        carrier.lease = failing
        await CoordinatorLease(carrier, clock, clock.sleep).take(wait=True, say=said.append)
        assert said == [
            "the server cannot be reached; trying again",
            "another coordinator of this fleet runs; this one takes over when it ends",
        ]

    asyncio.run(main())


def test_a_coordinator_that_was_stopped_goes_on_if_nobody_took_over():
    async def main():
        clock = Clock()
        broker = Broker(now_s=clock)
        lease = CoordinatorLease(broker.carrier(), clock, clock.sleep)
        await lease.take(wait=False, say=print)
        epoch = lease.epoch
        clock.now += 15
        assert not lease.is_sure
        keeping = asyncio.ensure_future(lease.keep())
        for _ in range(20):
            await asyncio.sleep(0)
        assert lease.is_sure
        assert lease.epoch > epoch
        keeping.cancel()

    asyncio.run(main())


def test_a_cut_server_costs_no_lease_that_nobody_took():
    async def main():
        clock, said = Clock(), []
        broker = Broker(now_s=clock)
        lease = CoordinatorLease(broker.carrier(), clock, clock.sleep)
        await broker.stand_still()
        taking = asyncio.ensure_future(lease.take(wait=False, say=said.append))
        for _ in range(9):
            await asyncio.sleep(0)
        assert said == ["the server cannot be reached; trying again"]
        await broker.go_on()
        await taking
        assert lease.is_sure

    asyncio.run(main())


def test_a_renewal_whose_answer_was_lost_costs_no_lease():
    class Losing:
        def __init__(self, carrier):
            self.carrier, self.loses = carrier, False

        async def lease(self, *asked):
            revision = await self.carrier.lease(*asked)
            if self.loses:
                self.loses = False
                raise ConnectionError("the server was killed")
            return revision

    async def main():
        clock = Clock()
        broker = Broker(now_s=clock)
        carrier = Losing(broker.carrier())
        lease = CoordinatorLease(carrier, clock, clock.sleep)
        await lease.take(wait=False, say=print)
        epoch, carrier.loses = lease.epoch, True
        keeping = asyncio.ensure_future(lease.keep())
        for _ in range(40):
            await asyncio.sleep(0)
        assert not carrier.loses
        assert not keeping.done()
        assert lease.is_sure
        assert lease.epoch > epoch + 1
        await broker.stand_still()  # nobody renews it, and another one takes it
        clock.now += 5
        await broker.go_on()
        await CoordinatorLease(broker.carrier(), clock, clock.sleep).take(wait=True, say=print)
        with pytest.raises(LostLeaseError):
            async with asyncio.timeout(5):
                await keeping

    asyncio.run(main())


# --- hosts --------------------------------------------------------------------------------------


class Presence:
    """A host as the coordinator sees it, by a clock that passes when told to."""

    def __init__(self, clock, monkeypatch):
        monkeypatch.setattr("benchctl.fleet.driven.host.time.monotonic", clock)
        self.clock, self.standstill = clock, Standstill(clock())
        self.state = DrivenHost("paris", None, None, self.standstill, print)

    def pass_by(self, seconds):
        for _ in range(seconds):
            self.clock.now += 1
            self.standstill.tick(self.clock())

    def hear_for(self, seconds, lead=0.0):
        for _ in range(seconds):
            self.state.hear(beat(self.clock() + lead), self.clock())
            self.pass_by(1)


@pytest.fixture
def presence(monkeypatch):
    clock = Clock()
    clock.now = EPOCH
    return Presence(clock, monkeypatch)


def test_a_host_is_away_after_four_seconds_without_a_heartbeat(presence):
    assert presence.state.away == "host paris was not heard of yet"
    presence.hear_for(3)
    assert presence.state.away == ""
    presence.pass_by(4)
    assert presence.state.away == "host paris was not heard of for 5 s"
    presence.hear_for(1)
    assert presence.state.away == ""
    assert AWAY_S == 4


@pytest.mark.parametrize("lead", [-3600.0, 0.0, 3600.0])
def test_a_burst_of_old_heartbeats_does_not_make_a_host_be_there(presence, lead):
    presence.hear_for(5, lead)
    late = [beat(presence.clock() + lead + number) for number in range(10)]
    presence.pass_by(30)  # a cut: they come at its end, when the host has gone
    for one in late:
        presence.state.hear(one, presence.clock())
    assert presence.state.away == "host paris was not heard of for 21 s"


def test_after_a_stop_of_the_coordinator_hosts_are_judged_by_what_waited(presence):
    presence.hear_for(5)
    began = presence.clock()
    presence.clock.now += 15  # this process stood still
    assert presence.state.away == "", "what came meanwhile is still to be read"
    presence.standstill.tick(presence.clock())
    assert presence.state.away == ""
    for number in range(15):
        presence.state.hear(beat(began + number), presence.clock())
    presence.pass_by(2)
    assert presence.state.away == ""
    presence.pass_by(2)
    assert presence.state.away == "host paris was not heard of for 5 s"


@pytest.mark.parametrize("steps", [[0.0, 7200.0], [0.0, -7200.0, 30.0], [5.0, -5.0, 3600.0, 0.0]])
def test_a_clock_that_is_set_makes_no_host_away(presence, steps):
    for lead in steps:
        presence.hear_for(3, lead)
        assert presence.state.away == ""
    presence.pass_by(6)
    assert presence.state.away != ""


# --- people -------------------------------------------------------------------------------------


def request(person="alice", hosts="ab", trials=1, sent=0.0, at=0.0, run_id=1):
    return AskedRun(run_id, "r", person, frozenset(hosts), trials, sent, at)


LIMITS = Person("", "run", hosts_at_once=3, trials_at_once=2, bytes_a_day=100)


@pytest.mark.parametrize(
    ("asked", "earlier", "why"),
    [
        (request(), [], ""),
        (request(hosts="abcd"), [], "alice may use 3 hosts at once, and the profile needs 4"),
        (request(trials=3), [], "set run.parallel.trials=2"),
        (request(sent=101.0), [], "alice may send 100 B a day"),
        (request(sent=60.0, at=90_000.0), [request(sent=60.0, at=80_000.0)], "60.0 B are planned"),
        (request(sent=60.0, at=90_000.0), [request(sent=60.0)], ""),
    ],
)
def test_what_is_more_than_a_persons_limit_is_refused_in_one_line(asked, earlier, why):
    told = refusal(asked, LIMITS, earlier)
    assert why in told
    assert bool(why) == bool(told)


def test_who_may_look_may_not_measure():
    assert refusal(request(), Person("", "view"), []) == "alice may look, and not submit runs"


@pytest.mark.parametrize(
    ("running", "waits"),
    [
        ([], ""),
        ([request(hosts="bc", run_id=2)], ""),
        ([request(hosts="cd", run_id=2)], "alice uses 2 of 3 hosts, and this run needs 2"),
        (
            [request(trials=2, run_id=2)],
            "alice measures 2 of 2 trials at once, and this run up to 1",
        ),
        ([request("bob", hosts="cdef", trials=2, run_id=2)], ""),
    ],
)
def test_a_run_waits_for_its_persons_limits_and_for_nobody_elses(running, waits):
    assert waits_for(request(), LIMITS, running) == waits


def test_only_its_owner_or_an_admin_stops_a_run():
    assert may_stop("alice", LIMITS, "alice")
    assert not may_stop("alice", LIMITS, "bob")
    assert may_stop("root", Person("", "admin"), "bob")
    assert not may_stop("alice", Person("", "view"), "alice")
