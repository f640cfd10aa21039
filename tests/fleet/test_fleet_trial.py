"""Trials between two agents that stay, through the real engine, with real tools over loopback."""

import asyncio
import shutil
import time

import pytest
from fleet.small import FLEET, HERE, PARIS, SmallFleet, flow, measure, until
from msgspec.structs import replace

from benchctl.errors import HostError
from benchctl.fleet.driven import host as driven_host
from benchctl.fleet.driven.hosts import RunWays
from benchctl.fleet.host_messages import Unlock
from benchctl.fleet.limits import Limits
from benchctl.fleet.messages import COORDINATOR, FleetMessage
from benchctl.fleet.resident.states import EndState
from benchctl.fleet.trust.signing import Signer
from benchctl.hosts.hosts import Hosts
from benchctl.hosts.sent.hostlock import HostLock

# Of an attempt: longer than two tools need to start on a busy machine.
DEADLINE_S = 5.0


def test_two_hosts_of_a_fleet_measure_a_trial_and_keep_nothing_of_it(tmp_path):
    async def main():
        async with SmallFleet(tmp_path) as fleet:
            await fleet.start("paris", "oslo")
            found = await measure(fleet)
            spools = [agent._spool for agent in fleet.agents.values()]
            await until(lambda: all(spool.state.used_bytes == 0 for spool in spools))
            return found

    found = asyncio.run(main())
    assert (found.status, found.last.error) == ("ok", "")
    assert len(found.samples["bulk"]) >= 8
    figure = found.figures["send", "throughput_bps"]
    assert 15e6 < figure.value < 25e6
    assert "simpleperf" in " ".join(found.last.client)
    assert found.last.effective
    assert {name: one.unread for name, one in found.trial.counters.items()} == {
        "paris": "",
        "oslo": "",
    }
    assert all(one.lasted_s >= 1.0 for one in found.trial.counters.values())


def test_flows_of_several_backends_and_directions_are_one_trial(tmp_path):
    async def main():
        async with SmallFleet(tmp_path) as fleet:
            await fleet.start("paris", "oslo")
            probe = flow("probe", "owamp")
            probe = replace(probe, parameters={"count": 20, "interval": "10ms"})
            flows = [flow("there"), flow("back", source="oslo", to="paris"), probe]
            return await measure(fleet, *flows)

    found = asyncio.run(main())
    # Both are this machine, and may choose one port: then the flows move on to their next ones.
    assert (found.status, {one.error for one in found.flows[-3:]}) == ("ok", {""})
    assert found.trial.clocks.keys() == {"paris", "oslo"}


def test_what_is_delivered_twice_is_stored_once(tmp_path):
    async def main():
        async with SmallFleet(tmp_path) as fleet:
            await fleet.start("paris", "oslo")
            fleet.broker.twice = True
            return await measure(fleet)

    found = asyncio.run(main())
    assert (found.status, found.last.error) == ("ok", "")
    starts = [(one.role, one.stream, one.start_s) for one in found.samples["bulk"]]
    assert len(starts) == len(set(starts)) >= 8


def test_a_killed_agent_fails_the_attempt_and_the_next_one_succeeds(tmp_path):
    async def main():
        async with SmallFleet(tmp_path) as fleet:
            await fleet.start("paris", "oslo")

            async def during(context):
                agent = fleet.agents["paris"]
                await until(lambda: EndState.RUNS in [agent._states.state(r) for r in agent._ends])
                await until(lambda: fleet.broker.messages("SAMPLES"))
                await fleet.kill("paris")
                await fleet.start("paris")

            return await measure(fleet, flow(duration="3s"), attempts=5, during=during)

    found = asyncio.run(main())
    assert (found.flows[0].status, found.status) == ("failed", "ok")
    assert "the agent of paris was ended meanwhile" in found.flows[0].error


def test_a_host_that_is_cut_off_brings_all_that_it_measured(tmp_path, monkeypatch):
    monkeypatch.setattr(driven_host, "AWAY_S", 3.0)

    async def main():
        async with SmallFleet(tmp_path) as fleet:
            await fleet.start("paris", "oslo")

            async def during(context):
                agent = fleet.agents["paris"]
                await until(lambda: EndState.RUNS in [agent._states.state(r) for r in agent._ends])
                await fleet.carriers["paris"].cut()
                begun = time.monotonic()
                await until(lambda: not agent._ends)
                await until(lambda: time.monotonic() > begun + DEADLINE_S)
                await fleet.carriers["paris"].mend()

            return await measure(fleet, flow(duration="1s"), during=during, deadline_s=DEADLINE_S)

    found = asyncio.run(main())
    assert (found.status, found.last.error) == ("ok", "")
    assert len([one for one in found.samples["bulk"] if one.role == "client"]) >= 8


