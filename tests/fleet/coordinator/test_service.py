"""A coordinator and its people over a carrier in memory: runs, their copies, who may stop what."""

import asyncio
import time
from contextlib import closing
from types import SimpleNamespace

import pytest
from fleet.people_support import FLOW, PeopleFleet, until
from msgspec.structs import replace

from benchctl.errors import FleetError, UsageError
from benchctl.fleet.coordinator.lease import LostLeaseError
from benchctl.fleet.copy import follow_run
from benchctl.fleet.host_messages import EndOver, Events, HeardEvent
from benchctl.fleet.messages import Done, EndRef
from benchctl.fleet.person import PersonLink
from benchctl.fleet.person_messages import ListQueue, ListRuns, Queue, RunList, StopRun
from benchctl.metrics import Sample
from benchctl.run.status import Status
from benchctl.store.copies.parcel import Parcel
from benchctl.store.log.logged import LoggedRecorder, last_received, prepare_log, unsent
from benchctl.store.read import Reader

LONG = replace(FLOW, parameters={"duration": "30s"})


@pytest.fixture
def small(tmp_path):
    fleet = PeopleFleet(tmp_path)
    prepare_log(fleet.store)
    return fleet


def content(store, name, tmp_path):
    with closing(Reader(store)) as reader:
        run_id = reader.names()[name]
    folder = tmp_path / f"parcel-{store.stem}"
    folder.mkdir()
    with closing(Parcel(store, run_id, folder)) as parcel:
        return parcel.sha256(), parcel.counts()


def add(coordinator, request):
    coordinator._log.name(request.run_id, request.name)
    coordinator.runs.add(request)


def test_a_run_is_followed_into_a_copy_that_has_the_same_rows(small, tmp_path):
    async def main():
        async with small.serving() as coordinator:
            request = small.record()
            add(coordinator, request)
            alive = []

            def began(run_id):
                alive.append(run_id)

            status = await follow_run(
                small.link("alice"), small.members["alice"], request.name, small.copy, began=began
            )
            assert status is Status.OK
            assert alive == [1]
            return request.name

    name = asyncio.run(main())
    assert content(small.store, name, tmp_path) == content(small.copy, name, tmp_path)
    with closing(Reader(small.copy)) as reader:
        assert reader.find(name).person == "alice"
    assert unsent(small.store) == []


@pytest.mark.parametrize("twice", [False, True])
def test_a_follower_that_comes_late_or_again_has_all_of_it_once(small, tmp_path, twice):
    async def main():
        small.broker.twice = twice
        async with small.serving() as coordinator:
            request = small.record(trials=3)
            add(coordinator, request)
            stop = asyncio.Event()
            link, member = small.link("alice"), small.members["alice"]
            first = asyncio.create_task(follow_run(link, member, request.name, small.copy, stop))
            await until(lambda: trials_ended(small.copy, request.name) >= 1)
            stop.set()
            await first
            return request.name, await follow_run(link, member, request.name, small.copy)

    name, status = asyncio.run(main())
    assert status is Status.OK
    assert content(small.store, name, tmp_path) == content(small.copy, name, tmp_path)


def trials_ended(store, name):
    if not store.exists():
        return 0
    with closing(Reader(store)) as reader:
        run_id = reader.names().get(name)
        if run_id is None:
            return 0
        return sum(trial.status.has_ended for trial in reader.trials(run_id))


def test_a_log_that_has_lost_its_oldest_is_no_loss(small, tmp_path):
    async def main():
        async with small.serving() as coordinator:
            request = small.record(trials=3)
            add(coordinator, request)
            stop = asyncio.Event()
            link, member = small.link("alice"), small.members["alice"]
            first = asyncio.create_task(follow_run(link, member, request.name, small.copy, stop))
            await until(lambda: trials_ended(small.copy, request.name) >= 1)
            stop.set()
            await first
            await until(lambda: trials_ended(small.store, request.name) >= 2)
            log = small.broker.kept(f"bench.log.{request.name}")
            while log.messages:
                log._drop_first()
            return request.name, await follow_run(link, member, request.name, small.copy)

    name, status = asyncio.run(main())
    assert status is Status.OK
    assert content(small.store, name, tmp_path) == content(small.copy, name, tmp_path)


