"""Firewalls, both IP versions, and another run on the same hosts, with real servers of SSH."""

import asyncio
import json

from remote.measured import MAIN, PING
from remote_lab import NEEDS, TWO, remote_lab
from waiting import wait_until

from benchctl.hosts.hosts import Hosts
from benchctl.hosts.ssh.remote import holder
from benchctl.run.planned import Host, SshTarget

pytestmark = NEEDS

HOSTS = """\
[hosts.paris]
ssh = "paris"
{paris}
[hosts.tokyo]
ssh = "tokyo"
{tokyo}
[flows.main]
backend = "simpleperf"
duration = "500ms"
rate = "2Mbit"
"""


OF_TOKYO = {4: "10.0.2.1", 6: "fd62:656e:6368:2::1"}


def notes(run):
    return [one["text"] for one in run.of("note") if "is measured by" in one["text"]]


def flows_of(lab, tmp_path, text):
    """Measure a profile; returns the flows of its trials."""
    profile, out = tmp_path / "p.toml", tmp_path / "out.json"
    profile.write_text(text)
    words = ("run", str(profile), "--quiet", "-o", str(out))
    done = lab.benchctl(*words, BENCHCTL_STORE=str(tmp_path / "runs.sqlite"))
    assert done.returncode == 0, done.stderr
    return [flow for trial in json.loads(out.read_text())["trials"] for flow in trial["flows"]]


def test_a_host_behind_a_firewall_is_the_client_of_both_ways(lab, tmp_path):
    hosts = HOSTS.format(paris="reachable = false", tokyo='ports = "5301-5302"')
    text = f'{hosts}[axes]\npair = {{ mesh = ["paris", "tokyo"] }}\n'
    flows = flows_of(lab, tmp_path, text)
    assert [(flow["from"], flow["to"], flow["direction"]) for flow in flows] == [
        ("paris", "tokyo", "send"), ("paris", "tokyo", "receive"),
    ]  # fmt: skip
    assert {flow["port"] for flow in flows} <= {5301, 5302}
    assert all(flow["metrics"]["throughput_bps"] > 0 for flow in flows)


def test_both_addresses_of_a_host_are_used(tmp_path):
    text = HOSTS.format(paris="", tokyo="")
    text = f'{text}from = "paris"\nto = "tokyo"\n[axes]\nip_version = {[*OF_TOKYO]}\n'
    with remote_lab(tmp_path, f"ipv6 = true\n{TWO}") as lab:
        flows = flows_of(lab, tmp_path, text)
    used = [word for flow in flows for word in flow["command"] if word in OF_TOKYO.values()]
    assert used == [*OF_TOKYO.values()]


def stop(lab, run):
    """Stop a run, and return its name."""
    assert not lab.benchctl("runs", "stop", BENCHCTL_STORE=run.store).returncode
    run.end()
    (name,) = [one["id"] for one in run.of("run_ended")]
    return name


# It ends only when it is told to, however long the other takes to start.
ENDLESS = MAIN.replace('duration = "1s"', 'duration = "10min"')
ON_PARIS = """
[flows.main]
backend = "simpleperf"
duration = "{}"
rate = "1Mbit"
"""


def waits_for(lab, first, others):
    """Let runs wait for the first, which is stopped; ``others`` are they, with what they say."""
    for run in others:
        wait_until(lambda run=run: notes(run), run.told)
    name = stop(lab, first)
    ended = max(one["finished"] for one in first.of("trial_ended"))
    for run, where in others.items():
        assert run.end() == 0, run.told()
        assert any(f"{where} is measured by run {name} of " in note for note in notes(run))
        assert min(one["started"] for one in run.of("trial_ended")) >= ended


def test_runs_wait_for_the_run_that_has_their_hosts_and_say_for_whom(lab, measure):
    """Also the run that is started on one of these hosts."""
    first = measure(ENDLESS)
    first.until("sample")
    there = measure(ON_PARIS.format("1s"), lab=lab.at("paris"))
    waits_for(lab, first, {measure(PING): "host paris", there: "this machine"})


def test_a_run_that_may_not_wait_says_who_has_its_hosts_and_records_nothing(lab, tmp_path):
    profile, store = tmp_path / "p.toml", tmp_path / "runs.sqlite"
    profile.write_text(MAIN)
    words = ("run", str(profile), "--no-wait", "--store", str(store))

    async def main():
        async with Hosts() as hosts:
            paris = Host("paris", "", reach=SshTarget("paris", lab.over))
            assert not await hosts.lock(paris, "other")
            runs = (asyncio.to_thread(lab.benchctl, *words, *more) for more in ((), ("--detach",)))
            return await asyncio.gather(*runs)

    for done in asyncio.run(main()):
        assert (done.returncode, done.stdout) == (2, "")
        assert f"host paris is measured by {holder('other')}" in done.stderr
    assert not store.exists()


def test_a_run_waits_for_a_run_on_one_of_its_hosts_which_runs_there_share(lab, measure):
    first = measure(ON_PARIS.format("10min"), lab=lab.at("paris"))
    first.until("sample")
    beside = measure(ON_PARIS.format("1s"), lab=lab.at("paris"))
    assert beside.end() == 0, beside.told()
    assert not notes(beside)
    waits_for(lab, first, {measure(PING): "host paris"})
