"""A fleet within one process: members, a coordinator, people, and runs that need no host."""

import asyncio
import secrets
from contextlib import AsyncExitStack, asynccontextmanager, suppress

from fleet.broker import Broker

from benchctl.fleet.admin.members import Person
from benchctl.fleet.coordinator.coordinator import Coordinator, FleetMembers
from benchctl.fleet.coordinator.queue import AskedRun
from benchctl.fleet.limits import Limits
from benchctl.fleet.messages import COORDINATOR
from benchctl.fleet.person import PersonLink
from benchctl.fleet.resident.agent import HostAgent, Identity
from benchctl.fleet.spool import Spool
from benchctl.fleet.trust.keys import SigningKey, key_id
from benchctl.fleet.trust.keyset import KeySet, sign_keys
from benchctl.fleet.trust.membership import Membership, Server
from benchctl.fleet.trust.signing import KnownKey
from benchctl.metrics import Direction
from benchctl.run.planned import PlannedFlow, PlannedRun, PlannedTrial, Settings
from benchctl.store.record import RunRequest, create_run

FLEET = "research"
HERE = Limits(networks=("127.0.0.0/8",))
WAIT_S = 60
FLOW = PlannedFlow(
    "main", "simpleperf", "local", "local", None, Direction.SEND, 0.0, {"bytes": "1MB"}
)


class PeopleFleet:
    """Members of a fleet whose coordinator keeps its store in a folder."""

    def __init__(self, folder, hosts=(), **people):
        self.folder, self.hosts = folder, hosts
        self.store, self.copy = folder / "benchctl.sqlite", folder / "copy" / "alice.sqlite"
        self.copy.parent.mkdir(exist_ok=True)
        self.broker = Broker()
        self.root, self.key = SigningKey.make(), SigningKey.make()
        self.keys = sign_keys(self.root, KeySet(FLEET, 1, (self.key.public,)))
        self.limits = people or {
            "alice": Person("", "run"),
            "bob": Person("", "run"),
            "eve": Person("", "view"),
            "root": Person("", "admin"),
        }
        server = Server(FLEET, "127.0.0.1:4222", "", self.root.public)
        self.members = {
            name: Membership(server, name, SigningKey.make().text, self.keys, limits.rights)
            for name, limits in self.limits.items()
        }
        self.starts, self.carriers = {}, {}
        self.lock = f"benchctl-test-{secrets.token_hex(4)}"
        self.host_keys = {name: SigningKey.make() for name in hosts}
        self.known = {
            key_id(member.key.public): KnownKey(member.key.public, "person", name)
            for name, member in self.members.items()
        } | {
            key_id(key.public): KnownKey(key.public, "host", name)
            for name, key in self.host_keys.items()
        }

    def link(self, name):
        """Return what a person says to the coordinator."""
        return PersonLink(self.broker.carrier(), self.members[name])

    @asynccontextmanager
    async def agents(self, *names, limits=HERE):
        """Run real agents on this machine, until the block ends."""
        async with AsyncExitStack() as stack:
            for name in names:
                await stack.enter_async_context(self.agent(name, limits))
            yield

    @asynccontextmanager
    async def agent(self, name, limits=HERE):
        """Run a real agent, until the block ends, which kills it."""
        self.starts[name] = self.starts.get(name, 0) + 1
        folder = self.folder / name
        identity = Identity(FLEET, name, self.host_keys[name], self.find, self.starts[name])
        carrier = self.carriers[name] = self.broker.carrier()
        async with carrier:
            agent = HostAgent(
                identity, carrier, Spool(folder / "spool"), limits, folder,
                lock=f"{self.lock}-{name}",
            )  # fmt: skip
            running = asyncio.create_task(agent.run())
            try:
                yield agent
            finally:
                running.cancel()
                with suppress(asyncio.CancelledError):
                    await running

    def find(self, key):
        if key == key_id(self.key.public):
            return KnownKey(self.key.public, "coordinator", COORDINATOR)
        return self.known.get(key)

    def coordinator(self, **options):
        """Return a new coordinator, which does not serve yet."""
        members = FleetMembers(
            FLEET, self.key, self.known.get, self.limits.get, lambda: tuple(self.hosts)
        )
        return Coordinator(self.broker.carrier(), members, self.store, **options)

    @asynccontextmanager
    async def serving(self, **options):
        """Serve with a coordinator, until the block ends."""
        coordinator, ready = self.coordinator(**options), asyncio.Event()
        serving = asyncio.create_task(
            coordinator.serve(wait=True, say=lambda text: text == "ready" and ready.set())
        )
        waiting = asyncio.create_task(ready.wait())
        await asyncio.wait([serving, waiting], return_when=asyncio.FIRST_COMPLETED)
        if serving.done():
            serving.result()
        try:
            yield coordinator
        finally:
            serving.cancel()
            with suppress(asyncio.CancelledError):
                await serving

    def record(self, person="alice", trials=2, trial_s=0.2, flow=FLOW):
        """Write a run that a person asked for; returns its request."""
        settings = Settings({"streams": (1,)}, "", ())
        planned = [
            PlannedTrial(number, number + 1, {"streams": 1}, (flow,), {}, trial_s, 20.0)
            for number in range(trials)
        ]
        token = f"{person} {self.root.text}{id(planned)}"
        run = PlannedRun("p", "", 1, settings, planned, "")
        run_id, name = create_run(self.store, run, 1e9, asked=RunRequest(person, token, 1e6))
        return AskedRun(run_id, name, person, frozenset(), 1, 1e6, 1e9)


async def until(happens):
    """Wait until something is so."""
    async with asyncio.timeout(WAIT_S):
        while not happens():
            await asyncio.sleep(0.02)
