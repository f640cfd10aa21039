"""Two runs on the same hosts: one waits for the other, and neither for ever."""

import asyncio

import pytest

from benchctl.engine import holding as module
from benchctl.engine.holding import Holding
from benchctl.errors import HostError
from benchctl.hosts.remote import holder
from benchctl.run.planned import Host


class FakeLink:
    def __init__(self, machine, locks, log):
        self.machine, self.locks, self.log = machine, locks, log

    async def lock(self, run):
        await asyncio.sleep(0)
        self.log.append(("lock", run, self.machine))
        return "" if self.locks.setdefault(self.machine, holder(run)) == holder(run) else (
            self.locks[self.machine]
        )  # fmt: skip

    def unlock(self):
        self.log.append(("unlock", self.machine))
        self.locks.pop(self.machine, None)


class FakeHosts:
    """Hosts whose machines are named by their addresses."""

    def __init__(self, locks, log, lost=()):
        self.locks, self.log, self.lost = locks, log, lost

    async def connect(self, hosts):
        for host in hosts:
            if host.name in self.lost:
                raise HostError(f"host {host.name}: it does not answer")

    async def link(self, host):
        return FakeLink(host.address, self.locks, self.log)


@pytest.fixture(autouse=True)
def impatient(monkeypatch):
    monkeypatch.setattr(module, "LOOK_S", 0.0)


async def nothing(host, link):
    return


def hosts(*names):
    return [Host(name, f"{name}.test") for name in names]


def holding(run, notes):
    return Holding(run, nothing, notes.append)


def test_hosts_are_taken_in_the_order_of_their_names():
    log, notes = [], []
    asyncio.run(holding("one", notes).take(FakeHosts({}, log), hosts("c", "a", "b")))
    assert [place for _, _, place in log] == ["a.test", "b.test", "c.test"]
    assert notes == []


def test_a_host_that_is_busy_leaves_the_others_free_until_all_are():
    locks, log, notes = {"b.test": holder("other")}, [], []

    async def main():
        fakes = FakeHosts(locks, log)
        taking = asyncio.ensure_future(holding("one", notes).take(fakes, hosts("a", "b")))
        while ("unlock", "a.test") not in log:
            await asyncio.sleep(0)
        assert "a.test" not in locks
        del locks["b.test"]
        await taking

    asyncio.run(main())
    assert locks == {"a.test": holder("one"), "b.test": holder("one")}
    assert notes == [f"host b is measured by {holder('other')}; this run starts when that ends"]


def test_two_runs_that_name_the_same_machines_the_other_way_round_never_wait_for_each_other(
    monkeypatch,
):
    monkeypatch.setattr(module, "LOOK_S", 0.001)  # without any, both could keep step
    locks, log = {}, []
    swapped = [Host("a", "b.test"), Host("b", "a.test")]

    async def measure(run, wanted):
        await holding(run, []).take(FakeHosts(locks, log), wanted)
        assert {locks["a.test"], locks["b.test"]} == {holder(run)}
        locks.clear()

    async def main():
        runs = (measure("one", hosts("a", "b")), measure("two", swapped))
        await asyncio.gather(*runs)

    asyncio.run(main())


def test_a_machine_that_a_profile_names_twice_is_the_runs_own():
    notes = []
    two = [Host("a", "x.test"), Host("b", "x.test")]
    asyncio.run(holding("one", notes).take(FakeHosts({}, []), two))
    assert notes == []


def test_a_host_that_cannot_be_reached_is_an_error_before_any_is_taken():
    log = []
    with pytest.raises(HostError, match="host b: it does not answer"):
        asyncio.run(holding("one", []).take(FakeHosts({}, log, lost=["b"]), hosts("a", "b")))
    assert log == []


def test_a_host_that_another_run_took_while_the_connection_was_broken_is_not_measured_on():
    locks = {"a.test": holder("other")}

    async def reconnect():
        link = FakeLink("a.test", locks, [])
        await holding("one", []).greet(Host("a", "a.test"), link)

    with pytest.raises(HostError, match=r"host a: run other of .* measures there now"):
        asyncio.run(reconnect())
    locks.clear()
    asyncio.run(reconnect())
    assert locks == {"a.test": holder("one")}
