"""Routes in real labs: addresses, round-trip times and losses are those that the topology promises.

The references are the addresses and delays of the topology, the kernel's own answer to ``ip route
get``, and the frames that the links count as lost.
"""

import json
import os
from itertools import pairwise
from pathlib import Path

import pytest

from benchctl.lab.topology.topology import load_topology
from benchctl.profile.find import shipped_topologies

pytestmark = [pytest.mark.netns, pytest.mark.tool("mtr", "traceroute"), pytest.mark.once]

# Enough that some probe arrives everywhere, in a second.
SHORT = ("--set=count=10", "--set=interval=50ms", "--set=lab.verify=false", "--set=timeout=1s")
WAY = ("client", "first", "second", "third", "server")


class Runs:
    """Runs of profiles in one store."""

    def __init__(self, directory, server):
        self._directory, self._server = directory, server
        # A program that is none of them hides mtr.
        hiding = directory / "without-mtr"
        hiding.mkdir()
        (hiding / "mtr").write_text("#!/bin/sh\necho something else\n")
        (hiding / "mtr").chmod(0o755)
        self._paths = {"mtr": os.environ["PATH"], "traceroute": f"{hiding}:{os.environ['PATH']}"}

    def command(self, *arguments, tool="mtr"):
        store = str(self._directory / "runs.sqlite")
        environment = {**os.environ, "BENCHCTL_STORE": store, "PATH": self._paths[tool]}
        return self._server.run(["benchctl", *arguments], self._directory, environment)

    def run(self, profile, *arguments, tool="mtr"):
        """Return the document of a run whose trials all ended well."""
        words = ("run", profile, "-q", "--format", "json", *SHORT, *arguments)
        done = self.command(*words, tool=tool)
        assert done.returncode == 0, done.stdout + done.stderr
        document = json.loads(done.stdout)
        for trial in document["trials"]:
            (flow,) = trial["flows"]
            assert Path(flow["command"][0]).name == tool
        return document


@pytest.fixture(scope="module")
def runs(tmp_path_factory, fork_server):
    return Runs(tmp_path_factory.mktemp("routes"), fork_server)


def promised(version):
    """Return the addresses along the way, and the round-trip time to each by the delays alone."""
    topology = load_topology(shipped_topologies()["three-routers"])
    links = {frozenset(end.node for end in link.ends): link for link in topology.links.values()}
    addresses, delay_s = [], 0.0
    for before, node in pairwise(WAY):
        link = links[frozenset((before, node))]
        delay_s += link.settings[0].delay_s
        (end,) = (end for end in link.ends if end.node == node)
        addresses.append((str(end.at(version).ip), 2 * delay_s))
    return addresses


@pytest.mark.parametrize(
    ("tool", "points"),
    [
        ("mtr", ("--only", "protocol=icmp,udp")),
        # It waits for each lost probe.
        ("traceroute", ("--only", "protocol=udp", "--only", "ip_version=6")),
    ],
)
def test_a_route_is_what_the_topology_promises(runs, tool, points):
    # The kernel says where the first hop is; the links count what they lost.
    asked = "ip route get 10.0.3.2; ip -6 route get fd62:656e:6368:3::2"
    document = runs.run(
        "routes/lossy-link", "--set", f"hosts.client.prepare_run={asked}",
        "--set", "lab.links.lossy.loss=10%", *points, tool=tool,
    )  # fmt: skip
    (hook,) = document["run"]["hooks"]
    for trial in document["trials"]:
        version = trial["point"]["ip_version"]
        (flow,) = trial["flows"]
        way = promised(version)
        assert [[*hop["addresses"]] for hop in flow["route"]] == [[address] for address, _ in way]
        assert f"via {way[0][0]} " in hook["output"]
        assert flow["metrics"]["hops"]["max"] == 3
        hops = [hop["metrics"] for hop in flow["route"]]
        for metrics, (_, least_s) in zip(hops, way, strict=True):
            # Nothing is faster than the links; the kernel's clock of the answer has microseconds.
            assert metrics["hop_rtt_s"]["min"] >= least_s - 2e-6
        # A busy machine is late, but not always by as much as the next link takes.
        for near, (_, next_s) in zip(hops[:2], way[1:3], strict=True):
            assert near["hop_rtt_s"]["min"] < next_s
        assert flow["expected"]["rtt_s"] == pytest.approx(way[-1][1])
        lost = sum(link["lost"] for link in trial["links"])
        assert [metrics["hop_unanswered"] for metrics in hops[:2]] == [0, 0]
        # The kernels of the hosts report their multicast groups now and then: a frame, of which a
        # tenth is lost.
        assert lost - 1 <= sum(metrics["hop_unanswered"] for metrics in hops) <= lost
        assert flow["metrics"]["packets_lost"] == hops[-1]["hop_unanswered"]


def test_tcp_probes_are_answered_by_a_closed_port(runs):
    document = runs.run("routes/lossy-link", "--only", "protocol=tcp", "--only", "ip_version=4")
    for trial in document["trials"]:
        (flow,) = trial["flows"]
        way = promised(trial["point"]["ip_version"])
        assert [[*hop["addresses"]] for hop in flow["route"]] == [[address] for address, _ in way]
        assert flow["metrics"]["rtt_s"]["max"] < 1


def test_two_ways_at_once_are_seen_by_probes_that_differ(runs):
    # So many take the same way by chance once in 10^17 times.
    many = ("--set", "count=60", "--set", "interval=20ms", "--only", "protocol=icmp,udp")
    for trial in runs.run("routes/two-ways", *many)["trials"]:
        (flow,) = trial["flows"]
        split, middle, join, server = (set(hop["addresses"]) for hop in flow["route"])
        assert (split, join, server) == ({"10.0.0.2"}, {"10.0.3.2"}, {"10.0.5.2"})
        if trial["point"]["protocol"] == "icmp":
            assert len(middle) == 1
        else:
            assert middle == {"10.0.1.2", "10.0.2.2"}
    assert "several routes at once: hop 2 is " in runs.command("show", "last").stdout


def test_a_route_that_changes_between_repeats_and_runs_is_shown(runs):
    def through(way):
        return f"ip route replace 10.0.5.0/24 via {way}"

    upper, lower = through("10.0.1.2"), through("10.0.2.2")
    flip = f"ip route get 10.0.5.2 | grep -q 10.0.1.2 && {lower} || {upper}"
    icmp = ("--only", "protocol=icmp", "--set", "count=3")
    runs.run("routes/two-ways", *icmp, "--set", f"hosts.split.prepare={flip}", "--repeat", "2")
    shown = runs.command("show", "last").stdout
    assert "route of trace: changed between repeats: " in shown
    for middle in ("10.0.1.2", "10.0.2.2"):
        assert f"10.0.0.2 > {middle} > 10.0.3.2 > 10.0.5.2 (repeat " in shown
    names = [
        runs.run("routes/two-ways", *icmp, "--set", f"hosts.split.prepare_run={way}")["run"]["id"]
        for way in (upper, lower)
    ]
    told = runs.command("compare", *names).stdout
    (row,) = (line for line in told.splitlines() if line.startswith("route of trace"))
    assert row.index("10.0.1.2") < row.index("10.0.2.2")