def test_a_host_to_which_nobody_listens_is_asked_a_few_times_a_second(tmp_path):
    async def main():
        async with SmallFleet(tmp_path) as fleet:
            await fleet.start("paris")
            host, request, asked = fleet.hosts.hosts["paris"], fleet.hosts._carrier.request, []

            async def counted(*arguments):
                asked.append(arguments)
                return await request(*arguments)

            fleet.hosts._carrier.request = counted
            await fleet.carriers["paris"].cut()
            asked.clear()
            with pytest.raises(HostError, match="did not answer within"):
                await host.ask(Unlock("nobody"), timeout_s=0.5)
            # Others, such as pings, ask it in the meantime, too.
            assert 2 <= len(asked) <= 20

    asyncio.run(main())


def test_a_heartbeat_of_another_version_is_told_with_both_versions(tmp_path):
    class Newer(FleetMessage, frozen=True, tag="heartbeat"):
        nonce: str
        time_s: float
        version: str
        mood: str

    async def main():
        async with SmallFleet(tmp_path) as fleet:
            beat = Newer("n", time.time(), "99.0", "good")
            for signer in ("eve", "paris"):  # she signs as paris, with her own key
                sealed = Signer(fleet.secrets[signer], FLEET, "paris").seal(
                    beat, COORDINATOR, epoch=1, now_s=time.time()
                )
                assert "paris" not in fleet.hosts.hosts
                fleet.broker.deliver("bench.hb.paris", sealed)
                await asyncio.sleep(0.1)
            with pytest.raises(HostError) as error:
                await fleet.hosts.open("paris", PARIS.reach)
            return error.value.message

    said = asyncio.run(main())
    assert said.startswith("host paris has benchctl 99.0, which the coordinator's")
    assert "does not understand: upgrade the older one" in said


def test_a_host_whose_disk_is_full_takes_no_plan_and_says_so(tmp_path, monkeypatch):
    async def main():
        async with SmallFleet(tmp_path) as fleet:
            await fleet.start("paris", "oslo")
            free = shutil.disk_usage(tmp_path)._replace(free=1000)
            monkeypatch.setattr(shutil, "disk_usage", lambda _: free)
            return await measure(fleet, attempts=3)

    found = asyncio.run(main())
    assert (found.status, len(found.flows)) == ("failed", 1)
    assert found.last.error == "host oslo: its disk is full: 1000 B are left for its spool"


def test_a_running_trial_waits_for_its_host_as_long_as_the_profile_says(tmp_path, monkeypatch):
    monkeypatch.setattr(driven_host, "AWAY_S", 0.5)

    async def main():
        async with SmallFleet(tmp_path) as fleet:
            await fleet.start("paris")
            async with Hosts(ways=RunWays(fleet.hosts, 1.0)) as hosts:
                link = await hosts.link(PARIS)
                await fleet.carriers["paris"].cut()
                await until(lambda: link.lost)
                return link.lost

    assert "so it is not waited for any longer" in asyncio.run(main())


def test_a_host_that_is_there_and_answers_nothing_holds_up_no_trial(tmp_path, monkeypatch):
    monkeypatch.setattr("benchctl.fleet.driven.link.PREPARED_S", 0.5)

    async def ignores(*_):
        pass

    async def main():
        async with SmallFleet(tmp_path) as fleet:
            await fleet.start("paris", "oslo")
            fleet.agents["paris"]._reply = ignores
            fleet.hosts.hosts["paris"].forget_clock()
            async with asyncio.timeout(20):
                async with Hosts(ways=fleet.hosts) as hosts:
                    with pytest.raises(HostError, match="is there, and answers nothing"):
                        await hosts.clock_of(PARIS)

    asyncio.run(main())


def test_a_go_that_comes_late_fails_the_attempt(tmp_path, monkeypatch):
    monkeypatch.setattr(driven_host, "LEAST_LEAD_S", -0.5)

    async def main():
        async with SmallFleet(tmp_path) as fleet:
            await fleet.start("paris", "oslo")
            return await measure(fleet)

    found = asyncio.run(main())
    assert found.status == "failed"
    assert "came 0." in found.last.error
    assert "late" in found.last.error


