"""People, a coordinator and real agents over a carrier in memory: submissions become results."""

import asyncio
import math
import sqlite3
import time
from contextlib import closing
from pathlib import Path
from types import SimpleNamespace

import pytest
from fleet.people_support import PeopleFleet, until
from fleet.small import some_ports
from msgspec.structs import replace

from benchctl.cli.shared.fleet_run import submission
from benchctl.errors import HostError, UsageError
from benchctl.fleet.admin.members import Person
from benchctl.fleet.copy import follow_run
from benchctl.fleet.limits import Limits
from benchctl.fleet.person_messages import CheckPlan, HostList, ListHosts, PlanChecked, Submitted
from benchctl.fleet.resident.agent import HostAgent
from benchctl.fleet.resident.states import EndState
from benchctl.run.status import Status
from benchctl.store.read import Reader

PROFILE = """
[run]
repeats = 2
[hosts.paris]
fleet = true
address = "127.0.0.1"
[hosts.oslo]
fleet = true
address = "127.0.0.1"
ports = "28000-28020"
[flows.main]
backend = "simpleperf"
from = "paris"
to = "oslo"
duration = "500ms"
interval = "50ms"
rate = "20Mbit"
"""


@pytest.fixture
def fleet(tmp_path):
    return PeopleFleet(
        tmp_path, ("paris", "oslo"), alice=Person("", "run"), bob=Person("", "run", 1),
        eve=Person("", "view"),
    )  # fmt: skip


def written(folder, text, name="mesh.toml"):
    path = Path(folder) / name
    path.write_text(text)
    return str(path)


async def submit(fleet, text=PROFILE, person="alice", sets=()):
    text = text.replace("28000-28020", "{}-{}".format(*some_ports()))
    message = submission(written(fleet.folder, text), sets, (), None, (), yes=False)
    return await fleet.link(person).ask(message, Submitted)


async def hosts_are_there(fleet):
    async with asyncio.timeout(20):
        while True:
            told = await fleet.link("alice").ask(ListHosts(), HostList)
            if told.hosts and not any(host.is_away for host in told.hosts):
                return told
            await asyncio.sleep(0.1)


def test_a_submitted_profile_is_measured_by_agents_and_seen_in_the_copy(fleet):
    async def main():
        async with fleet.serving(), fleet.agents("paris", "oslo"):
            told = await hosts_are_there(fleet)
            assert [host.name for host in told.hosts] == ["paris", "oslo"]
            submitted = await submit(fleet)
            assert (submitted.trials, submitted.notes) == (2, ())
            status = await follow_run(
                fleet.link("alice"), fleet.members["alice"], submitted.run, fleet.copy
            )
            return submitted.run, status

    name, status = asyncio.run(main())
    with closing(Reader(fleet.copy)) as reader:
        run = reader.find(name)
        found = [
            (trial.status, trial.error, reader.attempts(trial.id))
            for trial in reader.trials(run.id)
        ]
        assert found == [(Status.OK, "", 1)] * 2
        flow = reader.flows(next(reader.trials(run.id)).id)[0]
        assert len(list(reader.samples(flow.id))) >= 8
    assert status is Status.OK


@pytest.mark.parametrize(
    ("change", "why"),
    [
        (("fleet = true", 'ssh = "root@example.net"'), "a fleet logs in to no hosts"),
        (('[flows.main]', '[hosts.berlin]\nfleet = true\naddress = "127.0.0.1"\n[flows.main]'),
         "the fleet has no host berlin"),
        (('[hosts.oslo]\nfleet = true\n', "[hosts.oslo]\n"), "oslo"),
        (('interval', 'intervall'), "intervall"),
    ],
)  # fmt: skip
def test_a_profile_that_a_fleet_does_not_measure_is_refused_in_one_line(fleet, change, why):
    async def main():
        async with fleet.serving():
            with pytest.raises(UsageError) as caught:
                await submit(fleet, PROFILE.replace(*change))
            return caught.value

    error = asyncio.run(main())
    assert why in error.message
    assert "\n" not in error.message


@pytest.mark.parametrize(
    ("person", "why"),
    [("eve", "eve may look"), ("bob", "bob may use 1 hosts at once, and the profile needs 2")],
)
def test_what_a_person_may_not_is_refused(fleet, person, why):
    async def main():
        async with fleet.serving():
            with pytest.raises(UsageError, match=why):
                await submit(fleet, person=person)

    asyncio.run(main())


