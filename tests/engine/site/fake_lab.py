"""A lab that is not there, and its site: it notes what would happen to it."""

import asyncio

from engine.fakes import FakeBackend

from benchctl.api import Direction
from benchctl.backends import Registry
from benchctl.errors import LabError
from benchctl.lab.emulate.messages import DirectionCounters
from benchctl.lab.topology.legs import pairs_of
from benchctl.lab.verify.judgement import Look, Promise, PromiseFinding, PromiseVerdict
from benchctl.plan.bound import bind_trial
from benchctl.plugins import Candidate
from benchctl.run.planned import (
    DeclaredNetwork,
    ExternalServer,
    Host,
    HostInterface,
    PlannedFlow,
    PlannedTrial,
)

TEXT = """
local = "a"
[hosts.a]
[hosts.b]
aliases = ["server.test"]
services = [{ iperf3 = "5201-5202" }]
[hosts.c]
[routers.r]
[links.near]
between = ["a:wired", "r"]
rate = "10Mbit"
[links.far]
between = ["r", "b"]
rate = "50Mbit"
delay = "5ms"
[links.aside]
between = ["c", "r"]
rate = "10Mbit"
[links.late]
between = ["c:late", "r"]
delay = "1ms"
"""


REGISTRY = Registry({"fake": Candidate("fake", "tests", FakeBackend)})


OUTSIDE = DeclaredNetwork(
    {"local": "127.0.0.1"},
    {"paris": ExternalServer("server.test", None)},
    {"en0": HostInterface("en0")},
)


class FakeLab:
    """A lab that notes what happens to it."""

    log = None
    has_failed = False
    while_building = None
    uncounted = ""
    why_not_kernel = ""

    def __init__(self, topology, emulator):
        self.asked = {}
        self.topology, self.emulator = topology, emulator
        self.nodes = {name: Host(name, f"10.0.0.{i}") for i, name in enumerate(topology.nodes)}

    @classmethod
    def build(cls, topology, emulator=None):
        if cls.while_building is not None:
            cls.while_building()
        cls.log.append(("build", topology.links["far"].settings[0].rate_bps))
        return cls(topology, emulator or topology.emulator)

    def check(self):
        if self.has_failed:
            raise LabError("the lab failed: out of memory")

    def change(self, link, change):
        self.log.append(("change", link, change))

    def counted(self, hops):
        found = {hop: self.counters(hop.link.name, hop.start.node) for hop in hops}
        return {hop: one for hop, one in found.items() if one is not None}

    def counters(self, link, leaving):
        self.asked[link, leaving] = count = self.asked.get((link, leaving), 0) + 1
        return None if link == self.uncounted else counters(arrived=1000 * count)

    def close(self):
        self.log.append(("close",))


def counters(**known):
    names = DirectionCounters.__dataclass_fields__
    return DirectionCounters(**dict.fromkeys(names, 0) | known)


def keeps_promises(lab, links):
    FakeLab.log.append(("verify", *links))
    return looks(lab, links)


def looks(lab, links, promise=Promise.DELAY, verdict=PromiseVerdict.KEPT):
    """Return looks at links that found a single thing."""
    finding = PromiseFinding(promise, 0.01, 0.05, verdict)
    pairs = pairs_of(lab.topology, links)
    return [Look(leg, {promise: finding}) for pair in pairs for leg in pair.legs]


def carries_all(lab, loads):
    FakeLab.log.append(("together", {hop.link.name: load for hop, load in loads.items()}))
    return [], []


def flow(name="main", source="a", to="b", interface=None):
    return PlannedFlow(name, "fake", source, to, interface, Direction.SEND, 0.0, {})


def trial(*flows, **settings):
    plan = PlannedTrial(0, 1, {}, flows or (flow(),), settings, 1.0, 16.0)
    return bind_trial(plan, REGISTRY)


def prepared(site, *trials):
    """Prepare for trials one after the other; returns the last network, and closes."""

    async def main():
        for one in trials:
            network = await site.prepare(one)
        await site.close()
        return network

    return asyncio.run(main())
