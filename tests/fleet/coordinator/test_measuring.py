"""People, a coordinator and real agents over a carrier in memory: submissions become results."""

import asyncio
from contextlib import closing
from pathlib import Path

import pytest
from fleet.people_support import PeopleFleet, until

from benchctl.cli.shared.fleet import submission
from benchctl.errors import UsageError
from benchctl.fleet.admin.members import Person
from benchctl.fleet.copy import follow_run
from benchctl.fleet.person_messages import HostList, ListHosts, Submitted
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
[flows.main]
backend = "simpleperf"
from = "paris"
to = "oslo"
duration = "1s"
interval = "100ms"
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
        (('[hosts.oslo]\nfleet = true\naddress = "127.0.0.1"', ""), "oslo"),
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