def test_what_the_owner_of_a_host_does_not_allow_is_refused_before_anything_runs(fleet):
    slow = Limits(networks=("127.0.0.0/8",), rate_bps=1e6)

    async def main():
        async with fleet.serving(), fleet.agents("paris"), fleet.agents("oslo", limits=slow):
            await hosts_are_there(fleet)
            with pytest.raises(UsageError, match=r"host oslo: .*1\.00 Mbit/s") as caught:
                await submit(fleet)
            assert "\n" not in caught.value.message
            asked = submission(written(fleet.folder, PROFILE), (), (), None, (), yes=False)
            told = await fleet.link("alice").ask(CheckPlan(asked), PlanChecked)
            assert (told.trials, len(told.refusals), told.away) == (2, 1, ())
            asked = submission(
                written(fleet.folder, PROFILE), ["main.rate=500kbit"], (), None, (), yes=False
            )
            told = await fleet.link("alice").ask(CheckPlan(asked), PlanChecked)
            assert told.refusals == ()

    asyncio.run(main())


def test_a_run_waits_for_hosts_that_are_away(fleet):
    async def main():
        async with fleet.serving() as coordinator:
            submitted = await submit(fleet)
            await until(lambda: submitted.run in coordinator.runs.recorders)
            async with fleet.agents("paris", "oslo"):
                return await follow_run(
                    fleet.link("alice"), fleet.members["alice"], submitted.run, fleet.copy
                )

    assert asyncio.run(main()) is Status.OK


def test_a_trial_fails_when_its_host_was_away_for_too_long(fleet):
    async def main():
        async with fleet.serving():
            submitted = await submit(fleet, sets=["run.host_wait=1s"])
            status = await follow_run(
                fleet.link("alice"), fleet.members["alice"], submitted.run, fleet.copy
            )
            return submitted.run, status

    name, status = asyncio.run(main())
    assert status is Status.FAILED
    with closing(Reader(fleet.copy)) as reader:
        run = reader.find(name)
        assert {trial.error for trial in reader.trials(run.id)} == {
            "host paris was not heard of yet"
        } or {trial.error for trial in reader.trials(run.id)} == {"host oslo was not heard of yet"}


# --- faults -------------------------------------------------------------------------------------

LONGER = PROFILE.replace('duration = "500ms"', 'duration = "3s"')


def samples_of(store, name):
    """Return the samples of a run: trial, attempt, flow, role, stream and start of each."""
    if not store.exists():
        return []
    with closing(Reader(store)) as reader:
        run_id = reader.names().get(name)
        if run_id is None:
            return []
        return [
            (trial.position, flow.attempt, flow.name, sample.role, sample.stream, sample.start_s)
            for trial in reader.trials(run_id)
            for flow in reader.flows(trial.id, all_attempts=True)
            for sample in reader.samples(flow.id)
        ]


def outcome(store, name):
    """Return status and attempts of each trial."""
    with closing(Reader(store)) as reader:
        run = reader.find(name)
        return [(str(trial.status), reader.attempts(trial.id)) for trial in reader.trials(run.id)]


def test_a_killed_coordinator_costs_no_sample_and_no_trial_is_measured_again(fleet, tmp_path):
    async def main():
        async with fleet.agents("paris", "oslo"), fleet.serving() as first:
            await hosts_are_there(fleet)
            submitted = await submit(fleet, LONGER)
            await until(lambda: len(samples_of(fleet.store, submitted.run)) > 10)
            # As a kill does: the store is as it is, and nothing is said any more.
            killed = tmp_path / "killed.sqlite"
            with closing(sqlite3.connect(fleet.store)) as store:
                store.execute("VACUUM INTO ?", (str(killed),))
            before = samples_of(killed, submitted.run)
            await first._carrier.cut()
            for host in first.hosts.hosts.values():
                host.request, host._presence.seen_s = no_more, -math.inf
            fleet.store = killed
            async with fleet.serving():
                status = await follow_run(
                    fleet.link("alice"), fleet.members["alice"], submitted.run, fleet.copy
                )
            return submitted.run, before, status

    name, before, status = asyncio.run(main())
    assert outcome(fleet.store, name) == [("ok", 1)] * 2
    assert status is Status.OK
    for store in (fleet.store, fleet.copy):
        found = samples_of(store, name)
        assert len(found) == len(set(found)), "none twice"
        assert set(before) <= set(found)
        of_first = [one for one in found if one[0] == 0 and one[3] == "client"]
        assert len(of_first) >= 58
    with closing(Reader(fleet.store)) as reader:
        first = next(reader.trials(reader.find(name).id))
        figure = reader.figures(reader.flows(first.id)[0].id)["send", "throughput_bps"]
        assert 15e6 < figure.value < 25e6


