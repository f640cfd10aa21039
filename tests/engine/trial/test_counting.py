"""When the counters of a trial's hosts are read, and what is kept if that fails."""

import asyncio
from dataclasses import replace
from types import MappingProxyType, SimpleNamespace

import pytest
from engine import virtual
from engine.fakes import EPOCH, GOOD, SERVER, FakeSpawner, Script
from engine.virtual import flow
from msgspec import structs

from benchctl.analysis.flow.losses import CountedEnds
from benchctl.api import Demand
from benchctl.engine.trial.host_counters import NOT_LINUX, READ_S, ends_of
from benchctl.errors import HostError
from benchctl.hosts.clocks import HostClock
from benchctl.hosts.sent import counters
from benchctl.run.record import HostCounters


class CountingSpawner(FakeSpawner):
    """Its host counts one interface packet in each millisecond, and notes when it was asked."""

    answers_s = 0.0
    rtt_s = 0.0
    fails = ()
    """The numbers of the questions that fail."""
    lost_s = None
    grows = MappingProxyType({})
    """By how much its counts grow between two questions."""

    def __init__(self, *args):
        super().__init__(*args)
        self.clock = HostClock()
        self.clock.add(EPOCH, EPOCH + self.rtt_s / 2, EPOCH + self.rtt_s)

    async def clock_of(self, host):
        return self.clock

    async def ask(self, host, module, function, *arguments):
        assert (module, function) == (counters, "read")
        now = asyncio.get_running_loop().time()
        self.log.append((now, "read", ""))
        asked = len([one for one in self.log if one[1] == "read"])
        await asyncio.sleep(self.answers_s)
        if asked in self.fails:
            raise HostError("host local: it is gone")
        interfaces = {"eth0": [0, round(now * 1000), 0, 0, 0, 0, 0, 0]}
        counts = {name: count * asked for name, count in self.grows.items()}
        return {"time_s": now, "interfaces": interfaces, "counts": counts, "cores": {}}

    def lost(self, host):
        future = super().lost(host)
        if self.lost_s is not None and asyncio.get_running_loop().time() >= self.lost_s:
            future.set_result("host local: it was cut off")
        return future


@pytest.fixture
def counted(measure, monkeypatch):
    def run(scripts, *flows, **members):
        options = {name: members.pop(name) for name in ("attempts", "during") if name in members}
        spawner = type("Counting", (CountingSpawner,), members)
        monkeypatch.setattr(virtual, "FakeSpawner", spawner)
        return measure(scripts, *flows, **options)

    return run


def times(outcome, what):
    return [at for at, done, name in outcome.log if done == what]


def test_they_are_read_before_the_gate_opens_and_after_the_client_has_ended(counted):
    outcome = counted({"server": SERVER, "client": GOOD}, answers_s=0.05)
    _, began = times(outcome, "begin")
    before, after = times(outcome, "read")
    assert before + 0.05 == pytest.approx(began)
    assert after == pytest.approx(began + GOOD.ends_s)
    found = outcome.trial.counters["local"]
    assert found.lasted_s == pytest.approx(after - before)
    assert found.interfaces["eth0"].rx_packets == pytest.approx(1000 * found.lasted_s, abs=1)


def test_where_there_is_time_before_the_start_they_are_read_shortly_before_it(counted):
    flows = (flow(name, label=name, backend="early") for name in "abc")
    client = Script([(2.5, "sample 0 1 100")], 2.5)
    outcome = counted({"server": SERVER, "early": client}, *flows, rtt_s=0.02)
    before, _ = times(outcome, "read")
    start_s = outcome.trial.started_time - EPOCH
    assert before == pytest.approx(start_s - READ_S - 2 * 0.02, abs=0.001)


def test_a_host_that_answers_late_does_not_delay_the_start(counted):
    flows = flow("a"), flow("b", label="b")
    scripts = {"server": SERVER, "client": GOOD}
    late = counted(scripts, *flows, answers_s=0.7)
    punctual = counted(scripts, *flows)
    assert times(late, "begin") == times(punctual, "begin")
    assert late.trial.counters.keys() == {"local"}


@pytest.mark.parametrize("number", [1, 2])
def test_a_reading_that_fails_is_said_and_nothing_else(counted, number):
    outcome = counted({"server": SERVER, "client": GOOD}, fails=(number,))
    assert outcome.status == "ok"
    assert outcome.trial.counters["local"].unread == "host local: it is gone"


def test_a_host_that_is_lost_is_not_asked_again(counted):
    outcome = counted({"server": SERVER, "client": GOOD}, lost_s=0.5)
    assert len(times(outcome, "read")) == 1
    assert outcome.trial.counters["local"].unread == "host local: it was cut off"


def test_a_system_without_counters_is_named(measure, monkeypatch):
    monkeypatch.setattr(counters, "read", dict)
    outcome = measure({"server": SERVER, "client": GOOD})
    assert outcome.trial.counters["local"].unread == NOT_LINUX


def test_an_attempt_that_does_not_begin_has_none(counted):
    outcome = counted({"server": Script(ends_s=0.0, code=1)}, attempts=1)
    assert outcome.status == "failed"
    assert outcome.trial.counters == {}


def test_a_trial_that_is_skipped_before_its_start_has_none(counted):
    outcome = counted(
        {"server": SERVER, "client": GOOD}, flow("a"), flow("b", label="b"),
        during=(0.1, lambda signals: signals.skip.set()),
    )  # fmt: skip
    assert outcome.status == "skipped"
    assert outcome.trial.counters == {}


def test_a_peer_that_is_not_ours_is_not_read(counted):
    outcome = counted({"client": GOOD}, flow(to="public"))
    assert outcome.trial.counters.keys() == {"local"}


def test_what_the_kernel_of_the_sender_counted_are_the_loss_events_of_its_flow(counted):
    client = replace(GOOD, lines=[*GOOD.lines, (0.5, "count retransmits 9")])
    grows = {"tcp_segments_retransmitted": 9, "tcp_recoveries": 3, "tcp_timeouts": 1}
    outcome = counted({"server": SERVER, "client": client}, grows=grows)
    figures = outcome.reader.figures(outcome.last.id)
    names = ("loss_events_least", "loss_events_most")
    assert [figures["send", name].value for name in names] == [4, 4]
    assert outcome.last.protocol == "tcp"


def place(source, to, direction="send", protocol="udp"):
    plan = flow(to=to, direction=direction)
    plan = structs.replace(plan, source=source)
    return SimpleNamespace(flow=SimpleNamespace(plan=plan, demand=Demand(protocol=protocol)))


def test_full_sockets_are_those_of_the_only_flow_that_receives_datagrams_there():
    counters = {name: HostCounters(1.0) for name in "ab"}
    one, back = place("a", "b"), place("a", "b", "receive")
    assert ends_of(one, [one, back], counters) == {"send": CountedEnds(receiver=counters["b"])}
    assert ends_of(back, [one, back], counters) == {"receive": CountedEnds(receiver=counters["a"])}
    both = place("b", "a", "both")
    assert ends_of(one, [one, both], counters) == {"send": CountedEnds()}
    tcp = place("a", "b", protocol="tcp")
    assert ends_of(one, [one, tcp], counters) == {"send": CountedEnds(receiver=counters["b"])}
    assert ends_of(tcp, [one, tcp], counters) == {"send": CountedEnds(sender=counters["a"])}
    assert ends_of(place("a", "public"), [], counters) == {"send": CountedEnds()}
