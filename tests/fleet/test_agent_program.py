"""Agents as processes of their own, over a real server: killed, and started again."""

import asyncio
import os
import signal
import subprocess
import sys
from contextlib import asynccontextmanager

import pytest
from fleet.fleet_support import Fleet, connected, need_server
from fleet.small import Coordinator, flow, measure, until
from waiting import COMMAND_S

from benchctl.fleet.driven.hosts import FleetHosts
from benchctl.fleet.host_messages import Ping
from benchctl.fleet.messages import COORDINATOR
from benchctl.fleet.resident.program import LIMITS_FILE, _alone
from benchctl.fleet.spool import Spool, Spooled, records_in
from benchctl.fleet.trust.membership import Membership, read_membership, write_membership
from benchctl.fleet.trust.signing import Signer

PROGRAM = (
    "import sys; from pathlib import Path; from benchctl.fleet.resident.program import main;"
    " main(Path(sys.argv[1]), lock=sys.argv[2])"
)


class RealFleet:
    """A server, what a coordinator sees, and agents as processes."""

    def __init__(self, folder):
        self.folder = folder
        self.fleet = Fleet(folder, hosts=("paris", "oslo"), people=())
        self.processes = {}

    @asynccontextmanager
    async def serving(self):
        directory = self.fleet.directory
        signer = Signer(directory.coordinator_key(), "lab", COORDINATOR)
        known = Coordinator("lab", signer, directory.find, signed_keys=directory.keys)
        async with (
            self.fleet.server(),
            connected(self.fleet.carrier(COORDINATOR)) as (carrier,),
            FleetHosts(carrier, known) as self.hosts,
        ):
            try:
                yield self
            finally:
                for process in self.processes.values():
                    process.kill()
                    process.wait()

    async def start(self, *names):
        for name in names:
            folder = self.folder / name
            if not folder.exists():
                folder.mkdir()
                server, key = self.fleet.directory.server(), self.fleet.keys[name]
                keys = self.fleet.directory.keys()
                member = Membership(server, name, key.text, keys)
                write_membership(folder / "host.fleet", member)
                (folder / LIMITS_FILE).write_text('networks = ["127.0.0.0/8"]\n')
            self.processes[name] = subprocess.Popen(
                [sys.executable, "-c", PROGRAM, str(folder), f"{folder.parent.name}-{name}"]
            )
        before = {name: self.nonce(name) for name in names}
        await until(lambda: all(self.is_new(name, before[name]) for name in names), COMMAND_S)

    def nonce(self, name):
        state = self.hosts.hosts.get(name)
        return state.last.nonce if state else ""

    def is_new(self, name, nonce):
        return self.nonce(name) != nonce and self.hosts.hosts[name].is_timed.is_set()

    def kill(self, name, number=signal.SIGKILL):
        process = self.processes[name]
        process.send_signal(number)
        process.wait()
        return process.returncode


@pytest.fixture
def run(tmp_path):
    need_server()

    def run(main):
        async def serve():
            async with RealFleet(tmp_path).serving() as fleet:
                return await main(fleet)

        return asyncio.run(serve())

    return run


def test_two_processes_measure_over_a_real_server(run, tmp_path):
    async def main(fleet):
        await fleet.start("paris", "oslo")
        found = await measure(fleet)
        await until(
            lambda: all(host.last.spool.messages == 0 for host in fleet.hosts.hosts.values())
        )
        return found, [fleet.kill(name, signal.SIGTERM) for name in ("paris", "oslo")]

    found, codes = run(main)
    assert (found.status, found.last.error) == ("ok", "")
    assert len([one for one in found.samples["bulk"] if one.role == "client"]) >= 8
    assert codes == [0, 0]


def test_an_agent_that_was_killed_brings_what_its_spool_had(run, tmp_path):
    async def main(fleet):
        await fleet.start("paris", "oslo")

        async def during(context):
            commit, fleet.hosts.committed = fleet.hosts.committed, lambda *_: None
            await until(lambda: Spooled.SAMPLES in kept("paris"), COMMAND_S)
            fleet.hosts.committed = commit
            fleet.kill("paris")
            left = Spool(tmp_path / "paris" / "spool")
            assert left.pending()
            left.close()
            await fleet.start("paris")

        def kept(name):
            segments = (tmp_path / name / "spool").glob("*.segment")
            return {
                record.kind for path in segments for *_, record in records_in(path.read_bytes())
            }

        # Longer than a busy machine takes to notice.
        return await measure(fleet, flow(duration="20s"), during=during, deadline_s=60)

    found = run(main)
    assert found.status == "failed"
    assert "the agent of paris was ended meanwhile" in found.last.error
    assert [one for one in found.attempts[0] if one.role == "client"]


def test_hosts_take_the_new_key_of_a_coordinator(run, tmp_path):
    async def main(fleet):
        await fleet.start("paris")
        directory = fleet.fleet.directory
        before = directory.keys()
        directory.renew_coordinator()
        assert directory.keys() != before

        def taken():
            return read_membership(tmp_path / "paris" / "host.fleet").keys == directory.keys()

        await until(taken, COMMAND_S)
        signer = Signer(directory.coordinator_key(), "lab", COORDINATOR)
        fleet.hosts._identity.signer, fleet.hosts._identity.epoch = signer, 2
        await fleet.hosts.hosts["paris"].request(Ping())

    run(main)


def test_one_agent_at_a_time_has_a_directory(tmp_path, fork_server):
    with _alone(tmp_path):
        words = ["benchctl", "agent", "run", str(tmp_path)]
        second = fork_server.run(words, tmp_path, dict(os.environ))
    assert second.returncode == 4
    assert "another agent runs there" in second.stderr
