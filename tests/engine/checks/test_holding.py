"""Two runs on the same hosts: one waits for the other, and neither for ever."""

import asyncio
import os
import socket
from types import SimpleNamespace

import pytest

from benchctl.engine.checks.needed_hosts import needed_hosts
from benchctl.engine.runner import host_locks as module
from benchctl.engine.runner.host_locks import HostLocks
from benchctl.errors import HostError, UsageError
from benchctl.hosts.ssh.remote import holder
from benchctl.metrics import Direction
from benchctl.run.planned import (
    LOCAL,
    ExternalServer,
    Hook,
    Host,
    Network,
    PlannedFlow,
    SshTarget,
    When,
)


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

    def __init__(self, locks, log, lost=(), dying=()):
        self.locks, self.log, self.lost, self.dying = locks, log, lost, dying

    async def connect(self, hosts):
        return [host for host in hosts if host.name not in self.lost]

    async def lock(self, host, run):
        if host.name in self.dying:
            raise HostError(f"host {host.name}: it does not answer")
        return await FakeLink(host.address, self.locks, self.log).lock(run)

    def unlock(self, host):
        FakeLink(host.address, self.locks, self.log).unlock()


@pytest.fixture(autouse=True)
def impatient(monkeypatch):
    monkeypatch.setattr(module, "LOOK_S", 0.0)


async def nothing(host, link):
    return


def hosts(*names):
    return [Host(name, f"{name}.test", reach=SshTarget(name)) for name in names]


def holding(run, notes):
    return HostLocks(run, nothing, notes.append)


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


@pytest.mark.parametrize("gone", [{"lost": ["b"]}, {"dying": ["b"]}], ids=str)
def test_a_host_that_is_away_keeps_no_other_from_being_taken(gone):
    log = []
    asyncio.run(holding("one", []).take(FakeHosts({}, log, **gone), hosts("a", "b", "c")))
    assert [place for _, _, place in log] == ["a.test", "c.test"]


def test_a_host_that_another_run_took_while_the_connection_was_broken_is_not_measured_on():
    locks = {"a.test": holder("other")}

    async def reconnect():
        link = FakeLink("a.test", locks, [])
        await holding("one", []).on_connect(Host("a", "a.test"), link)

    with pytest.raises(HostError, match=r"host a: run other of .* measures there now"):
        asyncio.run(reconnect())
    locks.clear()
    asyncio.run(reconnect())
    assert locks == {"a.test": holder("one")}


def test_a_run_that_may_not_wait_leaves_all_hosts_as_they_are_and_says_who_has_one():
    locks = {"b.test": holder("other")}
    with pytest.raises(UsageError, match="host b is measured by run other of "):
        asyncio.run(
            HostLocks("one", nothing, None).take(FakeHosts(locks, []), [*hosts("a", "b"), LOCAL])
        )
    assert locks == {"b.test": holder("other")}


def test_a_host_of_two_trials_is_left_when_the_last_of_them_has_ended():
    locks = {}

    async def main():
        own, fakes = holding("one", []), FakeHosts(locks, [])
        own.by_trial()
        for names in ("ab", "bc"):
            assert await own.take_for_trial(fakes, hosts(*names)) == {}
        own.release(fakes, hosts("a", "b"))
        assert locks.keys() == {"b.test", "c.test"}
        own.release(fakes, hosts("b", "c"))
        assert locks == {}

    asyncio.run(main())


def test_this_machine_is_named_as_such():
    notes = []

    async def main():
        locks = {LOCAL.address: holder("other")}
        taking = asyncio.ensure_future(
            holding("one", notes).take(FakeHosts(locks, []), [LOCAL, *hosts("z")])
        )
        while not notes:
            await asyncio.sleep(0)
        locks.clear()
        await taking

    asyncio.run(main())
    assert notes == [
        f"this machine is measured by {holder('other')}; this run starts when that ends"
    ]


A, B = hosts("a", "b")
NETWORK = Network(
    {"a": A, "b": B, "local": LOCAL, "also": Host("also", "127.0.0.2")},
    {"far": ExternalServer("192.0.2.1", None)},
)


@pytest.mark.parametrize(
    ("ends", "hooks", "needed"),
    [
        ([("a", "b")], [], [A, B]),
        ([("a", "far")], [], [A]),
        ([("local", "a"), ("also", "far")], [], [LOCAL, A]),
        ([("a", "far")], ["also"], [LOCAL, A]),
    ],
)
def test_a_run_needs_the_hosts_of_its_flows_and_commands_and_this_machine_once(ends, hooks, needed):
    flows = [
        PlannedFlow("f", "ping", source, to, None, Direction.SEND, 0.0, {}) for source, to in ends
    ]
    hooks = [Hook(name, When.PREPARE, "true") for name in hooks]
    found = needed_hosts(NETWORK, flows, hooks)
    assert sorted(found, key=lambda host: host.name) == sorted(needed, key=lambda host: host.name)


def test_a_user_without_a_name_holds_hosts_by_number(monkeypatch):
    for name in ("LOGNAME", "USER", "LNAME", "USERNAME"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setattr(os, "geteuid", lambda: 54_321)  # as in a container
    assert holder("one") == f"run one of user 54321@{socket.gethostname()}"


@pytest.mark.parametrize(
    ("ours", "theirs", "disturbs"),
    [("local", "local", True), ("far", "local", False), ("local", "far", False)],
)
def test_only_runs_that_both_use_this_machine_disturb_each_other(
    ours, theirs, disturbs, tmp_path, monkeypatch
):
    runs = {name: ours if name == "own" else theirs for name in ("own", "other")}

    class FakeReader:
        def __init__(self, path):
            self.path = path

        def measured_now(self):
            return self.path.name

        def close(self):
            return

    stores = [str(tmp_path / "other")]
    monkeypatch.setattr(module, "Reader", FakeReader)
    monkeypatch.setattr(module, "other_stores", lambda own: stores)
    monkeypatch.setattr(module, "uses_this_machine", lambda _, run: runs[run] == "local")
    assert module.disturbing(FakeReader(tmp_path / "own"), "own") == stores * disturbs


def test_a_store_that_cannot_be_read_may_be_of_a_run_on_this_machine(tmp_path, monkeypatch):
    (tmp_path / "other").write_text("no store")
    monkeypatch.setattr(module, "other_stores", lambda own: [str(tmp_path / "other")])
    monkeypatch.setattr(module, "uses_this_machine", lambda _, run: True)
    own = SimpleNamespace(path=tmp_path / "own")
    assert module.disturbing(own, None) == [str(tmp_path / "other")]