async def no_more(*_):
    raise HostError("it was killed")


def test_what_is_delivered_twice_is_stored_once(fleet):
    async def main():
        fleet.broker.twice = True
        async with fleet.serving(), fleet.agents("paris", "oslo"):
            await hosts_are_there(fleet)
            submitted = await submit(fleet)
            await follow_run(fleet.link("alice"), fleet.members["alice"], submitted.run, fleet.copy)
            return submitted.run

    name = asyncio.run(main())
    assert outcome(fleet.store, name) == [("ok", 1)] * 2
    found = samples_of(fleet.copy, name)
    assert len(found) == len(set(found)) == len(samples_of(fleet.store, name)) >= 16


class Later:
    """A clock of the coordinator and of hosts' heartbeats, which may be set forward."""

    def __init__(self, monkeypatch):
        self.by_s = 0.0
        shown = SimpleNamespace(time=time.time, monotonic=lambda: time.monotonic() + self.by_s)
        for module in ("host", "hosts"):
            monkeypatch.setattr(f"benchctl.fleet.driven.{module}.time", shown)
        beat = HostAgent._heartbeat

        def later(agent):
            told = beat(agent)
            return replace(told, time_s=told.time_s + self.by_s)

        monkeypatch.setattr(HostAgent, "_heartbeat", later)


@pytest.mark.parametrize(("cut_s", "attempts"), [(30, 1), (3600, 2)])
def test_a_host_that_was_cut_off_brings_what_it_measured(fleet, monkeypatch, cut_s, attempts):
    """Its trial waits for it, but not for an hour: then it is measured again."""
    later = Later(monkeypatch)
    late = "trial 1, main: samples of attempt 1 came late, and are not in its figures"

    async def main():
        async with fleet.serving(), fleet.agents("oslo"), fleet.agent("paris") as paris:
            await hosts_are_there(fleet)
            submitted = await submit(fleet, sets=["main.duration=2s"])
            states = paris._states
            await until(lambda: EndState.RUNS in map(states.state, states.running))
            await fleet.carriers["paris"].cut()
            later.by_s = cut_s
            await until(lambda: not paris._ends)
            if attempts > 1:
                await until(lambda: "failed" in flows(fleet.store, submitted.run))
            await fleet.carriers["paris"].mend()
            await follow_run(fleet.link("alice"), fleet.members["alice"], submitted.run, fleet.copy)
            await until(lambda: paris._spool.state.messages == 0)
            return submitted.run

    name = asyncio.run(main())
    (its_own, (status, _)) = outcome(fleet.store, name)  # a busy machine may be late for the other
    assert (its_own, status) == (("ok", attempts), "ok")
    for store in (fleet.store, fleet.copy):
        found = samples_of(store, name)
        assert len(found) == len(set(found))
        first = [one for one in found if one[:2] == (0, 1) and one[3] == "client"]
        assert len(first) >= 38
    with closing(Reader(fleet.copy)) as reader:
        notes = [note.text for note in reader.notes(reader.find(name).id)]
    assert [text for text in notes if "late" in text] == [late] * (attempts - 1)


def flows(store, name):
    """Return the status of each attempt of the first trial."""
    with closing(Reader(store)) as reader:
        first = next(reader.trials(reader.find(name).id))
        return [str(flow.status) for flow in reader.flows(first.id, all_attempts=True)]


def test_an_agent_that_is_killed_costs_its_own_trial_one_attempt(fleet):
    async def main():
        async with fleet.serving(), fleet.agents("oslo"):
            async with fleet.agent("paris"):
                await hosts_are_there(fleet)
                submitted = await submit(fleet, LONGER, sets=["run.attempts=2"])
                await until(lambda: len(samples_of(fleet.store, submitted.run)) > 10)
            async with fleet.agent("paris"):
                await follow_run(
                    fleet.link("alice"), fleet.members["alice"], submitted.run, fleet.copy
                )
            return submitted.run

    name = asyncio.run(main())
    assert outcome(fleet.store, name) == [("ok", 2), ("ok", 1)]
    found = samples_of(fleet.store, name)
    assert len(found) == len(set(found))
