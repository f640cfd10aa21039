"""Trials on remote hosts: their clocks, and what happens when one is lost."""

import asyncio

import pytest
from engine import virtual
from engine.fakes import EPOCH, GOOD, SERVER, FakeSpawner, ProbedBackend, Script
from engine.virtual import flow
from msgspec.structs import replace

from benchctl.api import Role
from benchctl.engine.checks.tools import Toolbox
from benchctl.engine.site.site import Site
from benchctl.errors import HostError, MissingError
from benchctl.hosts.clocks import HostClock
from benchctl.hosts.sent import ports
from benchctl.hosts.ssh import remote
from benchctl.run.planned import Host, Network, SshTarget

AHEAD_S = 100.0
PATH_S = 0.02
FAR = Host("local", "192.0.2.10", shares_ports=False, reach=SshTarget("paris"))
SITE = Site(Network({"local": FAR}))


class FarSpawner(FakeSpawner):
    """The clock of its host is ahead, and output arrives before it is delivered."""

    losses = ()
    """When the host is lost, in order, in seconds after the epoch."""
    refusals = 0
    logins_s = ()
    """How long each login takes, in order: the first, and those after a loss."""

    def __init__(self, *args):
        super().__init__(*args)
        self.clock = HostClock()
        self.clock.add(EPOCH, EPOCH + PATH_S + AHEAD_S, EPOCH + 2 * PATH_S)
        self._lost, self._losses = None, list(self.losses)
        self._logins_s, self._is_in, self._turn = list(self.logins_s), False, asyncio.Lock()

    async def clock_of(self, host):
        async with self._turn:
            if not self._is_in and self._logins_s:
                await asyncio.sleep(self._logins_s.pop(0))
            self._is_in = True
        if self.refusals:
            self.refusals -= 1
            raise HostError("host paris: it does not answer")
        return self.clock

    def lost(self, host):
        loop = asyncio.get_running_loop()
        if self._lost is None or self._lost.done():
            self._lost = loop.create_future()
            if self._losses:
                loop.call_at(self._losses.pop(0), self._lose)
        return self._lost

    def _lose(self):
        self._lost.set_result("host paris: it is gone")
        self._is_in = False


@pytest.fixture
def far(measure, monkeypatch):
    def run(scripts, *flows, losses=(), refusals=0, logins_s=(), **options):
        members = {"losses": losses, "refusals": refusals, "logins_s": logins_s}
        monkeypatch.setattr(virtual, "FakeSpawner", type("Far", (FarSpawner,), members))
        return measure(scripts, *flows, site=SITE, **options)

    return run


def test_a_client_that_waits_itself_gets_the_time_of_its_own_host(far):
    outcome = far({"server": SERVER, "client": GOOD, "early": GOOD}, flow("a"),
                  flow("b", backend="early"))  # fmt: skip
    (asked,) = [command[-1] for command in outcome.commands if command[0] == "early"]
    assert float(asked.removeprefix("at=")) == pytest.approx(
        outcome.trial.started_time + AHEAD_S, abs=1e-6
    )


def test_a_start_that_a_tool_reports_is_kept_by_our_clock(far):
    client = Script([(0.5, f"started {AHEAD_S + 0.25}"), (1.0, "sample 0 1 100")], 1.2)
    outcome = far({"server": SERVER, "client": client})
    assert outcome.last.started_time == pytest.approx(EPOCH + 0.25, abs=1e-6)


def test_the_clocks_of_a_trial_are_kept_with_their_errors(far):
    clocks = far({"server": SERVER, "client": GOOD}).trial.clocks
    assert clocks["local"].offset_s == pytest.approx(AHEAD_S, abs=1e-6)
    assert clocks["local"].error_s >= PATH_S


@pytest.mark.parametrize(("was_probed", "ahead_s"), [(False, AHEAD_S), (True, 0.0)])
def test_clocks_are_timed_anew_after_the_ways_to_them_were_changed(
    measure, monkeypatch, was_probed, ahead_s
):
    class Anew(FarSpawner):
        def forget_clocks(self):
            self.clock = HostClock()
            self.clock.add(EPOCH, EPOCH + PATH_S, EPOCH + 2 * PATH_S)

    monkeypatch.setattr(virtual, "FakeSpawner", Anew)
    site = Site(SITE.network, was_probed=was_probed)
    clocks = measure({"server": SERVER, "client": GOOD}, site=site).trial.clocks
    assert clocks["local"].offset_s == pytest.approx(ahead_s, abs=1e-6)


def test_the_clock_of_this_machine_is_not_kept(measure):
    assert measure({"server": SERVER, "client": GOOD}).trial.clocks == {}