def test_who_is_cut_off_is_told_as_of_when_the_copy_is(small):
    async def main():
        async with small.serving() as coordinator:
            request = small.record(trials=1, trial_s=30, flow=LONG)
            add(coordinator, request)
            link = small.link("alice")
            now = [1e9]
            follower = asyncio.create_task(
                follow_run(
                    link, small.members["alice"], request.name, small.copy, wall=lambda: now[0]
                )
            )
            await until(lambda: notes(small.copy, request.name) is not None)
            await link.carrier.cut()
            now[0] += 6
            await until(lambda: any("as of " in text for text in notes(small.copy, request.name)))
            await link.carrier.mend()
            await until(
                lambda: any("reached again" in one for one in notes(small.copy, request.name))
            )
            await small.link("alice").ask(StopRun(request.name), Done)
            assert await follower is Status.INTERRUPTED

    asyncio.run(main())


def notes(store, name):
    if not store.exists():
        return None
    with closing(Reader(store)) as reader:
        run_id = reader.names().get(name)
        return None if run_id is None else [note.text for note in reader.notes(run_id)]


def test_only_the_owner_and_admins_stop_a_run_and_all_see_the_queue(small):
    async def main():
        async with small.serving() as coordinator:
            runs = [small.record(person, 1, 30, LONG) for person in ("alice", "bob")]
            for request in runs:
                add(coordinator, request)
            eve = small.link("eve")
            queue = await eve.ask(ListQueue(), Queue)
            assert [(one.person, one.trials, one.waits_for) for one in queue.runs] == [
                ("alice", 1, ""), ("bob", 1, ""),
            ]  # fmt: skip
            for person in ("bob", "eve"):
                with pytest.raises(UsageError, match=f"run {runs[0].name} is alice's"):
                    await small.link(person).ask(StopRun(runs[0].name), Done)
            with pytest.raises(UsageError, match="the fleet has no run nonsense"):
                await eve.ask(StopRun("nonsense"), Done)
            await small.link("alice").ask(StopRun(runs[0].name), Done)
            await small.link("root").ask(StopRun(runs[1].name), Done)
            await until(lambda: not [*coordinator.runs.queue()])
            told = await eve.ask(ListRuns(), RunList)
            assert {one.status for one in told.runs} == {"interrupted"}

    asyncio.run(main())


def test_a_person_whose_clock_is_wrong_is_told(small):
    async def main():
        async with small.serving():
            link = PersonLink(
                small.broker.carrier(), small.members["alice"], lambda: time.time() - 3600
            )
            with pytest.raises(UsageError, match=r"expired 3[0-9]* s ago; or a clock is wrong"):
                await link.ask(ListQueue(), Queue, timeout_s=10)

    asyncio.run(main())


def test_without_a_coordinator_one_line_says_so(small):
    async def main():
        with pytest.raises(FleetError, match="its coordinator does not answer"):
            await small.link("alice").ask(ListQueue(), Queue, timeout_s=0.1)

    asyncio.run(main())


def test_a_coordinator_that_was_killed_goes_on_with_its_runs(small, tmp_path):
    async def main():
        async with small.serving() as coordinator:
            request = small.record(trials=3)
            add(coordinator, request)
            await until(lambda: trials_ended(small.store, request.name) >= 1)
        async with small.serving():
            link, member = small.link("alice"), small.members["alice"]
            return request.name, await follow_run(link, member, request.name, small.copy)

    name, status = asyncio.run(main())
    assert status is Status.OK
    assert content(small.store, name, tmp_path) == content(small.copy, name, tmp_path)


