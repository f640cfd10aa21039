"""A fleet within one process: a broker, a coordinator's side, and real agents on this machine."""

import asyncio
import secrets
import time
from contextlib import AsyncExitStack, closing, suppress
from dataclasses import dataclass
from typing import Any

from fleet.broker import Broker
from ports import SPARE, lend_port

from benchctl.backends import installed
from benchctl.engine.checks.tools import Toolbox
from benchctl.engine.site.context import RunContext, Signals
from benchctl.engine.site.site import Site
from benchctl.engine.trial.trial import TrialRunner
from benchctl.fleet.driven.hosts import FleetHosts
from benchctl.fleet.limits import Limits
from benchctl.fleet.messages import COORDINATOR
from benchctl.fleet.resident.agent import HostAgent, Identity
from benchctl.fleet.spool import Spool
from benchctl.fleet.trust.keys import SigningKey, key_id
from benchctl.fleet.trust.signing import KnownKey, Signer
from benchctl.hosts.hosts import Hosts
from benchctl.metrics import Direction
from benchctl.plan.bound import bind_trial
from benchctl.run.planned import (
    FleetTarget,
    Host,
    Network,
    PlannedFlow,
    PlannedRun,
    PlannedTrial,
    Settings,
)
from benchctl.store.read import Reader
from benchctl.store.record import Recorder, create_run

FLEET = "lab"
HERE = Limits(networks=("127.0.0.0/8",))


def some_ports():
    """Return the first and the last of a range that no other test uses."""
    first = lend_port()
    return first, first + SPARE


# Both are this machine, as are the hosts of other tests.
PARIS = Host("paris", "127.0.0.1", reach=FleetTarget("paris"), ports=some_ports())
OSLO = Host("oslo", "127.0.0.1", reach=FleetTarget("oslo"), ports=some_ports())
NETWORK = Network({"paris": PARIS, "oslo": OSLO})


@dataclass
class Coordinator:
    fleet: str
    signer: Signer
    keys: Any
    epoch: int = 1
    signed_keys: Any = bytes


class SmallFleet:
    """Its agents by name; `start` and `kill` them."""

    def __init__(self, folder, carriers=None):
        self.folder = folder
        self.broker = Broker()
        self.carrier = carriers or (lambda name: self.broker.carrier())
        self.secrets = {name: SigningKey.make() for name in (COORDINATOR, "paris", "oslo", "eve")}
        self._known = {
            key_id(key.public): KnownKey(
                key.public, "coordinator" if name == COORDINATOR else "host", name
            )
            for name, key in self.secrets.items()
            if name != "eve"
        }
        self.lock = f"benchctl-test-{secrets.token_hex(4)}"
        self.agents, self._tasks, self._starts, self.carriers = {}, {}, {}, {}
        self.stack = AsyncExitStack()

    def key(self, name):
        return self._known.get(name)

    def signer(self, name):
        return Signer(self.secrets[name], FLEET, name)

    async def __aenter__(self):
        carrier = self.carrier(COORDINATOR)
        await self.stack.enter_async_context(carrier)
        self.coordinator = Coordinator(FLEET, self.signer(COORDINATOR), self.key)
        self.hosts = FleetHosts(carrier, self.coordinator)
        await self.stack.enter_async_context(self.hosts)
        return self

    async def __aexit__(self, *exception):
        for name in [*self._tasks]:
            await self.kill(name)
        await self.stack.aclose()

    async def start(self, *names, limits=HERE, addresses=(), **options):
        for name in names:
            self._starts[name] = self._starts.get(name, 0) + 1
            carrier = self.carriers[name] = self.carrier(name)
            await self.stack.enter_async_context(carrier)
            identity = Identity(
                FLEET, name, self.secrets[name], self.key, self._starts[name], addresses
            )
            folder = self.folder / name
            agent = HostAgent(
                identity, carrier, Spool(folder / "spool"), limits, folder,
                lock=f"{self.lock}-{name}", **options,
            )  # fmt: skip
            self.agents[name] = agent
            self._tasks[name] = asyncio.ensure_future(agent.run())
        for name in names:
            await until(lambda name=name: self.is_there(name))

    def is_there(self, name):
        state = self.hosts.hosts.get(name)
        nonce = state and state.last and state.last.nonce
        return nonce == self.agents[name].nonce and state.is_timed.is_set()

    async def kill(self, name):
        """End an agent as a kill does: what it has in its memory is lost."""
        task = self._tasks.pop(name)
        task.cancel()
        with suppress(asyncio.CancelledError):
            await task


async def until(condition, within_s=10.0):
    end = time.monotonic() + within_s
    while not condition():
        assert time.monotonic() < end, "it does not come"
        await asyncio.sleep(0.01)


def flow(name="bulk", backend="simpleperf", source="paris", to="oslo", **parameters):
    given = {"duration": "1s", "interval": "100ms", "rate": "20Mbit", **parameters}
    return PlannedFlow(name, backend, source, to, None, Direction.SEND, 0.0, given)


class Measured:
    """What a trial left in its store."""

    def __init__(self, status, store, run_id):
        self.status = status
        with closing(Reader(store)) as reader:
            self.trial = next(reader.trials(run_id))
            self.flows = reader.flows(self.trial.id, all_attempts=True)
            self.attempts = [list(reader.samples(flow.id)) for flow in self.flows]
            self.samples = {flow.name: list(reader.samples(flow.id)) for flow in self.flows}
            self.figures = reader.figures(self.last.id) if self.flows else {}

    @property
    def last(self):
        return self.flows[-1]


async def measure(fleet, *flows, attempts=1, during=None, deadline_s=30.0, network=NETWORK):
    """Run a trial on the fleet in a new store."""
    store = fleet.folder / f"runs-{secrets.token_hex(3)}.sqlite"
    trial = PlannedTrial(0, 1, {}, flows or (flow(),), {}, 1.0, deadline_s)
    run_id, _ = create_run(
        store, PlannedRun("p", "", 1, Settings({}, "", (), attempts, 0.1), [trial], ""), time.time()
    )
    async with AsyncExitStack() as stack:
        recorder = stack.enter_context(closing(Recorder(store, run_id)))
        reader = stack.enter_context(closing(Reader(store)))
        hosts = await stack.enter_async_context(Hosts(ways=fleet.hosts))
        context = RunContext(
            reader.run(run_id), recorder, reader, hosts, Site(network), Signals()
        )  # fmt: skip
        runner = TrialRunner(context, Toolbox(hosts))
        beside = asyncio.ensure_future(during(context)) if during else None
        status = await runner.run(1, bind_trial(trial, installed()))
        if beside:
            await beside
    return Measured(status, store, run_id)
