"""Firewalls, both IP versions, and another run on the same hosts, with real servers of SSH."""

import json
import sys

import pytest
from remote.measured import MAIN
from remote_lab import NEEDS, TWO, remote_lab
from waiting import wait_until

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
    done = lab.run(
        sys.executable, "-m", "benchctl", "run", str(profile), "--quiet",
        "--store", str(tmp_path / "runs.sqlite"), "-o", str(out),
    )  # fmt: skip
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


@pytest.mark.parametrize("version", [4, 6])
def test_both_addresses_of_a_host_are_used(tmp_path, version):
    text = HOSTS.format(paris="", tokyo="")
    text = f'{text}from = "paris"\nto = "tokyo"\nip_version = {version}\n'
    with remote_lab(tmp_path, f"ipv6 = true\n{TWO}") as lab:
        (flow,) = flows_of(lab, tmp_path, text)
    (address,) = [word for word in flow["command"] if word in OF_TOKYO.values()]
    assert address == OF_TOKYO[version]


def test_a_run_waits_for_the_run_that_has_its_hosts_and_says_for_whom(lab, measure, tmp_path):
    # It ends only when it is told to, however long the other takes to start.
    first = measure(MAIN.replace('duration = "1s"', 'duration = "10min"'))
    first.until("sample")
    second = measure(MAIN)
    wait_until(lambda: notes(second), second.told)
    store = str(tmp_path / "remote-0.sqlite")
    assert not lab.run(
        sys.executable, "-m", "benchctl", "runs", "stop", "--store", store
    ).returncode
    first.end()
    assert second.end() == 0, second.told()
    (name,) = [one["id"] for one in first.of("run_ended")]
    assert any(f"host paris is measured by run {name} of " in note for note in notes(second))
    ended = max(one["finished"] for one in first.of("trial_ended"))
    assert min(one["started"] for one in second.of("trial_ended")) >= ended