def test_a_plan_that_a_host_refuses_is_not_tried_again(tmp_path):
    async def main():
        async with SmallFleet(tmp_path) as fleet:
            await fleet.start("paris", limits=replace(HERE, rate_bps=1e6))
            await fleet.start("oslo")
            return await measure(fleet, attempts=3)

    found = asyncio.run(main())
    assert [one.error for one in found.flows] == [
        "host paris: its owner allows 1.00 Mbit/s; the flow takes up to 20.0 Mbit/s"
    ]
    assert found.status == "failed"


def test_a_host_with_another_version_refuses_with_both(tmp_path, monkeypatch):
    async def main():
        async with SmallFleet(tmp_path) as fleet:
            await fleet.start("paris", "oslo")
            plugins = fleet.agents["oslo"]._permits.plugins
            place = [one.name for one in plugins].index("simpleperf")
            ours = plugins[place].version
            plugins[place] = replace(plugins[place], version="0.1")
            return ours, await measure(fleet, attempts=3)

    ours, found = asyncio.run(main())
    assert len(found.flows) == 1
    assert "host oslo has simpleperf 0.1 (" in found.last.error
    assert f"and the coordinator {ours} (" in found.last.error


def test_loopback_is_no_target_unless_it_is_listed(tmp_path):
    async def main():
        async with SmallFleet(tmp_path) as fleet:
            await fleet.start("paris", "oslo", limits=Limits())
            return await measure(fleet)

    found = asyncio.run(main())
    assert "127.0.0.1 is loopback, link-local or private" in found.last.error


def test_a_host_that_another_run_measures_is_not_taken(tmp_path):
    async def main():
        async with SmallFleet(tmp_path) as fleet:
            await fleet.start("paris", "oslo")
            other = HostLock(f"{fleet.lock}-paris")
            assert other.take("run x of ann") == ""
            try:
                return await measure(fleet)
            finally:
                other.give_back()

    found = asyncio.run(main())
    assert "run x of ann measures there now" in found.last.error


def test_the_rates_of_all_flows_count_together(tmp_path):
    async def main():
        async with SmallFleet(tmp_path) as fleet:
            await fleet.start("paris", limits=replace(HERE, rate_bps=30e6))
            await fleet.start("oslo")
            return await measure(fleet, flow("one"), flow("two"))

    found = asyncio.run(main())
    assert "its owner allows 30.0 Mbit/s, 20.0 Mbit/s of them now" in found.trial.error


def test_the_hosts_of_a_fleet_learn_each_others_addresses(tmp_path):
    async def main():
        async with SmallFleet(tmp_path) as fleet:
            await fleet.start("paris", addresses=("203.0.113.1",))
            await fleet.start("oslo", addresses=("203.0.113.2",))
            agents = fleet.agents.values()
            await until(
                lambda: all(
                    {*agent._permits.fleet_addresses} == {"203.0.113.1", "203.0.113.2"}
                    for agent in agents
                )
            )

    asyncio.run(main())


def test_a_trial_that_the_user_stops_leaves_nothing_and_keeps_its_samples(tmp_path):
    async def main():
        async with SmallFleet(tmp_path) as fleet:
            await fleet.start("paris", "oslo")

            async def during(context):
                agent = fleet.agents["paris"]
                await until(lambda: EndState.RUNS in [agent._states.state(r) for r in agent._ends])
                await until(lambda: fleet.broker.messages("SAMPLES"))
                context.signals.stop.set()

            found = await measure(fleet, flow(duration="60s"), during=during)
            assert all(not agent._ends for agent in fleet.agents.values())
            return found

    found = asyncio.run(main())
    assert found.status == "interrupted"
    assert found.samples["bulk"]


def test_ctrl_c_before_a_start_leaves_nothing_at_any_host(tmp_path, monkeypatch):
    async def main():
        async with SmallFleet(tmp_path) as fleet:
            await fleet.start("paris", "oslo")

            async def during(context):
                await until(lambda: fleet.agents["oslo"]._ends)
                context.signals.stop.set()

            found = await measure(fleet, flow(duration="60s"), during=during)
            await until(lambda: all(not agent._ends for agent in fleet.agents.values()))
            return found

    assert asyncio.run(main()).status == "interrupted"


def test_a_run_without_its_fleet_says_what_it_needs(tmp_path):
    async def main():
        async with SmallFleet(tmp_path) as fleet:
            fleet.hosts, hosts = None, fleet.hosts
            try:
                return await measure(fleet)
            finally:
                fleet.hosts = hosts

    found = asyncio.run(main())
    assert "is of a fleet, whose coordinator measures with it" in found.trial.error