def test_a_lost_lease_is_told_before_any_run_notices(small, monkeypatch):
    states, lost = [], asyncio.Event()

    async def keep(_):
        await lost.wait()
        raise LostLeaseError("another coordinator has taken over this fleet")

    def trial_is(name):
        with closing(Reader(small.store)) as reader:
            return str(next(reader.trials(reader.names()[name])).status)

    async def main():
        monkeypatch.setattr("benchctl.fleet.coordinator.lease.CoordinatorLease.keep", keep)
        request = small.record(trials=1, trial_s=30, flow=LONG)
        on_lost = lambda _: states.append(trial_is(request.name))  # noqa: E731
        coordinator = small.coordinator(on_lost=on_lost)
        serving = asyncio.create_task(coordinator.serve())
        await until(lambda: trial_is(request.name) == "running")
        lost.set()
        await asyncio.gather(serving, return_exceptions=True)

    asyncio.run(main())
    assert states == ["running"]


def test_samples_that_come_late_and_after_the_end_that_overtook_them_are_stored(small):
    request = small.record(trials=1)
    with closing(LoggedRecorder(small.store, request.run_id, on_logged=print)) as recorder:
        recorder.add_flow(
            1, attempt=1, name="main", backend="simpleperf", source="paris", target="oslo",
            direction="send", status=Status.FAILED, client=(), server=(), requested={},
        )  # fmt: skip
    coordinator = small.coordinator()
    coordinator._log.name(request.run_id, request.name)
    ref = EndRef(request.name, 0, 1, "main", "client")
    sample = Sample(0.0, 0.1, {"throughput_bps": 1e6})
    coordinator._late("paris", EndOver(ref, 2, 2.0, 0))
    coordinator._late("paris", Events(ref, 1, [HeardEvent.of(sample, 1.0)]))
    with closing(Reader(small.store)) as reader:
        assert len(list(reader.samples(1))) == 1
    assert [*last_received(small.store, request.name).values()] == [2]


def test_whatever_comes_of_a_run_that_was_deleted_is_done_with(small):
    coordinator, told = small.coordinator(), []
    coordinator.hosts.hosts["paris"] = SimpleNamespace(commit=lambda *end: told.append(end))
    ref = EndRef("gone", 0, 1, "main", "client")
    coordinator._late("paris", Events(ref, 7, ()))  # the ones before it were stored and deleted
    assert told == [(ref, 7)]


def test_what_comes_again_is_said_to_be_stored_once_the_disk_has_it(small, monkeypatch):
    done = []
    monkeypatch.setattr("benchctl.fleet.coordinator.coordinator.sync", done.append)
    coordinator = small.coordinator()
    coordinator.hosts.hosts["paris"] = SimpleNamespace(
        commit=lambda *told: done.append(told), take=lambda message: False
    )
    coordinator._written("r", {("paris", 0, 1, "main", "client"): 2})
    ref = EndRef("r", 0, 1, "main", "client")
    coordinator.hosts._take("paris", Events(ref, 1, ()))
    assert done == []
    asyncio.run(coordinator._tell_synced())
    assert done == [small.store, (ref, 2), (ref, 1)]


def test_a_host_hears_what_is_in_the_store_once_the_disk_has_it(small, monkeypatch):
    done = []
    coordinator = small.coordinator()
    monkeypatch.setattr(
        "benchctl.fleet.coordinator.coordinator.sync", lambda store: done.append(store)
    )
    coordinator.hosts.hosts["paris"] = SimpleNamespace(commit=lambda *told: done.append(told))
    for number in (1, 2):
        coordinator._written("r", {("paris", 0, 1, "main", "client"): number})
    assert done == []
    asyncio.run(coordinator._tell_synced())
    ref = EndRef("r", 0, 1, "main", "client")
    assert done == [small.store, (ref, 1), (ref, 2)]
