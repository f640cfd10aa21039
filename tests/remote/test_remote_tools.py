"""Tools between hosts that SSH reaches, beside what the hosts' own devices count."""

import json
import subprocess

import pytest
from remote_lab import NEEDS

pytestmark = [*NEEDS, pytest.mark.tool("iperf3")]

PROFILE = """\
[hosts.paris]
ssh = "paris"
[hosts.tokyo]
ssh = "tokyo"
[flows.main]
backend = "iperf3"
protocol = "{protocol}"
rate = "20Mbit"
bytes = "7MB"
direction = "{direction}"
from = "paris"
to = "tokyo"
{more}
"""
LENGTH = 1400
# Ethernet, IPv4, and UDP.
UDP_HEAD = 14 + 20 + 8
# The devices count a whole segment of TCP once, however many packets it is, with one header of 14
# bytes of Ethernet, 20 of IPv4, and 32 of TCP with timestamps.
TCP_HEAD, SEGMENT = 14 + 20 + 32, 1448
# SSH, with the agent and the facts of the host, and what iperf3's ends tell each other: 45 kB seen.
BESIDE_BYTES = 100_000


def counted(lab, host):
    """Return the bytes that a host's device has received and sent, as ip(8) says."""
    words = ["ip", "-json", "-statistics", "link", "show", "dev", "eth0"]
    argv = [*lab.lab.nodes[host].prefix, *words]
    shown = subprocess.run(argv, capture_output=True, text=True, check=True).stdout
    (device,) = json.loads(shown)
    return {"rx": device["stats64"]["rx"]["bytes"], "tx": device["stats64"]["tx"]["bytes"]}


@pytest.mark.parametrize(("protocol", "direction"), [("tcp", "send"), ("udp", "receive")])
def test_what_iperf3_reports_is_what_the_devices_of_both_hosts_carried(
    protocol, direction, lab, tmp_path
):
    profile, out = tmp_path / "p.toml", tmp_path / "out.json"
    more = f'length = "{LENGTH}B"' if protocol == "udp" else ""
    profile.write_text(PROFILE.format(protocol=protocol, direction=direction, more=more))
    before = {host: counted(lab, host) for host in ("paris", "tokyo")}
    words = ("run", str(profile), "--quiet", "-o", str(out))
    done = lab.benchctl(*words, BENCHCTL_STORE=str(tmp_path / "runs.sqlite"))
    after = {host: counted(lab, host) for host in ("paris", "tokyo")}
    assert done.returncode == 0, done.stdout + done.stderr
    ((flow,),) = [trial["flows"] for trial in json.loads(out.read_text())["trials"]]
    figures = flow["metrics"]
    sender, receiver = ("paris", "tokyo") if direction == "send" else ("tokyo", "paris")
    sent = after[sender]["tx"] - before[sender]["tx"]
    received = after[receiver]["rx"] - before[receiver]["rx"]
    if protocol == "udp":
        least = figures["packets_received"] * (LENGTH + UDP_HEAD)
        most = figures["packets_sent"] * (LENGTH + UDP_HEAD)
    else:
        again = figures["retransmits"] * (SEGMENT + TCP_HEAD)
        least = figures["bytes_received"]
        most = figures["bytes_sent"] * (1 + TCP_HEAD / SEGMENT) + again
    assert figures["bytes_sent"] >= 7e6
    for carried in (sent, received):
        assert least <= carried <= most + BESIDE_BYTES, (figures, sent, received)


def test_a_first_look_at_a_host_needs_nothing_there_but_a_login(lab, tmp_path):
    done = lab.benchctl(
        "quick", "--ssh", "tokyo", "--duration", "1s",
        "--udp", "0", "--no-ping", "-q", "--format", "json", "--store", str(tmp_path / "s.sqlite"),
    )  # fmt: skip
    assert done.returncode == 0, done.stdout + done.stderr
    trials = json.loads(done.stdout)["trials"]
    assert [trial["point"]["measure"] for trial in trials] == ["send", "receive"]
    for trial in trials:
        (flow,) = trial["flows"]
        assert {"throughput_bps", "responsiveness_rpm"} <= flow["metrics"].keys()
