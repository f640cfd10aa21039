"""A host that is away costs the trials that need it, and no other."""

import asyncio
from types import SimpleNamespace

import pytest
from engine.virtual import flow
from msgspec.structs import replace

from benchctl.engine.site.attendance import Attendance, AwayError
from benchctl.engine.site.hooks import Hooks
from benchctl.engine.site.site import Site
from benchctl.errors import HostError
from benchctl.run.planned import LOCAL, Hook, Host, Network, PlannedTrial, SshTarget, When
from benchctl.run.record import HookOutcome


class FakeHosts:
    """Hosts of which some are away; counts how often each is asked."""

    def __init__(self, *away):
        self.gone, self.asked, self._failed = set(away), [], set()

    async def connect(self, hosts):
        for host in hosts:
            try:
                await self.link(host)
            except HostError:
                continue

    async def link(self, host):
        self.asked.append(host.name)
        self._failed.discard(host.name)
        if host.name in self.gone:
            self._failed.add(host.name)
            raise self.away(host)

    def away(self, host):
        if host.name in self._failed:
            return HostError(f"host {host.name}: it does not answer", "see whether it runs")
        return None

    async def ask(self, host, module, function, address):
        return True


def trial(source, to):
    one = replace(flow(to=to), source=source)
    return PlannedTrial(0, 1, {}, (one,), {}, 1.0, 16.0)


NAMES = ("a", "b", "c", "router")
TRIALS = [trial("a", "b"), trial("b", "c"), trial("c", "a")]


def attended(hosts, main, trials=TRIALS, hooks=()):
    """Run ``main(attendance)`` after all hosts were asked; returns the notes."""
    notes = []
    of_run = [Host(name, f"192.0.2.{n}", reach=SshTarget(name)) for n, name in enumerate(NAMES, 1)]
    site = Site(Network({"local": LOCAL, **{host.name: host for host in of_run}}))

    async def wrapped():
        await hosts.connect(of_run)
        settings = SimpleNamespace(hooks=hooks, parallel=None)
        context = SimpleNamespace(hosts=hosts, site=site, settings=settings, note=notes.append)
        attendance = Attendance(context, lambda: trials)
        await attendance.begin([LOCAL, *of_run])
        hosts.asked.clear()
        await main(attendance)

    asyncio.run(wrapped())
    return notes


async def outcomes(attendance):
    found = []
    for one in TRIALS:
        try:
            await attendance.call(one)
            found.append("there")
        except AwayError as error:
            found.append(error.message)
    return found


def test_trials_without_the_host_that_is_away_are_measured_and_the_others_say_why():
    hosts, found = FakeHosts("c"), []

    async def main(attendance):
        found.extend(await outcomes(attendance))
        attendance.check_end()

    notes = attended(hosts, main)
    gone = "host c: it does not answer"
    assert found == ["there", gone, gone]
    assert hosts.asked == ["c", "c"]  # once before each of its trials
    assert notes == [
        f"{gone}; see whether it runs; trials that need it fail, the others are measured"
    ]


def test_a_host_that_comes_back_is_measured():
    hosts, found = FakeHosts("c"), []

    async def main(attendance):
        hosts.gone.clear()
        found.extend(await outcomes(attendance))

    attended(hosts, main)
    assert found == ["there"] * 3
    assert hosts.asked == ["c"]


def test_hosts_that_leave_no_trial_are_an_error_at_once():
    with pytest.raises(HostError, match="host a: it does not answer"):
        attended(FakeHosts("a", "b", "c"), None)


def test_hosts_of_which_no_trial_had_all_are_an_error_at_the_end():
    hosts = FakeHosts("c")

    async def main(attendance):
        hosts.gone.update("ab")
        hosts._failed.update("ab")
        assert "there" not in await outcomes(attendance)
        with pytest.raises(HostError, match="host c: it does not answer"):
            attendance.check_end()

    attended(hosts, main)


def test_a_host_that_no_flow_uses_is_needed_by_all_if_it_prepares_them():
    hook = Hook("router", When.PREPARE, "true")
    with pytest.raises(HostError, match="host router: it does not answer"):
        attended(FakeHosts("router"), None, hooks=[hook])

    async def main(attendance):
        assert await outcomes(attendance) == ["there"] * 3

    attended(FakeHosts("router"), main)


def test_a_host_that_is_away_prepares_nothing_and_keeps_no_other_from_it():
    ran = []

    class Running(Hooks):
        async def _run(self, hook, host):
            ran.append((hook.when, host.name))
            return HookOutcome(hook.host, hook.when, hook.command, 0, "")

    network = Network({name: Host(name, "192.0.2.1", reach=SshTarget(name)) for name in "ac"})
    hooks = [Hook(name, when, "true") for when in When for name in "ac"]
    away = {"c"}
    recorder = SimpleNamespace(update_run=lambda **_: None, update_trial=lambda *_, **__: None)

    context = SimpleNamespace(
        settings=SimpleNamespace(hooks=hooks, parallel=None), recorder=recorder,
        run=SimpleNamespace(hooks=()), site=Site(network),
    )  # fmt: skip

    async def main():
        of_run = Running(context, lambda host: host.name in away)
        await of_run.before(1, [], network)
        await of_run.after(1)
        away.clear()
        await of_run.before(2, [], network)
        return of_run

    asyncio.run(main())
    assert [one for one in ran if one[1] == "a"][:3] == [
        (When.PREPARE_RUN, "a"), (When.PREPARE, "a"), (When.CLEANUP, "a"),
    ]  # fmt: skip
    assert [one for one in ran if one[1] == "c"] == [(When.PREPARE_RUN, "c"), (When.PREPARE, "c")]
    assert ran.count((When.PREPARE_RUN, "a")) == 1