# What its connection delivers when a host is lost: all at once, as one end sees it.
HANGS = Script([(0.4, "sample 0 0.4 100")], ends_s=None)


def test_a_trial_whose_host_is_lost_fails_with_the_reason_and_is_tried_again(far):
    scripts = {"server": [SERVER, SERVER], "client": [HANGS, GOOD]}
    outcome = far(scripts, losses=[0.5], attempts=2)
    first, second = outcome.flows
    assert (first.status, first.failure, first.error) == (
        "failed",
        "peer",
        "host paris: it is gone",
    )
    assert second.status == outcome.status == "ok"
    kept = [sample.metrics for sample in outcome.reader.samples(first.id)]
    assert kept == [{"throughput_bps": 100.0}]


def test_the_loss_of_a_host_explains_how_its_command_ended(far):
    gone = Script([(0.4, "sample 0 0.4 100")], 0.5, 255)
    outcome = far({"server": SERVER, "client": gone}, losses=[0.45])
    assert outcome.last.error == "host paris: it is gone"


def test_a_host_that_is_lost_with_a_server_is_named_once(far):
    gone = Script([(0.01, "ready"), (0.45, "!host paris: it is gone")], 0.46, 255)
    outcome = far({"server": gone, "client": HANGS}, losses=[0.45])
    assert outcome.last.error == "host paris: it is gone"
    assert not outcome.reader.notes(1)


def test_a_host_that_cannot_be_reached_again_fails_the_trial_after_its_attempts(far):
    outcome = far({"server": SERVER, "client": GOOD}, refusals=9, attempts=3)
    assert outcome.status == "failed"
    assert outcome.trial.error == "main: host paris: it does not answer"
    assert len(outcome.flows) == 3


def test_a_host_is_asked_for_free_ports_again_when_one_was_busy(measure, monkeypatch):
    offers = [[5201, 5202, 5203], [5301, 5302, 5303]]
    monkeypatch.setattr(ports, "first_free", lambda *_: offers.pop(0))
    monkeypatch.setattr(virtual, "FakeSpawner", FarSpawner)
    taken = Script([(0, "fail busy the port is in use")], 0.1, 1)
    scripts = {"server 5201": taken, "server 5302": SERVER, "client": GOOD}
    site = Site(Network({"local": replace(FAR, shares_ports=True)}))
    outcome = measure(scripts, site=site)
    assert [(f.port, f.status) for f in outcome.flows] == [(5201, "failed"), (5302, "ok")]


def test_a_login_again_takes_nothing_of_an_attempts_deadline(far):
    scripts = {"server": [SERVER, SERVER], "client": [HANGS, GOOD]}
    outcome = far(scripts, losses=[0.5], attempts=2, deadline_s=2.0, logins_s=[0.0, 30.0])
    assert [one.status for one in outcome.flows] == ["failed", "ok"]
    assert outcome.trial.started_time >= EPOCH + 0.5 + 30.0


@pytest.mark.parametrize(("name", "status"), [("stop", "interrupted"), ("skip", "skipped")])
def test_a_login_again_can_be_cut_short(far, name, status):
    scripts = {"server": SERVER, "client": HANGS}
    during = (10.0, lambda signals: getattr(signals, name).set())
    outcome = far(scripts, losses=[0.5], attempts=2, logins_s=[0.0, 30.0], during=during)
    assert outcome.status == outcome.last.status == status
    assert outcome.trial.finished_time == pytest.approx(EPOCH + 10.0, abs=0.1)
    assert len(outcome.processes) == 2  # those of the first attempt


def test_a_host_that_is_gone_before_the_tools_are_looked_at_is_named_once():
    class Gone:
        async def start(self, *_):
            raise ConnectionError(0, "host paris: it refuses connections")

    with pytest.raises(MissingError) as caught:
        asyncio.run(Toolbox(Gone()).find(ProbedBackend(), Role.CLIENT, FAR))
    assert caught.value.message == "host paris: it refuses connections"


def test_a_host_that_is_lost_while_its_tools_are_looked_at_is_named_and_no_tool_is_missed():
    class Dying(FarSpawner):
        async def why_lost(self, host):
            return "host paris: the connection was closed"

    dying = Script([(0.1, "!host paris: the connection was closed")], 0.2, code=remote.LOST)
    with pytest.raises(HostError) as caught:
        asyncio.run(Toolbox(Dying({"sh": dying})).find(ProbedBackend(), Role.CLIENT, FAR))
    assert caught.value.message == "host paris: the connection was closed"
    assert "get it" not in caught.value.hint
