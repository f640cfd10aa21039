"""Hosts behind real packet filters: what passes, which ports are used, and what is said if none."""

import json
import os

import pytest
from remote_lab import NEEDS
from waiting import wait_until

pytestmark = [*NEEDS, pytest.mark.tool("nft")]

HOSTS = """\
[hosts.paris]
ssh = "paris"
{paris}
[hosts.tokyo]
ssh = "tokyo"
{tokyo}
"""
FIRST, LAST = 5301, 5320
RANGE = f"{FIRST}-{LAST}"
OPEN = f'ports = "{RANGE}"'
PAIRS = '[axes]\npair = { mesh = ["paris", "tokyo"] }\n'
# The login of an ordinary user has no sbin; the tests' own programs are on our PATH.
SAME_PATH = ("-o", f"SetEnv=PATH={os.environ['PATH']}")


def measured(lab, tmp_path, text, code=0):
    """Measure a profile; returns its flows."""
    profile, out = tmp_path / "p.toml", tmp_path / "out.json"
    profile.write_text(text)
    words = ("run", str(profile), "--quiet", "-o", str(out))
    done = lab.benchctl(*words, BENCHCTL_STORE=str(tmp_path / "runs.sqlite"))
    assert done.returncode == code, done.stdout + done.stderr
    return [flow for trial in json.loads(out.read_text())["trials"] for flow in trial["flows"]]


def flow(name, backend, *lines):
    head = (f"[flows.{name}]", f'backend = "{backend}"', 'duration = "1s"')
    return "\n".join([*head, *lines, ""])


UDP = ('protocol = "udp"', 'rate = "1Mbit"')
DELAY = ('interval = "20ms"', 'timeout = "500ms"')
FLOWS = {
    **{
        f"{tool}-{protocol}": (tool, *lines)
        for tool in ("simpleperf", "iperf3", "iperf2")
        for protocol, lines in {"tcp": ('rate = "2Mbit"',), "udp": UDP}.items()
    },
    "both": ("simpleperf", *UDP, 'direction = "both"'),
    "owamp": ("owamp", *DELAY),
    "receive": ("owamp", *DELAY, 'direction = "receive"'),
    "twamp": ("owamp", *DELAY, 'protocol = "twamp"', 'direction = "both"'),
    "stamp": ("owamp", *DELAY, 'protocol = "stamp"', 'direction = "both"'),
}


@pytest.mark.tool("iperf3", "iperf")
def test_every_tool_keeps_to_the_open_ports_and_measures_both_ways_from_one_that_nobody_reaches(
    lab, tmp_path
):
    lab.guard("paris")
    lab.guard("tokyo", tcp=[RANGE], udp=[RANGE])
    hosts = HOSTS.format(paris="reachable = false", tokyo=OPEN)
    text = "".join(flow(name, *words) for name, words in FLOWS.items())
    flows = measured(lab, tmp_path, hosts + text + PAIRS)
    assert {one["name"] for one in flows} == {*FLOWS}
    assert {(one["status"], one["from"], one["to"]) for one in flows} == {("ok", "paris", "tokyo")}
    assert all(FIRST <= one["port"] <= LAST for one in flows)
    # No packet came to a port that is closed, on either host.
    assert (lab.dropped("paris"), lab.dropped("tokyo")) == (0, 0)


@pytest.mark.tool("owping", "owampd")
def test_owping_and_owampd_keep_to_the_open_ports_of_both_hosts(lab, tmp_path):
    for host in ("paris", "tokyo"):
        lab.serve(host, *SAME_PATH)
        lab.guard(host, tcp=[RANGE], udp=[RANGE])
    lab.configure("Host paris tokyo\nPort 2222")
    # owping lets the server send first.
    text = flow("main", "owping", *DELAY) + PAIRS
    flows = measured(lab, tmp_path, HOSTS.format(paris=OPEN, tokyo=OPEN) + text)
    assert [one["status"] for one in flows] == ["ok"] * 4
    assert (lab.dropped("paris"), lab.dropped("tokyo")) == (0, 0)


SOON = ('connect_timeout = "2s"',)
ONE = 'from = "paris"\nto = "tokyo"\n[run]\nattempts = 1\n'


@pytest.mark.parametrize(
    ("lines", "opened", "what"),
    [
        pytest.param((), {}, "TCP port 8088", id="TCP"),
        pytest.param(UDP, {"tcp": [8088]}, "UDP port 8088", id="UDP"),
    ],
)
def test_a_closed_port_is_named_with_its_host(lines, opened, what, lab, tmp_path):
    lab.guard("tokyo", **opened)
    text = HOSTS.format(paris="", tokyo="") + flow("main", "simpleperf", *SOON, *lines) + ONE
    (one,) = measured(lab, tmp_path, text, code=1)
    assert f"tokyo is not reached from paris at {what}: no answer" in one["error"]
    assert "hosts.tokyo.ports" in one["hint"]
    wait_until(lambda: not lab.left("tokyo"), lambda: lab.left("tokyo"))
